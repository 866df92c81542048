"""The options of a ``codex`` agent (``[agents.<id>.runtime_options]``); pure.

``command``        Program and arguments before ``app-server``; default ``["codex"]``.
``sandbox``        ``read-only``, ``workspace-write`` or ``danger-full-access``; unset = as
                   ``access`` of the agent says, and without that ``workspace-write``.
``network``        Whether commands in ``workspace-write`` reach the network; unset = as the user's
                   own Codex configuration says (off there, unless it says otherwise).
``writable``       More places that commands may write to; relative to the working directory
                   (``[".git"]`` lets a worker commit).
``trust_project``  Whether ``.codex/`` and ``AGENTS.md`` of the project count; unset = as the user
                   decided before.
``prices``         ``{ input = …, cached = …, output = … }`` in dollars per million tokens. Codex
                   reports no cost; with prices it is computed.
``ask``            ``true``: it works in ``workspace-write``, and what it wants to do outside
                   becomes a question; only with access to everything.
``handshake_seconds``  How long each step may take before its turn has begun; default 120.
``config``         Any further keys of Codex's own ``config.toml``, for these workers alone.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from subagents.errors import ConfigError
from subagents.extensions.conversation.dialect import SERVER
from subagents.extensions.conversation.json_fields import merged
from subagents.runtimes.runtime_options import ConversationOptions, parsed

Sandbox = Literal["read-only", "workspace-write", "danger-full-access"]
Price = Annotated[float, msgspec.Meta(ge=0, le=1e6)]

_OURS: Final[Mapping[str, str]] = {
    "approval_policy": "workers run under `never`; with the option `ask` under `on-request`",
    "sandbox_mode": "use the option `sandbox`",
    "model": "use `model` of the agent",
    "developer_instructions": "the run's instructions stand there",
    f"mcp_servers.{SERVER}": "our own tools come under that name",
}
"""Keys of ``config`` that are set elsewhere."""


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars per million tokens."""

    input: Price
    output: Price
    cached: Price | None = None
    """The price of input that was read from the provider's cache; None = as ``input``."""


class CodexOptions(ConversationOptions, frozen=True, kw_only=True):
    """As written, with defaults."""

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("codex",)
    sandbox: Sandbox | None = None
    network: bool | None = None
    writable: tuple[str, ...] = ()
    trust_project: bool | None = None
    prices: Prices | None = None
    config: dict[str, object] = {}
    stdin: Literal["none"] = "none"


def parse_options(options: Mapping[str, object]) -> CodexOptions:
    """Return the options of a ``codex`` agent.

    Raises:
        ConfigError: Names the key and what is allowed.
    """
    found = parsed(
        options,
        CodexOptions,
        runtime="codex",
        unknown=" (keys of Codex's own configuration go into `config`)",
    )
    if not found.command[0]:
        raise ConfigError("`command` must begin with a program")
    is_given = found.network is not None or bool(found.writable)
    if found.sandbox not in {None, "workspace-write"} and is_given:
        raise ConfigError(
            f'`network` and `writable` have no effect with sandbox = "{found.sandbox}"; '
            'they are for "workspace-write"'
        )
    table = nested(found.config)
    for key, reason in _OURS.items():
        if _has(table, key.split(".")):
            raise ConfigError(f"`config.{key}`: {reason}")
    return found


def nested(config: Mapping[str, object]) -> dict[str, object]:
    """The same with ``{"a.b": 1}`` written as ``{"a": {"b": 1}}``, as ``codex -c`` reads it."""
    table: dict[str, object] = {}
    for key, value in config.items():
        head, *rest = reversed(key.split("."))
        leaf: dict[str, object] = {head: value}
        for part in rest:
            leaf = {part: leaf}
        table = merged(table, leaf)
    return table


def _has(table: object, path: list[str]) -> bool:
    for part in path:
        if not isinstance(table, dict) or part not in table:
            return False
        table = table[part]
    return True
