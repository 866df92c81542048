"""Tells a person through one channel what happened to runs; see ``journal_export``.

Only of runs that were spawned from outside: what a run's own children do is that run's business.
Nothing of it touches the inbox: a notification hands nothing over, and the message stays unread.

Why: docs/decisions/0051-notifications-follow-the-journal.md.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol

from subagents.domain.run.events import Event, ParentNotified, RequestAsked, SignalReceived, Spawned
from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.run import SETTLED, Phase, Run
from subagents.domain.run.signals import PermissionAsked
from subagents.domain.run.values import RunId, replace
from subagents.extensions.notifications.notification_settings import NotificationReason
from subagents.extensions.notifications.thread_posts import ENDS, asked_with
from subagents.followers.journal_export import (
    ENDED_MAX,
    JournalExport,
    ReceiverRefused,
    ReceiverUnavailable,
)
from subagents.ports import Batch, ExportState, FeedEntry, RunFilter, Store, readable
from subagents.text import one_line

log = logging.getLogger(__name__)

AGE_MS_MAX: Final = 24 * 3600 * 1000
"""What is older is no news any more, and is left out."""
LINE_CHARS_MAX: Final = 300
STEPS_MAX: Final = 5_000
"""The most runs of a plan that are looked at: a thousand steps, and retries of them."""
ASKS: Final = frozenset({ParentNotified, RequestAsked, Spawned})
"""Events, with ``ENDS``, by which a run can begin to need somebody."""
LIVE: Final = tuple(phase for phase in Phase if phase not in SETTLED)
FAILED: Final = frozenset({Status.ERROR, Status.TIMEOUT, Status.LOST})


class Notification(NamedTuple):
    """What a person reads."""

    title: str
    body: str
    kind: Literal["info", "success", "warning", "failure"] = "info"


class Channel(Protocol):
    """Shows a notification to a person. Blocking."""

    @property
    def where(self) -> str:
        """Where to, for people; nothing secret."""
        ...

    def problem(self) -> str | None:
        """Why nothing can be sent, as far as that is known without sending; None = nothing."""
        ...

    def send(self, notification: Notification) -> None:
        """Return when it was taken.

        Raises:
            ReceiverUnavailable: Nothing can be sent now; try again later.
            ReceiverRefused: This one will never be taken.
        """
        ...


class Notifier(JournalExport):
    """One channel and how far it has come.

    Args:
        name: Of the channel in the configuration.
        channel: Where notifications go.
        reasons: What it wants to hear of.
        store: Where runs and their journals are read.
        file: Holds the cursor; without it, it hears of what happens from now on.
        now_ms: Wall clock.
    """

    def __init__(
        self,
        *,
        name: str,
        channel: Channel,
        reasons: Sequence[NotificationReason],
        store: Store,
        file: Path,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        super().__init__(
            what="notifications",
            endpoint=f"{name} ({channel.where})",
            store=store,
            file=file,
        )
        self.name = name
        self._channel = channel
        self._reasons = frozenset(reasons)
        self._now_ms = now_ms
        self._told: dict[str, int] = {}
        """What several events of one instant could tell, and the one with which it was told."""

    def test(self) -> ExportState:
        """Send one more now, from any thread; its state, and what came of it. Blocking."""
        problem = None
        try:
            self._channel.send(test_of(self.name))
        except (ReceiverRefused, ReceiverUnavailable) as error:
            problem = str(error)
        return replace(self._state, last_error=problem)

    def _concerns(self, batch: Batch) -> bool:
        return any(type(each.event) in ENDS or type(each.event) in ASKS for each in batch.journal)

    def _send_page(self, page: Sequence[FeedEntry]) -> None:
        ends = self._ends(page)
        last_ends = {_group(run): number for number, run in ends.items()}
        last_ends |= {run.requester: number for number, run in ends.items()}
        for each in page:
            is_news = each.entry.at_ms >= self._now_ms() - AGE_MS_MAX
            notifications = tuple(self._notifications(each, ends, last_ends)) if is_news else ()
            for notification in notifications:
                self._send(notification)
            self._number = each.number
            if each.number in ends:
                self._remember_end(ends[each.number].id)
            if notifications:
                # What was sent is not sent again because the next one could not be.
                self._save()

    def _send(self, notification: Notification) -> None:
        try:
            self._channel.send(notification)
        except ReceiverRefused as error:
            self._refused(f"{self._state.endpoint} refused a notification: {error}")
            return
        self._sent()

    def _ends(self, page: Sequence[FeedEntry]) -> dict[int, Run]:
        """The runs from outside whose outcome became known, each once, by the number of the event.

        A worker's last words and its exit can come at the same instant, and either could be its
        end: the last event of that instant stands for it.
        """
        found: dict[RunId, tuple[int, Run]] = {}
        for each in page:
            if type(each.entry.event) not in ENDS:
                continue
            run = self._outside(each)
            if (
                run is not None
                and run.ended_at_ms == each.entry.at_ms
                and run.id not in self._ends_told
            ):
                found.pop(run.id, None)
                found[run.id] = (each.number, run)
        return dict(found.values())

    def _outside(self, found: FeedEntry) -> Run | None:
        run = readable(self._store, found.entry.run_id)
        return run if run is not None and run.lineage.requester_run is None else None

    def _notifications(
        self, found: FeedEntry, ends: Mapping[int, Run], last_ends: Mapping[str, int]
    ) -> Iterator[Notification]:
        if NotificationReason.NEEDS_YOU in self._reasons and _may_ask(found.entry.event):
            yield from self._asked(found)
        run = ends.get(found.number)
        if run is None:
            return
        is_last = (
            NotificationReason.ALL_DONE in self._reasons
            and last_ends.get(run.requester) == found.number
            and self._store.count(RunFilter(requester=run.requester, phases=LIVE), most=1) == 0
        )
        failure = None
        if NotificationReason.FAILED in self._reasons and last_ends[_group(run)] == found.number:
            failure = self._failure(run, found.number)
        if failure is not None:
            rest = "\nIt was the last one; nothing else is at work." if is_last else ""
            yield failure._replace(body=f"{failure.body}{rest}")
        elif is_last:
            status = None if run.outcome is None else run.outcome.status
            ended = f"{run.resolved.label} ended last" + (f": {status}" if status else "")
            yield Notification(
                "All done",
                f"{ended}\nsubagents list --session {run.requester}",
                "success" if status is Status.OK else "failure" if _has_failed(run) else "info",
            )

    def _is_news(self, name: str, number: int) -> bool:
        """Whether no event but this one, which may come again, has told it."""
        told = self._told.setdefault(name, number)
        if len(self._told) > ENDED_MAX:
            del self._told[next(iter(self._told))]
        return told == number

    def _failure(self, run: Run, number: int) -> Notification | None:
        """What is said of a run that ended; of a plan once, when its last step has."""
        step = run.resolved.step
        if step is None:
            if not _has_failed(run):
                return None
            body = f"{_why(run)}\nsubagents why {run.id}".lstrip()
            return Notification(f"{run.resolved.label} failed", body, "failure")
        steps = RunFilter(steps_of=(step.plan,), archived=True, limit=STEPS_MAX)
        if self._store.count(replace(steps, phases=LIVE), most=1):
            return None
        newest: dict[int, Run] = {}
        for each in self._store.runs(steps):  # the newest first: of a retried step that counts
            if each.resolved.step is not None:
                newest.setdefault(each.resolved.step.position, each)
        failed = [newest[at] for at in sorted(newest) if _has_failed(newest[at])]
        # Those before it may be read after its end, too: the notifier was not there, or is slow.
        last_ms = max(each.ended_at_ms or 0 for each in newest.values())
        if not failed or run.ended_at_ms != last_ms:
            return None
        # With a step end those that waited for it, at the same instant: one of them tells.
        if not self._is_news(f"{step.plan} {last_ms}", number):
            return None
        name = "" if step.name is None else f"{step.name}: "
        kept = Reason.DEPENDENCY_FAILED  # it did not even start
        culprit = min(failed, key=lambda e: e.outcome is not None and e.outcome.reason is kept)
        return Notification(
            f"{name}{len(failed)} of {len(newest)} failed",
            f"{culprit.resolved.label}: {_why(culprit)}\nsubagents show plan:{step.plan}",
            "failure",
        )

    def _asked(self, found: FeedEntry) -> Iterator[Notification]:
        if (run := self._outside(found)) is None:
            return
        for request in asked_with(run, found.entry.event):
            if request.answer is None and self._is_news(request.id, found.number):
                text = one_line(request.question, LINE_CHARS_MAX)
                yield Notification(
                    f"{run.resolved.label} needs you",
                    f"{text}\nsubagents inbox --attention",
                    "warning",
                )


def test_of(name: str) -> Notification:
    """What is sent through a channel to try it."""
    return Notification("subagents", f"A test of the channel {name}: it works.")


def _group(run: Run) -> str:
    """What its end is told with: its plan, else itself."""
    return run.id if run.resolved.step is None else f"plan:{run.resolved.step.plan}"


def _has_failed(run: Run) -> bool:
    return run.outcome is not None and run.outcome.status in FAILED


def _why(run: Run) -> str:
    outcome = run.outcome
    return "" if outcome is None else one_line(outcome.plain_error or str(outcome.reason or ""))


def _may_ask(event: Event) -> bool:
    if isinstance(event, SignalReceived):  # most are the others
        return isinstance(event.signal, PermissionAsked)
    return type(event) in ASKS or type(event) in ENDS
