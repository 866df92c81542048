"""The Agent Client Protocol as the dialect speaks it: recorded streams, and single exchanges."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.extensions.acp.acp_folds import (
    AcpFold,
    agent_of,
    answer,
    chunk,
    of_agent,
    opening,
    update,
)
from tests.extensions.acp.acp_lines import JSON, RECORDINGS, played

from subagents.domain.run.signals import (
    ResultSeen,
    SessionSeen,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.run.usage import Usage
from subagents.domain.run.worker_output import LineType, PlanStatus
from subagents.extensions.acp.acp_stream import tokens_of


@pytest.mark.requirement("acp:stream:every-event")
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_every_recorded_event_is_decoded_or_said_to_be_unknown(recording: Path) -> None:
    fold = played(recording)

    unknown = [line for line in fold.texts(LineType.SYSTEM) if line.startswith("unknown event")]
    assert unknown == [], "each of these has a meaning by now"
    assert len([each for each in fold.signals if isinstance(each, ResultSeen)]) == 1
    assert fold.is_done


@pytest.mark.requirement("acp:stream:every-agent")
def test_every_agent_that_was_run_has_recordings() -> None:
    kinds = {(agent_of(each), each.name.split(".")[1]) for each in RECORDINGS}
    agents = {"opencode", "claude-agent-acp", "gemini", "qwen", "goose", "codex-acp"}
    for kind in ("tools", "served", "cancelled"):
        assert {agent for agent, found in kinds if found == kind} == agents


@pytest.mark.requirement("acp:stream:tools")
@pytest.mark.parametrize(
    "recording",
    [each for each in RECORDINGS if ".tools." in each.name],
    ids=lambda path: path.stem,
)
def test_a_failing_command_is_told_with_its_line_its_output_and_its_end(recording: Path) -> None:
    fold = played(recording)

    tools = [each.tool for each in fold.output if each.tool is not None]
    assert [tool.is_end for tool in tools] == [False, True]
    assert {tool.command for tool in tools} == {"echo hi; exit 3"}
    ended = tools[-1]
    # Gemini tells neither the exit status nor what came out, nor that it failed.
    is_told = agent_of(recording) != "gemini"
    assert ended.is_error is is_told
    assert ("hi" in ended.output) is is_told
    assert "hmm" in "".join(fold.texts(LineType.THINKING))
    assert any("I will" in text for text in fold.texts(LineType.TEXT))
    assert fold.result.text == "result of three words"
    assert not fold.result.is_error
    assert [each for each in fold.signals if isinstance(each, SessionSeen)]


@pytest.mark.requirement("acp:stream:our-tools")
@pytest.mark.parametrize(
    "recording",
    [each for each in RECORDINGS if ".served." in each.name and "qwen" not in each.name],
    ids=lambda path: path.stem,
)
def test_a_tool_of_ours_ends_with_its_own_name_whatever_the_agent_puts_before(
    recording: Path,
) -> None:
    fold = played(recording)

    seen = [each.name for each in fold.signals if isinstance(each, ToolSeen)]
    assert len(seen) == 1
    assert seen[0].endswith("sessions_ask")
    ended = [each.tool for each in fold.output if each.tool is not None and each.tool.is_end]
    assert "answer to color?" in ended[0].output


@pytest.mark.requirement("acp:resume:history")
def test_the_history_of_a_loaded_session_is_told_to_nobody_again() -> None:
    (recording,) = [each for each in RECORDINGS if each.name == "goose.loaded.jsonl"]
    assert "SECRET-WORD" in recording.read_text()

    fold = played(recording)

    assert not any("SECRET-WORD" in each.text for each in fold.output)
    assert fold.result.text == "remembered"


@pytest.mark.requirement("acp:stream:plan")
def test_a_plan_is_shown_with_what_is_done() -> None:
    fold = AcpFold(opening())
    fold.open()
    entries = [
        {"content": "one", "status": "completed", "priority": "high"},
        {"content": "two", "status": "in_progress", "priority": "low"},
    ]

    fold.hear(update("plan", entries=entries))

    (plan,) = [each.tool for each in fold.output if each.tool is not None]
    assert plan.plan is not None
    assert [(item.text, item.status) for item in plan.plan] == [
        ("one", PlanStatus.COMPLETED),
        ("two", PlanStatus.IN_PROGRESS),
    ]
    assert not [each for each in fold.signals if isinstance(each, ToolSeen)]


@pytest.mark.requirement("acp:stream:joined")
def test_chunks_are_joined_into_one_line_and_the_last_message_is_the_result() -> None:
    fold = AcpFold(opening())
    fold.open()

    fold.hear(chunk("let me ", id="a"), chunk("think", id="a"))
    fold.hear(chunk("hm", kind="agent_thought_chunk"), chunk("m", kind="agent_thought_chunk"))
    fold.hear(chunk("the ", id="b"), chunk("result", id="b"))
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))

    assert fold.texts(LineType.TEXT) == ["let me think", "the result"]
    assert fold.texts(LineType.THINKING) == ["hmm"]
    assert fold.result.text == "the result"


@pytest.mark.requirement("acp:stream:notices")
def test_what_the_program_itself_says_is_no_part_of_the_result() -> None:
    fold = AcpFold(opening())
    fold.open()
    informational = {"claudeCode": {"kind": "informational", "level": "warning"}}

    fold.hear(update("notice", severity="warning", title="Auto mode", description="changes"))
    fold.hear(chunk("the ", id="b"))
    words = {"type": "text", "text": "**Warning:** changing"}
    fold.hear(update("agent_message_chunk", content=words, _meta=informational))
    fold.hear(chunk("Info: Disabled tools: bash"))
    fold.hear(chunk("result", id="b"))
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))

    assert fold.result.text == "the result"
    assert fold.texts(LineType.SYSTEM) == [
        *("Auto mode: changes", "**Warning:** changing"),
        "Info: Disabled tools: bash",
    ]


@pytest.mark.requirement("acp:stream:notices")
@pytest.mark.parametrize(("words", "result"), [(("the answer",), "the answer"), ((), None)])
def test_pis_retries_are_no_words_of_its_model_and_its_silence_after_them_is_a_failure(
    words: tuple[str, ...], result: str | None
) -> None:
    fold = AcpFold(of_agent("pi-acp"))
    fold.open()

    for text in ("Retrying (attempt 1/3, waiting 2s)...", "Retry finished, resuming.", *words):
        fold.hear(chunk(text))
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))

    assert (fold.result.text if result else None) == result
    assert (fold.result.error is None) == bool(words)


@pytest.mark.requirement("acp:stream:joined")
def test_a_message_that_goes_on_and_on_is_said_up_to_its_last_line_end() -> None:
    fold = AcpFold(opening())
    fold.open()

    for number in range(400):
        fold.hear(chunk(f"line {number} " + "x" * 40 + "\n"))
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))

    output = fold.texts(LineType.TEXT)
    assert len(output) > 1
    assert all(len(text) <= 8_000 for text in output)
    assert "\n".join(output).count("line ") == 400
    assert fold.result.text.startswith("line 0 ")
    assert fold.result.bytes_total == 0


@pytest.mark.requirement("acp:stream:joined")
def test_a_turn_that_ends_with_a_tool_has_the_message_before_it_as_its_result() -> None:
    fold = AcpFold(opening())
    fold.open()

    fold.hear(chunk("the answer is 7"))
    fold.hear(update("tool_call", toolCallId="c", title="note", rawInput={"text": "7"}))
    fold.hear(update("tool_call_update", toolCallId="c", status="completed"))
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))

    assert fold.result.text == "the answer is 7"


@pytest.mark.requirement("acp:stream:durations")
def test_a_tools_duration_is_told_when_both_ends_were_heard_as_they_came() -> None:
    fold = AcpFold(opening(), now_ms=1_000)
    fold.open()
    fold.hear(update("tool_call", toolCallId="c", title="bash", rawInput={"command": "ls"}))
    fold.now_ms = 3_500
    fold.hear(update("tool_call_update", toolCallId="c", status="completed"))

    assert [each.tool.duration_ms for each in fold.output if each.tool] == [None, 2_500]


@pytest.mark.requirement("acp:usage")
def test_tokens_are_those_of_the_turn_and_unknown_where_only_the_last_request_tells() -> None:
    used = {"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 100, "totalTokens": 115}
    turn = AcpFold(opening())
    turn.open()
    turn.hear(update("usage_update", used=90, size=200, cost={"amount": 0.5, "currency": "USD"}))
    turn.hear(answer("prompt", {"stopReason": "end_turn", "usage": used}))
    last = AcpFold(of_agent("opencode"))
    last.open()
    last.hear(answer("prompt", {"stopReason": "end_turn", "usage": used}))

    totals = [each.usage for each in turn.signals if isinstance(each, UsageSeen)]
    assert totals[-1] == Usage(tokens_in=110, tokens_out=5, tokens_cache_read=100, cost_usd=0.5)
    (context,) = [each.context for each in turn.output if each.context is not None]
    assert (context.tokens, context.window) == (90, 200)
    assert not [each for each in last.signals if isinstance(each, UsageSeen)]


@pytest.mark.requirement("acp:usage", "usage:cached-apart")
@pytest.mark.parametrize(
    ("told", "tokens_in"),
    [
        ({"inputTokens": 110, "totalTokens": 115}, 110),
        ({"inputTokens": 110}, 110),
        ({"inputTokens": 10, "totalTokens": 115}, 110),
        ({"inputTokens": 10}, 110),
    ],
)
def test_input_has_what_came_from_the_cache_whichever_way_an_agent_counts(
    told: dict[str, int], tokens_in: int
) -> None:
    found = tokens_of({"outputTokens": 5, "cachedReadTokens": 60, "cachedWriteTokens": 40, **told})

    assert found == Usage(
        tokens_in=tokens_in, tokens_out=5, tokens_cache_read=60, tokens_cache_write=40
    )


NAMES = st.sampled_from(
    ["tool_call", "tool_call_update", "plan", "usage_update", "agent_message_chunk", "new_thing"]
)


FIELDS = st.sampled_from(
    [
        *("toolCallId", "title", "kind", "status", "rawInput", "rawOutput", "content", "locations"),
        *("_meta", "entries", "used", "size", "cost", "messageId", "name"),
    ]
)


@pytest.mark.requirement("acp:stream:anything")
@given(st.lists(st.tuples(NAMES, st.dictionaries(FIELDS, JSON, max_size=6)), max_size=6))
def test_no_update_of_any_shape_raises(updates: list[tuple[str, dict[str, Any]]]) -> None:
    fold = AcpFold(of_agent("qwen"))
    fold.open()
    for kind, fields in updates:
        fold.hear(update(kind, **fields))
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))

    assert fold.is_done


@pytest.mark.requirement("acp:stream:any-line")
def test_a_cost_in_a_currency_that_is_no_text_is_not_in_dollars() -> None:
    turn = AcpFold(opening())
    turn.open()

    turn.hear(update("usage_update", used=90, size=200, cost={"amount": 0.5, "currency": {}}))

    assert [each for each in turn.signals if isinstance(each, UsageSeen)] == []
