"""How one program's protocol is spoken, as pure functions over what it writes.

A program that takes messages while it works is driven through two files: ``out``, which it writes,
and ``in``, which is fed to its standard input (``worker_input``). A ``Dialect`` never sees either:
it turns a line of output into its meaning and the lines to send for it. Its state is a fold over
the lines of ``out`` and nothing else, so a new daemon folds them again and continues where the old
one was killed; a line to send has a key, and is sent once however often it is asked for. Why it is
made so: docs/decisions/0023-conversations-are-folds-over-files.md.
"""

from collections.abc import Mapping
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from subagents.domain.run.access import Access, AccessLevel
from subagents.domain.run.signals import PermissionAsked, Signal
from subagents.domain.run.spec import Abilities
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import Value
from subagents.domain.run.worker_output import OutputItem
from subagents.errors import Forbidden
from subagents.ports import UsualProvider, WorkerSetup
from subagents.runtimes.output.tool_lines import COMMAND_CHARS_MAX, tool_use

SERVER: Final = "subagents"
"""Our MCP server's name with every program."""
S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)


class Opening(WorkerSetup, frozen=True, kw_only=True):
    """What one turn of an attempt begins with; a file of the attempt, read again after a crash.

    It holds no secret: tokens and keys are in the worker's environment only.
    """

    turn: int
    """The turn's number, from 1; each further turn is a process of its own in the same session."""
    message: str
    """The prompt; of a further turn, what is new since the turn before."""
    session_uuid: str
    """A UUID of the attempt's own, for programs that let the caller choose the session's id."""
    session_id: str | None = None
    """The program's session to resume, as ``SessionSeen`` named it; None = a new one."""
    used: Usage | None = None
    """What the attempt used in earlier turns; every ``UsageSeen`` of this one includes it."""
    options: dict[str, object] = {}
    """The agent's runtime section, with its ``env`` and ``pass_env``; ``check`` accepted it."""
    given: tuple[str, ...] = ()
    """Names of variables that this worker gets besides, stronger than those of ``options``."""
    login_note: str = ""
    """Why nobody may be logged in to the program, for the error that says so; empty = nothing is
    known."""
    withheld: tuple[str, ...] = ()
    """Names of the daemon's variables that this worker does not get."""
    bridge: tuple[str, ...] = ()
    """Program and arguments of our MCP server over stdio. It finds the worker's token by itself;
    empty = the worker gets no tools of ours."""

    @property
    def are_servers_named(self) -> bool:
        """Whether the worker gets no other MCP servers than ``servers``."""
        return self.options.get("mcp_servers") is not None

    @property
    def servers(self) -> dict[str, tuple[str, ...]]:
        """Program and arguments of each MCP server over stdio, by its name: ours, and those that
        the agent's ``mcp_servers`` name, unless the tool scope leaves none of its tools. The bridge
        starts them with what is secret in them, which it finds as it finds the token: no argument
        and no file has it."""
        named = self.options.get("mcp_servers")
        names = map(str, named) if isinstance(named, (list, tuple)) else ()
        given = {n: (*self.bridge, f"--server={n}") for n in names if self._may_use(f"mcp__{n}")}
        return {SERVER: self.bridge, **given} if self.bridge else {}

    def _may_use(self, server: str) -> bool:
        whole, one = {server, f"{server}__*"}, f"{server}__"
        is_named = any(each in whole or each.startswith(one) for each in self.tools or ())
        return (self.tools is None or is_named) and whole.isdisjoint(self.tools_deny)


def servers_unkept(who: str, why: str, hint: str = "remove it") -> Forbidden:
    """The refusal of ``mcp_servers`` that would not be the only ones."""
    text = f"nothing keeps {who} to certain MCP servers: {why}"
    return Forbidden(text, guardrail="mcp_servers", hint=hint)


def noted(text: str, login_note: str) -> str:
    """How to log in, and ``Opening.login_note``."""
    return f"{text}; {login_note}" if login_note else text


class Invocation(NamedTuple):
    """How the program is started."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    """Set besides what every worker gets."""
    files: dict[str, bytes] = {}
    """Put into the attempt's directory before the start; see ``Dialect.invocation``."""


