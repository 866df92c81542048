"""Agents of other programs in our words: what is taken over, and that the rest is named."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.config import keys
from subagents.errors import UsageError
from subagents.extensions.install.foreign_agents import Imported, claude_agents, openclaw

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


def claude_agent(text: str, stem: str) -> Imported:
    return claude_agents({f"{stem}.md": text})


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
    found = claude_agent(f"---\nname: a\n{line}\n---\nx", "a")

    (unmapped,) = found.unmapped
    assert unmapped.startswith("a: ")
    assert named in unmapped
    assert found.agents["a"] == {"runtime": "claude-code", "access": "write", "instructions": "x"}


GOOD = "---\nname: good\ndescription: d\n---\nB\n"
NO_AGENTS = {
    "a README": ("# Our agents\n\n---\nname: x\n---\n", "no frontmatter"),
    "an empty file": ("", "no frontmatter"),
    "frontmatter that does not end": ("---\nname: x\ndescription: y\n", "no frontmatter"),
    "a page of a site": ("---\ntitle: Agents\nlayout: page\n---\nText\n", "is not of an agent"),
    "a list": ("---\n- name: x\n---\n", "is not of an agent"),
    "opencode's table of tools": (
        "---\ndescription: d\ntools:\n  write: false\n---\n",
        "its tools are neither",
    ),
    "tools that are no names": ("---\nname: x\ntools: [{a: 1}]\n---\n", "its tools are neither"),
    "a tool that is none": ("---\nname: x\ntools: ['a\\0b']\n---\n", None),
    "a command": (
        "---\nname: x\ndescription: d\nargument-hint: '[x]'\n---\n",
        "a skill or a command",
    ),
    "a skill": ("---\nname: x\ndescription: d\nallowed-tools: Read\n---\n", "a skill or a command"),
    "megabytes of frontmatter": (f"---\nname: x\n{'#' * 100_000}\n---\n", "over 65,536"),
}


@pytest.mark.requirement("import:file-by-file")
@pytest.mark.parametrize(("text", "why"), NO_AGENTS.values(), ids=NO_AGENTS.keys())
def test_a_file_that_is_no_agent_is_left_out_with_the_reason_and_concerns_no_other(
    text: str, why: str | None
) -> None:
    found = claude_agents({"odd.md": text, "sub/good.md": GOOD})

    assert "good" in found.agents
    if why is not None:
        assert found.agents.keys() == {"good"}
        (line,) = found.left_out
        assert line.startswith("odd.md: ")
        assert why in line


DESCRIPTIONS = {
    # what collections have, and what Claude Code shows of it
    "description: a: b": "a: b",
    'description: Use it for: tests, "quick" ones': 'Use it for: tests, "quick" ones',
    "description:\n  Create designs. Use PROACTIVELY: always": (
        "Create designs. Use PROACTIVELY: always"
    ),
    "description: Use when.\\n\\n<example>\\nContext: x\\nuser: 'y'": (
        "Use when.\\n\\n<example>\\nContext: x\\nuser: 'y'"
    ),
    "description: Reviews code.\n  Examples:\n  - user: hi": ("Reviews code. Examples: - user: hi"),
    "description: Use it: now.\nuser: hi\nassistant: ho": "Use it: now. user: hi assistant: ho",
    "description: |\n  One.\n  Two: three": "One. Two: three",
    "description: >-\n  One\n  two": "One two",
    "description: 'quoted: yes'": "quoted: yes",
    "description: [see docs] first": "[see docs] first",
    "description: {x} y": "{x} y",
    "description: *not* an alias": "*not* an alias",
    "description: &not a name": "a name",  # an anchor, as YAML and so Claude Code reads it
    "description: @mention": "@mention",
    "description: `code` first": "`code` first",
    "description: 100% of it": "100% of it",
    "description: 4.10": "4.10",
    "description: 2001-01-01": "2001-01-01",
    "description: 2001-99-99": "2001-99-99",
    "description: [a, b]": "[a, b]",
    "description: a\ttab: b": "a tab: b",
    "description: d\nname: again": "d",
    "description: 审查代码: 全部": "审查代码: 全部",
}


@pytest.mark.requirement("import:lenient-frontmatter")
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(("lines", "description"), DESCRIPTIONS.items())
def test_a_description_that_is_no_yaml_is_taken_as_it_is_written(
    lines: str, description: str, line_end: str
) -> None:
    text = f"---\nname: ui\n{lines}\nmodel: opus\n---\nBody\n".replace("\n", line_end)

    found = claude_agents({"ui.md": text, "good.md": GOOD})

    assert found.left_out == []
    agent = next(iter(found.agents.values()))
    assert agent["description"] == description
    assert (agent["model"], agent["instructions"]) == ("opus", "Body")
    assert "good" in found.agents


@pytest.mark.requirement("import:names-what-is-left-out")
def test_what_is_read_otherwise_than_yaml_reads_it_is_said() -> None:
    broken = claude_agent("---\nname: a\ndescription: b: c\n---\nx", "a")
    dated = claude_agent("---\nname: a\ndescription: 2001-01-01\n---\nx", "a")

    (line,) = broken.changed
    assert line.startswith("a: its frontmatter is no YAML (line 3: mapping values are not allowed")
    assert dated.changed == ["a: description: taken as it is written, not as YAML reads it"]


@pytest.mark.requirement("import:lenient-frontmatter")
@pytest.mark.parametrize(
    ("name", "stem", "agent_id"),
    [
        ("Code Reviewer", "x", "code-reviewer"),
        ("Café Réviseur", "x", "cafe-reviseur"),
        ("代码审查", "reviewer", "reviewer"),
        ("ревьюер", "Ревьюер", "agent-98e3e5f3"),
        ("???", "__", "agent-5fa58a93"),
        ("defaults", "x", "defaults-agent"),
        ("2001-01-01", "x", "2001-01-01"),
        ("a" * 200, "x", "a" * 64),
        ("../../etc/passwd", "x", "etc-passwd"),
        ("[list]", "x", "list"),
    ],
)
def test_a_name_of_any_alphabet_gets_an_id_that_stays_the_same(
    name: str, stem: str, agent_id: str
) -> None:
    found = claude_agent(f"---\nname: {name}\ndescription: d\n---\n", stem)

    if agent_id.startswith("agent-"):
        assert re.fullmatch(r"agent-[0-9a-f]{8}", next(iter(found.agents)))
    else:
        assert list(found.agents) == [agent_id]
    assert found.agents == claude_agent(f"---\nname: {name}\ndescription: d\n---\n", stem).agents


@pytest.mark.requirement("import:equal-ids")
def test_names_that_come_to_the_same_id_are_both_taken_and_equal_names_once() -> None:
    one = "---\nname: {}\ndescription: {}\n---\n"
    found = claude_agents(
        {
            "a.md": one.format("code-reviewer", "one"),
            "b.md": one.format("Code Reviewer", "two"),
            "c/a.md": one.format("code-reviewer", "three"),
        }
    )

    assert {name: each["description"] for name, each in found.agents.items()} == {
        "code-reviewer": "one",
        "code-reviewer-2": "two",
    }
    assert found.changed == ["code-reviewer-2: the id code-reviewer is that of a.md already"]
    assert found.left_out == ["c/a.md: its agent has the same name as that of a.md"]


@pytest.mark.requirement("import:lenient-frontmatter")
@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("maxTurns: many", "maxTurns: it is no number of turns"),
        ("maxTurns: [1]", "maxTurns: it is no number of turns"),
        ("maxTurns: " + "9" * 5_000, "maxTurns: it is no number of turns"),
        ("permissionMode: [plan]", "permissionMode that is no name"),
        ("permissionMode: {a: b}", "permissionMode that is no name"),
        ("2001-01-01: x", None),
        ("? [a, b]\n: x", None),
        ("skills: [a, b]", "skills: has no equal here"),
        ("hooks: {Stop: [{x: y}]}", "hooks: has no equal here"),
        ("background: maybe", "background: has no equal here"),
    ],
)
def test_odd_values_of_known_keys_are_named_and_the_agent_is_taken(
    line: str, named: str | None
) -> None:
    found = claude_agent(f"---\nname: a\ndescription: d\n{line}\n---\nx", "a")

    assert found.agents["a"] == {
        "runtime": "claude-code",
        "access": "write",
        "description": "d",
        "instructions": "x",
    }
    assert named is None or any(named in each for each in found.unmapped)


@pytest.mark.requirement("import:lenient-frontmatter")
def test_a_turn_limit_and_background_written_as_texts_are_kept() -> None:
    found = claude_agent("---\nname: a\nmaxTurns: '12'\nbackground: 'true'\n---\n", "a")

    assert found.agents["a"]["runtime_options"] == {"max_turns": 12, "background": True}


BOMBS = {
    "aliases": "a: &a [x]\n"
    + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{('*' + chr(97 + i) + ',') * 9}]\n" for i in range(9)
    )
    + "tools: *j\n",
    "brackets": f"tools: {'[' * 3_000}",
    "merges": "a: &a {x: 1}\n"
    + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} {{<<: [{('*' + chr(97 + i) + ',') * 9}]}}\n"
        for i in range(9)
    ),
    "itself": "a: &a [*a]\n",
    "a number": f"maxTurns: {'9' * 50_000}",
    "many keys": "".join(f"k{each}: x\n" for each in range(5_000)),
    "one long line": f"description: {'a: ' * 15_000}",
    "blanks": f"description:{' ' * 60_000}x",
    "quotes": "description: " + "'\"" * 20_000,
}


@pytest.mark.requirement("import:bounded-work")
@pytest.mark.parametrize("lines", BOMBS.values(), ids=BOMBS.keys())
def test_frontmatter_that_stands_for_billions_of_values_is_read_line_by_line(lines: str) -> None:
    found = claude_agents({"a.md": f"---\nname: a\n{lines}\n---\nx", "good.md": GOOD})

    assert "good" in found.agents
    assert "a" in found.agents or found.left_out
    assert all(len(each) < 2_000 for each in (*found.left_out, *found.unmapped, *found.changed))


WORDS = """--- name description tools maxTurns : - [ ] { } ' " *a &a ! | > # << 2001-99-99 1e999 0x
a 名 ~ ? , % @ `"""
PIECES = st.sampled_from(
    [*WORDS.split(), *"\n\t\0\u2028\ud800", ": ", "- ", "\r\n", "\x1b[2J"],
)


@pytest.mark.requirement("import:lenient-frontmatter")
@given(st.lists(PIECES, max_size=25).map("".join))
def test_whatever_a_file_says_the_configuration_takes_what_comes_of_it(text: str) -> None:
    for whole in (text, f"---\nname: x\n{text}\n---\n{text}"):
        found = claude_agent(whole, "f")

        assert list(keys.check({"agents": found.agents})) == []
        assert found.agents or found.left_out


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


@pytest.mark.requirement("import:openclaw")
def test_agents_that_are_a_table_by_their_ids_are_taken() -> None:
    found = openclaw({"agents": {"list": {"main": {"workspace": "x"}, "b": {"id": "c"}}}})

    assert {name: each.get("cwd") for name, each in found.agents.items()} == {
        "main": "x",
        "c": None,
    }


@pytest.mark.requirement("import:openclaw")
@pytest.mark.parametrize(
    ("listed", "left_out"),
    [
        ([{"id": "a"}, {"id": "A"}], "agents.list[1]: its id is that of agents.list[0]: a"),
        ([{"id": "a"}, "b"], "agents.list[1]: it is no table"),
        ({"a": {}, "b": 1}, "agents.list.b: it is no table"),
        ([{"id": "a"}, {"id": "b", "tools": {"allow": 5}}], "its tools.allow is no list"),
        (
            [{"id": "a"}, {"id": "b", "subagents": {"allowAgents": {"x": 1}}}],
            "its subagents.allowAgents is no list",
        ),
    ],
)
def test_an_agent_that_cannot_be_taken_is_named_and_the_others_are_taken(
    listed: Any, left_out: str
) -> None:
    found = openclaw({"agents": {"list": listed}})

    assert list(found.agents) == ["a"]
    assert left_out in found.left_out[0]


@pytest.mark.requirement("import:openclaw")
@pytest.mark.parametrize(
    "odd",
    [5, 1.5, True, [], {}, [[]], {"primary": [1]}, "", "\0", "x" * 10_000, [{"a": 1}]],
    ids=repr,
)
@pytest.mark.parametrize(
    "key",
    [
        *("id", "name", "description", "model", "thinkingDefault", "workspace", "tools"),
        *("capabilities", "subagents"),
    ],
)
def test_an_odd_value_of_any_key_ends_in_no_traceback(key: str, odd: Any) -> None:
    inside = {"costTier": odd, "tags": odd, "notes": odd, "typicalLatency": odd}
    for value in (odd, {"allow": odd, "allowAgents": odd, **inside}):
        found = openclaw(
            {
                "agents": {
                    "defaults": {key: value, "subagents": {"maxConcurrent": value}},
                    "list": [{"id": "good"}, {"id": "odd", key: value}],
                }
            }
        )

        assert "good" in found.agents
        assert list(keys.check({"agents": found.agents})) == []
