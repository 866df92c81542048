"""What runs attempts, and what delivers their announcements: runtimes and couriers.

Each method says what repeating it does: the outbox performs effects at least once. All of them are
awaited on the daemon's event loop: work that blocks goes through ``OffLoop``.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, cast, runtime_checkable

from subagents.domain.run.access import Access, AccessLevel
from subagents.domain.run.outcome import DeliveryOutcome
from subagents.domain.run.run import Message, Run
from subagents.domain.run.signals import ResultSeen, Signal
from subagents.domain.run.spec import Abilities
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import AttemptId, RunId, SessionKey, Value
from subagents.domain.run.worker_output import OutputBatch
from subagents.errors import ConfigError, Forbidden

TOKEN_VARIABLE: Final = "SUBAGENTS_TOKEN"  # noqa: S105 - its name
"""The variable of a worker that holds its token, by which it proves which attempt it belongs to."""
LOGIN_NOTE: Final = "SUBAGENTS_LOGIN_NOTE"
"""The variable of a worker that says why its program may not be logged in, and what helps."""


class OfAttempt(Value, frozen=True):
    """Something that is handed to a runtime for one attempt."""

    attempt_id: AttemptId
    run_id: RunId
    number: int
    """The attempt's number within its run, from 1."""


class WorkerSetup(OfAttempt, frozen=True, kw_only=True):
    """How the worker of an attempt is set up, whatever its task is."""

    system_prompt: str
    cwd: str
    model: str | None = None
    thinking: str | None = None
    tools: tuple[str, ...] | None = None
    """The only tools of its program that it may use; None = all of them."""
    tools_deny: tuple[str, ...] = ()
    access: Access | None = None
    """What the worker is kept to, and by what; None = of a run from before there were levels."""


class Launch(WorkerSetup, frozen=True, kw_only=True):
    """Everything a runtime needs to start one attempt."""

    session_key: SessionKey
    requester: SessionKey
    agent_id: str
    label: str
    task: str
    """The task, word for word."""
    prompt: str
    """The task with dependency results, retry notice and so on, for workers that read prose."""
    previous_results: str
    """Only the dependency results; empty without ``includeDependencyResult``."""
    options: dict[str, object]
    """The agent's runtime section; for ``command``: ``command``, ``stdin``, ``env``, …"""
    retry_reason: str | None = None
    deadline_ms: int | None = None
    """Milliseconds since 1970; the engine ends the attempt then, the worker may know it."""
    env: dict[str, str] = {}
    """What the engine adds: SUBAGENTS_SOCKET, SUBAGENTS_TOKEN, … the runtime adds the rest."""
    unset: tuple[str, ...] = ()
    """Variables that its worker has not, whatever the daemon's environment holds."""
    setup: str = ""
    """What a shell runs before the worker, in its environment; that fails as this fails."""
    native_session: str | None = None
    """The program's own session to resume (``SessionSeen`` of an earlier attempt), and
    ``prompt`` is what is new in it; None = a new session."""


class AttemptRef(OfAttempt, frozen=True):
    """Names a started attempt to its runtime."""

    options: dict[str, object] = {}
    """See ``Launch``."""
    turns: int = 1
    """Its newest turn, from 1; all methods but ``forget`` and ``discard`` mean that one."""
    native_session: str | None = None
    """What the program calls its session, once that is known (``SessionSeen``)."""
    usage: Usage | None = None
    """What the attempt used so far, as known: all its turns together."""


class StartedInfo(Value, frozen=True):
    """What ``start`` or ``resume`` came to."""

    pid: int | None = None
    """The worker's process id; None = it has none, or it is not known yet."""
    adopted: bool = False
    """It was started before, by this daemon or another one."""
    native_session: str | None = None
    """What the program calls its session, where that is known at the start (``SessionSeen``)."""


