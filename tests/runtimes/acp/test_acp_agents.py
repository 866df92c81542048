"""The table of ACP agents, the options that name a row or make one, and how tools are scoped."""

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.runtimes.acp.acp_bed import DIALECT, Fold, answer, of_agent, opening, permission

from subagents.errors import ConfigError, Forbidden, UsageError
from subagents.runtimes.acp.acp_agents import AGENTS, SecondPrompt, facts_of, parse_options
from subagents.runtimes.acp.acp_scope import may_use, switches
from subagents.runtimes.output.tool_kinds import ToolScope

AGENT_NAMES = sorted(AGENTS)
SCOPED = [name for name in AGENT_NAMES if DIALECT.abilities_of({"agent": name}).scope_tools]


def denied_by(agent: str, *deny: str, tools: tuple[str, ...] | None = None) -> Any:
    facts = facts_of(parse_options({"agent": agent}))
    return switches(facts, ToolScope(tools=tools, deny=deny), directory="/attempt")


def program(directory: Path, name: str) -> Path:
    path = directory / name
    path.write_text("#!/bin/sh\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


# -- the table ------------------------------------------------------------------------------------


@pytest.mark.requirement("acp:table")
@pytest.mark.parametrize("agent", AGENT_NAMES)
def test_every_row_says_where_the_program_comes_from_and_which_version_was_seen(agent: str) -> None:
    facts = AGENTS[agent]
    assert facts.command
    assert facts.package.startswith("npm ")
    assert facts.version
    assert agent in (Path(__file__).parents[3] / "docs" / "runtimes" / "acp.md").read_text()


@pytest.mark.requirement("acp:table:abilities")
def test_abilities_are_those_of_the_agent_that_the_options_name() -> None:
    opencode = DIALECT.abilities_of({"agent": "opencode"})
    gemini = DIALECT.abilities_of({"agent": "gemini"})
    codex = DIALECT.abilities_of({"agent": "codex-acp"})
    unknown = DIALECT.abilities_of({"command": ["my-agent"]})

    assert (opencode.steer, opencode.resume, opencode.scope_tools) == (True, True, True)
    assert (gemini.steer, gemini.resume, gemini.scope_tools) == (False, False, True)
    assert (codex.steer, codex.resume, codex.scope_tools) == (False, True, False)
    assert not any((unknown.steer, unknown.resume, unknown.scope_tools, unknown.usage))
    assert all(each.survives_daemon and each.interrupt for each in (opencode, gemini, unknown))


@pytest.mark.requirement("acp:options:facts")
def test_options_say_better_what_the_table_does_not_know() -> None:
    options = {"command": ["my-agent"], "second_prompt": "steers", "resumes": True, "mode": "free"}
    able = DIALECT.abilities_of(options)
    facts = facts_of(parse_options(options))

    assert (able.steer, able.resume) == (True, True)
    assert (facts.second_prompt, facts.mode) == (SecondPrompt.STEERS, "free")


@pytest.mark.requirement("acp:options:refused")
@pytest.mark.parametrize(
    ("options", "output"),
    [
        ({}, "needs `runtime_options.agent` (one of claude-agent-acp, codex-acp, gemini"),
        ({"agent": "gemni"}, "did you mean 'gemini'?"),
        ({"agent": "what"}, "for any other agent set `command` instead"),
        ({"agents": "gemini"}, "knows no option `agents`; did you mean `agent`?"),
        ({"command": []}, "command"),
        ({"command": [""]}, "`command` must begin with a program"),
        ({"agent": "gemini", "second_prompt": "stears"}, "second_prompt"),
        ({"agent": "gemini", "env": {"SUBAGENTS_X": "1"}}, "are set by subagents; remove it"),
        ({"agent": "gemini", "args": ["a\0b"]}, "cannot hold NUL"),
        ({"agent": "gemini", "scope": "gemini"}, "scope"),
    ],
)
def test_options_with_which_nothing_could_start_are_refused_with_the_way_out(
    options: dict[str, object], output: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        DIALECT.check(options)
    assert output in str(caught.value)


# -- how it is started ----------------------------------------------------------------------------


@pytest.mark.requirement("acp:start:argv")
def test_an_agent_of_the_table_is_started_with_its_arguments_wherever_it_is(tmp_path: Path) -> None:
    found = program(tmp_path, "gemini")
    by_path = DIALECT.invocation(
        of_agent("gemini", cwd=str(tmp_path)), directory="/a", path=str(tmp_path)
    )
    options = {"agent": "gemini", "command": [str(found), "x.js"], "args": ["--debug"]}
    named = DIALECT.invocation(
        opening(options=options, cwd="/", model="m1"), directory="/a", path=""
    )

    assert by_path.argv == (str(found), "--acp", "--skip-trust")
    assert named.argv[1:] == ("x.js", "--acp", "--skip-trust", "--debug", "-m", "m1")
    assert by_path.env["GEMINI_CLI_NO_RELAUNCH"] == "true"


@pytest.mark.requirement("acp:start:missing")
def test_an_agent_that_is_not_installed_is_refused_with_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        DIALECT.invocation(of_agent("qwen", cwd="/"), directory="/a", path=str(tmp_path))
    assert "no program 'qwen'" in str(caught.value)
    assert f"npm @qwen-code/qwen-code {AGENTS['qwen'].version}" in str(caught.value)


@pytest.mark.requirement("acp:start:environment")
def test_an_agent_gets_its_own_keys_and_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "gemini")
    monkeypatch.setenv("GEMINI_API_KEY", "g-key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    own = opening(options={"agent": "gemini", "env": {"GEMINI_API_KEY": "mine"}}, cwd="/")

    passed = DIALECT.invocation(of_agent("gemini", cwd="/"), directory="/a", path=str(tmp_path)).env
    written = DIALECT.invocation(own, directory="/a", path=str(tmp_path)).env

    assert passed["GEMINI_API_KEY"] == "g-key"
    assert "ANTHROPIC_API_KEY" not in passed
    assert written["GEMINI_API_KEY"] == "mine"


# -- scope ----------------------------------------------------------------------------------------


@pytest.mark.requirement("acp:scope:other-names")
@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("claude-agent-acp", "Bash"),
        ("opencode", "bash"),
        ("gemini", "run_shell_command"),
        ("qwen", "run_shell_command"),
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


@pytest.mark.requirement("acp:scope:refused")
@pytest.mark.parametrize(
    ("options", "tools", "deny", "named"),
    [
        ({"agent": "codex-acp"}, None, ("Bash",), "Bash"),
        ({"command": ["my-agent"]}, ("Read",), (), "Read"),
        ({"agent": "opencode"}, ("Bash(git:*)",), (), "Bash(git:*)"),
        ({"agent": "opencode"}, ("Edit",), (), "write"),
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
    fold = Fold(of_agent("goose", tools_deny=("Bash",)))
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
def test_an_agent_that_has_no_mode_to_ask_in_does_not_get_its_turn() -> None:
    fold = Fold(of_agent("goose", tools_deny=("Bash",)))
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
