"""One turn with Claude Code: when it is over, what it shows, and that nothing ever raises."""

import json
import random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extensions.claude.claude_folds import (
    DIALECT,
    NAMES,
    OPENING,
    ClaudeFold,
    event,
    fold,
    lines,
    turn_two,
)

from subagents.domain.run.signals import (
    ToolSeen,
    UsageSeen,
)
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import LineType
from subagents.extensions.claude.claude_state import message_id


def finished(folded: ClaudeFold) -> ClaudeFold:
    folded.finish()
    return folded


@pytest.mark.requirement("claude-worker:stream:turn-has-an-end")
@pytest.mark.parametrize("name", [each for each in NAMES if each != "killed"])
def test_a_turn_is_over_at_its_last_line_and_not_before_its_last_result(name: str) -> None:
    found = lines(name)
    assert fold(found, turn_two(name)).state.is_over
    last = max(i for i, line in enumerate(found) if json.loads(line)["type"] == "result")
    assert not fold(found[:last], turn_two(name)).state.is_over


@pytest.mark.requirement("claude-worker:stream:folding-twice")
@pytest.mark.parametrize("name", NAMES)
def test_folding_again_after_a_restart_gives_the_same(name: str) -> None:
    first, again = (finished(fold(lines(name), turn_two(name))) for _ in range(2))
    assert first == again
    live = finished(fold(lines(name), turn_two(name), now_ms=1_795_000_000_000))
    assert live.state == first.state
    assert [each for each in live.signals if isinstance(each, UsageSeen | ToolSeen)] == [
        each for each in first.signals if isinstance(each, UsageSeen | ToolSeen)
    ]


@pytest.mark.requirement("claude-worker:stream:tools")
def test_tools_begin_and_end_with_what_came_out_and_how_long_it_took() -> None:
    folded = fold(lines("tools"))
    assert folded.tools == ["Bash", "Bash", "Write", "Read"]
    ends = folded.ends
    assert [each.exit_code for each in ends] == [0, 3, None, None]
    assert [each.is_error for each in ends] == [False, True, False, False]
    assert ends[0].command == "echo one; echo two >&2"
    assert "two" in ends[0].output
    assert ends[2].path == "out.txt"
    assert all(each.duration_ms is not None for each in ends)
    begun = [each.tool for each in folded.output if each.tool is not None and not each.tool.is_end]
    assert [each.call_id for each in begun] == [each.call_id for each in ends]


@pytest.mark.requirement("claude-worker:stream:parallel-tools")
def test_calls_made_at_once_are_told_apart() -> None:
    ends = fold(lines("parallel")).ends
    assert [(each.command, each.exit_code) for each in ends] == [
        ("echo a", 0),
        ("echo b; exit 1", 1),
    ]


@pytest.mark.requirement("claude-worker:stream:thinking")
def test_thinking_is_told_as_such() -> None:
    folded = fold(lines("thinking"))
    assert folded.texts(LineType.THINKING) == ["Let me see. Two and two is four."]
    assert folded.result.text == "Done thinking."


@pytest.mark.requirement("claude-worker:stream:denied-tool")
def test_a_denied_tool_fails_and_the_denial_is_told() -> None:
    folded = fold(lines("denied"))
    assert [each.is_error for each in folded.ends] == [True, True]
    refused = [each.api_error.message for each in folded.output if each.api_error is not None]
    assert refused == ["permission denied: Write (mode)"]
    assert not folded.result.is_error


@pytest.mark.requirement("claude-worker:stream:own-subagents")
@pytest.mark.parametrize("name", ["subagent", "background"])
def test_an_agent_of_its_own_is_never_taken_for_the_worker(name: str) -> None:
    folded = fold(lines(name))
    inner = [
        each for each in folded.output if each.tool is not None and "inside" in each.tool.input
    ]
    assert inner
    assert all(each.text.startswith("↳ ") for each in inner)
    assert "Inner." not in folded.texts(LineType.TEXT)
    assert folded.tools.count("Bash") == (1 if name == "background" else 0)
    started = [each.tool for each in folded.output if each.tool is not None and each.tool.agents]
    assert {each.name for each in started} == {"Agent"}


@pytest.mark.requirement("claude-worker:turn:waits-for-background-agents")
def test_a_turn_is_not_over_while_an_agent_works_in_the_background() -> None:
    found = lines("background")
    ends = [i for i, line in enumerate(found) if json.loads(line)["type"] == "result"]
    assert len(ends) == 3
    assert not fold(found[: ends[0] + 2]).state.is_over
    assert finished(fold(found[: ends[0] + 2])).results[-1].is_error
    assert fold(found).results[-1].text == "done"