class LongResult(NamedTuple):
    """A result that is too long for its run, and how to read all of it."""

    seen: ResultSeen
    """The signal, with the end of the result's text and the size of the whole."""
    pieces: Callable[[int], Iterator[str]]
    """Its text in pieces that end with a line where they can, the last at most so many bytes of it
    in all. Blocking; each piece comes quickly and may be read until the terminal signal."""


class Origin(NamedTuple):
    """Whose process one is."""

    attempt_id: AttemptId
    is_certain: bool
    """The kernel says so (its cgroup); else what it, or one above it, has in its environment."""


class Runtime(Protocol):
    """Runs attempts of one kind and reports what it sees of them.

    An adapter reports; it never decides. Deadlines, retries and what counts as the end of a run
    belong to the engine, so a new runtime needs no new phases.
    """

    @property
    def name(self) -> str:
        """As in ``runtime = "…"`` of an agent."""

    @property
    def abilities(self) -> Abilities:
        """What its programs can do, whatever their options; see ``Varied``."""

    # Asked before anything is stored: a wrong option is a refusal that names the key, and not a run
    # that fails an hour later, when it gets its slot.
    def check(self, options: Mapping[str, object]) -> None:
        """Refuse options with which no attempt could ever start.

        Raises:
            ConfigError: Names the key and what is allowed.
        """

    def check_scope(
        self, options: Mapping[str, object], tools: tuple[str, ...] | None, deny: tuple[str, ...]
    ) -> None:
        """Refuse a tool scope that cannot be enforced; asked before anything is stored.

        Only asked of a runtime whose abilities say ``scope_tools``, when there is a scope.

        Args:
            options: The agent's runtime section.
            tools: The only ones the worker may use; None = all that its program has.
            deny: Not these, whatever else.

        Raises:
            Forbidden: Names the tools that nothing can keep the worker from using.
        """

    def marker(self, ref: AttemptRef) -> Mapping[str, str]:
        """Environment by which ``stop`` knows a process as the attempt's, whoever started it."""

    async def start(self, launch: Launch) -> StartedInfo:
        """Start the attempt, or adopt it when it was started already under this id.

        Repeating is safe: there is never a second worker for one attempt id.

        Raises:
            RuntimeUnavailable: Nothing was started; ``retryable`` is true.
            UsageError: Nothing was started and the same launch can never start.
        """

    def watch(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int]
    ) -> AsyncIterator[tuple[Signal | OutputBatch | LongResult, int]]:
        """Yield ``(what was seen, cursor after it)`` in order; ends after a terminal signal.

        Signals are evidence of how the attempt does, an ``OutputBatch`` is what it wrote. All its
        output comes before the terminal signal.

        Args:
            ref: The attempt.
            cursor: For signals: 0 or a value this method gave before: reading continues there.
            positions: For output: ``positions`` of the last ``OutputBatch`` that was kept; nothing
                before them is yielded again. Empty = from the beginning.
        """

    async def discard(
        self, ref: AttemptRef, *, cursor: int, positions: Mapping[str, int], ended: bool = False
    ) -> None:
        """Everything before these positions is kept elsewhere, durably: its files may be freed.

        Never asked to ``watch`` from before them again. Idempotent; may do nothing.

        Args:
            ref: The attempt.
            cursor: See ``watch``.
            positions: See ``watch``.
            ended: Its terminal signal is durable, too: all may go, whatever the positions.

        Raises:
            RuntimeUnavailable: Not all could be freed; repeat it.
        """

    async def stop(self, ref: AttemptRef, *, grace_s: float) -> None:
        """TERM, ``grace_s`` seconds, KILL, for all its processes; return when they are gone.

        Idempotent, also for an attempt that ended or never started.
        """

    async def steer(self, ref: AttemptRef, message: str, *, key: str) -> None:
        """Put a message into the live attempt; the same ``key`` twice is one message.

        Raises:
            RuntimeUnavailable: It is not live any more; the message stays for the next turn.
        """

    async def interrupt(self, ref: AttemptRef, *, key: str) -> None:
        """End the turn that is under way, politely, so that its session can be resumed.

        Returns when the turn ended, or when the worker did not heed it for some seconds; ``stop``
        follows in either case. The same ``key`` twice is one interruption.

        Raises:
            RuntimeUnavailable: It is not live, or its program knows no such thing.
        """

    async def resume(self, ref: AttemptRef, message: str, *, env: Mapping[str, str]) -> StartedInfo:
        """Start the next turn of an ended attempt in the same session; ``ref.turns`` numbers it.

        ``env`` is as ``Launch.env``: each turn has its own token.
        """

    async def forget(self, ref: AttemptRef) -> None:
        """Delete the attempt's own files (session transcript, output). Idempotent."""


