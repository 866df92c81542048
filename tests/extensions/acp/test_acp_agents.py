"""The table of ACP agents, the options that name a row or make one, and how tools are scoped."""

from pathlib import Path

import pytest
from tests.extensions.acp.acp_folds import DIALECT
from tests.extensions.acp.acp_lines import AGENT_NAMES

from subagents.errors import ConfigError
from subagents.extensions.acp.acp_agents import AGENTS, SecondPrompt, facts_of, parse_options
from subagents.extensions.conversation.versions_seen import newest_seen


@pytest.mark.requirement("acp:table")
@pytest.mark.parametrize("agent", AGENT_NAMES)
def test_every_row_says_where_the_program_comes_from_and_which_version_was_seen(agent: str) -> None:
    facts = AGENTS[agent]
    assert facts.command
    assert facts.package.startswith("npm ")
    assert newest_seen(agent)
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