class InputLine(NamedTuple):
    """One line for the program's standard input."""

    key: str
    """Unique within the turn; the same key twice is one line."""
    line: bytes
    """The line, without its newline."""


class TurnStep(NamedTuple, Generic[S]):
    """What follows from one line."""

    state: S
    output: tuple[OutputItem, ...] = ()
    signals: tuple[Signal, ...] = ()
    """Their keys are set by the reader: leave them empty."""
    input_lines: tuple[InputLine, ...] = ()


class Permissions(Value, frozen=True):
    """The three answers to a program that asks whether it may use a tool, each a line."""

    once: str
    lasting: str
    deny: str


PERMISSIONS_MAX: Final = 50
"""How many questions of a program are remembered; older ones were answered long ago."""
BESIDE: Final = frozenset(
    (
        *("description", "timeout", "run_in_background", "offset", "limit"),
        *("content", "old_string", "new_string", "replace_all", "oldString", "newString"),
    )
)
"""What a call with the same command, or at the same path, may be given besides."""
Answers: TypeAlias = dict[str, Permissions]
"""The answers to each question, by the id of the call."""


def asked_for(
    known: Answers, answers: Permissions, *, call_id: str, tool: str, given: object
) -> tuple[Answers, PermissionAsked]:
    """The questions with one more, and the signal of it.

    Args:
        known: The questions so far.
        answers: What can be answered.
        call_id: Names the call to the program.
        tool: The tool's name.
        given: What the tool would be given, as JSON or decoded.
    """
    use = tool_use(tool, given=given)
    named = use.command or use.path
    what = named or use.input or ""
    others = given.keys() - BESIDE if isinstance(given, Mapping) else ()
    # One thing is compared, and the rest of the call is known to be beside it.
    is_whole = named is not None and len(named) < COMMAND_CHARS_MAX and len(others) == 1
    call = f"{use.name}: {named}" if is_whole and ":" not in use.name else None
    kept = dict(list({**known, call_id: answers}.items())[-PERMISSIONS_MAX:])
    asked = PermissionAsked(key="", call_id=call_id, tool=use.name, what=what, call=call)
    return kept, asked


class ProgramPlaces(NamedTuple):
    """Absolute paths that a program in a sandbox writes, and that it must not write."""

    writable: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()


@runtime_checkable
class Restrained(Protocol):
    """A dialect whose program can keep itself to less than everything, or needs places to do so.

    Of any other one nothing is claimed: only bubblewrap keeps it.
    """

    def access_of(
        self, options: Mapping[str, object], configured: AccessLevel | None
    ) -> AccessLevel:
        """See ``ports.Bounded.access_of``."""
        ...

    def kept_by_tools(
        self, options: Mapping[str, object], access: Access
    ) -> tuple[str, ...] | None:
        """Kinds of tools without which the program keeps to ``access``; None = it would not."""
        ...

    def places(self, options: Mapping[str, object], env: Mapping[str, str]) -> ProgramPlaces:
        """What the program keeps of itself, with the worker's environment."""
        ...


@runtime_checkable
class Serves(Protocol):
    """A dialect whose program can be kept to ``Opening.servers``."""

    def check_servers(self, options: Mapping[str, object]) -> None:
        """See ``ports.Serving.check_servers``."""
        ...


@runtime_checkable
class KeepsSessions(Protocol):
    """A dialect whose program keeps its sessions in the attempt's directory."""

    @property
    def session_files(self) -> frozenset[str]:
        """Their names: what a later run continues, so they stay when the run is over."""
        ...


@runtime_checkable
class AsksUsually(Protocol):
    """A dialect whose program asks one provider when nothing says otherwise."""

    @property
    def usual_provider(self) -> UsualProvider:
        """See ``ports.Asking.usual_provider``."""
        ...


@runtime_checkable
class PassesByOptions(Protocol):
    """A dialect whose options say which of the daemon's variables its program gets."""

    def passed(self, options: Mapping[str, object], model: str | None) -> tuple[str, ...]:
        """See ``ports.Asking.passed``."""
        ...


@runtime_checkable
class SelfKept(Protocol):
    """A dialect whose program has a sandbox of its own."""

    def kept_by_program(self, options: Mapping[str, object], access: Access) -> Access | None:
        """The access that it keeps, at most the given one; None = not this one."""
        ...


