"""The durable truth, and the records it is made of."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from subagents.domain.run.effects import Effect
from subagents.domain.run.events import Event
from subagents.domain.run.outcome import Status
from subagents.domain.run.run import Message, Phase, Run
from subagents.domain.run.values import MessageId, RunId, SessionKey, Value
from subagents.domain.schedules.schedule import Schedule, ScheduleId
from subagents.errors import CorruptState


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
    # Grows with every `Store.open`. A daemon that was suspended through the end of its lease and
    # wakes up still believes in it; the store compares epochs and refuses what it writes.
    epoch: int
    until_ms: int
    cursor: int = 0
    """How far the attempt's stream was read; a hint, signals are deduplicated by key."""


class FeedEntry(Value, frozen=True):
    """One event of any run, in the order in which they became durable."""

    number: int
    """Grows over all runs, with gaps; the cursor of whoever follows."""
    entry: JournalEntry


class InboxRow(Value, frozen=True):
    """A message and what became of it."""

    message: Message
    number: int
    consumed_at_ms: int | None = None
    consumed_by: str | None = None


class RememberedKey(NamedTuple):
    """An idempotency key, and what it stands for."""

    requester: SessionKey
    key: str
    run_id: RunId
    at_ms: int
    digest: str | None
    """The digest of the request that made the run (``domain.rules.idempotency``); None = not
    known."""


class SetAside(Value, frozen=True):
    """Something stored that is not what was written: left out everywhere, and never changed."""

    # Found by its checksum. One damaged row must not keep the daemon from starting, and what is
    # left of it is what `subagents db repair` has to go by.

    name: str
    """The id of a run or a message, or ``<run id>/<seq>`` of an event."""
    run_id: RunId
    reason: str


class Loaded(NamedTuple):
    """What some partitions have to go on with."""

    runs: Sequence[Run]
    """See ``Store.load_open``."""
    outbox: Sequence[OutboxEntry]
    leases: Sequence[Lease]
    keys: Mapping[RunId, set[str]]


@dataclass(slots=True)
class Batch:
    """What one commit writes; filled by the engine while the commit before it is under way."""

    runs: dict[RunId, Run] = field(default_factory=dict)
    """What ``journal`` makes of them. A store keeps their newest state, or folds it when it is
    asked for; the events are all kept."""
    created: set[RunId] = field(default_factory=set)
    journal: list[JournalEntry] = field(default_factory=list)
    erased: set[RunId] = field(default_factory=set)
    """Runs in ``runs`` whose origin is written again, and whose journal gives up its texts
    (``domain.lifecycle.erasure``), those of this batch included."""
    outbox: list[OutboxEntry] = field(default_factory=list)
    """What ``journal`` asks for; a store may fold it as it may fold ``runs``."""
    performed: list[tuple[RunId, int, int]] = field(default_factory=list)
    """Effects that are done. Where an event says so, its key is that of the effect."""
    messages: list[Message] = field(default_factory=list)
    moved: list[tuple[SessionKey, SessionKey]] = field(default_factory=list)
    """Unconsumed messages that change hands, as ``(from, to)``."""
    readdressed: list[tuple[MessageId, SessionKey]] = field(default_factory=list)
    """``(message id, to)``: one unconsumed message changes hands."""
    consumed: list[tuple[str, int, str]] = field(default_factory=list)
    """``(message id, at ms, reader)``."""
    reopened: dict[MessageId, SessionKey] = field(default_factory=dict)
    """Consumed messages that are unread again, and in whose inbox; applied after ``consumed``."""
    outdated: list[tuple[RunId, int, str]] = field(default_factory=list)
    """``(run, at ms, reader)``: the end of the run was read, its unread alerts are no news now."""
    leases: dict[RunId, Lease | None] = field(default_factory=dict)
    """None releases."""
    idempotency: list[RememberedKey] = field(default_factory=list)
    schedules: dict[ScheduleId, Schedule | None] = field(default_factory=dict)
    """None removes."""


class Place(NamedTuple):
    """Where a run stands in lists; also when it is not there any more.

    Of runs of the same millisecond some may then come twice, but none is left out.
    """

    # A place and not a count of rows: pages counted from the newest run shift with every spawn
    # that happens between two of them.

    created_at_ms: int
    """When the run was spawned; in a list ``by_end``: when it ended."""
    run_id: RunId


class Below(NamedTuple):
    """Runs below one run, on whichever level, that are over and ended alike, or are not over."""

    root: RunId
    outcome: Status | None
    """None = they are not over."""
    number: int
    open: tuple[RunId, ...] = ()
    """The runs that are not over."""


