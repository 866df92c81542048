"""Claude Code's stream: real recordings mean what they should, and nothing ever raises."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subagents.domain.run.run import Usage
from subagents.domain.run.signals import (
    ResultSeen,
    SessionSeen,
    Signal,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.run.values import AttemptId, RunId, replace
from subagents.domain.run.worker_output import LineType, OutputItem
from subagents.runtimes.claude.claude_code import ClaudeDialect
from subagents.runtimes.claude.claude_state import ClaudeState, message_id
from subagents.runtimes.conversation.dialect import InputLine, Opening, TurnStep

STREAMS: Final = Path(__file__).parents[2] / "data" / "streams" / "claude"
SESSION: Final = "11111111-2222-4333-8444-555555555555"
NAMES: Final = sorted(each.stem for each in STREAMS.glob("*.jsonl"))
DIALECT: Final = ClaudeDialect()

OPENING: Final = Opening(
    attempt_id=AttemptId("r-recorded#1"),
    run_id=RunId("r-recorded"),
    number=1,
    turn=1,
    message="do it",
    system_prompt="You are a worker.",
    cwd="/place/project",
    session_uuid=SESSION,
    bridge=("/usr/bin/subagents", "mcp"),
)


class Told(NamedTuple):
    """All that a stream came to."""

    state: ClaudeState
    output: list[OutputItem]
    signals: list[Signal]
    input_lines: list[InputLine]

    def texts(self, kind: LineType) -> list[str]:
        return [each.text for each in self.output if each.type is kind and each.text]

    @property
    def results(self) -> list[ResultSeen]:
        return [each for each in self.signals if isinstance(each, ResultSeen)]

    @property
    def result(self) -> ResultSeen:
        return self.results[-1]

    @property
    def usage(self) -> Usage:
        return [each.usage for each in self.signals if isinstance(each, UsageSeen)][-1]

    @property
    def tools(self) -> list[str]:
        return [each.name for each in self.signals if isinstance(each, ToolSeen)]

    @property
    def ends(self) -> list[Any]:
        return [each.tool for each in self.output if each.tool is not None and each.tool.is_end]


def lines(name: str) -> list[bytes]:
    return (STREAMS / f"{name}.jsonl").read_bytes().splitlines()


def fold(found: Sequence[bytes], opening: Opening = OPENING, now_ms: int | None = None) -> Told:
    step: TurnStep[ClaudeState] = DIALECT.begin(opening)
    told = Told(step.state, [], [], [])
    for line in found:
        step = DIALECT.read_line(told.state, line, now_ms=now_ms)
        told.output.extend(step.output)
        told.signals.extend(step.signals)
        told.input_lines.extend(step.input_lines)
        told = told._replace(state=step.state)
    return told


def finished(told: Told) -> Told:
    step = DIALECT.finish(told.state)
    return Told(
        step.state, [*told.output, *step.output], [*told.signals, *step.signals], told.input_lines
    )


def turn_two(name: str) -> Opening:
    """Some recordings are second turns: ids of their messages differ."""
    is_second = name in {"resumed", "repaired", "no-session"}
    return replace(OPENING, turn=2, session_id=SESSION) if is_second else OPENING


def event(**fields: object) -> bytes:
    return json.dumps(fields).encode()


# -- recordings ---------------------------------------------------------------------------------


@pytest.mark.requirement("claude-worker:stream:every-event-known")
@pytest.mark.parametrize("name", NAMES)
def test_every_event_of_the_real_program_is_known(name: str) -> None:
    told = fold(lines(name), turn_two(name))
    assert not told.state.unknown
    assert not [each for each in told.output if each.text.startswith("unknown event")]


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


@pytest.mark.requirement("claude-worker:stream:text")
def test_what_it_says_is_its_text_and_its_result() -> None:
    told = fold(lines("text"))
    assert told.texts(LineType.TEXT) == ["The answer is 42."]
    assert told.result == ResultSeen(key="", text="The answer is 42.")
    assert SessionSeen(key="", session_id=SESSION) in told.signals
    context = [each.context for each in told.output if each.context is not None]
    assert [(each.tokens > 1000, each.model is not None) for each in context] == [(True, True)]


@pytest.mark.requirement("claude-worker:usage:totals-and-cost")
def test_usage_grows_while_it_works_and_ends_with_the_programs_own_account() -> None:
    seen = [each.usage for each in fold(lines("tools")).signals if isinstance(each, UsageSeen)]
    read = [each.tokens_in or 0 for each in seen]
    assert read == sorted(read)
    assert len(seen) == 6
    assert all(each.cost_usd is None for each in seen[:-1])
    assert seen[-1].tokens_out == 40
    assert seen[-1].cost_usd is not None
    assert seen[-2].tokens_in == seen[-1].tokens_in


@pytest.mark.requirement("claude-worker:usage:unknown-cost")
def test_a_cost_that_the_program_guessed_is_no_cost() -> None:
    found = [
        line.replace(b'"costBasis": "list"', b'"costBasis": "unknown"') for line in lines("text")
    ]
    assert fold(found).usage.cost_usd is None
    assert fold(found).usage.tokens_out == 8


@pytest.mark.requirement("claude-worker:usage:resumed-session")
def test_a_further_turn_counts_on_and_another_attempts_session_is_not_counted_twice() -> None:
    first = fold(lines("text")).usage
    alone = fold(lines("resumed"), turn_two("resumed")).usage
    assert alone.tokens_out == first.tokens_out
    second = fold(lines("resumed"), replace(turn_two("resumed"), used=first)).usage
    assert second.tokens_out == 2 * (first.tokens_out or 0)
    assert second.tokens_in == (first.tokens_in or 0) + (alone.tokens_in or 0)
    assert second.cost_usd == pytest.approx((first.cost_usd or 0) + (alone.cost_usd or 0))
    unknown = fold(
        lines("resumed"), replace(turn_two("resumed"), used=replace(first, cost_usd=None))
    )
    assert unknown.usage.cost_usd is None
    old = [line.replace(b"model_usage_since_last_result", b"nothing") for line in lines("text")]
    assert fold(old).usage == first


@pytest.mark.requirement("claude-worker:stream:tools")
def test_tools_begin_and_end_with_what_came_out_and_how_long_it_took() -> None:
    told = fold(lines("tools"))
    assert told.tools == ["Bash", "Bash", "Write", "Read"]
    ends = told.ends
    assert [each.exit_code for each in ends] == [0, 3, None, None]
    assert [each.is_error for each in ends] == [False, True, False, False]
    assert ends[0].command == "echo one; echo two >&2"
    assert "two" in ends[0].output
    assert ends[2].path == "out.txt"
    assert all(each.duration_ms is not None for each in ends)
    begun = [each.tool for each in told.output if each.tool is not None and not each.tool.is_end]
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
    told = fold(lines("thinking"))
    assert told.texts(LineType.THINKING) == ["Let me see. Two and two is four."]
    assert told.result.text == "Done thinking."


@pytest.mark.requirement("claude-worker:stream:denied-tool")
def test_a_denied_tool_fails_and_the_denial_is_told() -> None:
    told = fold(lines("denied"))
    assert [each.is_error for each in told.ends] == [True, True]
    refused = [each.api_error.message for each in told.output if each.api_error is not None]
    assert refused == ["permission denied: Write (mode)"]
    assert not told.result.is_error


@pytest.mark.requirement("claude-worker:stream:own-subagents")
@pytest.mark.parametrize("name", ["subagent", "background"])
def test_an_agent_of_its_own_is_never_taken_for_the_worker(name: str) -> None:
    told = fold(lines(name))
    inner = [each for each in told.output if each.tool is not None and "inside" in each.tool.input]
    assert inner
    assert all(each.text.startswith("↳ ") for each in inner)
    assert "Inner." not in told.texts(LineType.TEXT)
    assert told.tools.count("Bash") == (1 if name == "background" else 0)
    started = [each.tool for each in told.output if each.tool is not None and each.tool.agents]
    assert {each.name for each in started} == {"Agent"}


@pytest.mark.requirement("claude-worker:turn:waits-for-background-agents")
def test_a_turn_is_not_over_while_an_agent_works_in_the_background() -> None:
    found = lines("background")
    ends = [i for i, line in enumerate(found) if json.loads(line)["type"] == "result"]
    assert len(ends) == 3
    assert not fold(found[: ends[0] + 2]).state.is_over
    assert finished(fold(found[: ends[0] + 2])).result.is_error
    assert fold(found).results[-1].text == "done"


@pytest.mark.requirement("claude-worker:errors:api-retry")
def test_a_provider_that_refuses_for_now_is_told_with_its_status_and_the_wait() -> None:
    told = fold(lines("retry"))
    errors = [each.api_error for each in told.output if each.api_error is not None]
    assert [(each.status, each.retry) for each in errors] == [
        (529, "1/10"),
        (529, "2/10"),
        (429, "3/10"),
    ]
    assert all(each.retry_after_ms for each in errors)
    assert told.result.text == "At last."
    assert not told.result.is_error


@pytest.mark.requirement("claude-worker:errors:limit")
def test_a_turn_that_ended_by_a_rate_limit_is_a_wait_and_no_failure() -> None:
    told = fold(lines("limit"))
    assert told.result.is_limit
    assert told.result.is_error
    assert "429" in str(told.result.error)
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
    told = fold(lines(name), turn_two(name))
    assert told.result.is_error
    assert output in str(told.result.error)
    assert not told.result.is_limit
    assert len(told.results) == 1


@pytest.mark.requirement("claude-worker:interrupt:ends-the-turn")
def test_an_interrupted_turn_ends_with_its_last_words_and_begins_nothing_that_waited() -> None:
    told = fold(lines("interrupted"))
    assert (told.result.text, told.result.error) == ("It takes long.", "the turn was interrupted")
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
    told = fold([*events, event(type="system", subtype="session_state_changed", state="idle")])
    assert told.state.is_over
    assert [each.error for each in told.results] == ["the turn was interrupted"]
    assert finished(told).results == told.results


@pytest.mark.requirement("claude-worker:steer:same-turn")
def test_a_message_into_the_turn_is_taken_at_once_and_answered_in_the_same_result() -> None:
    found = lines("steered")
    name = message_id(DIALECT.begin(OPENING).state, "steer-1").encode()
    queued = next(i for i, line in enumerate(found) if name in line)
    assert DIALECT.accepted(fold(found[:queued]).state, "steer-1") is None
    assert DIALECT.accepted(fold(found[: queued + 1]).state, "steer-1") is True
    told = fold(found)
    assert [each.text for each in told.results] == ["Blue it is."]
    assert DIALECT.steer(told.state, "more", key="k") is None


@pytest.mark.requirement("claude-worker:steer:result-that-does-not-cover-it")
def test_a_result_that_does_not_cover_a_message_is_not_the_end() -> None:
    found = lines("late")
    first = next(i for i, line in enumerate(found) if json.loads(line)["type"] == "result")
    assert not fold(found[: first + 2]).state.is_over
    told = fold(found)
    assert [each.text for each in told.results] == ["The first answer.", "The second answer."]
    assert DIALECT.accepted(told.state, "steer-1") is True


@pytest.mark.requirement("claude-worker:steer:after-the-end")
def test_a_message_that_came_when_the_turn_was_over_is_not_taken_before_its_answer() -> None:
    name = message_id(DIALECT.begin(OPENING).state, "steer-9")
    late = [
        event(type="command_lifecycle", command_uuid=name, state=fate)
        for fate in ("queued", "started")
    ]
    state = fold([*lines("text"), *late]).state
    assert state.is_over
    assert DIALECT.accepted(state, "steer-9") is None
    done = event(type="command_lifecycle", command_uuid=name, state="completed")
    assert DIALECT.accepted(fold([*lines("text"), *late, done]).state, "steer-9") is True


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
    told = finished(fold(lines("killed")))
    assert (told.result.text, told.result.is_error) == ("It takes long.", True)
    assert not told.state.is_over
    assert finished(fold(lines("text"))).results == fold(lines("text")).results


@pytest.mark.requirement("claude-worker:turn:repaired")
def test_a_further_turn_after_a_death_tells_the_model_that_the_outcome_is_unknown() -> None:
    told = fold(lines("repaired"), turn_two("repaired"))
    assert told.result == ResultSeen(key="", text="Outcome unknown: True.")


@pytest.mark.requirement("claude-worker:stream:compaction")
def test_a_compaction_is_told_also_one_that_failed() -> None:
    failed = fold(lines("not-compacted"))
    assert failed.texts(LineType.SYSTEM)[1:] == [
        "compacting the conversation",
        "the conversation was not compacted: summarization produced empty response",
    ]
    assert "too long" in str(failed.result.error)
    facts = {"trigger": "auto", "pre_tokens": 155_000, "post_tokens": 12_000}
    told = fold([event(type="system", subtype="compact_boundary", compact_metadata=facts)])
    assert told.texts(LineType.SYSTEM) == [
        "the conversation was compacted: 155,000 tokens to 12,000"
    ]


# -- anything else --------------------------------------------------------------------------------


@pytest.mark.requirement("claude-worker:stream:unknown-events")
def test_an_unknown_event_is_told_by_name_once() -> None:
    told = fold(
        [
            event(type="frob", subtype="nicate"),
            event(type="frob", subtype="nicate"),
            event(type="system", subtype="brand_new"),
            event(hello=1),
            event(type="assistant", message={"content": [{"type": "hologram"}]}),
            b"[SandboxDebug] not JSON",
        ]
    )
    assert told.texts(LineType.SYSTEM) == [
        "unknown event: frob/nicate",
        "unknown event: system/brand_new",
        "unknown event: no type",
        "unknown event: assistant/hologram",
    ]
    assert told.texts(LineType.TEXT) == ["[SandboxDebug] not JSON"]


@pytest.mark.requirement("claude-worker:stream:signs-of-life")
def test_a_heartbeat_of_a_tool_is_no_sign_of_life_but_thinking_is() -> None:
    beat = event(type="tool_progress", tool_name="Bash", elapsed_time_seconds=30, heartbeat=True)
    assert not fold([beat]).output
    thought = event(type="system", subtype="thinking_tokens", estimated_tokens=4)
    assert [each.text for each in fold([thought]).output] == [""]


@pytest.mark.requirement("claude-worker:stream:asks-nobody")
def test_a_question_to_its_host_is_answered_so_that_it_never_waits() -> None:
    asked = {"subtype": "can_use_tool", "tool_name": "Bash"}
    told = fold([event(type="control_request", request_id="q1", request=asked)])
    (answer,) = (json.loads(each.line)["response"] for each in told.input_lines)
    assert (answer["request_id"], answer["response"]["behavior"]) == ("q1", "deny")
    other = fold([event(type="control_request", request_id="q2", request={"subtype": "new"})])
    assert json.loads(other.input_lines[0].line)["response"]["subtype"] == "error"


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


@pytest.mark.requirement("claude-worker:stream:huge")
def test_huge_and_deep_lines_are_read_or_told_and_cut() -> None:
    big = "x" * 3_000_000
    block = {"type": "text", "text": big}
    told = fold(
        [
            event(type="assistant", message={"id": "m", "content": [block]}),
            event(type="result", subtype="success", is_error=False, result=big),
            b"[" * 100_000,
            b'{"type":' * 5_000,
            b"\xff\xfe" + b"\0" * 50,
            b'{"type":"assistant","message":{"content":[{"type":"text","text":"a\\u0000b"}]}}',
        ]
    )
    assert max(len(each.text) for each in told.output) <= 8_000
    assert (len(told.result.text), told.result.bytes_total) == (32_768, 3_000_000)
    assert told.texts(LineType.TEXT)[-1] == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.requirement("claude-worker:stream:any-order")
def test_events_in_any_order_never_raise() -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    for _ in range(50):
        found = chance.sample(KNOWN, k=min(40, len(KNOWN)))
        finished(fold(found))
