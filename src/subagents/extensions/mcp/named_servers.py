"""`[mcp_servers.<name>]`: the MCP servers that `agents.<id>.mcp_servers` names, and how a worker's
program gets at them.

What a server is goes into the worker's environment when its attempt begins, and each secret of it
into a variable of its own, as all secrets of workers do. Its program starts `subagents mcp
--server=NAME` (`bridge.named_server`), which finds them there.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from subagents.config.settings import (
    HeaderName,
    Inconsistency,
    Section,
    Settings,
    Text,
    Url,
    VariableName,
    not_configured,
)
from subagents.domain.redaction.secret_spans import names_secret
from subagents.domain.run.run import Run
from subagents.domain.run.secret_reference import PREFIX, OwnReference, referenced
from subagents.domain.run.values import RunId
from subagents.errors import UsageError
from subagents.extensions.mcp.bridge.worker_above import SECRET, SERVERS

OURS: Final = "subagents"
_SAYS_SECRET: Final = frozenset({"authorization", "proxy-authorization", "cookie"})


class McpServer(Section, frozen=True):
    """`[mcp_servers.<name>]`: read when an attempt begins; the user's own file only."""

    TABLE: ClassVar = "mcp_servers"

    command: Annotated[
        Text | None, Meta(description="The program that speaks MCP on stdin and stdout.")
    ] = None
    args: Annotated[
        tuple[str, ...],
        Meta(max_length=1000, description="Its arguments; no secrets, which belong in `env`."),
    ] = ()
    env: Annotated[
        dict[VariableName, str],
        Meta(description="Variables set for it; `secret:NAME` gets that secret."),
    ] = {}
    url: Annotated[
        Url | None,
        Meta(description="In place of `command`: where it answers over streamable HTTP."),
    ] = None
    headers: Annotated[
        dict[HeaderName, str],
        Meta(
            description="HTTP headers for `url`: `secret:NAME`, or `Bearer secret:NAME`.",
            extra={"hidden": True},
        ),
    ] = {}

    @property
    def secrets(self) -> Iterator[str]:
        """The names of the secrets that it needs."""
        for value in (*self.env.values(), *self.headers.values()):
            yield from referenced({"": value.rpartition(" ")[2]}).values()

    @classmethod
    def inconsistencies(cls, settings: Settings) -> Iterator[Inconsistency]:
        """See `Section.inconsistencies`: also of agents that name a server which is not there."""
        servers = settings.named(McpServer)
        for name, each in servers.items():
            key, problem = f"mcp_servers.{name}", each.problem()
            if name == OURS:
                problem = ("", "is the name of our own server", "give it another name")
            if problem is not None:
                at, text, hint = problem
                yield Inconsistency(key, f"{key}{at} {text}", hint)
        for agent_id, agent in settings.agents.items():
            key = f"agents.{agent_id}.mcp_servers"
            for name in agent.mcp_servers or ():
                if name not in servers:
                    text = not_configured(key, name, servers)
                    hint = f"add [mcp_servers.{name}] to your own subagents.toml"
                    yield Inconsistency(key, text, hint)

    def problem(self) -> tuple[str, str, str] | None:
        """What is wrong with it alone: where, what, and the way out; None = nothing."""
        if (self.command is None) == (self.url is None):
            return "", "needs either command or url", "set one of them"
        key, others = ("url", (self.args, self.env)) if self.url else ("command", (self.headers,))
        if any(others):
            words = "args and env are for command" if self.url else "headers are for url"
            return f".{key}", f"is set, and {words}", "remove them"
        if any(each.startswith(PREFIX) for each in self.args):
            return ".args", "would show a secret to everybody here", "put it into env"
        for table, values in (("env", self.env), ("headers", self.headers)):
            for name, value in values.items():
                try:
                    is_reference = bool(referenced({name: value.rpartition(" ")[2]}))
                except UsageError as error:
                    return f".{table}.{name}", error.message, error.hint or ""
                says_secret = names_secret(name) or name.lower() in _SAYS_SECRET
                if says_secret and not is_reference:
                    hint = f'store it (subagents secret NAME) and write "{PREFIX}NAME"'
                    return f".{table}.{name}", f"must refer to a secret: {PREFIX}NAME", hint
        return None


def worker_env(
    run: Run, _run_of: Callable[[RunId], Run | None], settings: Settings
) -> Mapping[str, str]:
    """See ``Extension.worker_env``.

    Raises:
        UsageError: One that the run's agent names is not configured (any more).
    """
    names = run.resolved.mcp_servers
    return variables(names, settings.named(McpServer)) if names else {}


def variables(names: tuple[str, ...], known: Mapping[str, McpServer]) -> Mapping[str, str]:
    """What tells the bridge of these servers; secrets are references.

    Raises:
        UsageError: One is not configured.
    """
    missing = [name for name in names if name not in known]
    if missing:
        raise UsageError(
            f"mcp_servers.{missing[0]} is not configured here (any more), and the run's agent "
            f"names it; add [mcp_servers.{missing[0]}] to your own subagents.toml"
        )
    secrets = sorted({secret for name in names for secret in known[name].secrets})
    places = {secret: f"{SECRET}{number}" for number, secret in enumerate(secrets, 1)}
    definitions = {name: msgspec.to_builtins(known[name]) for name in names}
    text = msgspec.json.encode({"servers": definitions, "secrets": places}).decode()
    return {SERVERS: text, **{at: OwnReference(PREFIX + secret) for secret, at in places.items()}}
