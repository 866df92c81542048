"""The Agent Client Protocol as the dialect speaks it: recorded streams, and single exchanges."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtimes.acp.acp_bed import (
    DIALECT,
    Fold,
    agent_of,
    answer,
    chunk,
    failure,
    of_agent,
    opening,
    permission,
    recordings,
    update,
)

from subagents.domain.run.run import Usage
from subagents.domain.run.signals import (
    ResultSeen,
    SessionSeen,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import LineType, PlanStatus

RECORDINGS = recordings()


def played(recording: Path, *, at_ms: int | None = 5) -> Fold:
    """The whole recording, heard by its agent's row."""
    is_later = ".loaded." in recording.name or ".resumed." in recording.name
    session_id = "s-old" if is_later or ".unknown-session." in recording.name else None
    deny = ("Bash",) if ".denied." in recording.name else ()
    given = of_agent(agent_of(recording), session_id=session_id, tools_deny=deny)
    fold = Fold(given, now_ms=at_ms)
    for line in recording.read_bytes().splitlines():
        fold.hear(line)
    fold.finish()
    return fold


# -- what real agents wrote -----------------------------------------------------------------------


@pytest.mark.requirement("acp:stream:every-event")
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_every_recorded_event_is_decoded_or_said_to_be_unknown(recording: Path) -> None:
    fold = played(recording)

    unknown = [line for line in fold.lines(LineType.SYSTEM) if line.startswith("unknown event")]
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
    assert "hmm" in "".join(fold.lines(LineType.THINKING))
    assert any("I will" in text for text in fold.lines(LineType.TEXT))
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


@pytest.mark.requirement("acp:interrupt")
@pytest.mark.parametrize(
    "recording",
    [each for each in RECORDINGS if ".cancelled." in each.name],
    ids=lambda path: path.stem,
)
def test_a_cancelled_turn_is_an_error_that_says_so(recording: Path) -> None:
    fold = played(recording)

    assert (fold.result.is_error, fold.result.error) == (True, "the turn was interrupted")


@pytest.mark.requirement("acp:limits")
@pytest.mark.parametrize(
    "recording",
    [each for each in RECORDINGS if ".limit." in each.name],
    ids=lambda path: path.stem,
)
def test_a_provider_that_takes_no_more_is_a_limit_also_where_the_turn_ends_well(
    recording: Path,
) -> None:
    fold = played(recording)

    assert (fold.result.is_error, fold.result.is_limit) == (True, True), fold.result
    assert any(each.api_error is not None for each in fold.output)


@pytest.mark.requirement("acp:failures")
@pytest.mark.parametrize(
    "recording",
    [each for each in RECORDINGS if ".failed." in each.name],
    ids=lambda path: path.stem,
)
def test_a_failed_request_is_an_error_in_the_providers_words(recording: Path) -> None:
    fold = played(recording)

    assert fold.result.is_error
    assert "scripted error 400" in (fold.result.error or "")
    assert not fold.result.is_limit
    assert "{" not in (fold.result.error or "")


@pytest.mark.requirement("acp:resume:history")
def test_the_history_of_a_loaded_session_is_told_to_nobody_again() -> None:
    (recording,) = [each for each in RECORDINGS if each.name == "goose.loaded.jsonl"]
    assert "SECRET-WORD" in recording.read_text()

    fold = played(recording)

    assert not any("SECRET-WORD" in each.text for each in fold.output)
    assert fold.result.text == "remembered"


@pytest.mark.requirement("acp:stream:plan")
def test_a_plan_is_shown_with_what_is_done() -> None:
    fold = Fold(opening())
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


@pytest.mark.requirement("acp:stream:same-twice")
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_folding_twice_gives_the_same_letters_and_signals(recording: Path) -> None:
    first, again = played(recording), played(recording, at_ms=None)

    assert first.input_lines == again.input_lines
    assert first.signals == again.signals
    assert len({input_line.key for input_line in first.input_lines}) == len(first.input_lines)


