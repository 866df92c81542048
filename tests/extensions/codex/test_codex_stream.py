"""Codex's protocol, against streams that the real program wrote."""

import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.extensions.codex.codex_folds import CODEX, STREAMS, fold, lines_of

from subagents.domain.run.signals import (
    ResultSeen,
    ToolSeen,
)
from subagents.domain.run.usage import Usage
from subagents.domain.run.worker_output import LineType, PlanStatus

NAMES: Final = sorted(path.stem for path in STREAMS.glob("*.jsonl"))


def event(method: str, **params: object) -> bytes:
    return json.dumps({"method": method, "params": params}).encode()


@pytest.mark.requirement("codex:stream:every-event-known")
@pytest.mark.parametrize("name", NAMES)
def test_every_event_of_the_real_program_is_known(name: str) -> None:
    folded = fold(lines_of(name))

    assert [text for text in folded.texts() if "unknown event" in text] == []


@pytest.mark.requirement("codex:stream:every-event-known")
def test_an_event_or_item_of_another_version_is_named() -> None:
    folded = fold([event("turn/dreamed"), event("item/completed", item={"type": "dream"}), b"what"])

    assert folded.texts()[:3] == [
        "unknown event: turn/dreamed",
        "unknown event: item dream",
        "unknown event: what",
    ]


@pytest.mark.requirement("codex:stream:text")
def test_a_turn_becomes_text_thinking_usage_and_a_result() -> None:
    folded = fold(lines_of("text"))

    assert folded.texts(LineType.TEXT) == ["All done."]
    assert folded.texts(LineType.THINKING) == ["hmm"]
    assert folded.usage == Usage(tokens_in=100, tokens_out=50, tokens_cache_read=10)
    assert folded.result == ResultSeen(key="", text="All done.")
    context = next(each.context for each in folded.output if each.context)
    assert (context.tokens, context.window, context.model) == (150, 258_400, "gpt-5.5")
    assert CODEX.is_done(folded.state)


@pytest.mark.requirement("codex:stream:tools")
def test_commands_patches_and_mcp_calls_have_begin_end_duration_and_failure() -> None:
    folded = fold(lines_of("tools"))

    tools = [each.tool for each in folded.output if each.tool is not None]
    ends = {tool.name: tool for tool in tools if tool.is_end}
    assert [tool.name for tool in tools if not tool.is_end] == list(ends)
    shell = ends["exec_command"]
    assert (shell.command, shell.exit_code, shell.is_error) == (
        "echo hi; sleep 0.1; exit 3",
        3,
        True,
    )
    assert "hi\n" in shell.output
    assert shell.duration_ms
    assert ends["apply_patch"].path == "/home/ada/project/hello.txt"
    assert ends["apply_patch"].input == "add /home/ada/project/hello.txt"
    assert not ends["mcp__subagents__report"].is_error
    assert ends["mcp__subagents__spawn"].is_error
    assert [each.name for each in folded.signals if isinstance(each, ToolSeen)] == list(ends)


@pytest.mark.requirement("codex:stream:plan")
def test_a_plan_is_the_workers_plan() -> None:
    steps = [{"step": "look", "status": "completed"}, {"step": "mend", "status": "inProgress"}]
    folded = fold([event("turn/plan/updated", plan=steps)])

    tool = folded.output[0].tool
    assert tool is not None
    assert tool.plan is not None
    assert [(item.text, item.status) for item in tool.plan] == [
        ("look", PlanStatus.COMPLETED),
        ("mend", PlanStatus.IN_PROGRESS),
    ]


WORDS = st.sampled_from(
    ["item", "type", "turn", "threadId", "error", "id", "result", "method", "tokenUsage", "total"]
)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.requirement("codex:stream:never-raises")
@given(
    st.lists(
        st.binary(max_size=60)
        | st.builds(
            lambda method, params: json.dumps({"method": method, "params": params}).encode(),
            st.sampled_from(
                [
                    *("item/started", "item/completed", "turn/completed", "turn/started", "error"),
                    *("thread/tokenUsage/updated", "turn/plan/updated", "configWarning"),
                    "mcpServer/startupStatus/updated",
                ]
            ),
            VALUES,
        )
        | st.builds(
            lambda name, result: json.dumps({"id": name, "result": result}).encode(),
            st.sampled_from(["initialize", "config", "account", "thread", "turn", "tell:x"]),
            VALUES,
        ),
        max_size=12,
    )
)
def test_no_stream_raises(lines: list[bytes]) -> None:
    folded = fold(lines)

    assert CODEX.is_done(folded.state) or isinstance(folded.result, ResultSeen)


@pytest.mark.requirement("codex:stream:never-raises")
@given(st.sampled_from(NAMES), st.data())
def test_no_damaged_stream_raises(name: str, data: st.DataObject) -> None:
    lines = lines_of(name)
    place = data.draw(st.integers(0, len(lines) - 1))
    cut = data.draw(st.integers(0, len(lines[place])))
    lines[place] = lines[place][:cut] + data.draw(st.binary(max_size=8)) + lines[place][cut:]

    assert isinstance(fold(lines).result, ResultSeen)
