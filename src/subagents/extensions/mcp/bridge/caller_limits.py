"""What the program that started the bridge may do itself, as far as it can be known.

Codex says it with each call (``extensions/codex/codex_sandbox``). Of Claude Code, Gemini CLI, Qwen
Code and OpenCode it is read from how they were started, and of Claude Code from the record of its
session, too: a person changes the mode in the middle of it. Where nothing is known nothing is
claimed; ``subagents mcp --ceiling`` says it in their place, and whatever it says counts.

Linux only: elsewhere ``/proc`` is missing.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

import msgspec

from subagents.errors import UsageError
from subagents.extensions.mcp.bridge.worker_above import ancestors

LEVELS: Final = ("read", "write", "full")
HEADER: Final = "x-subagents-ceiling"
HOSTS: Final = frozenset(
    ("claude", "codex", "gemini", "qwen", "opencode", "goose", "openclaw", "copilot", "kilo")
)
"""Programs that start us as an MCP server."""
LIMITED: Final = frozenset(("claude", "gemini", "qwen", "opencode"))
"""Those whose command line and files say what they may do themselves."""
ANCESTORS_MAX: Final = 8
RECORD_BYTES: Final = 512 * 1024
"""The part of a session's record, from its end, that is searched for its newest mode."""

_CLAUDE: Final[Mapping[str, str]] = {
    "plan": "read",
    "default": "read",
    "dontAsk": "read",
    "acceptEdits": "write",
    "auto": "write",
    "bypassPermissions": "full",
}
_GEMINI: Final[Mapping[str, str]] = {
    "plan": "read",
    "default": "read",
    "auto_edit": "write",
    "auto-edit": "write",
    "yolo": "full",
}
_GRANTS: Final[Mapping[str, str]] = {
    "Bash": "full",
    "Bash(*)": "full",
    "Write": "write",
    "Edit": "write",
    "MultiEdit": "write",
}
"""Rules of Claude Code that allow more than its mode: a whole tool."""

Limits = Callable[[], Mapping[str, str]]
"""The header that says the ceiling, or none; asked for each call of a tool."""


def limits_of(environ: Mapping[str, str], given: str | None) -> Limits:
    """How the caller's ceiling is found.

    Args:
        environ: Ours, as the client gave it.
        given: ``--ceiling``; None = it is looked for.

    Raises:
        UsageError: ``given`` is no level.
    """
    if given is not None:
        if given not in LEVELS:
            raise UsageError(
                f"--ceiling must be read, write or full, not {given[:80]!r}",
                details={"field": "--ceiling"},
            )
        fixed = {HEADER: f"{given}; this client's entry (subagents mcp --ceiling {given})"}
        return lambda: fixed

    @cache
    def program() -> tuple[str, list[str]] | None:
        return next(filter(None, (_program(argv, LIMITED) for argv in _ancestors())), None)

    def look() -> Mapping[str, str]:
        # At the first call, and not before: a client that connects waits for nothing.
        found = program()
        # Its ceiling each time: a person may have changed the mode meanwhile.
        ceiling = None if found is None else _ceiling(*found, environ)
        return {} if ceiling is None else {HEADER: ceiling}

    return look


