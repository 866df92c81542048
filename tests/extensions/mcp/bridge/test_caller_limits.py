"""What the program that started the bridge may do itself: as it was started, and as it says."""

import json
from pathlib import Path

import pytest

from subagents.errors import UsageError
from subagents.extensions.mcp.bridge import caller_limits
from subagents.extensions.mcp.bridge.caller_limits import HEADER, limits_of


@pytest.fixture
def above(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines of the processes above, to be filled."""
    found: list[list[str]] = []
    monkeypatch.setattr(caller_limits, "_ancestors", lambda: iter(found))
    return found


def level(environ: dict[str, str], given: str | None = None) -> str | None:
    said = limits_of(environ, given)().get(HEADER)
    return None if said is None else said.partition(";")[0]


@pytest.mark.requirement("access:caller-is-ceiling")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("claude -p hi", "read"),
        ("/opt/bin/claude --permission-mode plan", "read"),
        ("claude --permission-mode=acceptEdits", "write"),
        ("claude -p --permission-mode dontAsk", "read"),
        ("claude -p --permission-mode auto", "write"),
        ("claude --permission-mode bypassPermissions", "full"),
        ("claude --dangerously-skip-permissions", "full"),
        ("claude -p --allowedTools mcp__subagents Read", "read"),
        ("claude -p --allowedTools Edit,mcp__subagents", "write"),
        ("claude -p --allowedTools mcp__subagents Bash --verbose", "full"),
        ("claude -p --allowedTools Bash(git:*) mcp__subagents", "read"),
        ("node /x/@anthropic-ai/claude-code/cli.js --permission-mode acceptEdits", "write"),
        ("node /usr/bin/gemini -p hi", "read"),
        ("gemini --approval-mode auto_edit", "write"),
        ("node gemini.js --yolo", "full"),
        ("qwen -y", "full"),
        ("opencode run --agent plan", "read"),
        ("opencode run", None),
        ("vim notes", None),
    ],
)
def test_the_mode_it_was_started_in_is_its_ceiling(
    above: list[list[str]], tmp_path: Path, command: str, expected: str | None
) -> None:
    above += [["sh", "-c", "x"], command.split(" "), ["bash"]]

    assert level({"HOME": str(tmp_path)}) == expected


@pytest.mark.requirement("access:caller-is-ceiling")
def test_the_mode_that_a_person_changed_to_counts_from_then_on(
    above: list[list[str]], tmp_path: Path
) -> None:
    above.append(["claude", "--permission-mode", "acceptEdits"])
    record = tmp_path / "projects" / "-w" / "s-1.jsonl"
    record.parent.mkdir(parents=True)
    environ = {"CLAUDE_CONFIG_DIR": str(tmp_path), "CLAUDE_CODE_SESSION_ID": "s-1"}
    limits = limits_of(environ, None)
    assert limits()[HEADER].startswith("write;")

    lines: list[object] = [
        {"type": "user", "permissionMode": "plan"},
        {"type": "user", "toolUseResult": {"permissionMode": "bypassPermissions"}},
    ]
    record.write_text("\n".join(map(json.dumps, lines)) + "\n{torn")
    assert limits()[HEADER] == 'read; Claude Code in permission mode "plan"'


@pytest.mark.requirement("access:caller-is-ceiling")
def test_a_whole_tool_that_its_settings_allow_counts(
    above: list[list[str]], tmp_path: Path
) -> None:
    above.append(["claude"])
    settings = tmp_path / ".claude" / "settings.local.json"
    settings.parent.mkdir()
    settings.write_text('{"permissions": {"allow": ["Edit", "Bash(ls:*)"]}}')
    (settings.parent / "settings.json").write_text('{"permissions": {"allow": 5}}')

    assert level({"HOME": "/nowhere", "CLAUDE_PROJECT_DIR": str(tmp_path)}) == "write"


@pytest.mark.requirement("access:ceiling-flag")
def test_what_the_entry_says_counts_whatever_the_program_may(above: list[list[str]]) -> None:
    above.append(["claude", "--permission-mode", "plan"])

    assert level({}, "full") == "full"
    with pytest.raises(UsageError, match="read, write or full"):
        limits_of({}, "much")


@pytest.mark.requirement("mcp:bridge:starter")
@pytest.mark.parametrize(
    ("above", "host"),
    [
        ([["sh", "-c", "x"], ["/usr/bin/codex", "exec", "hi"]], "codex"),
        ([["node", "/lib/node_modules/@anthropic-ai/claude-code/cli.js", "-p"]], "claude"),
        ([["node", "/usr/lib/bin/gemini.js"], ["bash"]], "gemini"),
        ([["uv", "run"], ["goose", "session"]], "goose"),
        ([["/opt/opencode/opencode.exe"]], "opencode"),
        ([["bash"], ["sshd"]], None),
        ([["vim", "notes", "about", "codex"]], None),
        ([], None),
    ],
)
def test_the_program_that_started_us_is_known_by_its_command_line(
    above: list[list[str]], host: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_limits, "_ancestors", lambda: iter(above))
    assert caller_limits.host_program() == host
