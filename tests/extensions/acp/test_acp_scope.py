"""What ACP agents may use, and how each program is kept to it."""

import json
import tomllib
from typing import Any

import pytest
from msgspec import structs
from tests.extensions.acp.acp_folds import (
    DIALECT,
    AcpFold,
    answer,
    of_agent,
    opening,
    permission,
)
from tests.extensions.acp.acp_lines import AGENT_NAMES

from subagents.domain.rules.tool_kinds import ToolScope
from subagents.domain.run.signals import PermissionAsked
from subagents.errors import Forbidden
from subagents.extensions.acp.acp_agents import AGENTS, facts_of, parse_options
from subagents.extensions.acp.acp_scope import may_use, switches

SCOPED = [name for name in AGENT_NAMES if DIALECT.abilities_of({"agent": name}).scope_tools]


def denied_by(agent: str, *deny: str, tools: tuple[str, ...] | None = None) -> Any:
    facts = facts_of(parse_options({"agent": agent}))
    return switches(facts, ToolScope(tools=tools, deny=deny), directory="/attempt")


@pytest.mark.requirement("acp:scope:other-names")
@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("claude-agent-acp", "Bash"),
        ("opencode", "bash"),
        ("gemini", "run_shell_command"),
        ("qwen", "run_shell_command"),
        ("copilot", "read_bash"),
        ("kilo", "bash"),
    ],
)
def test_a_shell_denied_by_another_programs_name_is_not_there(agent: str, name: str) -> None:
    given = denied_by(agent, "exec_command")

    told = json.dumps([given.argv, given.env, given.session_meta]) + "".join(
        data.decode() for data in given.files.values()
    )
    assert name in told


@pytest.mark.requirement("acp:scope:gemini")
def test_geminis_policy_denies_by_name_and_an_allow_list_denies_the_rest() -> None:
    given = denied_by("gemini", "Bash", tools=("Read", "Bash"))

    (policy,) = given.files.values()
    rules = {
        (rule["toolName"], rule["decision"]): rule["priority"]
        for rule in tomllib.loads(policy.decode())["rule"]
    }
    assert rules["run_shell_command", "deny"] > rules["read_file", "allow"] > rules["*", "deny"]
    assert ("run_shell_command", "allow") not in rules
    assert given.argv[:2] == ("--admin-policy", "/attempt/gemini-policy.toml")


@pytest.mark.requirement("acp:scope:opencode")
def test_opencode_is_denied_by_name_what_its_user_allows_by_name() -> None:
    given = denied_by("opencode", tools=("Read",))

    rules = json.loads(given.env["OPENCODE_CONFIG_CONTENT"])["permission"]
    assert (rules["*"], rules["bash"], rules["edit"], rules["read"]) == (
        *("deny", "deny", "deny"),
        "allow",
    )
    assert rules["subagents_*"] == "allow"


@pytest.mark.requirement("acp:scope:copilot")
def test_copilot_has_what_is_named_and_our_server_and_not_what_is_denied() -> None:
    given = denied_by("copilot", "Bash", "sessions_spawn", tools=("Read", "Bash"))

    shell = "bash,read_bash,write_bash,stop_bash,list_bash"
    assert given.argv == (
        "--available-tools=view,subagents",
        f"--excluded-tools={shell},sessions_spawn,subagents-sessions_spawn",
    )


@pytest.mark.requirement("acp:scope:kilo")
def test_kilo_is_kept_as_opencode_is_by_a_variable_of_its_own() -> None:
    assert denied_by("kilo", "Bash").env == {
        "KILO_CONFIG_CONTENT": denied_by("opencode", "Bash").env["OPENCODE_CONFIG_CONTENT"]
    }


@pytest.mark.requirement("acp:scope:refused")
@pytest.mark.parametrize(
    ("options", "tools", "deny", "named"),
    [
        ({"agent": "codex-acp"}, None, ("Bash",), "Bash"),
        ({"command": ["my-agent"]}, ("Read",), (), "Read"),
        ({"agent": "opencode"}, ("Bash(git:*)",), (), "Bash(git:*)"),
        ({"agent": "opencode"}, ("Edit",), (), "write"),
        ({"agent": "kilo"}, ("Edit",), (), "write"),
        ({"agent": "pi-acp"}, None, ("Bash",), "Bash"),
    ],
)
def test_a_scope_that_nothing_enforces_is_refused_by_the_tools_name(
    options: dict[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...], named: str
) -> None:
    with pytest.raises(Forbidden) as caught:
        DIALECT.check_scope(options, tools, deny)
    assert named in str(caught.value)


