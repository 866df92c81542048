"""Which channel has which announcement now, as everybody outside sees it together.

Readers, couriers and live attempts tell it at the very step at which the engine hands something
over, so that it can say that two channels had the same announcement at once, or one had it after it
was consumed. It keeps its own books and never asks the engine.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from tests.simulation.invariants import ANNOUNCE_SUFFIX, Judge
from tests.simulation.virtual_loop import VirtualClock

from subagents.domain.run.events import AnnouncementConsumed
from subagents.domain.run.outcome import DeliveryPath
from subagents.domain.run.values import RunId, announcement_id

PATHS: Final = {"direct": DeliveryPath.DIRECT, "steer": DeliveryPath.STEERED}
LENT_MS: Final = 59_000
"""A little less than an offer's lease: it began before the answer was written."""


class Daemon(Protocol):
    """What must be known of the daemon that hands something over."""

    @property
    def life_number(self) -> int:
        """Which life it is; -1 between two."""
        ...

    @property
    def has_failed(self) -> bool:
        """A commit failed: nothing that happens now is remembered."""
        ...


class Push:
    """One courier's try."""

    is_delivered = False


class Channels:
    """The channels' side of "consumed once".

    Args:
        judge: Hears of what must not happen, and knows what was committed.
        clock: The daemon's, which may jump: then nobody can say when a lease is over.
    """

    def __init__(self, judge: Judge, clock: VirtualClock, *, can_tell_time: bool) -> None:
        self._judge = judge
        self._clock = clock
        self._can_tell_time = can_tell_time
        self._lent: dict[str, tuple[str, int, int]] = {}
        """Message id → (reader, since, life of the daemon)."""
        self._carrying: dict[str, tuple[str, int]] = {}
        """Message id → (courier, life of the daemon)."""
        self._carried: dict[str, tuple[str, int]] = {}
        """Message id → (courier, the judge's era): consumed with the next commit."""
        self._taken: set[tuple[str, str]] = set()
        """Message id and whoever has it: a reader that is about to say so, or a courier."""
        self._acknowledged: set[str] = set()
        """Messages other than announcements that somebody was told to have taken over."""
        judge.was_handed_over = self.was_handed_over

    def was_handed_over(self, event: AnnouncementConsumed, run_id: RunId) -> bool:
        """Whether whoever is said to have taken the announcement has it."""
        name = announcement_id(run_id)
        if event.path is DeliveryPath.PULLED:
            # A run tells of its children by its own result.
            by_result = ":subagent:" in event.reader and "#" not in event.reader
            return by_result or (name, event.reader) in self._taken
        return (name, event.path) in self._taken

    def offered(self, names: list[str], reader: str, life: int) -> None:
        """The engine leased these messages to ``reader`` just now."""
        now_ms = self._clock.now_ms()
        for name in names:
            self._check_unread(name, reader)
            self._check_not_pushed(name, reader, life)
            other = self._reader_of(name, life)
            # Who had it before it was offered once more never said that it let go.
            is_again = self._judge.was_reopened(RunId(name.removesuffix(ANNOUNCE_SUFFIX)))
            if other not in {None, reader} and not is_again:
                self._judge.fail("offered to one reader at a time", f"{name}: {other}, {reader}")
            self._lent[name] = (reader, now_ms, life)

    def acknowledged(self, names: list[str]) -> None:
        """Their reader was answered that it took them over."""
        self._acknowledged.update(names)

    def let_go(self, names: list[str], reader: str) -> None:
        """Their reader is about to acknowledge them."""
        for name in names:
            self._taken.add((name, reader))
            if name in self._lent and self._lent[name][0] == reader:
                del self._lent[name]

    @contextmanager
    def push(self, name: str, courier: str, daemon: Daemon) -> Iterator[Push]:
        """A courier has this announcement for the length of the block.

        Delivered = from then on the engine must not hand it to anybody else.
        """
        life, push = daemon.life_number, Push()
        self._check_unread(name, courier)
        self._check_not_pushed(name, courier, life)
        reader = self._reader_of(name, life)
        if reader is not None:
            self._judge.fail(
                "one channel at a time", f"{name}: lent to {reader}, given to {courier}"
            )
        self._carrying[name] = (courier, life)
        try:
            yield push
        finally:
            self._carrying.pop(name, None)
        if push.is_delivered:
            self._taken.add((name, PATHS[courier]))
        if push.is_delivered and not daemon.has_failed:
            self._carried[name] = (courier, self._judge.era)

    def _reader_of(self, name: str, life: int) -> str | None:
        reader, since_ms, lent_by = self._lent.get(name, ("", 0, -1))
        is_lent = lent_by == life and self._clock.now_ms() - since_ms < LENT_MS
        return reader if is_lent and self._can_tell_time else None

    def _check_unread(self, name: str, channel: str) -> None:
        if not name.endswith(ANNOUNCE_SUFFIX):
            if name in self._acknowledged:
                self._judge.fail("what was consumed is handed to nobody", f"{name} to {channel}")
            return
        run_id = RunId(name.removesuffix(ANNOUNCE_SUFFIX))
        run = self._judge.view.get(run_id)
        if run is None or run.outcome is None or run.announcement_consumed_ms is not None:
            # Settled, or offered once more: committed a moment ago, maybe, and not published yet.
            run = self._judge.look_up(run_id)
        if run is None or run.outcome is None:
            self._judge.fail("nothing seen before its commit", f"{name} at {channel}")
        elif run.announcement_consumed_ms is not None:
            self._judge.fail("what was consumed is handed to nobody", f"{name} to {channel}")

    def _check_not_pushed(self, name: str, channel: str, life: int) -> None:
        courier, carried_by = self._carrying.get(name, ("", -1))
        if carried_by == life:
            self._judge.fail(
                "one channel at a time", f"{name}: {courier} carries it, and {channel}"
            )
        courier, era = self._carried.get(name, ("", -1))
        run_id = RunId(name.removesuffix(ANNOUNCE_SUFFIX))
        if era == self._judge.era and not self._judge.was_reopened(run_id):
            self._judge.fail(
                "one channel at a time", f"{name}: {courier} delivered it, and {channel}"
            )