# What only some runtimes can do is a separate protocol, asked for with `isinstance`: a runtime
# of another package that was written before there was such a thing goes on without it.


@runtime_checkable
class Tidied(Protocol):
    """A runtime with files that are of no use once the run is over."""

    async def tidy(self, ref: AttemptRef) -> None:
        """Delete them; none of them is its program's session. Idempotent.

        An attempt that was started is still known, and is not started again.

        Raises:
            RuntimeUnavailable: Not all could be deleted; repeat it.
        """


@runtime_checkable
class Freezable(Protocol):
    """A runtime whose live workers can be stopped where they are (``Abilities.freeze``)."""

    async def freeze(self, ref: AttemptRef) -> None:
        """Stop all of the attempt's processes; whoever ends them lets them go on. Idempotent."""

    async def thaw(self, ref: AttemptRef) -> None:
        """Let them go on. Idempotent."""


@runtime_checkable
class Permitting(Protocol):
    """A runtime whose programs ask before they use some tools (``PermissionAsked``)."""

    async def permit(self, ref: AttemptRef, call_id: str, *, allow: bool, lasting: bool) -> None:
        """Tell the program whether it may use the tool. Idempotent.

        Raises:
            RuntimeUnavailable: It is not known yet that it asked; repeat it.
        """


@runtime_checkable
class Varied(Protocol):
    """A runtime whose programs differ in what they can do: the agent's options say which it is."""

    def abilities_of(self, options: Mapping[str, object]) -> Abilities:
        """What an attempt with these options can do; ``check`` took them."""


class Bound(NamedTuple):
    """How a worker is kept to its access."""

    access: Access
    """The access with what keeps it; never more than was asked for."""
    deny: tuple[str, ...] = ()
    """Tools, or kinds of them, that it must not have for that."""


@runtime_checkable
class Bounded(Protocol):
    """A runtime that can keep its workers to less than everything."""

    def access_of(
        self, options: Mapping[str, object], configured: AccessLevel | None
    ) -> AccessLevel:
        """What its workers may do at most: ``agents.<id>.access``, and within its own options."""

    def bound(self, options: Mapping[str, object], access: Access) -> Bound:
        """How a worker is kept to ``access``. Blocking: it may look what is installed.

        Raises:
            Forbidden: Nothing here can; says what would.
        """


@runtime_checkable
class Limited(Protocol):
    """A runtime that can hold its workers to ``[agents.<id>.limits]``."""

    def unkept_limits(self, limits: Iterable[str]) -> str | None:
        """Which of these keys nothing here can enforce, and why; None = all can. Blocking."""


@runtime_checkable
class Serving(Protocol):
    """A runtime that can keep its workers to certain MCP servers (``agents.<id>.mcp_servers``)."""

    def check_servers(self, options: Mapping[str, object]) -> None:
        """Refuse options, taken by ``check``, whose ``mcp_servers`` would not be the only ones.

        Raises:
            Forbidden: Says what else its program would load, and what helps.
        """


@runtime_checkable
class Asking(Protocol):
    """A runtime whose programs ask a model provider, with variables that it passes on to them."""

    @property
    def passes(self) -> tuple[str, ...]:
        """Names, or prefixes ``NAME_*``, of the daemon's variables that each of them gets."""

    def passed(self, options: Mapping[str, object], model: str | None) -> tuple[str, ...]:
        """Those that one with these options gets; none where the options are wrong."""

    @property
    def usual_provider(self) -> "UsualProvider | None":
        """Whom they ask when nothing says otherwise; None = there is no such thing."""