@runtime_checkable
class Asks(Protocol[S_contra]):
    """A dialect whose program asks before it uses some tools."""

    def permissions(self, state: S_contra) -> Mapping[str, Permissions]:
        """The answers to what it asked (``PermissionAsked``), by the ids of the calls."""
        ...


class Dialect(Protocol[S]):
    """One program's protocol. Only ``invocation`` looks at the machine; all else is pure.

    ``S`` is a frozen ``subagents.domain.run.values.Value`` that msgspec can encode: it becomes part
    of the attempt's checkpoint under its field names. Only ``check``, ``check_scope`` and
    ``invocation`` may raise: a line that cannot be read becomes an item of output
    (``LineType.SYSTEM``, "unknown event: NAME"), never an error.
    """

    @property
    def name(self) -> str:
        """The runtime's name, as in the configuration."""
        ...

    @property
    def abilities(self) -> Abilities: ...

    @property
    def passes(self) -> tuple[str, ...]:
        """Names, or prefixes ``NAME_*``, of the daemon's variables that the program needs."""
        ...

    def check(self, options: Mapping[str, object]) -> None:
        """Refuse options with which no attempt could ever start.

        Raises:
            ConfigError: Names the key and what is allowed.
        """
        ...

    def check_scope(
        self, options: Mapping[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...]
    ) -> None:
        """Refuse a tool scope that cannot be enforced; asked before anything is stored.

        Args:
            options: The agent's.
            tools: The only ones it may use; None = all of its own.
            deny: Not these, whatever else (names of other programs too, see ``tool_kinds``).

        Raises:
            Forbidden: Names the tools, and why nothing here can keep the program from using them.
        """
        ...

    def invocation(self, opening: Opening, *, directory: str, path: str) -> Invocation:
        """How to start the program for this turn. Blocking: it may look for the program.

        Args:
            opening: The turn.
            directory: The attempt's, where ``Invocation.files`` will be.
            path: The worker's PATH.

        Raises:
            UsageError: The program is not installed, or cannot do what is asked; the text says
                what to do about it.
        """
        ...

    def begin(self, opening: Opening) -> TurnStep[S]:
        """The state before the first line, and the first lines to send."""
        ...

    def read_line(self, state: S, line: bytes, *, now_ms: int | None) -> TurnStep[S]:
        """Take one line of its standard output.

        Args:
            state: After the line before.
            line: Without its newline; at most ``LINE_BYTES_MAX`` bytes, of any content.
            now_ms: About when it was written, in milliseconds since 1970; None = long ago (it is
                read again after a restart), so durations are unknown.
        """
        ...

    def steer(self, state: S, message: str, *, key: str) -> InputLine | None:
        """The line that puts a message into the present turn; None = it takes none now.

        Args:
            state: Of the turn.
            message: As the sender wrote it.
            key: Becomes the line's key.
        """
        ...

    def accepted(self, state: S, key: str) -> bool | None:
        """Whether the program accepted the message sent under ``key``; None = not known yet."""
        ...

    def interrupt(self, state: S, *, key: str) -> InputLine | None:
        """What ends the present turn and keeps the session; None = there is no turn."""
        ...

    def is_done(self, state: S) -> bool:
        """The turn is over and every message that was accepted is answered: the program may end."""
        ...

    def finish(self, state: S) -> TurnStep[S]:
        """The program is gone and all its output was read: what follows for an open turn.

        A turn that did not end gets a ``ResultSeen`` that is an error, with the last text.
        """
        ...


@runtime_checkable
class Awaiting(Protocol[S_contra]):
    """A dialect that knows when its program has begun: only then can a mute one be told from one
    that is at work. A dialect without this waits until the run's own deadline."""

    @property
    def asks_first(self) -> bool:
        """Its first lines ask nothing of a model: they can be sent only to see who answers."""
        ...

    def awaits(self, state: S_contra) -> str | None:
        """What the program owes before its turn begins, such as the answer to ``initialize``.

        Each is owed for ``handshake_seconds`` at most, and none comes twice. None = it has begun,
        or is over.
        """
        ...
