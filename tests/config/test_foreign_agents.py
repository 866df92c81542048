"""Agents of other programs in our words: what is taken over, and that the rest is named."""

import pytest

from subagents.config.foreign_agents import claude_agent, openclaw
from subagents.errors import UsageError

REVIEWER = """---
name: Code Reviewer
description: >
  Looks at changes.
  Use it after each.
tools: Read, Grep, Bash(git diff:*), Bash(git log a,b)
model: sonnet
effort: high
permissionMode: acceptEdits
maxTurns: 20
background: true
color: purple
---

You review.

Say what is wrong.
"""


@pytest.mark.requirement("import:claude-agents")
def test_a_claude_subagent_keeps_its_text_tools_model_and_limits() -> None:
    found = claude_agent(REVIEWER, "file")

    assert found.unmapped == []
    assert found.agents == {
        "code-reviewer": {
            "runtime": "claude-code",
            "access": "write",
            "description": "Looks at changes. Use it after each.",
            "model": "sonnet",
            "thinking": "high",
            "tools": ["Read", "Grep", "Bash(git diff:*)", "Bash(git log a,b)"],
            "instructions": "You review.\n\nSay what is wrong.",
            "runtime_options": {
                "max_turns": 20,
                "background": True,
                "permission_mode": "acceptEdits",
            },
        }
    }


@pytest.mark.requirement("import:claude-agents")
def test_one_that_says_little_is_named_by_its_file_and_inherits_the_rest() -> None:
    found = claude_agent("---\ndescription: d\nmodel: inherit\n---\n", "helper")

    (agent,) = found.agents.values()
    assert found.agents.keys() == {"helper"}
    assert agent == {"runtime": "claude-code", "access": "write", "description": "d"}


@pytest.mark.requirement("import:claude-agents")
def test_one_that_only_plans_may_only_read() -> None:
    (agent,) = claude_agent("---\npermissionMode: plan\n---\n", "p").agents.values()

    assert (agent["access"], agent["runtime_options"]) == ("read", {"permission_mode": "plan"})


@pytest.mark.requirement("import:names-what-is-left-out")
@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("permissionMode: bypassPermissions", "a worker with it asks nobody"),
        ("disallowedTools: Write", "--deny-tool"),
        ("isolation: worktree", "--isolation worktree"),
        ("mcpServers: [github]", "mcpServers: has no equal here"),
        ("invented: 1", "invented: has no equal here"),
    ],
)
def test_what_has_no_equal_is_named_and_never_widens_anything(line: str, named: str) -> None:
    found = claude_agent(f"---\n{line}\n---\nx", "a")

    (unmapped,) = found.unmapped
    assert unmapped.startswith("a: ")
    assert named in unmapped
    assert found.agents["a"] == {"runtime": "claude-code", "access": "write", "instructions": "x"}


@pytest.mark.requirement("import:claude-agents")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no frontmatter", "a.md has no frontmatter"),
        ("---\nname: [\n---\n", "a.md, line 3: its frontmatter is not YAML"),
        ("---\nname: '???'\n---\n", "cannot name an agent"),
    ],
)
def test_a_file_that_is_no_agent_is_refused_by_its_name(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why.replace("[", r"\[")):
        claude_agent(text, "a")


@pytest.mark.requirement("import:openclaw")
def test_an_openclaw_configuration_keeps_limits_agents_and_cards() -> None:
    found = openclaw(
        {
            "agents": {
                "defaults": {
                    "model": {"primary": "a/b"},
                    "workspace": "~/w",
                    "subagents": {"maxSpawnDepth": 2, "maxConcurrent": 4},
                },
                "list": [
                    {"id": "main", "default": True, "subagents": {"allowAgents": ["Athena", "*"]}},
                    {
                        "id": "Athena",
                        "model": "g/p",
                        "description": "Deep",
                        "tools": {"allow": ["read"]},
                        "capabilities": {
                            "tags": ["research"],
                            "costTier": "medium",
                            "typicalLatency": "90s",
                            "notes": "n",
                        },
                    },
                ],
            }
        }
    )

    assert found.unmapped == []
    assert found.defaults == {"max_spawn_depth": 2, "max_concurrent": 4}
    assert found.agents["main"] == {
        "runtime": "acp",
        "model": "a/b",
        "cwd": "~/w",
        "subagents": {"allow_agents": ["athena", "*"]},
        "runtime_options": {"agent": "openclaw"},
    }
    assert found.agents["athena"] == {
        "runtime": "acp",
        "description": "Deep",
        "model": "g/p",
        "cwd": "~/w",
        "tools": ["read"],
        "capabilities": {
            "tags": ["research"],
            "cost_tier": "medium",
            "typical_latency": "90s",
            "notes": "n",
        },
        "runtime_options": {"agent": "openclaw"},
    }


@pytest.mark.requirement("import:names-what-is-left-out")
def test_what_openclaw_has_beyond_ours_is_named_with_its_place() -> None:
    found = openclaw(
        {
            "agents": {
                "defaults": {"subagents": {"model": "m"}, "heartbeat": {}},
                "list": [
                    {
                        "id": "a",
                        "model": {"primary": "x", "fallbacks": ["y"]},
                        "tools": {"allow": ["group:fs"], "deny": ["exec"]},
                        "capabilities": {"costTier": "free-ish"},
                        "sandbox": {},
                    }
                ],
                "bindings": [],
            }
        }
    )

    places = [each.split(" ")[0].rstrip(":") for each in found.unmapped]
    assert places == [
        "agents.defaults.subagents.model",
        "agents.defaults.heartbeat",
        "agents.list[a].model.fallbacks",
        "agents.list[a].tools.allow",
        "agents.list[a].tools.deny",
        "agents.list[a].capabilities.costTier",
        "agents.list[a].sandbox",
        "agents.bindings",
    ]


@pytest.mark.requirement("import:openclaw")
def test_a_file_without_agents_is_refused() -> None:
    with pytest.raises(UsageError, match="no `agents` section"):
        openclaw({"gateway": {}})