class UsualProvider(NamedTuple):
    """Whom a program asks when nothing says otherwise."""

    name: str
    variables: tuple[str, ...]
    """Names, or prefixes ``NAME_*``, of those that say where it is and who asks."""


@lru_cache(maxsize=256)
def _is_a(kind: type, protocol: type) -> bool:
    """What ``isinstance`` says of its objects, without comparing name by name each time."""
    # Asked several times for each spawn, of the same few classes.
    return issubclass(kind, protocol)


def access_of(
    runtime: Runtime, options: Mapping[str, object], configured: AccessLevel | None
) -> AccessLevel:
    """What a runtime's workers may do at most; a runtime that says nothing keeps from nothing."""
    if _is_a(type(runtime), Bounded):
        return cast("Bounded", runtime).access_of(options, configured)
    return configured or AccessLevel.FULL


def check_servers(runtime: Runtime, options: Mapping[str, object]) -> None:
    """Refuse ``mcp_servers`` that nothing would keep a worker to.

    Raises:
        Forbidden: Guardrail ``mcp_servers``.
    """
    if not _is_a(type(runtime), Serving):
        raise Forbidden(
            f'runtime "{runtime.name}" cannot keep its program to certain MCP servers',
            guardrail="mcp_servers",
            hint="remove it, or choose an agent of another runtime (claude-code, codex, acp)",
        )
    runtime.check(options)
    cast("Serving", runtime).check_servers(options)


def unserved(runtime: object, options: Mapping[str, object]) -> tuple[str, str] | None:
    """Why its worker gets none of our tools, and what helps; None = it is given them."""
    told = getattr(runtime, "unserved", None)
    return None if told is None else cast("tuple[str, str] | None", told(options))


def abilities_of(runtime: Runtime, options: Mapping[str, object]) -> Abilities:
    """What a runtime can do for an agent with these options, which ``check`` took."""
    if _is_a(type(runtime), Varied):
        return cast("Varied", runtime).abilities_of(options)
    return runtime.abilities


def usable_abilities(runtime: Runtime | None, options: Mapping[str, object]) -> Abilities | None:
    """As ``abilities_of``; None = the runtime is not here, or refuses these options."""
    if runtime is None:
        return None
    try:
        runtime.check(options)
    except ConfigError:
        return None
    return abilities_of(runtime, options)


class WorkerSecrets(Protocol):
    """The values of variables that only refer to secrets (``secret:NAME``)."""

    async def load(self, run: Run) -> None:
        """Ask for those of the run's newest attempt; it can be started on return.

        Raises:
            UsageError: There is no such secret; the message names it and the way out.
            RuntimeUnavailable: Whoever has it did not answer.
        """

    async def recall(self, run: Run) -> None:
        """After a restart: know again what its live worker was given, as far as possible."""


class Courier(Protocol):
    """Carries one delivery try to a requester; the inbox row exists already."""

    @property
    def name(self) -> str:
        """Who carried it, in the inbox and in messages to people."""

    def serves(self, target: SessionKey, requester: Run | None) -> bool:
        """Whether this courier can reach that session at all; looks at nothing outside.

        Args:
            target: The session whose inbox holds the message.
            requester: The run that speaks under that session; None = a session outside.
        """

    async def deliver(self, run: Run, message: Message, requester: Run | None) -> DeliveryOutcome:
        """Try once to hand ``message`` (the announcement of ``run``) over; ``serves`` was asked.

        ``Delivered`` means that the requester has it: it is consumed, and nothing else hands it
        over again. The message id is the idempotency key: after a crash the same one comes again.
        Cancelled when its time is over: whatever it began must then end with it.

        Raises:
            SubagentsError: Not handed over; tried again when it is ``retryable``.
        """