@pytest.mark.requirement("acp:scope:refused")
@pytest.mark.parametrize("agent", SCOPED)
def test_a_scope_of_whole_tools_is_taken_by_every_agent_that_was_seen_to_keep_it(
    agent: str,
) -> None:
    DIALECT.check_scope({"agent": agent}, ("Read", "Bash"), ("WebFetch", "mcp__other__tool"))


@pytest.mark.requirement("acp:scope:asks")
def test_an_agent_that_asks_is_set_to_ask_and_told_no_by_kind_and_by_name() -> None:
    fold = AcpFold(of_agent("goose", tools_deny=("Bash",)))
    fold.hear(answer("initialize", {"protocolVersion": 1}))
    modes = {"availableModes": [{"id": "auto"}, {"id": "approve"}]}
    fold.hear(answer("session", {"sessionId": "s-1", "modes": modes}))
    fold.hear(answer("set:mode", {}))
    for number, (name, kind) in enumerate(
        (("shell", "execute"), ("write", "edit"), ("delegate", "other"), ("thing", "execute"))
    ):
        meta = {"goose": {"toolCall": {"toolName": name}}}
        fold.hear(permission(name, kind, id=number, toolCallId=f"c{number}", _meta=meta))

    assert fold.sent("session/set_mode")[0]["modeId"] == "approve"
    chosen = [each["result"]["outcome"]["optionId"] for each in fold.answers()]
    assert chosen == ["n", "y", "n", "n"]
    assert "not permitted: shell" in [each.text for each in fold.output]


@pytest.mark.requirement("acp:scope:asks")
def test_clines_tools_are_known_by_their_titles_and_its_own_agents_are_refused() -> None:
    fold = AcpFold(of_agent("cline", tools_deny=("Bash",)))
    fold.hear(answer("initialize", {"protocolVersion": 1}))
    modes = {"availableModes": [{"id": "plan"}, {"id": "act"}]}
    fold.hear(answer("session", {"sessionId": "s-1", "modes": modes}))
    fold.hear(answer("set:mode", {}))
    for number, (title, kind) in enumerate(
        (
            ("apply_patch: {…", "other"),
            ("subagents__sessions_list", "other"),
            ("spawn_agent: apply_patch: x", "think"),
            ("run_commands: apply_patch: x", "execute"),
            ("apply_patch: x", "execute"),
        )
    ):
        fold.hear(permission("", kind, id=number, toolCallId=f"c{number}", title=title))

    chosen = [each["result"]["outcome"]["optionId"] for each in fold.answers()]
    assert chosen == ["y", "y", "n", "n", "n"]


@pytest.mark.requirement("acp:scope:asks")
def test_an_agent_that_has_no_mode_to_ask_in_does_not_get_its_turn() -> None:
    fold = AcpFold(of_agent("goose", tools_deny=("Bash",)))
    fold.hear(answer("initialize", {"protocolVersion": 1}))
    fold.hear(answer("session", {"sessionId": "s-1", "modes": {"availableModes": [{"id": "x"}]}}))

    assert fold.is_done
    assert "offers no mode 'approve'" in (fold.result.error or "")


@pytest.mark.requirement("acp:scope:ours")
def test_tools_of_ours_are_allowed_unless_they_are_denied_by_name() -> None:
    facts = AGENTS["goose"]
    limits = ToolScope(tools=("Read",), deny=("sessions_spawn",))

    def allowed(name: str) -> bool:
        return may_use(facts, limits, name=name, kind="other", is_ours=True)

    assert allowed("subagents__sessions_ask")
    assert not allowed("subagents__sessions_spawn")
    assert not may_use(facts, limits, name="other__tool", kind="other", is_ours=False)


@pytest.mark.requirement("acp:scope:asked")
def test_what_is_in_its_scope_is_a_question_where_it_asks_and_the_rest_is_denied_as_ever() -> None:
    options = {"command": ["some-agent"], "ask": True}
    fold = AcpFold(opening(options=options, tools=("shell",)))
    fold.open()
    fold.hear(permission("bash", "execute", id=7, rawInput={"command": "rm -r build"}))
    asked = fold.signals[-1]
    assert isinstance(asked, PermissionAsked)
    assert (asked.tool, asked.what) == ("bash", "rm -r build")
    assert fold.answers() == []
    answers = DIALECT.permissions(fold.state)[asked.call_id]
    chosen = [
        json.loads(each)["result"]["outcome"]["optionId"] for each in structs.astuple(answers)
    ]
    assert (len(set(chosen)), json.loads(answers.once)["id"]) == (3, 7)
    fold.hear(permission("edit", "edit", id=8))
    assert [each["id"] for each in fold.answers()] == [8]
