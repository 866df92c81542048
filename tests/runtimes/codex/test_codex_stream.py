"""Codex's protocol, against streams that the real program wrote."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.domain.run.run import Usage
from subagents.domain.run.signals import (
    ResultSeen,
    SessionSeen,
    Signal,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.run.worker_output import LineType, OutputItem, PlanStatus
from subagents.errors import ConfigError, Forbidden, UsageError
from subagents.runtimes.codex.codex import CodexDialect
from subagents.runtimes.codex.codex_config import UserConfig, thread_params
from subagents.runtimes.codex.codex_options import parse_options
from subagents.runtimes.codex.codex_turn import NOT_LOGGED_IN, CodexState
from subagents.runtimes.conversation.dialect import InputLine, Opening, TurnStep
from subagents.runtimes.conversation.jsonrpc import Request, decode

STREAMS: Final = Path(__file__).parents[2] / "data" / "streams" / "codex"
NAMES: Final = sorted(path.stem for path in STREAMS.glob("*.jsonl"))
CODEX: Final = CodexDialect()
SESSION: Final = "00000003-0000-7000-8000-000000000003"

Document = dict[str, Any]


class Told(NamedTuple):
    """What a whole stream came to."""

    state: CodexState
    output: list[OutputItem]
    signals: list[Signal]
    input_lines: list[InputLine]

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.output if each.text]

    @property
    def result(self) -> ResultSeen:
        return next(each for each in reversed(self.signals) if isinstance(each, ResultSeen))

    @property
    def used(self) -> Usage:
        return next(each.usage for each in reversed(self.signals) if isinstance(each, UsageSeen))

    def of(self, kind: LineType) -> list[str]:
        return [each.text for each in self.output if each.type is kind and each.text]

    def sent(self, key: str) -> Document:
        line = next(input_line.line for input_line in self.input_lines if input_line.key == key)
        found: Document = json.loads(line)
        return found


def opening(**changes: Any) -> Opening:
    facts: Document = {
        "attempt_id": "r-abcdefghij#1",
        "run_id": "r-abcdefghij",
        "number": 1,
        "turn": 1,
        "message": "Do it.",
        "system_prompt": "You are a worker.",
        "cwd": "/home/ada/project",
        "session_uuid": "11111111-2222-4333-8444-555555555555",
        "bridge": ("subagents", "mcp"),
    }
    return Opening(**(facts | changes))


def lines_of(name: str) -> list[bytes]:
    return (STREAMS / f"{name}.jsonl").read_bytes().splitlines()


def folded(lines: Iterable[bytes], **changes: Any) -> Told:
    """The stream, heard from its beginning to its end."""
    step = CODEX.begin(opening(**changes))
    told = Told(step.state, [], [], list(step.input_lines))
    for line in lines:
        told = heard(told, CODEX.read_line(told.state, line, now_ms=None))
    return heard(told, CODEX.finish(told.state))


def heard(told: Told, step: TurnStep[CodexState]) -> Told:
    return Told(
        step.state,
        [*told.output, *step.output],
        [*told.signals, *step.signals],
        [*told.input_lines, *step.input_lines],
    )


def event(method: str, **params: object) -> bytes:
    return json.dumps({"method": method, "params": params}).encode()


def asking(method: str, **params: object) -> bytes:
    return json.dumps({"id": 7, "method": method, "params": params}).encode()


def working() -> CodexState:
    """In the middle of the recorded turn of ``text``."""
    lines = lines_of("text")
    begun = next(i for i, line in enumerate(lines) if b'"turn/started"' in line)
    step = CODEX.begin(opening())
    for line in lines[: begun + 1]:
        step = CODEX.read_line(step.state, line, now_ms=None)
    return step.state


@pytest.mark.requirement("codex:stream:every-event-known")
@pytest.mark.parametrize("name", NAMES)
def test_every_event_of_the_real_program_is_known(name: str) -> None:
    told = folded(lines_of(name))

    assert [text for text in told.texts if "unknown event" in text] == []


@pytest.mark.requirement("codex:stream:every-event-known")
def test_an_event_or_item_of_another_version_is_named() -> None:
    told = folded([event("turn/dreamed"), event("item/completed", item={"type": "dream"}), b"what"])

    assert told.texts[:3] == [
        "unknown event: turn/dreamed",
        "unknown event: item dream",
        "unknown event: what",
    ]


@pytest.mark.requirement("codex:stream:text")
def test_a_turn_becomes_text_thinking_usage_and_a_result() -> None:
    told = folded(lines_of("text"))

    assert told.of(LineType.TEXT) == ["All done."]
    assert told.of(LineType.THINKING) == ["hmm"]
    assert told.used == Usage(tokens_in=100, tokens_out=50)
    assert told.result == ResultSeen(key="", text="All done.")
    context = next(each.context for each in told.output if each.context)
    assert (context.tokens, context.window, context.model) == (150, 258_400, "gpt-5.5")
    assert CODEX.is_done(told.state)


@pytest.mark.requirement("codex:stream:text")
def test_the_first_signal_names_the_session() -> None:
    told = folded(lines_of("text"))

    assert told.signals[0] == SessionSeen(key="", session_id=str(told.state.thread_id))


@pytest.mark.requirement("codex:stream:tools")
def test_commands_patches_and_mcp_calls_have_begin_end_duration_and_failure() -> None:
    told = folded(lines_of("tools"))

    tools = [each.tool for each in told.output if each.tool is not None]
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
    assert [each.name for each in told.signals if isinstance(each, ToolSeen)] == list(ends)


@pytest.mark.requirement("codex:stream:plan")
def test_a_plan_is_the_workers_plan() -> None:
    steps = [{"step": "look", "status": "completed"}, {"step": "mend", "status": "inProgress"}]
    told = folded([event("turn/plan/updated", plan=steps)])

    tool = told.output[0].tool
    assert tool is not None
    assert tool.plan is not None
    assert [(item.text, item.status) for item in tool.plan] == [
        ("look", PlanStatus.COMPLETED),
        ("mend", PlanStatus.IN_PROGRESS),
    ]


@pytest.mark.requirement("codex:stream:sub-agents-are-others")
def test_the_end_of_a_sub_agent_of_codex_ends_no_turn_but_its_tokens_count() -> None:
    told = folded(lines_of("sub-agents"))

    assert told.result.text == "parent"
    assert told.of(LineType.TEXT) == ["parent"]
    agents = [each.tool for each in told.output if each.tool and each.tool.is_end]
    assert [(tool.name, tool.agents) for tool in agents] == [("spawn_agent", 1), ("wait_agent", 0)]
    assert len(told.state.tokens) == 2
    assert told.used.tokens_in == sum(each.sent for each in told.state.tokens.values())


@pytest.mark.requirement("codex:steer")
def test_a_message_goes_into_the_turn_and_is_taken_when_codex_says_so() -> None:
    state = working()
    input_line = CODEX.steer(state, "turn left", key="s1")

    assert input_line is not None
    sent = json.loads(input_line.line)
    assert sent["method"] == "turn/steer"
    assert sent["params"]["expectedTurnId"] == state.turn_id
    assert sent["params"]["input"] == [{"type": "text", "text": "turn left"}]
    assert CODEX.accepted(state, "s1") is None
    assert CODEX.accepted(folded(lines_of("steer")).state, "k1") is True
    assert folded(lines_of("steer")).result.text == "steered"


@pytest.mark.requirement("codex:steer")
def test_a_message_that_comes_after_the_turn_was_not_taken() -> None:
    told = folded(lines_of("steer-too-late"))

    assert CODEX.accepted(told.state, "k1") is False
    assert CODEX.steer(told.state, "more", key="s2") is None
    assert CODEX.steer(CODEX.begin(opening()).state, "too early", key="s3") is None


@pytest.mark.requirement("codex:interrupt")
def test_an_interrupted_turn_is_over_and_keeps_what_was_said() -> None:
    input_line = CODEX.interrupt(working(), key="i1")
    told = folded(lines_of("interrupt"))

    assert input_line is not None
    assert json.loads(input_line.line)["method"] == "turn/interrupt"
    assert CODEX.is_done(told.state)
    assert (told.result.text, told.result.error) == ("I sleep", "the turn was interrupted")
    assert CODEX.interrupt(told.state, key="i2") is None


@pytest.mark.requirement("codex:resume")
def test_a_further_turn_goes_on_with_the_thread_and_counts_its_own_tokens_only() -> None:
    told = folded(lines_of("resume"), session_id=SESSION)

    sent = told.sent("thread")
    assert (sent["method"], sent["params"]["threadId"]) == ("thread/resume", SESSION)
    assert told.result.text == "again"
    assert told.used == Usage(tokens_in=200, tokens_out=5)


@pytest.mark.requirement("codex:resume")
def test_a_second_turn_of_the_same_attempt_counts_all_of_its_tokens() -> None:
    first = Usage(tokens_in=100, tokens_out=50)
    told = folded(lines_of("resume"), session_id=SESSION, turn=2, used=first)

    assert told.used == Usage(tokens_in=300, tokens_out=55)


@pytest.mark.requirement("codex:resume")
def test_a_session_that_is_not_there_is_an_error_that_says_so() -> None:
    told = folded(lines_of("unknown-session"), session_id=SESSION)

    assert told.result.is_error
    assert "no rollout found" in str(told.result.error)


@pytest.mark.requirement("codex:errors")
def test_a_provider_that_takes_no_more_is_a_limit_with_its_status() -> None:
    told = folded(lines_of("limit"))

    errors = [each.api_error for each in told.output if each.api_error]
    assert [(each.status, each.retry) for each in errors] == [(429, None)]
    assert (told.result.is_error, told.result.is_limit) == (True, True)


@pytest.mark.requirement("codex:errors")
def test_a_failed_turn_says_what_the_provider_said() -> None:
    assert folded(lines_of("refused")).result.error == "the script says no"
    assert not folded(lines_of("failed")).result.is_limit
    assert "high demand" in str(folded(lines_of("failed")).result.error)


@pytest.mark.requirement("codex:errors")
def test_a_stream_that_broke_and_was_tried_again_is_heard_and_ends_well() -> None:
    told = folded(lines_of("retried"))

    assert [each.api_error.retry for each in told.output if each.api_error] == ["1/1"]
    assert (told.result.text, told.result.is_error) == ("ok", False)


@pytest.mark.requirement("codex:errors")
def test_nobody_logged_in_is_told_at_once_with_the_way_out() -> None:
    told = folded(lines_of("not-logged-in"))

    assert told.result.error == NOT_LOGGED_IN
    assert "codex login" in NOT_LOGGED_IN
    assert all(input_line.key != "thread" for input_line in told.input_lines)


@pytest.mark.requirement("codex:errors")
def test_tools_of_ours_that_do_not_start_end_the_turn() -> None:
    told = folded(lines_of("bridge-missing"))

    assert "required MCP servers failed" in str(told.result.error)


@pytest.mark.requirement("codex:errors")
def test_a_program_that_is_gone_in_mid_turn_leaves_an_error_with_the_last_text() -> None:
    lines = [line for line in lines_of("tools") if b'"turn/completed"' not in line]
    told = folded(lines)

    assert told.result.is_error
    assert told.result.text == "bye"
    assert "in the middle of its turn" in str(told.result.error)


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


@pytest.mark.requirement("codex:start")
def test_a_thread_begins_when_the_login_and_the_users_configuration_are_known() -> None:
    told = folded(lines_of("text"), model="gpt-5.5", thinking="high")

    assert [input_line.key for input_line in told.input_lines] == [
        *("initialize", "initialized", "config", "account", "thread", "turn"),
    ]
    params = told.sent("thread")["params"]
    assert params["cwd"] == "/home/ada/project"
    assert (params["approvalPolicy"], params["sandbox"]) == ("never", "workspace-write")
    assert params["developerInstructions"] == "You are a worker."
    assert params["model"] == "gpt-5.5"
    turn = told.sent("turn")["params"]
    assert turn["input"] == [{"type": "text", "text": "Do it."}]
    assert turn["effort"] == "high"


@pytest.mark.requirement("codex:start")
def test_our_tools_are_a_server_that_must_be_there_and_needs_no_approval() -> None:
    config: Any = thread_params(opening(), parse_options({}), UserConfig())["config"]

    ours = config["mcp_servers"]["subagents"]
    assert (ours["command"], ours["args"]) == ("subagents", ["mcp"])
    assert (ours["default_tools_approval_mode"], ours["required"]) == ("approve", True)
    assert ours["tool_timeout_sec"] >= 86_400
    assert config["features"]["code_mode"]["direct_only_tool_namespaces"] == ["mcp__subagents"]


@pytest.mark.requirement("codex:start")
def test_the_users_own_instructions_and_trust_stand() -> None:
    known = UserConfig(instructions="Mine.", trust={"/home/ada": "trusted", "/": "untrusted"})
    params: Any = thread_params(opening(), parse_options({}), known)
    fresh: Any = thread_params(opening(), parse_options({}), UserConfig())

    assert params["developerInstructions"] == "Mine.\n\nYou are a worker."
    assert params["config"]["projects"] == {"/home/ada/project": {"trust_level": "trusted"}}
    assert fresh["config"]["projects"] == {"/home/ada/project": {"trust_level": "untrusted"}}


@pytest.mark.requirement("codex:start")
def test_every_process_of_a_command_carries_the_mark_of_its_attempt(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = CODEX.invocation(
        opening(cwd=str(tmp_path)), directory="/state/attempts/r-abcdefghij/1", path=str(tmp_path)
    )

    assert found.argv[:2] == (str(program), "app-server")
    assert 'shell_environment_policy.set.SUBAGENTS_ATTEMPT="r-abcdefghij#1"' in found.argv
    assert 'shell_environment_policy.set.SUBAGENTS_ATTEMPTS_DIR="/state/attempts"' in found.argv
    with pytest.raises(UsageError, match=r"runtime_options\.command"):
        CODEX.invocation(opening(cwd=str(tmp_path)), directory="/state", path="/nonexistent")


@pytest.mark.requirement("codex:options")
def test_options_become_codexs_own_keys_and_ours_win() -> None:
    options = parse_options(
        {
            "network": True,
            "writable": [".git", "/var/cache"],
            "config": {"model_provider": "mine", "features.x": 1, "features.shell_snapshot": True},
        }
    )
    config: Any = thread_params(opening(), options, UserConfig())["config"]

    assert config["sandbox_workspace_write"] == {
        "network_access": True,
        "writable_roots": ["/home/ada/project/.git", "/var/cache"],
    }
    assert config["model_provider"] == "mine"
    assert config["features"]["x"] == 1
    assert config["features"]["shell_snapshot"] is False
    assert "code_mode" in config["features"]


@pytest.mark.requirement("codex:options")
@pytest.mark.parametrize(
    ("options", "output"),
    [
        ({"sandbx": "read-only"}, "did you mean `sandbox`"),
        ({"sandbox": "none"}, "danger-full-access|sandbox"),
        ({"config": {"approval_policy": "on-request"}}, "nobody is there"),
        ({"config": {"mcp_servers": {"subagents": {}}}}, "our own tools"),
        ({"sandbox": "read-only", "network": True}, "have no effect"),
        ({"prices": {"input": 1}}, "output"),
        ({"env": {"SUBAGENTS_TOKEN": "x"}}, "SUBAGENTS_TOKEN"),
        ({"command": [""]}, "begin with a program"),
    ],
)
def test_options_that_cannot_be_are_refused_with_their_name(options: Document, output: str) -> None:
    with pytest.raises(ConfigError, match=output):
        CODEX.check(options)


@pytest.mark.requirement("codex:cost")
def test_a_price_makes_a_cost_and_cached_tokens_have_their_own() -> None:
    prices = {"input": 2.0, "cached": 0.5, "output": 10.0}
    told = folded(lines_of("text"), options={"prices": prices})

    assert told.used.cost_usd == pytest.approx((90 * 2 + 10 * 0.5 + 50 * 10) / 1e6)
    assert folded(lines_of("text")).used.cost_usd is None


@pytest.mark.requirement("codex:scope")
def test_a_scope_switches_off_what_is_not_in_it() -> None:
    known = UserConfig(servers=("github", "files"))
    denied: Any = thread_params(
        opening(tools_deny=("Bash", "Task", "WebSearch", "mcp__github__delete", "mcp__files")),
        parse_options({}),
        known,
    )
    only: Any = thread_params(
        opening(tools=("exec_command", "mcp__github__read")), parse_options({}), known
    )

    config = denied["config"]
    assert config["features"]["shell_tool"] is False
    assert config["features"]["multi_agent"] is False
    assert config["agents"] == {"enabled": False}
    assert config["web_search"] == "disabled"
    assert config["mcp_servers"]["github"] == {"disabled_tools": ["delete"]}
    assert config["mcp_servers"]["files"] == {"enabled": False}
    assert denied["sandbox"] == "workspace-write"
    assert only["sandbox"] == "read-only"
    assert "shell_tool" not in only["config"]["features"]
    assert only["config"]["mcp_servers"]["github"] == {"enabled_tools": ["read"]}
    assert only["config"]["mcp_servers"]["files"] == {"enabled": False}
    assert only["config"]["mcp_servers"]["subagents"]["required"] is True


@pytest.mark.requirement("codex:scope")
def test_the_real_program_had_neither_a_denied_shell_nor_a_denied_patch() -> None:
    only_patch, no_edit = folded(lines_of("scoped")), folded(lines_of("scoped-read"))

    assert "unsupported call: exec_command" in only_patch.result.text
    assert "patch rejected: writing is blocked" in no_edit.result.text
    assert "Read-only file system" in no_edit.result.text


@pytest.mark.requirement("codex:scope")
@pytest.mark.parametrize(
    ("options", "deny", "output"),
    [
        ({}, ("Read",), "with its shell"),
        ({}, ("tool_search",), "tool_search"),
        ({"sandbox": "danger-full-access"}, ("Edit",), "sandbox"),
    ],
)
def test_a_scope_that_nothing_enforces_is_refused(
    options: Document, deny: tuple[str, ...], output: str
) -> None:
    with pytest.raises(Forbidden, match=output):
        CODEX.check_scope(options, None, deny)
    CODEX.check_scope({}, None, ("Read", "Bash", "Edit"))


@pytest.mark.requirement("codex:scope")
def test_without_the_users_configuration_no_scope_is_taken() -> None:
    refused = b'{"id":"config","error":{"code":-32600,"message":"no"}}'
    known = b'{"id":"account","result":{"account":null,"requiresOpenaiAuth":false}}'

    scoped = folded([refused, known], tools_deny=("Bash",))
    free = folded([refused, known])
    assert "no tool scope can be enforced" in str(scoped.result.error)
    assert any(input_line.key == "thread" for input_line in free.input_lines)


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
    told = folded(lines)

    assert CODEX.is_done(told.state) or isinstance(told.result, ResultSeen)


@pytest.mark.requirement("codex:stream:never-raises")
@given(st.sampled_from(NAMES), st.data())
def test_no_damaged_stream_raises(name: str, data: st.DataObject) -> None:
    lines = lines_of(name)
    place = data.draw(st.integers(0, len(lines) - 1))
    cut = data.draw(st.integers(0, len(lines[place])))
    lines[place] = lines[place][:cut] + data.draw(st.binary(max_size=8)) + lines[place][cut:]

    assert isinstance(folded(lines).result, ResultSeen)


@pytest.mark.requirement("codex:stream:never-raises")
def test_every_letter_is_one_line_of_json() -> None:
    for input_line in folded(lines_of("tools")).input_lines:
        assert b"\n" not in input_line.line
        assert isinstance(decode(input_line.line), Request) or input_line.key == "initialized"
