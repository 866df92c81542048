"""What the engine needs from the outside, written from its needs; adapters promise it.

Each method says what repeating it does: the outbox performs effects at least once.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from subagents.domain.effects import Effect
from subagents.domain.events import Event
from subagents.domain.model import Message, Phase, Progress, Run
from subagents.domain.outcome import DeliveryOutcome
from subagents.domain.signals import Signal
from subagents.domain.spec import Abilities
from subagents.domain.values import AttemptId, MessageId, RunId, SessionKey, Value

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

    def token_secret(self) -> str:
        """43 url-safe characters that nobody can guess."""
        ...


class OffLoop(Protocol):
    """Runs blocking work away from the event loop; the simulator runs it in line."""

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
    """The agent's runtime section; for ``command``: ``command``, ``stdin``, ``env``, …"""
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

    def marker(self, ref: AttemptRef) -> Mapping[str, str]:
        """Environment by which ``stop`` knows a process as the attempt's, whoever started it."""
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
        """TERM, ``grace_s`` seconds, KILL, for all its processes; return when they are gone.

        Idempotent, also for an attempt that ended or never started.
        """
        ...

    async def steer(self, ref: AttemptRef, message: str, *, key: str) -> None:
        """Put a message into the live attempt; the same ``key`` twice is one message.

        Raises:
            RuntimeUnavailable: It is not live any more; the message stays for the next turn.
        """
        ...

    async def resume(self, ref: AttemptRef, message: str, *, env: Mapping[str, str]) -> StartedInfo:
        """Start the next turn of an ended attempt in the same session; ``ref.turns`` numbers it.

        ``env`` is as ``Launch.env``: a turn has a token of its own.
        """
        ...

    async def forget(self, ref: AttemptRef) -> None:
        """Delete the attempt's own files (session transcript, output). Idempotent."""
        ...


class Courier(Protocol):
    """Carries one delivery try to a requester; the inbox row exists already."""

    @property
    def name(self) -> str:
        """Who carried it, in the inbox and in messages to people."""
        ...

    def serves(self, target: SessionKey, requester: Run | None) -> bool:
        """Whether this courier can reach that session at all; looks at nothing outside.

        Args:
            target: The session whose inbox holds the message.
            requester: The run that speaks under that session; None = a session outside.
        """
        ...

    async def deliver(self, run: Run, message: Message, requester: Run | None) -> DeliveryOutcome:
        """Try once to hand ``message`` (the announcement of ``run``) over; ``serves`` was asked.

        ``Delivered`` means that the requester has it: it is consumed, and no other door hands it
        over again. The message id is the idempotency key: after a crash the same one comes again.
        Cancelled when its time is over: whatever it began must then end with it.

        Raises:
            SubagentsError: Not handed over; tried again when it is ``retryable``.
        """
        ...


class OutboxEntry(Value, frozen=True):
    """A committed effect that is not known to be done; its key is ``<runId>/<seq>/<index>``."""

    run_id: RunId
    seq: int
    index: int
    effect: Effect

    @property
    def key(self) -> str:
        return f"{self.run_id}/{self.seq}/{self.index}"


class JournalEntry(Value, frozen=True):
    """One event of a run, as stored."""

    run_id: RunId
    seq: int
    at_ms: int
    event: Event
    key: str | None = None
    """Unique within the run: the same signal or effect answer is applied at most once."""


class Lease(Value, frozen=True):
    """Right of one node to act for an attempt until a time; ``epoch`` fences older holders."""

    run_id: RunId
    attempt: int
    owner: str
    epoch: int
    until_ms: int
    cursor: int = 0
    """How far the attempt's stream was read; a hint, signals are deduplicated by key."""


class ProgressLog(Protocol):
    """The progress updates of each run. Blocking; the engine calls it off the loop."""

    def append(self, run_id: RunId, progress: Progress) -> None:
        """Keep one more; repeating it with the same number replaces it.

        Raises:
            OSError: It was not kept, or only a part that ``read`` skips.
        """
        ...

    def read(self, run_id: RunId) -> Sequence[Progress]:
        """All that were kept, by number; what cannot be read is left out."""
        ...

    def forget(self, run_id: RunId) -> None:
        """Drop them. Idempotent."""
        ...


class InboxRow(Value, frozen=True):
    """A message and what became of it."""

    message: Message
    number: int
    consumed_at_ms: int | None = None
    consumed_by: str | None = None