# -- messages -------------------------------------------------------------------------------------


@pytest.mark.requirement("acp:stream:joined")
def test_chunks_are_joined_into_one_line_and_the_last_message_is_the_result() -> None:
    fold = Fold(opening())
    fold.open()

    fold.hear(chunk("let me ", id="a"), chunk("think", id="a"))
    fold.hear(chunk("hm", kind="agent_thought_chunk"), chunk("m", kind="agent_thought_chunk"))
    fold.hear(chunk("the ", id="b"), chunk("result", id="b"))
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))

    assert fold.lines(LineType.TEXT) == ["let me think", "the result"]
    assert fold.lines(LineType.THINKING) == ["hmm"]
    assert fold.result.text == "the result"


@pytest.mark.requirement("acp:stream:joined")
def test_a_message_that_goes_on_and_on_is_said_up_to_its_last_line_end() -> None:
    fold = Fold(opening())
    fold.open()

    for number in range(400):
        fold.hear(chunk(f"line {number} " + "x" * 40 + "\n"))
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))

    output = fold.lines(LineType.TEXT)
    assert len(output) > 1
    assert all(len(text) <= 8_000 for text in output)
    assert "\n".join(output).count("line ") == 400
    assert fold.result.text.startswith("line 0 ")
    assert fold.result.bytes_total == 0


@pytest.mark.requirement("acp:stream:joined")
def test_a_turn_that_ends_with_a_tool_has_the_message_before_it_as_its_result() -> None:
    fold = Fold(opening())
    fold.open()

    fold.hear(chunk("the answer is 7"))
    fold.hear(update("tool_call", toolCallId="c", title="note", rawInput={"text": "7"}))
    fold.hear(update("tool_call_update", toolCallId="c", status="completed"))
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))

    assert fold.result.text == "the answer is 7"


@pytest.mark.requirement("acp:stream:durations")
def test_a_tools_duration_is_told_when_both_ends_were_heard_as_they_came() -> None:
    fold = Fold(opening(), now_ms=1_000)
    fold.open()
    fold.hear(update("tool_call", toolCallId="c", title="bash", rawInput={"command": "ls"}))
    fold.now_ms = 3_500
    fold.hear(update("tool_call_update", toolCallId="c", status="completed"))

    assert [each.tool.duration_ms for each in fold.output if each.tool] == [None, 2_500]


# -- setup ----------------------------------------------------------------------------------------


@pytest.mark.requirement("acp:setup:bridge")
def test_our_tools_are_given_to_the_session_without_any_secret() -> None:
    fold = Fold(opening(bridge=("/usr/bin/python", "-m", "subagents", "mcp")))
    fold.hear(answer("initialize", {"protocolVersion": 1}))

    (new,) = fold.sent("session/new")
    assert new["cwd"] == "/w"
    assert new["mcpServers"] == [
        {
            "name": "subagents",
            "command": "/usr/bin/python",
            "args": ["-m", "subagents", "mcp"],
            "env": [],
        }
    ]


