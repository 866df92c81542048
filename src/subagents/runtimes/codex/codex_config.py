"""What a Codex worker is started with: where it works, its sandbox, tools, instructions; pure.

Nothing is written into the user's own configuration: all of it holds for one thread. Codex would
write there by itself that the working directory is trusted, were it not told for the thread.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

import msgspec

from subagents.domain.run.values import Value
from subagents.runtimes.codex.codex_options import (
    SERVER,
    Options,
    merged,
    nested,
)
from subagents.runtimes.codex.codex_scope import Scope, scoped
from subagents.runtimes.codex.codex_stream import Fields, fields, text
from subagents.runtimes.conversation.dialect import Opening

TOOL_TIMEOUT_S: Final = 7 * 86_400
"""A wait for children may take days; Codex gives a call up after 300 s by itself."""
START_TIMEOUT_S: Final = 60
_DEFAULTS: Final[Mapping[str, object]] = {
    "features": {
        # With a goal Codex begins further turns by itself: the end of a turn would be none.
        "goals": False,
        # It would wait for a network that is away for ever, and tell of no failure.
        "unbounded_connection_retries": False,
        # Else models with a search tool, or that write code for their calls, do not see our tools.
        "code_mode": {"direct_only_tool_namespaces": [f"mcp__{SERVER}"]},
    },
    # Nobody is there; whoever wants to know something asks its requester.
    "tools": {"experimental_request_user_input": {"enabled": False}},
}
_ENFORCED: Final[Mapping[str, object]] = {
    # A snapshot is a file of Codex's with every variable of the shell, the worker's token as well.
    "features": {"shell_snapshot": False},
}


class Known(Value, frozen=True):
    """What the user configured for Codex, as far as a worker's start depends on it."""

    servers: tuple[str, ...] = ()
    """Names of MCP servers."""
    trust: dict[str, str] = {}
    """Directory → ``trusted`` or ``untrusted``."""
    instructions: str = ""
    """``developer_instructions``."""


def known_of(result: object) -> Known:
    """What ``config/read`` answered."""
    config = fields(fields(result).get("config"))
    projects = fields(config.get("projects"))
    levels = {path: text(fields(each).get("trust_level")) for path, each in projects.items()}
    return Known(
        servers=tuple(fields(config.get("mcp_servers"))),
        trust={path: level for path, level in levels.items() if level},
        instructions=text(config.get("developer_instructions")),
    )


def thread_params(opening: Opening, options: Options, known: Known) -> dict[str, object]:
    """The parameters of ``thread/start``, or of ``thread/resume`` when there is a session."""
    scope = Scope(opening.tools, opening.tools_deny)
    instructions = "\n\n".join(filter(None, (known.instructions, opening.system_prompt)))
    params: dict[str, object] = {
        "cwd": opening.cwd,
        "approvalPolicy": "never",
        "sandbox": options.sandbox if scope.may_write else "read-only",
        "config": _config(opening, options, known, scope),
    }
    if instructions:
        params["developerInstructions"] = instructions
    if opening.model is not None:
        params["model"] = opening.model
    if opening.session_id is not None:
        params |= {"threadId": opening.session_id, "excludeTurns": True}
    return params


def turn_params(opening: Opening, thread_id: str) -> dict[str, object]:
    """The parameters of ``turn/start``."""
    params: dict[str, object] = {"threadId": thread_id, "input": text_input(opening.message)}
    if opening.thinking is not None:
        params["effort"] = opening.thinking
    return params


def text_input(message: str) -> list[dict[str, str]]:
    """A message as Codex takes it."""
    return [{"type": "text", "text": message}]


def override(key: str, value: str) -> tuple[str, str]:
    """The arguments that set a key for a whole process; ``value`` is no secret."""
    return "-c", f"{key}={msgspec.json.encode(value).decode()}"


def _config(opening: Opening, options: Options, known: Known, scope: Scope) -> dict[str, object]:
    table = merged(merged(_DEFAULTS, nested(options.config)), _ENFORCED)
    table = merged(table, {"projects": _trust(opening.cwd, options, known)})
    if options.sandbox == "workspace-write" and scope.may_write:
        table = merged(table, {"sandbox_workspace_write": _workspace(opening.cwd, options)})
    if opening.bridge:
        program, *arguments = opening.bridge
        server: Fields = {
            "command": program,
            "args": arguments,
            "default_tools_approval_mode": "approve",
            "required": True,
            "startup_timeout_sec": START_TIMEOUT_S,
            "tool_timeout_sec": TOOL_TIMEOUT_S,
        }
        table = merged(table, {"mcp_servers": {SERVER: server}})
    ours = (SERVER,) if opening.bridge else ()
    return merged(table, scoped(scope, (*known.servers, *ours)))


def _workspace(cwd: str, options: Options) -> dict[str, object]:
    found: dict[str, object] = {}
    if options.network is not None:
        found["network_access"] = options.network
    if options.writable:
        found["writable_roots"] = [str(PurePosixPath(cwd, each)) for each in options.writable]
    return found


def _trust(cwd: str, options: Options, known: Known) -> dict[str, object]:
    """What the user said of the directory, or of the nearest one above it; else untrusted."""
    here = PurePosixPath(cwd)
    level = next(
        (known.trust[str(place)] for place in (here, *here.parents) if str(place) in known.trust),
        "untrusted",
    )
    if options.trust_project is not None:
        level = "trusted" if options.trust_project else "untrusted"
    return {cwd: {"trust_level": level}}