@dataclass(slots=True)
class Batch:
    """What one commit writes; filled by the engine while the commit before it is under way."""

    runs: dict[RunId, Run] = field(default_factory=dict)
    """Only the newest state of each run is written; its events are all kept."""
    created: set[RunId] = field(default_factory=set)
    journal: list[JournalEntry] = field(default_factory=list)
    outbox: list[OutboxEntry] = field(default_factory=list)
    performed: list[tuple[RunId, int, int]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    moved: list[tuple[SessionKey, SessionKey]] = field(default_factory=list)
    """``(from, to)``: unconsumed messages change hands."""
    readdressed: list[tuple[MessageId, SessionKey]] = field(default_factory=list)
    """``(message id, to)``: one unconsumed message changes hands."""
    consumed: list[tuple[str, int, str]] = field(default_factory=list)
    """``(message id, at ms, reader)``."""
    leases: dict[RunId, Lease | None] = field(default_factory=dict)
    """None releases."""
    idempotency: list[tuple[SessionKey, str, RunId, int]] = field(default_factory=list)

    def is_empty(self) -> bool:
        return not (
            self.runs
            or self.journal
            or self.performed
            or self.messages
            or self.consumed
            or self.leases
        )


class RunFilter(Value, frozen=True):
    """Which runs a list wants; None = any. Newest first."""

    requester: SessionKey | None = None
    requester_run: RunId | None = None
    phases: tuple[Phase, ...] | None = None
    label: str | None = None
    agent_id: str | None = None
    archived: bool = False
    limit: int = 50
    offset: int = 0


class Store(Protocol):
    """The durable truth: one writer, many readers. Blocking; the engine calls it off the loop.

    Nothing of a ``Batch`` is visible before ``commit`` returns, all of it afterwards, also after
    a crash. One suite of behaviour tests runs against every implementation.
    """

    def open(self, owner: str) -> int:
        """Take the store over and return the new epoch; every later commit of an older one fails.

        Raises:
            AlreadyRunning: Another live process holds it.
            CorruptState: The content failed its checks; nothing was changed.
        """
        ...

    def commit(self, batch: Batch) -> None:
        """Write everything in one transaction, durable on return.

        Raises:
            StoreUnavailable: Nothing was written (disk full, I/O error, a newer epoch).
        """
        ...

    def probe(self) -> None:
        """Raise StoreUnavailable while commits cannot succeed; writes nothing that stays."""
        ...

    def has_room(self) -> bool:
        """Whether there is space for new runs besides what the present ones need to end."""
        ...

    def close(self) -> None: ...

    def load_open(self) -> Sequence[Run]:
        """Every run that is not over, with its ended children, oldest first."""
        ...

    def load_outbox(self) -> Sequence[OutboxEntry]:
        """Every effect not known to be done, in the order of its run."""
        ...

    def load_leases(self) -> Sequence[Lease]: ...

    def load_keys(self, run_ids: Iterable[RunId] | None = None) -> Mapping[RunId, set[str]]:
        """The keys already applied to these runs; None = to every open run."""
        ...

    def load_idempotency(self, since_ms: int) -> Sequence[tuple[SessionKey, str, RunId, int]]: ...

    def run(self, run_id: RunId) -> Run | None: ...

    def runs(self, where: RunFilter) -> Sequence[Run]: ...

    def count(self, where: RunFilter) -> int: ...

    def find(self, prefix: str) -> Sequence[RunId]:
        """Ids that start with ``prefix``, at most 10."""
        ...

    def journal(
        self, run_id: RunId, *, after_seq: int = 0, limit: int = 500
    ) -> Sequence[JournalEntry]: ...

    def inbox(
        self, session: SessionKey | None, *, unconsumed: bool, limit: int = 1000
    ) -> Sequence[InboxRow]:
        """Oldest first; None = every session."""
        ...

    def unread(self, session: SessionKey, limit: int) -> Sequence[MessageId]:
        """Ids of the session's unread messages, oldest first; cheaper than ``inbox``."""
        ...

    def message(self, message_id: str) -> InboxRow | None: ...

    def archivable(self, ended_before_ms: int, limit: int) -> Sequence[RunId]: ...

    def prunable(self, ended_before_ms: int, limit: int) -> Sequence[RunId]:
        """Archived runs whose announcement was consumed, or kept long enough."""
        ...

    def prune(self, run_ids: Iterable[RunId]) -> None:
        """Delete the runs and all that belongs to them, for good."""
        ...

    def check(self) -> Sequence[str]:
        """Problems the database finds in itself; empty = none."""
        ...

    def backup(self, target: str) -> None:
        """Copy a consistent snapshot to a new file."""
        ...