class RunFilter(Value, frozen=True):
    """Which runs a list wants; None = any. Newest first."""

    requester: SessionKey | None = None
    requester_run: RunId | None = None
    top: bool = False
    """Only those that no other run spawned."""
    steps_of: tuple[str, ...] | None = None
    """Only the steps of these plans."""
    plans: bool = False
    """Only the first step of each plan."""
    folded: bool = False
    """A plan stands there once, as its first step."""
    below: RunId | None = None
    """This run and all its descendants."""
    phases: tuple[Phase, ...] | None = None
    outcomes: tuple[Status, ...] | None = None
    """Only ended ones, with one of these outcomes."""
    states: tuple[str, ...] | None = None
    """Only those of which one of these words is true: a phase, an outcome, a ``ShownState``."""
    label: str | None = None
    agent_id: str | None = None
    directory: str | None = None
    """Absolute: runs whose project is this directory or lies below it."""
    tags: tuple[str, ...] = ()
    """Runs that have all of these."""
    text: str | None = None
    """Runs whose label or task contains it, in upper or lower case, or whose id begins with it."""
    model: str | None = None
    """Runs that were given this model."""
    keeps_session: bool | None = None
    listed: bool = True
    """Whether those that are not archived are in it."""
    archived: bool = False
    """Archived ones, too."""
    since_ms: int | None = None
    """Only those spawned at or after this time."""
    until_ms: int | None = None
    """Only those spawned before this time."""
    active_since_ms: int | None = None
    """Only those that have not ended, or ended at or after this time."""
    ended_after_ms: int | None = None
    """Only ended ones, that ended at or after this time."""
    behind: Place | None = None
    """Only those behind this place in the list."""
    oldest_first: bool = False
    """The list the other way round."""
    by_end: bool = False
    """Only ended ones, by when they ended and not by when they were spawned."""
    limit: int = 50
    offset: int = 0
    """How many are left out before, for people's pages: all of them are visited. Who reads all says
    ``behind``."""


class Database(Protocol):
    """What people and programs that watch over a store ask of it. Blocking."""

    @property
    def place(self) -> str:
        """Where it is, in words for people: a file, or an address without its password."""

    @property
    def schema(self) -> int:
        """Number of the newest schema that this version knows; ``Store.open`` brings it there."""

    def size_bytes(self) -> int:
        """How much room it takes, its log included; 0 before it is made."""

    @property
    def ways_out(self) -> str:
        """What somebody can do whose database cannot be used."""

    def open_readonly(self) -> None:
        """For looking at a database that a daemon owns, or checking one: no lock, no writes.

        Raises:
            StoreUnavailable: There is none, or it cannot be read.
            CorruptState: It is damaged, not ours, of a newer version, or empty where runs left
                files.
        """

    def check(self) -> Sequence[str]:
        """Problems the database finds in itself; empty = none."""

    def close(self) -> None:
        """Release everything; safe to repeat."""


class Settled(NamedTuple):
    """What was found in a copy that takes a database's place."""

    open_runs: int
    """Runs in it that have not ended: what waits is started by whoever opens it."""
    paused: tuple[str, ...]
    """Names of the schedules that were paused in it."""


class StoreFile(Database, Protocol):
    """A store that is one file of this machine, for ``subagents db``: no daemon is needed.

    A database server has its own programs for this, and so none of these.
    """

    def found_schema(self) -> int | None:
        """Number of the schema that the file has; None = no database can be read there."""

    def require_not_newer(self) -> None:
        """Refuse a database of a newer version, and nothing else.

        Raises:
            CorruptState: It is one; nothing was changed.
        """

    def locked(self) -> AbstractContextManager[bool]:
        """Keep every other process out; gives whether the newest commits are missing from the log.

        Raises:
            AlreadyRunning: Another process holds it.
        """

    def schedule_ids(self) -> frozenset[str]:
        """Of the schedules in it; none where it cannot be read."""

    def settle(self, own: Collection[str], at_ms: int) -> Settled:
        """Make a copy ready to take a database's place: pause schedules that are not its own.

        Args:
            own: Ids of the schedules that were in that database.
            at_ms: Now.

        Raises:
            StoreUnavailable: It cannot be written.
        """

    def backup(self, target: str) -> None:
        """Copy a consistent snapshot to a new file.

        Raises:
            StoreUnavailable: It cannot be read, or ``target`` not be written; a part of it may be
                there.
        """