@pytest.mark.requirement("acp:setup:system-prompt")
def test_the_role_stands_before_the_first_prompt_and_before_no_later_one() -> None:
    first, later = Fold(opening()), Fold(opening(session_id="s-1", turn=2))
    first.open()
    later.hear(
        answer("initialize", {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    )
    later.hear(answer("session:load", {}))

    (asked,) = first.sent("session/prompt")
    assert asked["prompt"][0]["text"] == "you are a worker\n\n# Your task\n\ndo it"
    (again,) = later.sent("session/prompt")
    assert again["prompt"][0]["text"] == "do it"


@pytest.mark.requirement("acp:setup:system-prompt")
def test_claude_gets_its_role_as_a_system_prompt() -> None:
    fold = Fold(of_agent("claude-agent-acp"))
    fold.open()

    (new,) = fold.sent("session/new")
    assert new["_meta"]["systemPrompt"] == {"append": "you are a worker"}
    assert fold.sent("session/prompt")[0]["prompt"][0]["text"] == "do it"


@pytest.mark.requirement("acp:setup:no-commands")
def test_a_message_that_begins_like_a_command_of_the_program_is_none() -> None:
    fold = Fold(opening(system_prompt="", message="/logout"))
    fold.open()

    assert fold.sent("session/prompt")[0]["prompt"][0]["text"] == "Message:\n/logout"


@pytest.mark.requirement("acp:setup:model")
@pytest.mark.parametrize(
    ("offered", "asked", "sent"),
    [
        ({"configOptions": [{"id": "model", "options": [{"value": "p/m1"}]}]}, "m1", "p/m1"),
        ({"configOptions": [{"id": "model", "options": [{"value": "m1"}]}]}, "m1", "m1"),
        ({"models": {"availableModels": [{"modelId": "m1[low]"}]}}, "m1", "m1[low]"),
    ],
)
def test_a_model_is_set_by_the_way_that_the_session_offers(
    offered: dict[str, Any], asked: str, sent: str
) -> None:
    fold = Fold(opening(model=asked))
    fold.open(**offered)

    methods = [
        json.loads(input_line.line)
        for input_line in fold.input_lines
        if input_line.key.startswith("set:model")
    ]
    assert sent in methods[0]["params"].values()
    assert fold.sent("session/prompt") == []  # not before it is set
    fold.hear(answer("set:model", {}))
    assert len(fold.sent("session/prompt")) == 1


@pytest.mark.requirement("acp:setup:not-offered")
@pytest.mark.parametrize(
    ("changes", "output"),
    [
        ({"model": "m9"}, "offers no model 'm9' in this session; it offers: m1, m2"),
        ({"thinking": "high"}, "offers no thought level 'high' in this session; it offers: none"),
    ],
)
def test_what_a_session_does_not_offer_ends_the_turn_with_what_it_does(
    changes: dict[str, str], output: str
) -> None:
    fold = Fold(opening(**changes))
    fold.open(configOptions=[{"id": "model", "options": [{"value": "m1"}, {"value": "m2"}]}])

    assert fold.is_done
    assert fold.result.is_error
    assert output in (fold.result.error or "")
    assert fold.sent("session/prompt") == []


@pytest.mark.requirement("acp:setup:mode")
def test_a_mode_of_the_table_may_be_refused_and_one_that_the_user_wrote_may_not() -> None:
    modes = {"availableModes": [{"id": "yolo"}]}
    tabled = Fold(of_agent("qwen"))
    tabled.open(modes=modes)
    tabled.hear(failure("try:mode", -32603, "not in this folder"))
    wished = Fold(opening(options={"command": ["x"], "mode": "yolo"}))
    wished.open(modes=modes)
    wished.hear(failure("set:mode", -32603, "not in this folder"))

    assert len(tabled.sent("session/prompt")) == 1
    assert "try:mode: not in this folder" in tabled.lines(LineType.SYSTEM)
    assert wished.is_done
    assert wished.result.error == "set:mode: not in this folder"


@pytest.mark.requirement("acp:setup:login")
def test_an_agent_that_wants_a_login_says_how_to_give_it_one() -> None:
    fold = Fold(opening())
    methods = [{"id": "oauth", "name": "Log in"}, {"id": "api-key", "name": "Key"}]
    fold.hear(answer("initialize", {"protocolVersion": 1, "authMethods": methods}))
    fold.hear(failure("session", -32000, "Authentication required"))

    error = fold.result.error or ""
    assert error.startswith("session: Authentication required")
    assert "`runtime_options.auth`; it knows the methods oauth, api-key" in error
    assert fold.is_done


@pytest.mark.requirement("acp:setup:login")
def test_gemini_is_logged_in_with_its_key_before_its_session_is_opened() -> None:
    fold = Fold(of_agent("gemini"))
    fold.hear(answer("initialize", {"protocolVersion": 1}))

    assert fold.sent("authenticate") == [{"methodId": "gemini-api-key"}]
    assert fold.sent("session/new") == []
    fold.hear(answer("authenticate", {}))
    assert len(fold.sent("session/new")) == 1


@pytest.mark.requirement("acp:setup:version")
def test_an_agent_of_another_version_of_the_protocol_is_refused() -> None:
    fold = Fold(opening())
    fold.hear(answer("initialize", {"protocolVersion": 2}))

    assert "version 2 of the protocol" in (fold.result.error or "")


@pytest.mark.requirement("acp:resume:ways")
def test_a_session_is_gone_on_with_by_resume_then_by_load_and_else_not_at_all() -> None:
    able = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
    fold = Fold(opening(session_id="s-1"))
    fold.hear(answer("initialize", {"protocolVersion": 1, "agentCapabilities": able}))
    assert fold.sent("session/resume")[0]["sessionId"] == "s-1"
    fold.hear(failure("session", -32601, "method not found"))
    assert fold.sent("session/load")[0]["sessionId"] == "s-1"
    fold.hear(failure("session:load", -32603, "no such session"))
    assert fold.result.error == "session:load: no such session"

    unable = Fold(opening(session_id="s-1"))
    unable.hear(answer("initialize", {"protocolVersion": 1}))
    assert unable.result.error == "the agent cannot go on with its session s-1"


# -- messages into the turn -----------------------------------------------------------------------


@pytest.mark.requirement("acp:steer:open")
def test_a_message_is_sent_when_the_turn_is_still_open_and_answered_before_it_is_over() -> None:
    fold = Fold(opening())
    fold.open()
    mark = DIALECT.steer(fold.state, "turn left", key="k")
    assert mark is not None
    asked = json.loads(mark.line)
    assert DIALECT.accepted(fold.state, "k") is None

    fold.hear(failure(asked["id"], -32601, "method not found"))
    assert DIALECT.accepted(fold.state, "k") is True
    assert fold.sent("session/prompt")[-1]["prompt"][0]["text"] == "turn left"
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))
    assert not fold.is_done
    fold.hear(chunk("left it is"), answer("prompt:k", {"stopReason": "end_turn"}))

    assert fold.is_done
    assert fold.result.text == "left it is"


