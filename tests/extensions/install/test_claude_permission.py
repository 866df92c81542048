"""The rule in Claude Code's settings: added and taken away, and nothing else is touched."""

import json
from pathlib import Path

import pytest

from subagents.errors import ConfigError
from subagents.extensions.install.claude_permission import RULE, with_rule

FILE = Path("/home/me/.claude/settings.json")


@pytest.mark.requirement("mcp-install:only-ours")
@pytest.mark.parametrize(
    "document",
    [{}, {"model": "x"}, {"permissions": {"deny": ["Bash"], "allow": ["Read", "ünï"]}}],
)
@pytest.mark.parametrize("indent", [2, 4, "\t"])
def test_the_rule_comes_and_goes_and_the_rest_stays(
    document: dict[str, object], indent: int | str
) -> None:
    before = json.dumps(document, indent=indent, ensure_ascii=False) + "\n"
    with_it = with_rule(before, FILE, is_allowed=True)
    assert json.loads(with_it)["permissions"]["allow"][-1] == RULE
    assert with_rule(with_it, FILE, is_allowed=True) == with_it
    assert json.loads(with_rule(with_it, FILE, is_allowed=False)) == document
    if "permissions" in document:
        assert with_rule(with_it, FILE, is_allowed=False) == before


@pytest.mark.requirement("mcp-install:refuses-what-differs")
@pytest.mark.parametrize("text", ["// mine\n{}", "[]", '{"permissions": 1}', '{"permissions": []}'])
def test_settings_of_another_form_are_left_alone_and_the_flag_is_named(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        with_rule(text, FILE, is_allowed=True)
    assert "nothing was changed" in refused.value.message
    assert "--allowedTools 'mcp__subagents__*'" in str(refused.value.hint)


@pytest.mark.requirement("mcp-install:recipes")
def test_a_file_that_is_not_there_gets_the_rule_alone() -> None:
    assert json.loads(with_rule("", FILE, is_allowed=True)) == {"permissions": {"allow": [RULE]}}
    assert with_rule("", FILE, is_allowed=False) == ""


@pytest.mark.requirement("mcp-install:only-ours")
def test_a_blank_file_gets_the_rule() -> None:
    assert json.loads(with_rule("\n", FILE, is_allowed=True))["permissions"]["allow"] == [RULE]