class Store(Database, Protocol):
    """The durable truth: one writer, many readers. Blocking; the engine calls it off the loop.

    Nothing of a ``Batch`` is visible before ``commit`` returns, all of it afterwards, also after
    a crash. One suite of behaviour tests runs against every implementation.
    """

    def open(self, owner: str) -> int:
        """Take the store over and return the new epoch; an older one is fenced from then on.

        Raises:
            AlreadyRunning: Another live process holds it.
            CorruptState: The content failed its checks; nothing was changed.
        """

    def renew(self) -> float | None:
        """Prolong the right that ``open`` gave; called while commits are made.

        Returns:
            For how many seconds from the beginning of this call no other process can take the
            store over; None = as long as this process lives. Then it is not asked again.

        Raises:
            StoreUnavailable: It could not be prolonged; what was left of it is left.
            Fenced: A newer epoch was opened.
        """

    def commit(self, batch: Batch) -> int:
        """Write everything in one transaction, durable on return.

        Returns:
            The number, as followers see it, of the newest event that was committed here.

        Raises:
            StoreUnavailable: Nothing was written (disk full, I/O error); the next one may be.
            Fenced: Nothing was written, and nothing ever will be: a newer epoch was opened. That
                is decided in the transaction, so that no commit can come between.
        """

    def probe(self) -> None:
        """Whether commits can succeed now; writes nothing that stays.

        Raises:
            StoreUnavailable: They cannot yet.
            Fenced: They never will.
        """

    def has_room(self) -> bool:
        """Whether there is space for new runs besides what the present ones need to end."""

    def checkpoint(self) -> None:
        """Write what a start would otherwise have to find out; before ``close``, if at all.

        It never fails: what was committed is durable without it.
        """

    def close(self) -> None: ...

    def load_open(self) -> Sequence[Run]:
        """Every run that is not over, with its ended children, oldest first."""

    def load_outbox(self) -> Sequence[OutboxEntry]:
        """Every effect not known to be done, in the order of its run."""

    def load_leases(self) -> Sequence[Lease]: ...

    def load_keys(self, run_ids: Iterable[RunId] | None = None) -> Mapping[RunId, set[str]]:
        """The keys already applied to these runs; None = to all that ``load_open`` loads."""

    def load_idempotency(self, since_ms: int) -> Sequence[RememberedKey]:
        """The keys that were given after a time."""

    def load_schedules(self) -> Sequence[Schedule]:
        """Every schedule, oldest first."""

    def run(self, run_id: RunId) -> Run | None:
        """One run; None = there is none.

        Raises:
            CorruptState: It is set aside; the message says why.
        """

    def set_aside(self) -> Sequence[SetAside]:
        """What was found damaged, at the start or since, and is left out by everything else."""

    def runs(self, where: RunFilter) -> Sequence[Run]: ...

    def count(self, where: RunFilter, *, most: int) -> int:
        """How many runs the filter matches, its window aside; ``most`` where there are more.

        Counting visits every run that it counts, so a caller asks for no more than it shows.
        """

    def these(self, run_ids: Sequence[RunId]) -> Sequence[Run]:
        """Those of these runs that are there, in no order; what is set aside is left out."""

    def below(
        self, run_ids: Sequence[RunId], *, most: int, plans: Sequence[RunId] = ()
    ) -> Sequence[Below]:
        """What is below each of these runs, in numbers; at most so many runs are visited.

        The other steps of a plan are below its first, where that is among ``plans``, too.
        """

    def find(self, prefix: str) -> Sequence[RunId]:
        """Ids that start with ``prefix``, at most 10."""

    def journal(
        self, run_id: RunId, *, after_seq: int = 0, limit: int = 500
    ) -> Sequence[JournalEntry]: ...

    def feed(self, *, after: int, limit: int = 500) -> Sequence[FeedEntry]:
        """Events of all runs behind number ``after``, in order."""

    def alerted(self, *, before: int, limit: int, of: RunId | None = None) -> Sequence[FeedEntry]:
        """``Alerted`` events below number ``before``, the newest first; None = of all runs."""

    def touched(self, *, after: int, ended_since_ms: int, limit: int) -> tuple[int, Sequence[Run]]:
        """Runs with an event behind number ``after``, as they are now, each once.

        Args:
            after: The number of an event.
            ended_since_ms: Those that ended before are left out.
            limit: How many events are looked at.

        Returns:
            The number of the last event looked at, ``after`` when there was none, and the runs.
        """

    def newest_number(self) -> int:
        """From which a follower misses nothing that is committed later.

        That of the newest event, or above it and below the next one; in a store that others write,
        too, below what is still being committed.
        """

    def inbox(
        self, session: SessionKey | None, *, unconsumed: bool, limit: int = 1000
    ) -> Sequence[InboxRow]:
        """Oldest first; None = every session."""

    def blockers(self, session: SessionKey | None, limit: int) -> Sequence[InboxRow]:
        """The newest messages of kind ``blocker``, read or not, oldest first; None = of all."""

    def news_of(self, run_ids: Sequence[RunId]) -> Sequence[InboxRow]:
        """The alerts and blockers that these runs sent, read or not, oldest first."""

    def unread(self, session: SessionKey, limit: int) -> Sequence[MessageId]:
        """Ids of the session's unread messages, oldest first; cheaper than ``inbox``."""

    def unread_total(self) -> int:
        """Unread messages of all sessions."""

    def message(self, message_id: str) -> InboxRow | None: ...

    def archivable(self, ended_before_ms: int, limit: int) -> Sequence[RunId]:
        """Runs that ended and were read before a time; never those that keep a session."""

    def prunable(self, ended_before_ms: int, limit: int) -> Sequence[RunId]:
        """Archived runs whose announcement was consumed, or kept long enough."""

    def prune(self, run_ids: Iterable[RunId]) -> None:
        """Delete the runs and all that belongs to them, for good.

        Raises:
            StoreUnavailable, Fenced: As ``commit``; nothing was deleted.
        """

    def shrink(self) -> bool:
        """Give some of the room that prunes made back to the disk; whether there is more.

        Quick: commits wait for it.
        """


def readable(store: Store, run_id: RunId) -> Run | None:
    """The run for whoever can do without it; None = there is none, or it is set aside."""
    try:
        return store.run(run_id)
    except CorruptState:
        return None
