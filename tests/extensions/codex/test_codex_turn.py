"""One turn of Codex, from the login to its end."""

import json
from typing import Final

import pytest
from msgspec import structs
from tests.extensions.codex.codex_folds import CODEX, fold, lines_of, working
from tests.extensions.conversation.folds import an_opening

from subagents.domain.run.access import Access, AccessLevel, Keeper
from subagents.domain.run.signals import PermissionAsked, SessionSeen
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import LineType
from subagents.extensions.codex.codex_config import UserConfig, thread_params
from subagents.extensions.codex.codex_options import parse_options
from subagents.extensions.codex.codex_turn import NOT_LOGGED_IN

SESSION: Final = "00000003-0000-7000-8000-000000000003"


def asking(method: str, **params: object) -> bytes:
    return json.dumps({"id": 7, "method": method, "params": params}).encode()


@pytest.mark.requirement("codex:stream:text")
def test_the_first_signal_names_the_session() -> None:
    folded = fold(lines_of("text"))

    assert folded.signals[0] == SessionSeen(key="", session_id=str(folded.state.thread_id))


@pytest.mark.requirement("codex:stream:sub-agents-are-others")
def test_the_end_of_a_sub_agent_of_codex_ends_no_turn_but_its_tokens_count() -> None:
    folded = fold(lines_of("sub-agents"))

    assert folded.result.text == "parent"
    assert folded.texts(LineType.TEXT) == ["parent"]
    agents = [each.tool for each in folded.output if each.tool and each.tool.is_end]
    assert [(tool.name, tool.agents) for tool in agents] == [("spawn_agent", 1), ("wait_agent", 0)]
    assert len(folded.state.tokens) == 2
    assert folded.usage.tokens_in == sum(each.sent for each in folded.state.tokens.values())


@pytest.mark.requirement("codex:interrupt")
def test_an_interrupted_turn_is_over_and_keeps_what_was_said() -> None:
    input_line = CODEX.interrupt(working(), key="i1")
    folded = fold(lines_of("interrupt"))

    assert input_line is not None
    assert json.loads(input_line.line)["method"] == "turn/interrupt"
    assert CODEX.is_done(folded.state)
    assert (folded.result.text, folded.result.error) == ("I sleep", "the turn was interrupted")
    assert CODEX.interrupt(folded.state, key="i2") is None


@pytest.mark.requirement("codex:resume")
def test_a_further_turn_goes_on_with_the_thread_and_counts_its_own_tokens_only() -> None:
    folded = fold(lines_of("resume"), session_id=SESSION)

    sent = folded.sent("thread")
    assert (sent["method"], sent["params"]["threadId"]) == ("thread/resume", SESSION)
    assert folded.result.text == "again"
    assert folded.usage == Usage(tokens_in=200, tokens_out=5, tokens_cache_read=0)


@pytest.mark.requirement("codex:resume")
def test_a_second_turn_of_the_same_attempt_counts_all_of_its_tokens() -> None:
    first = Usage(tokens_in=100, tokens_out=50)
    folded = fold(lines_of("resume"), session_id=SESSION, turn=2, used=first)

    assert folded.usage == Usage(tokens_in=300, tokens_out=55, tokens_cache_read=0)


@pytest.mark.requirement("codex:resume")
def test_a_session_that_is_not_there_is_an_error_that_says_so() -> None:
    folded = fold(lines_of("unknown-session"), session_id=SESSION)

    assert folded.result.is_error
    assert "no rollout found" in str(folded.result.error)


@pytest.mark.requirement("codex:errors")
def test_a_provider_that_takes_no_more_is_a_limit_with_its_status() -> None:
    folded = fold(lines_of("limit"))

    errors = [each.api_error for each in folded.output if each.api_error]
    assert [(each.status, each.retry) for each in errors] == [(429, None)]
    assert (folded.result.is_error, folded.result.is_limit) == (True, True)


@pytest.mark.requirement("codex:errors")
def test_a_failed_turn_says_what_the_provider_said() -> None:
    assert fold(lines_of("refused")).result.error == "the script says no"
    assert not fold(lines_of("failed")).result.is_limit
    assert "high demand" in str(fold(lines_of("failed")).result.error)


@pytest.mark.requirement("codex:errors")
def test_a_stream_that_broke_and_was_tried_again_is_heard_and_ends_well() -> None:
    folded = fold(lines_of("retried"))

    assert [each.api_error.retry for each in folded.output if each.api_error] == ["1/1"]
    assert (folded.result.text, folded.result.is_error) == ("ok", False)


@pytest.mark.requirement("codex:errors")
def test_nobody_logged_in_is_told_at_once_with_the_way_out() -> None:
    folded = fold(lines_of("not-logged-in"))

    assert folded.result.error == NOT_LOGGED_IN
    assert "codex login" in NOT_LOGGED_IN
    assert all(input_line.key != "thread" for input_line in folded.input_lines)


@pytest.mark.requirement("codex:errors")
def test_tools_of_ours_that_do_not_start_end_the_turn() -> None:
    folded = fold(lines_of("bridge-missing"))

    assert "required MCP servers failed" in str(folded.result.error)