@pytest.mark.requirement("claude-worker:errors:limit")
def test_a_turn_that_ended_by_a_rate_limit_is_a_wait_and_no_failure() -> None:
    folded = fold(lines("limit"))
    assert folded.result.is_limit
    assert folded.result.is_error
    assert "429" in str(folded.result.error)
    plan = {"status": "rejected", "resetsAt": 1_795_000_600, "rateLimitType": "five_hour"}
    cut = [*lines("limit")[:3], event(type="rate_limit_event", rate_limit_info=plan)]
    waits = fold([*cut, *lines("limit")[3:]], now_ms=1_795_000_000_000)
    assert waits.result.retry_after_ms == 600_000


@pytest.mark.requirement("claude-worker:errors:clear")
@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("refused", "API Error: 400"),
        ("max-turns", "maximum number of turns (1) (runtime_options.max_turns)"),
        ("max-budget", "maximum budget ($0.0001) (runtime_options.max_budget_usd)"),
        ("not-logged-in", "ANTHROPIC_API_KEY"),
        ("no-session", "No conversation found"),
    ],
)
def test_an_error_says_what_happened_and_the_way_out(name: str, output: str) -> None:
    folded = fold(lines(name), turn_two(name))
    assert folded.result.is_error
    assert output in str(folded.result.error)
    assert not folded.result.is_limit
    assert len(folded.results) == 1


@pytest.mark.requirement("claude-worker:errors:clear")
def test_an_error_of_the_login_tells_what_is_known_of_it() -> None:
    note = "this daemon was started by codex at 05:03 without ANTHROPIC_API_KEY"
    folded = fold(lines("not-logged-in"), replace(OPENING, login_note=note))
    assert note in str(folded.result.error)


@pytest.mark.requirement("claude-worker:interrupt:ends-the-turn")
def test_an_interrupted_turn_ends_with_its_last_words_and_begins_nothing_that_waited() -> None:
    folded = fold(lines("interrupted"))
    assert (folded.result.text, folded.result.error) == (
        "It takes long.",
        "the turn was interrupted",
    )
    early = fold(lines("interrupted-early"))
    assert (early.result.text, early.result.error) == ("", "the turn was interrupted")
    queued = fold(lines("interrupted-queued"))
    assert len(queued.results) == 1
    assert DIALECT.accepted(queued.state, "steer-1") is False
    assert DIALECT.interrupt(queued.state, key="again") is None


@pytest.mark.requirement("claude-worker:interrupt:before-the-beginning")
def test_a_turn_that_was_interrupted_before_it_began_is_over_too() -> None:
    prompt = message_id(DIALECT.begin(OPENING).state, "prompt")
    events = [event(type="system", subtype="session_state_changed", state="running")]
    events += [
        event(type="command_lifecycle", command_uuid=prompt, state=fate)
        for fate in ("queued", "cancelled")
    ]
    assert not fold(events).state.is_over
    folded = fold([*events, event(type="system", subtype="session_state_changed", state="idle")])
    assert folded.state.is_over
    assert [each.error for each in folded.results] == ["the turn was interrupted"]
    assert finished(folded).results == folded.results


@pytest.mark.requirement("claude-worker:steer:result-that-does-not-cover-it")
def test_a_result_that_does_not_cover_a_message_is_not_the_end() -> None:
    found = lines("late")
    first = next(i for i, line in enumerate(found) if json.loads(line)["type"] == "result")
    assert not fold(found[: first + 2]).state.is_over
    folded = fold(found)
    assert [each.text for each in folded.results] == ["The first answer.", "The second answer."]
    assert DIALECT.accepted(folded.state, "steer-1") is True


@pytest.mark.requirement("claude-worker:turn:version-without-states")
def test_a_version_that_tells_of_no_states_is_done_with_its_result() -> None:
    silent = [
        line
        for line in lines("text")
        if b"session_state_changed" not in line and b"command_lifecycle" not in line
    ]
    assert fold(silent).state.is_over


@pytest.mark.requirement("claude-worker:turn:dies-in-the-middle")
def test_a_program_that_dies_in_its_turn_leaves_an_error_with_its_last_words() -> None:
    folded = finished(fold(lines("killed")))
    assert (folded.result.text, folded.result.is_error) == ("It takes long.", True)
    assert not folded.state.is_over
    assert finished(fold(lines("text"))).results == fold(lines("text")).results


