"""How a session of an ACP agent is opened, set and resumed."""

import json
from typing import Any

import pytest
from tests.extensions.acp.acp_folds import (
    AcpFold,
    answer,
    failure,
    of_agent,
    opening,
)

from subagents.domain.run.worker_output import LineType
from subagents.errors import Forbidden
from subagents.extensions.acp.acp import AcpDialect


@pytest.mark.requirement("acp:setup:bridge")
def test_our_tools_are_given_to_the_session_without_any_secret() -> None:
    fold = AcpFold(opening(bridge=("/usr/bin/python", "-m", "subagents", "mcp")))
    fold.hear(answer("initialize", {"protocolVersion": 1}))

    (new,) = fold.sent("session/new")
    assert new["cwd"] == "/home/ada/project"
    assert new["mcpServers"] == [
        {
            "name": "subagents",
            "command": "/usr/bin/python",
            "args": ["-m", "subagents", "mcp"],
            "env": [],
        }
    ]


@pytest.mark.requirement("acp:setup:mcp-servers")
def test_named_servers_are_given_to_the_session_and_no_others_are_loaded() -> None:
    options: dict[str, object] = {"agent": "claude-agent-acp", "mcp_servers": ["scales"]}
    fold = AcpFold(opening(bridge=("subagents", "mcp"), options=options))
    fold.hear(answer("initialize", {"protocolVersion": 1}))

    (new,) = fold.sent("session/new")
    assert [each["args"] for each in new["mcpServers"]] == [["mcp"], ["mcp", "--server=scales"]]
    assert new["_meta"]["claudeCode"]["options"] == {
        "settingSources": [],
        "strictMcpConfig": True,
    }
    AcpDialect().check_servers(options)
    for agent in ("opencode", "goose", "codex-acp", "copilot", "kilo", "cline", "pi-acp"):
        with pytest.raises(Forbidden, match=f"ACP agent {agent} .* of its user's own"):
            AcpDialect().check_servers({**options, "agent": agent})


@pytest.mark.requirement("acp:setup:bridge")
def test_copilot_which_takes_no_commands_with_a_session_gets_our_tools_by_an_argument() -> None:
    why, way = AcpDialect().unserved({"agent": "pi-acp"}) or ("", "")

    assert why.startswith("pi-acp starts no MCP servers of a session")
    assert way == "subagents mcp install pi"
    assert AcpDialect().unserved({"agent": "copilot"}) is None


@pytest.mark.requirement("acp:setup:system-prompt")
def test_the_role_stands_before_the_first_prompt_and_before_no_later_one() -> None:
    first, later = AcpFold(opening()), AcpFold(opening(session_id="s-1", turn=2))
    first.open()
    later.hear(
        answer("initialize", {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    )
    later.hear(answer("session:load", {}))

    (asked,) = first.sent("session/prompt")
    assert asked["prompt"][0]["text"] == "You are a worker.\n\n# Your task\n\ndo it"
    (again,) = later.sent("session/prompt")
    assert again["prompt"][0]["text"] == "do it"


@pytest.mark.requirement("acp:setup:system-prompt")
def test_claude_gets_its_role_as_a_system_prompt() -> None:
    fold = AcpFold(of_agent("claude-agent-acp"))
    fold.open()

    (new,) = fold.sent("session/new")
    assert new["_meta"]["systemPrompt"] == {"append": "You are a worker."}
    assert fold.sent("session/prompt")[0]["prompt"][0]["text"] == "do it"


@pytest.mark.requirement("acp:setup:no-commands")
def test_a_message_that_begins_like_a_command_of_the_program_is_none() -> None:
    fold = AcpFold(opening(system_prompt="", message="/logout"))
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
    fold = AcpFold(opening(model=asked))
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
    fold = AcpFold(opening(**changes))
    fold.open(configOptions=[{"id": "model", "options": [{"value": "m1"}, {"value": "m2"}]}])

    assert fold.is_done
    assert fold.result.is_error
    assert output in (fold.result.error or "")
    assert fold.sent("session/prompt") == []


@pytest.mark.requirement("acp:setup:mode")
def test_a_mode_of_the_table_may_be_refused_and_one_that_the_user_wrote_may_not() -> None:
    modes = {"availableModes": [{"id": "yolo"}]}
    tabled = AcpFold(of_agent("qwen"))
    tabled.open(modes=modes)
    tabled.hear(failure("try:mode", -32603, "not in this folder"))
    wished = AcpFold(opening(options={"command": ["x"], "mode": "yolo"}))
    wished.open(modes=modes)
    wished.hear(failure("set:mode", -32603, "not in this folder"))

    assert len(tabled.sent("session/prompt")) == 1
    assert "try:mode: not in this folder" in tabled.texts(LineType.SYSTEM)
    assert wished.is_done
    assert wished.result.error == "set:mode: not in this folder"


@pytest.mark.requirement("acp:setup:mode")
@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (("auto", "default", "bypassPermissions"), "bypassPermissions"),
        (("auto", "default"), "default"),
    ],
)
def test_where_claude_may_not_pass_over_permissions_it_asks_us_and_no_model(
    offered: tuple[str, ...], chosen: str
) -> None:
    fold = AcpFold(of_agent("claude-agent-acp"))
    fold.open(modes={"currentModeId": "auto", "availableModes": [{"id": each} for each in offered]})

    (asked,) = fold.sent("session/set_mode")
    assert asked["modeId"] == chosen


