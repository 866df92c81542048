"""What Codex says of its own sandbox with each call of a tool, as a ceiling.

Codex tells every MCP server the name of its sandbox mode (``x-codex-turn-metadata``), and those
that declare ``CAPABILITY`` what the sandbox allows. It may change from call to call: a person
changes it in the middle of a session. Seen with Codex 0.169.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import unquote, urlsplit

from subagents.api.calls.services import Services
from subagents.domain.run.access import AccessLevel, Ceiling
from subagents.extensions.mcp.mcp_message import Document
from subagents.extensions.mcp.mcp_server import McpRequest, Method, declaring

CAPABILITY: Final = "codex/sandbox-state-meta"
TURN: Final = "x-codex-turn-metadata"
_LEVELS: Final[Mapping[str, AccessLevel]] = {
    "read-only": AccessLevel.READ,
    "workspace-write": AccessLevel.WRITE,
    "danger-full-access": AccessLevel.FULL,
}


def methods(_services: Services, known: Mapping[str, Method]) -> Mapping[str, Method]:
    """The hook ``mcp``: each call of a tool under the ceiling of its caller's sandbox."""
    call = known["tools/call"]

    async def limited(request: McpRequest) -> Document:
        exchange = request.exchange
        caller = exchange.caller
        if caller.ceiling is None and not caller.is_worker:
            ceiling = ceiling_of(request.message.meta, cwd=caller.cwd)
            exchange.caller = replace(caller, ceiling=ceiling)
        return await call.handler(request)

    greetings = ("initialize", "server/discover")
    return {
        **{name: declaring(known[name], "experimental", CAPABILITY) for name in greetings},
        "tools/call": replace(call, handler=limited),
    }


def ceiling_of(meta: Mapping[str, object] | None, *, cwd: str | None) -> Ceiling | None:
    """The caller's limits; None = it says nothing, or nothing that is understood.

    Args:
        meta: ``_meta`` of ``tools/call``.
        cwd: Where the caller works, when its sandbox does not say.
    """
    if not meta:
        return None
    mode = _at(meta.get(TURN), "sandbox_mode")
    state = meta.get(CAPABILITY)
    profile = _at(state, "permissionProfile")
    level = _LEVELS.get(mode) if isinstance(mode, str) else None
    if isinstance(profile, dict):
        level = _level_of(profile) if level is None else level
    elif level is None:
        return None
    if level is None:
        # A sandbox that nobody here knows keeps from something.
        level = AccessLevel.READ
    name = f' "{mode}"' if isinstance(mode, str) else ""
    is_full = level is AccessLevel.FULL
    return Ceiling(
        level=level,
        source=f"Codex in its sandbox{name}" if not is_full else "Codex without a sandbox",
        network=is_full or _at(profile, "network") in ("enabled", "full", "unrestricted"),
        below=(_place(_at(state, "sandboxCwd")) or cwd) if level is AccessLevel.WRITE else None,
    )


def _level_of(profile: Mapping[str, object]) -> AccessLevel | None:
    if profile.get("type") == "disabled":
        return AccessLevel.FULL
    entries = _at(profile.get("file_system"), "entries")
    if not isinstance(entries, list):
        return None
    writes = any(_at(each, "access") == "write" for each in entries)
    return AccessLevel.WRITE if writes else AccessLevel.READ


def _place(uri: object) -> str | None:
    """A path, or the path of a ``file:`` address."""
    if not isinstance(uri, str) or not uri:
        return None
    try:
        return unquote(urlsplit(uri).path) if uri.startswith("file:") else uri
    except ValueError:  # half an IPv6 address, for example
        return None


def _at(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None