@pytest.mark.requirement("codex:approvals")
def test_tools_of_mcp_servers_are_approved_and_nothing_else_is() -> None:
    state = working()

    def answered(line: bytes) -> object:
        input_line = CODEX.read_line(state, line, now_ms=None).input_lines[0]
        return json.loads(input_line.line).get("result")

    approval = {"codex_approval_kind": "mcp_tool_call"}
    assert answered(asking("mcpServer/elicitation/request", _meta=approval)) == {
        "action": "accept",
        "content": {},
    }
    assert answered(asking("mcpServer/elicitation/request", _meta=None)) == {"action": "decline"}
    assert answered(asking("item/commandExecution/requestApproval")) == {"decision": "decline"}
    assert answered(asking("item/fileChange/requestApproval")) == {"decision": "decline"}
    assert answered(asking("item/tool/requestUserInput")) == {"answers": {}}
    unknown = CODEX.read_line(state, asking("attestation/generate"), now_ms=None)
    assert json.loads(unknown.input_lines[0].line)["error"]["code"] == -32601


@pytest.mark.requirement("codex:approvals:asked")
@pytest.mark.parametrize(
    ("access", "deny", "is_asked"),
    [
        (None, (), True),
        (AccessLevel.FULL, (), True),
        (AccessLevel.FULL, ("WebFetch",), True),
        (AccessLevel.FULL, ("Edit",), False),
        (AccessLevel.WRITE, (), False),
        (AccessLevel.READ, (), False),
    ],
)
def test_what_lies_outside_its_sandbox_is_a_question_where_it_may_do_all(
    access: AccessLevel | None, deny: tuple[str, ...], *, is_asked: bool
) -> None:
    level = None if access is None else Access(level=access, kept_by=Keeper.PROGRAM)
    given = an_opening(options={"ask": True}, access=level, tools_deny=deny)
    known = thread_params(given, parse_options(given.options), UserConfig())
    assert (known["approvalPolicy"] == "on-request") is is_asked
    if is_asked:
        assert known["sandbox"] == "workspace-write"
    if deny == ("Edit",):
        assert known["sandbox"] == "read-only"
    state = replace(CODEX.begin(given).state, thread_id="t", turn_id="u")
    line = asking("item/commandExecution/requestApproval", command="rm -r build", cwd="/w")
    step = CODEX.read_line(state, line, now_ms=None)
    if not is_asked:
        assert json.loads(step.input_lines[0].line)["result"] == {"decision": "decline"}
        return
    assert step.input_lines == ()
    (asked,) = step.signals
    assert isinstance(asked, PermissionAsked)
    assert (asked.tool, asked.what) == ("shell", "rm -r build")
    answers = CODEX.permissions(step.state)[asked.call_id]
    words = [json.loads(each)["result"]["decision"] for each in (*structs.astuple(answers),)]
    assert words == ["accept", "acceptForSession", "decline"]


@pytest.mark.requirement("codex:approvals:asked")
def test_a_question_about_a_patch_names_what_it_changes() -> None:
    state = replace(CODEX.begin(an_opening(options={"ask": True})).state, thread_id="t")
    moved = {"path": "/etc/b", "kind": {"type": "update", "move_path": "/etc/c"}}
    changes = [{"path": "/etc/a", "kind": {"type": "add"}}, moved]
    item = {"type": "fileChange", "id": "i1", "changes": changes}
    begun = json.dumps({"method": "item/started", "params": {"threadId": "t", "item": item}})
    state = CODEX.read_line(state, begun.encode(), now_ms=None).state
    wanted = ("apply_patch", "add /etc/a, update /etc/b → /etc/c")

    method = "item/fileChange/requestApproval"
    found = [
        CODEX.read_line(state, asking(method, itemId=name, reason="why"), now_ms=None).signals[0]
        for name in ("i1", "i2")
    ]

    assert [(each.tool, each.what, each.call) for each in found] == [  # type: ignore[union-attr]
        (*wanted, ": ".join(wanted)),
        ("apply_patch", "why", None),
    ]


@pytest.mark.requirement("codex:start")
def test_a_thread_begins_when_the_login_and_the_users_configuration_are_known() -> None:
    folded = fold(lines_of("text"), model="gpt-5.5", thinking="high")

    assert [input_line.key for input_line in folded.input_lines] == [
        *("initialize", "initialized", "config", "account", "thread", "turn"),
    ]
    params = folded.sent("thread")["params"]
    assert params["cwd"] == "/home/ada/project"
    assert (params["approvalPolicy"], params["sandbox"]) == ("never", "workspace-write")
    assert params["developerInstructions"] == "You are a worker."
    assert params["model"] == "gpt-5.5"
    turn = folded.sent("turn")["params"]
    assert turn["input"] == [{"type": "text", "text": "do it"}]
    assert turn["effort"] == "high"


@pytest.mark.requirement("codex:cost")
def test_a_price_makes_a_cost_and_cached_tokens_have_their_own() -> None:
    prices = {"input": 2.0, "cached": 0.5, "output": 10.0}
    folded = fold(lines_of("text"), options={"prices": prices})

    assert folded.usage.cost_usd == pytest.approx((90 * 2 + 10 * 0.5 + 50 * 10) / 1e6)
    assert fold(lines_of("text")).usage.cost_usd is None