@pytest.mark.requirement("acp:setup:login")
def test_an_agent_that_wants_a_login_says_how_to_give_it_one() -> None:
    fold = AcpFold(opening())
    methods = [{"id": "oauth", "name": "Log in"}, {"id": "api-key", "name": "Key"}]
    fold.hear(answer("initialize", {"protocolVersion": 1, "authMethods": methods}))
    fold.hear(failure("session", -32000, "Authentication required"))

    error = fold.result.error or ""
    assert error.startswith("session: Authentication required")
    assert "`runtime_options.auth`; it knows the methods oauth, api-key" in error
    assert fold.is_done


@pytest.mark.requirement("acp:setup:login")
def test_gemini_is_logged_in_with_its_key_before_its_session_is_opened() -> None:
    fold = AcpFold(of_agent("gemini"))
    fold.hear(answer("initialize", {"protocolVersion": 1}))

    assert fold.sent("authenticate") == [{"methodId": "gemini-api-key"}]
    assert fold.sent("session/new") == []
    fold.hear(answer("authenticate", {}))
    assert len(fold.sent("session/new")) == 1


@pytest.mark.requirement("acp:setup:version")
def test_an_agent_of_another_version_of_the_protocol_is_refused() -> None:
    fold = AcpFold(opening())
    fold.hear(answer("initialize", {"protocolVersion": 2}))

    assert "version 2 of the protocol" in (fold.result.error or "")


@pytest.mark.requirement("acp:resume:ways")
def test_a_session_is_gone_on_with_by_resume_then_by_load_and_else_not_at_all() -> None:
    able = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
    fold = AcpFold(opening(session_id="s-1"))
    fold.hear(answer("initialize", {"protocolVersion": 1, "agentCapabilities": able}))
    assert fold.sent("session/resume")[0]["sessionId"] == "s-1"
    fold.hear(failure("session", -32601, "method not found"))
    assert fold.sent("session/load")[0]["sessionId"] == "s-1"
    fold.hear(failure("session:load", -32603, "no such session"))
    assert fold.result.error == "session:load: no such session"

    unable = AcpFold(opening(session_id="s-1"))
    unable.hear(answer("initialize", {"protocolVersion": 1}))
    assert unable.result.error == "the agent cannot resume its session s-1"


@pytest.mark.requirement("acp:stream:any-line")
@pytest.mark.parametrize("odd", [{}, [1], None, 5])
def test_an_option_whose_names_are_no_texts_is_not_the_one_that_is_looked_for(odd: object) -> None:
    fold = AcpFold(of_agent("qwen"))

    fold.open(configOptions=[{"id": odd, "category": odd, "options": []}])

    assert fold.sent("session/prompt")
