"""Codex as a worker: the dialect of ``codex app-server``, JSON-RPC without its version.

    initialize → initialized, config/read, account/read → thread/start or thread/resume
    → turn/start → … → turn/completed; meanwhile turn/steer and turn/interrupt.

A turn of a worker is one turn of Codex in a process of its own. It is over with ``turn/completed``
of our thread: Codex's own sub-agents have threads of their own, whose events come, too. What a
worker may do is in ``codex_config``; nobody approves anything.

See docs/runtimes/codex.md.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from subagents.domain.run.access import Access, AccessLevel
from subagents.domain.run.spec import Abilities
from subagents.extensions.codex import codex_config
from subagents.extensions.codex.codex_config import override, text_input
from subagents.extensions.codex.codex_options import nested, parse_options
from subagents.extensions.codex.codex_stream import UNWANTED, unknown
from subagents.extensions.codex.codex_turn import (
    STEER,
    CodexState,
    CodexStep,
    answered,
    asked,
    asking,
    ended,
    noticed,
)
from subagents.extensions.conversation import conversation, jsonrpc
from subagents.extensions.conversation.dialect import (
    InputLine,
    Invocation,
    Opening,
    Permissions,
    ProgramPlaces,
    TurnStep,
    servers_unkept,
)
from subagents.extensions.conversation.jsonrpc import (
    Notification,
    Request,
    Response,
    Unreadable,
)
from subagents.extensions.conversation.program_version import check_version
from subagents.ports import Runtime, UsualProvider
from subagents.runtimes.process.environment import program
from subagents.runtimes.process.processes import Marker
from subagents.runtimes.runtime_plugins import RuntimeHost
from subagents.version import __version__

INTERRUPT: Final = "interrupt:"
LEFT: Final = "codex ended in the middle of its turn"
_VERSION_LINE: Final = r"codex-cli (\d+\.\d+\.\d+)"


class CodexDialect:
    """See ``Dialect``."""

    asks_first = True
    name = "codex"
    abilities = Abilities(
        survives_daemon=True,
        steer=True,
        resume=True,
        scope_tools=True,
        interrupt=True,
        usage=True,
        model=True,
    )
    passes = (
        *("CODEX_HOME", "CODEX_API_KEY", "CODEX_CA_CERTIFICATE"),
        *("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "OPENAI_PROJECT"),
    )
    usual_provider = UsualProvider("openai", ("OPENAI_BASE_URL", "OPENAI_API_KEY", "CODEX_*"))

    def check(self, options: Mapping[str, object]) -> None:
        """See ``Dialect.check``."""
        parse_options(options)

    def check_servers(self, options: Mapping[str, object]) -> None:
        """See ``ports.Serving.check_servers``: others are switched off one by one."""
        if "mcp_servers" in nested(parse_options(options).config):
            why = "runtime_options.config.mcp_servers brings others"
            raise servers_unkept("Codex", why, "define them in [mcp_servers], and name them")

    def check_scope(
        self, options: Mapping[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...]
    ) -> None:
        """See ``Dialect.check_scope``."""
        codex_config.check_scope(parse_options(options), tools, deny)

    def access_of(
        self, options: Mapping[str, object], configured: AccessLevel | None
    ) -> AccessLevel:
        """See ``Restrained.access_of``: its sandbox may be narrower."""
        return codex_config.access_of(parse_options(options), configured)

    def kept_by_program(self, options: Mapping[str, object], access: Access) -> Access | None:
        """Codex's own sandbox; it knows the network, too."""
        return codex_config.kept(parse_options(options), access)

    def kept_by_tools(
        self, options: Mapping[str, object], access: Access
    ) -> tuple[str, ...] | None:
        """Never asked: its sandbox keeps everything."""
        del options, access
        return ()

    def places(self, options: Mapping[str, object], env: Mapping[str, str]) -> ProgramPlaces:
        """Never asked: nothing is around it."""
        del options, env
        return ProgramPlaces()

    def invocation(self, opening: Opening, *, directory: str, path: str) -> Invocation:
        """See ``Dialect.invocation``.

        Codex may be configured to give commands another environment than its own: the marks by
        which they are found and ended are set for them in any case.
        """
        command = parse_options(opening.options).command
        found = program(command[0], cwd=opening.cwd, path=path, key="runtime_options.command")
        check_version(found, "codex", pattern=_VERSION_LINE, option="runtime_options.command")
        root = str(Path(directory).parent.parent)
        marks = Marker(opening.attempt_id, root, opening.turn).variables()
        sets = [
            part
            for name, value in marks.items()
            for part in override(f"shell_environment_policy.set.{name}", value)
        ]
        return Invocation((found, *command[1:], "app-server", *sets))

    def begin(self, opening: Opening) -> CodexStep:
        """See ``Dialect.begin``."""
        client = {"name": "subagents", "title": "subagents", "version": __version__}
        able = {"experimentalApi": True, "optOutNotificationMethods": UNWANTED}
        hello = {"clientInfo": client, "capabilities": able}
        return TurnStep(
            CodexState(opening=opening), input_lines=(asking("initialize", "initialize", hello),)
        )

    def read_line(self, state: CodexState, line: bytes, *, now_ms: int | None) -> CodexStep:
        """See ``Dialect.read_line``; Codex reports durations itself."""
        del now_ms
        match jsonrpc.decode(line):
            case Response() as answer:
                return answered(state, answer)
            case Request() as request:
                return asked(state, request)
            case Notification(method=method, params=params):
                return noticed(state, method, params)
            case Unreadable(text=found):
                return TurnStep(state, output=(unknown(found),) if found.strip() else ())

    def permissions(self, state: CodexState) -> Mapping[str, Permissions]:
        """See ``Asks.permissions``."""
        return state.permissions

    def steer(self, state: CodexState, message: str, *, key: str) -> InputLine | None:
        """See ``Dialect.steer``."""
        if state.is_over or state.thread_id is None or state.turn_id is None:
            return None
        params = {
            "threadId": state.thread_id,
            "expectedTurnId": state.turn_id,
            "clientUserMessageId": key,
            "input": text_input(message),
        }
        return asking(f"{STEER}{key}", "turn/steer", params, key=key)

    def accepted(self, state: CodexState, key: str) -> bool | None:
        """See ``Dialect.accepted``."""
        return state.tells.get(key)

    def interrupt(self, state: CodexState, *, key: str) -> InputLine | None:
        """See ``Dialect.interrupt``."""
        if state.is_over or state.thread_id is None or state.turn_id is None:
            return None
        params = {"threadId": state.thread_id, "turnId": state.turn_id}
        return asking(f"{INTERRUPT}{key}", "turn/interrupt", params, key=key)

    def awaits(self, state: CodexState) -> str | None:
        """See ``Awaiting.awaits``."""
        if state.is_over or state.turn_id is not None:
            return None
        if state.thread_id is not None:
            return "the answer to `turn/start`"
        if not state.asked:
            return "the answer to `thread/start`"
        return "the answers to `initialize`, `config/read` and `account/read`"

    def is_done(self, state: CodexState) -> bool:
        """See ``Dialect.is_done``: what a turn took it answers before it ends."""
        return state.is_over

    def finish(self, state: CodexState) -> CodexStep:
        """See ``Dialect.finish``."""
        if state.is_over:
            return TurnStep(state)
        error = LEFT if state.problem is None else f"{LEFT}; before, it reported: {state.problem}"
        return ended(state, error=error, is_limit=state.is_limit)


def runtimes(host: RuntimeHost) -> tuple[Runtime, ...]:
    """See ``Extension.runtimes``."""
    return (conversation.runtime_on(host, CodexDialect()),)
