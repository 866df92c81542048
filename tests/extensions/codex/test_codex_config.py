"""What a Codex worker is started with, and how it is kept to its scope."""

from typing import Any

import pytest
from tests.extensions.codex.codex_folds import CODEX, fold, lines_of, opening
from tests.extensions.conversation.folds import Document

from subagents.errors import Forbidden
from subagents.extensions.codex.codex_config import UserConfig, thread_params
from subagents.extensions.codex.codex_options import parse_options


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
    assert {config["features"][name] for name in ("multi_agent", "multi_agent_v2")} == {False}
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
    only_patch, no_edit = fold(lines_of("scoped")), fold(lines_of("scoped-read"))

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

    scoped = fold([refused, known], tools_deny=("Bash",))
    free = fold([refused, known])
    assert "no tool scope can be enforced" in str(scoped.result.error)
    assert any(input_line.key == "thread" for input_line in free.input_lines)


@pytest.mark.requirement("codex:mcp-servers")
def test_named_servers_are_started_by_us_and_those_of_the_user_are_off() -> None:
    known = UserConfig(servers=("files", "far"))
    named = opening(options={"mcp_servers": ["scales", "far"]})
    config: Any = thread_params(named, parse_options({}), known)["config"]

    servers = config["mcp_servers"]
    assert servers["scales"]["args"] == ["mcp", "--server=scales"]
    assert servers["far_2"]["args"] == ["mcp", "--server=far"]
    assert servers["files"] == servers["far"] == {"enabled": False}
    assert config["features"]["plugins"] is False
    with pytest.raises(Forbidden, match=r"runtime_options\.config\.mcp_servers brings others"):
        CODEX.check_servers({"config": {"mcp_servers.x.command": "y"}, "mcp_servers": []})