@pytest.mark.requirement("acp:steer:late")
def test_a_message_that_comes_too_late_is_not_sent_and_not_taken() -> None:
    fold = Fold(opening())
    fold.open()
    mark = DIALECT.steer(fold.state, "turn left", key="k")
    assert mark is not None

    fold.hear(answer("prompt", {"stopReason": "end_turn"}))
    fold.hear(failure(json.loads(mark.line)["id"], -32601, "method not found"))

    assert fold.is_done
    assert DIALECT.accepted(fold.state, "k") is False
    assert len(fold.sent("session/prompt")) == 1
    assert DIALECT.steer(fold.state, "again", key="k2") is None


@pytest.mark.requirement("acp:steer:pulled")
def test_qwen_is_given_messages_when_it_asks_for_them() -> None:
    fold = Fold(of_agent("qwen"))
    fold.open()
    for key, text in (("k1", "turn left"), ("k2", "then right")):
        mark = DIALECT.steer(fold.state, text, key=key)
        assert mark is not None
        fold.hear(failure(json.loads(mark.line)["id"], -32601, "method not found"))
    assert DIALECT.accepted(fold.state, "k1") is None

    pull = {"jsonrpc": "2.0", "id": 7, "method": "craft/drainMidTurnQueue", "params": {}}
    fold.hear(pull)

    assert fold.answers()[-1]["result"]["messages"] == ["turn left", "then right"]
    assert DIALECT.accepted(fold.state, "k1") is True
    mark = DIALECT.steer(fold.state, "too late", key="k3")
    assert mark is not None
    fold.hear(failure(json.loads(mark.line)["id"], -32601, "method not found"))
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))
    assert DIALECT.accepted(fold.state, "k3") is False


