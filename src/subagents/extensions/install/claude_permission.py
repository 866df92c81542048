"""The rule in Claude Code's settings that lets our tools run without asking.

Claude Code has no command that writes rules, and without one ``claude -p`` refuses every call:
there is nobody to ask.
"""

import json
from pathlib import Path
from typing import Any, Final

from subagents.errors import ConfigError
from subagents.extensions.install.agent_programs import SERVER, AgentProgram
from subagents.extensions.install.file_change import Change, read

RULE: Final = f"mcp__{SERVER}__*"
_INDENTS: Final = (2, 4, "\t")


def change_of(program: AgentProgram, file: Path, *, is_allowed: bool) -> Change:
    """The change that puts our rule into the settings, or takes it out.

    Raises:
        ConfigError: The file cannot be read, or has another form; it names the flag that does the
            same for one session.
    """
    before = read(file)
    after = with_rule(before or "", file, is_allowed=is_allowed)
    is_shared = program.project is not None
    return Change(file=file, before=before, after=after, is_shared=is_shared)


def with_rule(text: str, file: Path, *, is_allowed: bool) -> str:
    """The text with our rule among ``permissions.allow``, or without it; its indentation is kept.

    Raises:
        ConfigError: See ``change_of``.
    """
    try:
        document = json.loads(text) if text.strip() else {}
        permissions: dict[str, Any] = document.get("permissions", {})
        allowed: list[Any] = permissions.get("allow", [])
        if (RULE in allowed) == is_allowed:
            return text
        left = [each for each in allowed if each != RULE]
        allowed = [*left, RULE] if is_allowed else left
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ConfigError(
            f"{file} is written in a form not known here; nothing was changed",
            hint=f"add {RULE!r} to permissions.allow in it by hand, or start Claude Code with"
            f" --allowedTools {RULE!r}",
        ) from error
    # What we made goes with the rule.
    permissions = {**permissions, "allow": allowed}
    if not allowed:
        del permissions["allow"]
    document = {**document, "permissions": permissions}
    if not permissions:
        del document["permissions"]
    return _spelled(document, like=text)


def _spelled(document: object, *, like: str) -> str:
    for indent in _INDENTS:
        if like.strip() == json.dumps(
            json.loads(like.strip() or "{}"), indent=indent, ensure_ascii=False
        ):
            break
    else:
        indent = _INDENTS[0]
    return json.dumps(document, indent=indent, ensure_ascii=False) + "\n"