@pytest.mark.requirement("claude-worker:stream:compaction")
def test_a_compaction_is_told_also_one_that_failed() -> None:
    failed = fold(lines("not-compacted"))
    assert failed.texts(LineType.SYSTEM)[1:] == [
        "compacting the conversation",
        "the conversation was not compacted: summarization produced empty response",
    ]
    assert "too long" in str(failed.result.error)
    facts = {"trigger": "auto", "pre_tokens": 155_000, "post_tokens": 12_000}
    folded = fold([event(type="system", subtype="compact_boundary", compact_metadata=facts)])
    assert folded.texts(LineType.SYSTEM) == [
        "the conversation was compacted: 155,000 tokens to 12,000"
    ]


@pytest.mark.requirement("claude-worker:stream:unknown-events")
def test_an_unknown_event_is_told_by_name_once() -> None:
    folded = fold(
        [
            event(type="frob", subtype="nicate"),
            event(type="frob", subtype="nicate"),
            event(type="system", subtype="brand_new"),
            event(hello=1),
            event(type="assistant", message={"content": [{"type": "hologram"}]}),
            b"[SandboxDebug] not JSON",
        ]
    )
    assert folded.texts(LineType.SYSTEM) == [
        "unknown event: frob/nicate",
        "unknown event: system/brand_new",
        "unknown event: no type",
        "unknown event: assistant/hologram",
    ]
    assert folded.texts(LineType.TEXT) == ["[SandboxDebug] not JSON"]


@pytest.mark.requirement("claude-worker:stream:signs-of-life")
def test_a_heartbeat_of_a_tool_is_no_sign_of_life_but_thinking_is() -> None:
    beat = event(type="tool_progress", tool_name="Bash", elapsed_time_seconds=30, heartbeat=True)
    assert not fold([beat]).output
    thought = event(type="system", subtype="thinking_tokens", estimated_tokens=4)
    assert [each.text for each in fold([thought]).output] == [""]


@pytest.mark.requirement("claude-worker:stream:asks-nobody")
def test_a_question_to_its_host_is_answered_so_that_it_never_waits() -> None:
    asked = {"subtype": "can_use_tool", "tool_name": "Bash"}
    folded = fold([event(type="control_request", request_id="q1", request=asked)])
    (answer,) = (json.loads(each.line)["response"] for each in folded.input_lines[1:])
    assert (answer["request_id"], answer["response"]["behavior"]) == ("q1", "deny")
    other = fold([event(type="control_request", request_id="q2", request={"subtype": "new"})])
    assert json.loads(other.input_lines[-1].line)["response"]["subtype"] == "error"


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


KNOWN: Final = sorted({line for name in NAMES for line in lines(name)})


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """A real event with something else in one or more of its places, or cut."""
    form: Any = json.loads(draw(st.sampled_from(KNOWN)))
    for _ in range(draw(st.integers(1, 3))):
        at = form
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(at[key], dict | list) and at[key] and draw(st.booleans()):
                at = at[key]
                continue
            at[key] = draw(JSON)
            break
    line = json.dumps(form).encode("utf-8", "replace")
    return line[: draw(st.integers(0, len(line)))] if draw(st.booleans()) else line


@pytest.mark.requirement("claude-worker:stream:fuzz")
@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        spoiled() | st.binary(max_size=60) | JSON.map(lambda form: json.dumps(form).encode()),
        max_size=8,
    )
)
def test_no_line_ever_raises_and_folding_twice_gives_the_same(found: list[bytes]) -> None:
    first, again = finished(fold(found, now_ms=5)), finished(fold(found, now_ms=5))
    assert first == again
    assert all(isinstance(each.text, str) for each in first.output)
    for key in ("prompt", "steer-1"):
        DIALECT.accepted(first.state, key)
        DIALECT.steer(first.state, "x", key=key)
        DIALECT.interrupt(first.state, key=key)


@pytest.mark.requirement("claude-worker:stream:any-order")
def test_events_in_any_order_never_raise() -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    for _ in range(50):
        found = chance.sample(KNOWN, k=min(40, len(KNOWN)))
        finished(fold(found))


@pytest.mark.requirement("claude-worker:turn:dies-in-the-middle")
def test_a_turn_whose_result_could_not_be_read_is_no_success() -> None:
    whole = lines("text")
    broken = [b'{"type": "result", ' if b'"type": "result"' in line else line for line in whole]

    folded = finished(fold([each for each in broken if b"command_lifecycle" not in each]))

    assert folded.result.is_error