@pytest.mark.requirement("acp:steer:others")
@pytest.mark.parametrize("agent", ["gemini", "goose", "codex-acp"])
def test_an_agent_that_would_queue_or_end_its_turn_takes_no_message(agent: str) -> None:
    fold = Fold(of_agent(agent))
    fold.hear(answer("initialize", {"protocolVersion": 1}))
    if agent == "gemini":
        fold.hear(answer("authenticate", {}))
    fold.hear(answer("session", {"sessionId": "s-1"}))

    assert fold.sent("session/prompt")
    assert DIALECT.steer(fold.state, "turn left", key="k") is None
    assert not DIALECT.abilities_of({"agent": agent}).steer


@pytest.mark.requirement("acp:interrupt")
def test_an_interrupt_cancels_the_session_and_only_while_a_prompt_is_open() -> None:
    fold = Fold(opening())
    assert DIALECT.interrupt(fold.state, key="i") is None
    fold.open()
    input_line = DIALECT.interrupt(fold.state, key="i")

    assert input_line is not None
    assert json.loads(input_line.line) == {
        "jsonrpc": "2.0",
        "method": "session/cancel",
        "params": {"sessionId": "s-1"},
    }


# -- what the agent asks --------------------------------------------------------------------------


@pytest.mark.requirement("acp:permission:open")
def test_without_a_scope_every_question_is_answered_with_allow_once() -> None:
    fold = Fold(opening())
    fold.open()
    fold.hear(permission("rm", "delete", id="q"))

    assert fold.answers()[-1] == {
        "jsonrpc": "2.0",
        "id": "q",
        "result": {"outcome": {"outcome": "selected", "optionId": "y"}},
    }


@pytest.mark.requirement("acp:permission:none-fits")
def test_a_question_that_offers_no_fitting_answer_is_given_up() -> None:
    fold = Fold(opening())
    fold.open()
    asked = permission("rm", "delete")
    asked["params"]["options"] = [{"optionId": "n", "name": "No", "kind": "reject_once"}]
    fold.hear(asked)

    assert fold.answers()[-1]["result"] == {"outcome": {"outcome": "cancelled"}}


@pytest.mark.requirement("acp:asked:unknown")
def test_what_this_client_does_not_do_is_refused_and_never_left_unanswered() -> None:
    fold = Fold(opening())
    fold.open()
    for number, method in enumerate(("fs/read_text_file", "terminal/create", "vendor/thing")):
        fold.hear({"jsonrpc": "2.0", "id": number, "method": method, "params": {}})
    fold.hear({"jsonrpc": "2.0", "id": "e", "method": "elicitation/create", "params": {}})

    assert [each["error"]["code"] for each in fold.answers()[:3]] == [-32601] * 3
    assert fold.answers()[3]["result"] == {"action": "decline"}


# -- ends -----------------------------------------------------------------------------------------


@pytest.mark.requirement("acp:ends")
@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("max_tokens", "token limit"),
        ("max_turn_requests", "limit of model requests"),
        ("refusal", "refused"),
        ("cancelled", "interrupted"),
        ("something_new", "the turn ended with something_new"),
    ],
)
def test_a_turn_that_stops_for_another_reason_is_an_error_with_what_was_said(
    reason: str, error: str
) -> None:
    fold = Fold(opening())
    fold.open()
    fold.hear(chunk("so far"), answer("prompt", {"stopReason": reason}))

    assert fold.is_done
    assert error in (fold.result.error or "")
    assert fold.result.text == "so far"


@pytest.mark.requirement("acp:ends")
def test_an_agent_that_dies_in_its_turn_leaves_an_error_and_its_last_words() -> None:
    fold = Fold(opening())
    fold.open()
    fold.hear(chunk("half a sent"))
    fold.finish()

    assert fold.result.error == "the agent ended before its turn was over"
    assert fold.result.text == "half a sent"
    assert fold.lines(LineType.TEXT) == ["half a sent"]