def _ceiling(name: str, argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    match name:
        case "claude":
            mode = _recorded_mode(environ) or _claude_mode(argv)
            level = _CLAUDE.get(mode, "read")
            for rule in (*_words(argv, "--allowedTools", "--allowed-tools"), *_rules(environ)):
                level = max(level, _GRANTS.get(rule, "read"), key=LEVELS.index)
            return f'{level}; Claude Code in permission mode "{mode}"'
        case "gemini" | "qwen":
            is_yolo = "--yolo" in argv or "-y" in argv
            mode = "yolo" if is_yolo else next(iter(_words(argv, "--approval-mode")), "default")
            program = "Gemini CLI" if name == "gemini" else "Qwen Code"
            return f'{_GEMINI.get(mode, "read")}; {program} in approval mode "{mode}"'
        case "opencode" if "plan" in _words(argv, "--agent"):
            return 'read; OpenCode as its agent "plan"'
    return None


# -- how it was started ---------------------------------------------------------------------------


def _ancestors() -> Iterator[list[str]]:
    """The command lines of the processes above us, the nearest first."""
    for pid in ancestors(ANCESTORS_MAX):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123  starts faster
                yield file.read().decode("utf-8", "replace").split("\0")
        except OSError:
            return


def host_program() -> str | None:
    """The agent program that started us, as far as it is a known one."""
    found = next(filter(None, (_program(argv, HOSTS) for argv in _ancestors())), None)
    return None if found is None else found[0]


def _program(argv: list[str], known: Collection[str]) -> tuple[str, list[str]] | None:
    """Which known program a command line starts, and its arguments."""
    # Itself, or as a script of node, which may have an option of its own before it.
    for position, word in enumerate(argv[:3]):
        name = os.path.basename(word).removesuffix(".js").removesuffix(".exe")  # noqa: PTH119
        if name == "cli" and "claude-code" in word:
            name = "claude"
        if name in known:
            return name, argv[position + 1 :]
    return None


def _words(argv: Sequence[str], *options: str) -> list[str]:
    """The values of an option that takes one or several, with commas or spaces between them."""
    found: list[str] = []
    is_open = False
    for word in argv:
        name, equals, value = word.partition("=")
        if name in options:
            is_open = not equals
            found += value.split(",") if equals else []
        elif word.startswith("-"):
            is_open = False
        elif is_open:
            found += word.replace(",", " ").split() if "(" not in word else [word]
    return [word.strip() for word in found]


def _claude_mode(argv: Sequence[str]) -> str:
    if "--dangerously-skip-permissions" in argv:
        return "bypassPermissions"
    return next(iter(_words(argv, "--permission-mode")), "default")


# -- what it wrote --------------------------------------------------------------------------------


def _recorded_mode(environ: Mapping[str, str]) -> str | None:
    """The permission mode that Claude Code last wrote into the record of its session."""
    session = environ.get("CLAUDE_CODE_SESSION_ID", "")
    projects = os.path.join(_config_dir(environ), "projects")  # noqa: PTH118
    if not session or "/" in session:
        return None
    try:
        directories = os.listdir(projects)  # noqa: PTH208
    except OSError:
        return None
    for directory in directories:
        mode = _mode_in(os.path.join(projects, directory, f"{session}.jsonl"))  # noqa: PTH118
        if mode is not None:
            return mode
    return None


def _mode_in(record: str) -> str | None:
    try:
        with open(record, "rb") as file:  # noqa: PTH123
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - RECORD_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        # Only of the record itself: what a tool returned may say the same word.
        if b'"permissionMode"' in line:
            mode = _table(line).get("permissionMode")
            if isinstance(mode, str):
                return mode
    return None


def _rules(environ: Mapping[str, str]) -> list[str]:
    """What the settings of Claude Code allow without a question."""
    project = os.path.join(environ.get("CLAUDE_PROJECT_DIR") or os.getcwd(), ".claude")  # noqa: PTH109, PTH118
    found: list[str] = []
    for directory, name in (
        (_config_dir(environ), "settings.json"),
        (project, "settings.json"),
        (project, "settings.local.json"),
    ):
        try:
            with open(os.path.join(directory, name), "rb") as file:  # noqa: PTH118, PTH123
                permissions = _table(file.read()).get("permissions")
        except OSError:
            continue
        allowed = permissions.get("allow") if isinstance(permissions, dict) else None
        if isinstance(allowed, list):
            found += [rule for rule in allowed if isinstance(rule, str)]
    return found


def _config_dir(environ: Mapping[str, str]) -> str:
    return environ.get("CLAUDE_CONFIG_DIR") or os.path.join(environ.get("HOME", ""), ".claude")  # noqa: PTH118


def _table(line: bytes) -> dict[str, object]:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
