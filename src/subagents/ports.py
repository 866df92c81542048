"""What the engine needs from the outside, written from its needs; adapters promise it.

Each method says what repeating it does: the outbox performs effects at least once.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol, TypeVar

from subagents.domain.model import Message, Run
from subagents.domain.outcome import DeliveryOutcome
from subagents.domain.signals import Signal
from subagents.domain.spec import Abilities
from subagents.domain.values import AttemptId, RunId, SessionKey, Value

T = TypeVar("T")


class Clock(Protocol):
    """Wall-clock time and waiting; the simulator has its own."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch; may jump either way."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    def run_id(self) -> RunId: ...

    def session_uuid(self) -> str: ...


class OffLoop(Protocol):
    """Runs blocking work away from the event loop; the simulator runs it in line, between crash points."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class Launch(Value, frozen=True):
    """Everything a runtime needs to start one attempt."""

    attempt_id: AttemptId
    run_id: RunId
    number: int
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
    system_prompt: str
    cwd: str
    options: dict[str, object]
    """The agent's runtime section: for ``command``: ``command``, ``stdin``, ``env``, ``pass_env``."""
    retry_reason: str | None = None
    deadline_ms: int | None = None
    model: str | None = None
    thinking: str | None = None
    tools: tuple[str, ...] | None = None
    tools_deny: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """What the engine adds: SUBAGENTS_SOCKET, SUBAGENTS_TOKEN, … the runtime adds the rest."""


class AttemptRef(Value, frozen=True):
    """Names a started attempt to its runtime."""

    attempt_id: AttemptId
    run_id: RunId
    number: int
    options: dict[str, object] = {}
    turns: int = 1


class StartedInfo(Value, frozen=True):
    pid: int | None = None
    adopted: bool = False


class Runtime(Protocol):
    """Runs attempts of one kind and reports what it sees of them.

    An adapter reports; it never decides. Deadlines, retries and what counts as the end of a run
    belong to the engine, so a new runtime needs no new phases.
    """

    @property
    def name(self) -> str: ...

    @property
    def abilities(self) -> Abilities: ...

    def check(self, options: Mapping[str, object]) -> None:
        """Refuse options with which no attempt could ever start.

        Raises:
            ConfigError: Names the key and what is allowed.
        """
        ...

    async def start(self, launch: Launch) -> StartedInfo:
        """Start the attempt, or adopt it when it was started already under this id.

        Repeating is safe: there is never a second worker for one attempt id.

        Raises:
            RuntimeUnavailable: Nothing was started; ``retryable`` is true.
            UsageError: Nothing was started and the same launch can never start.
        """
        ...

    def watch(self, ref: AttemptRef, *, cursor: int) -> AsyncIterator[tuple[Signal, int]]:
        """Yield ``(signal, cursor after it)`` in the order seen; ends after a terminal signal.

        ``cursor`` is 0 or a value this method gave before: reading goes on there. Every signal of
        an ended attempt can be read again until ``forget``.
        """
        ...

    async def stop(self, ref: AttemptRef, *, grace_s: float) -> None:
        """TERM, ``grace_s`` seconds, KILL, for every process of the attempt; return when all are gone.

        Idempotent, also for an attempt that ended or never started.
        """
        ...

    async def steer(self, ref: AttemptRef, message: str, *, key: str) -> None:
        """Put a message into the live attempt; the same ``key`` twice is one message.

        Raises:
            RuntimeUnavailable: It is not live any more; the message stays for the next turn.
        """
        ...

    async def resume(self, ref: AttemptRef, message: str) -> StartedInfo:
        """Start the next turn of an ended attempt in the same session; ``ref.turns`` numbers it."""
        ...

    async def forget(self, ref: AttemptRef) -> None:
        """Delete the attempt's own files (session transcript, output). Idempotent."""
        ...


class Courier(Protocol):
    """Carries one delivery try to a requester; the inbox row exists already."""

    @property
    def name(self) -> str:
        """``direct`` or ``steer``; the inbox itself (``queue``) needs no courier."""
        ...

    async def deliver(self, run: Run, message: Message) -> DeliveryOutcome | None:
        """Try once; None = this courier does not serve that requester, ask the next.

        The message id is the idempotency key: receivers may see it twice.
        """
        ...