@pytest.mark.requirement("acp:limits")
@pytest.mark.parametrize(
    ("data", "after_ms"),
    [
        ({"status": 429, "retryAfter": 12}, 12_000),
        ({"error": {"code": 429}, "retry_after_ms": 1500}, 1_500),
        ({"details": "Error: HTTP 529 overloaded"}, None),
    ],
)
def test_a_limit_is_found_where_agents_put_it(data: dict[str, Any], after_ms: int | None) -> None:
    fold = Fold(opening())
    fold.open()
    fold.hear(failure("prompt", -32603, "Internal error", data))

    assert (fold.result.is_limit, fold.result.retry_after_ms) == (True, after_ms)


@pytest.mark.requirement("acp:usage")
def test_tokens_are_those_of_the_turn_and_unknown_where_only_the_last_request_tells() -> None:
    used = {"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 100, "totalTokens": 115}
    turn = Fold(opening())
    turn.open()
    turn.hear(update("usage_update", used=90, size=200, cost={"amount": 0.5, "currency": "USD"}))
    turn.hear(answer("prompt", {"stopReason": "end_turn", "usage": used}))
    last = Fold(of_agent("opencode"))
    last.open()
    last.hear(answer("prompt", {"stopReason": "end_turn", "usage": used}))

    totals = [each.usage for each in turn.signals if isinstance(each, UsageSeen)]
    assert totals[-1] == Usage(tokens_in=110, tokens_out=5, cost_usd=0.5)
    (context,) = [each.context for each in turn.output if each.context is not None]
    assert (context.tokens, context.window) == (90, 200)
    assert not [each for each in last.signals if isinstance(each, UsageSeen)]


@pytest.mark.requirement("acp:usage")
@pytest.mark.parametrize(
    ("told", "cost"), [(0.75, 0.75), (0.25, 0.75)], ids=["of the session", "of the process"]
)
def test_a_further_turn_counts_on_from_the_turns_before(told: float, cost: float) -> None:
    before = Usage(tokens_in=100, tokens_out=50, cost_usd=0.5)
    turn = Fold(replace(opening(), turn=2, used=before))
    turn.open()
    turn.hear(update("usage_update", used=90, size=200, cost={"amount": told, "currency": "USD"}))
    used = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
    turn.hear(answer("prompt", {"stopReason": "end_turn", "usage": used}))

    totals = [each.usage for each in turn.signals if isinstance(each, UsageSeen)]
    assert totals[-1] == Usage(tokens_in=110, tokens_out=55, cost_usd=cost)


# -- anything at all ------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
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
    fold = Fold(of_agent("qwen"))
    fold.open()
    for kind, fields in updates:
        fold.hear(update(kind, **fields))
    fold.hear(answer("prompt", {"stopReason": "end_turn"}))

    assert fold.is_done


@pytest.mark.requirement("acp:stream:anything")
@given(
    st.binary(max_size=200), st.sampled_from(["initialize", "session", "prompt", "set:mode"]), JSON
)
def test_no_line_and_no_answer_of_any_shape_raises(noise: bytes, id: str, result: Any) -> None:  # noqa: A002
    fold = Fold(of_agent("opencode"))
    fold.hear(noise)
    fold.hear(json.dumps(answer(id, result)).encode())
    fold.open()
    fold.hear(json.dumps(answer(id, result)).encode(), noise)
    fold.hear(
        json.dumps(
            {
                "id": 1,
                "method": "session/request_permission",
                "params": {"toolCall": result, "options": result},
            }
        ).encode()
    )
    fold.finish()

    assert fold.is_done


@pytest.mark.requirement("acp:stream:anything")
@pytest.mark.parametrize("recording", RECORDINGS[:4], ids=lambda path: path.stem)
def test_a_stream_that_is_cut_anywhere_is_still_heard(recording: Path) -> None:
    data = recording.read_bytes()
    for at in range(0, len(data), max(1, len(data) // 60)):
        fold = Fold(of_agent(agent_of(recording)))
        for line in data[:at].splitlines():
            fold.hear(line)
        fold.finish()
        assert fold.is_done
