"""Which alerts were raised, and what became of each: from the journal and the inbox alone.

An alert is an event of its run; whether it reached anybody is seen by the message that was sent
with it. Nothing else is kept, so that nothing could say something else.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from subagents.domain.alerts.allowance import DIGEST
from subagents.domain.rules.current_alerts import Concern
from subagents.domain.run.alert import AlertKind
from subagents.domain.run.events import Alerted
from subagents.domain.run.run import MessageKind, Run
from subagents.domain.run.values import RunId
from subagents.engine.kernel.kernel import Kernel
from subagents.ports import FeedEntry, InboxRow

LOOKED_AT_MAX: Final = 5_000
"""Alerts that one page visits at most; what fits and lies further back is on the next one."""
PAGE: Final = 500


class Fate(StrEnum):
    """What became of an alert."""

    SENT = "sent"
    """It is a message to whoever asked for the run."""
    HELD = "held"
    """The hour's allowance was used up; it is counted in a digest."""
    OFF = "off"
    """Alerts of its kind are switched off for its agent."""
    ESCALATED = "escalated"
    """A blocker was sent in its place."""
    LATE = "late"
    """Its run had ended: it is on record, and the announcement says the rest."""


class RaisedAlert(NamedTuple):
    """An alert, and what became of it."""

    entry: FeedEntry
    run: Run
    """The run that it is about, as it is now."""
    fate: Fate
    told: InboxRow | None
    """The message that it was sent with or in; None = there is none, or none yet."""
    stands: bool
    """Its cause is still there: no other alert of its kind came since, and nothing ended it."""


class AlertPage(NamedTuple):
    """Alerts, newest first."""

    alerts: tuple[RaisedAlert, ...]
    before: int | None
    """Where the next page goes on; None = there is none."""


class AlertHistory:
    """See the module.

    Args:
        kernel: Has the store.
        these: Those of some runs that can be read, by their ids.
        concerns: What is wrong with a run now.
    """

    def __init__(
        self,
        kernel: Kernel,
        these: Callable[[Sequence[RunId]], Awaitable[Mapping[RunId, Run]]],
        concerns: Callable[[Run], Iterable[Concern]],
    ) -> None:
        self._store, self._off_loop = kernel.store, kernel.off_loop
        self._these, self._concerns = these, concerns

    async def page(
        self,
        *,
        before: int,
        limit: int,
        run_id: RunId | None = None,
        kinds: Collection[AlertKind] | None = None,
        may_see: Callable[[Run], bool],
    ) -> AlertPage:
        """The newest alerts below a number.

        Args:
            before: Number of an event.
            limit: At most so many; fewer, and a further page, where few of those visited fit.
            run_id: Only those of this run.
            kinds: Only these; None = all.
            may_see: Whose alerts are shown.
        """
        found: list[tuple[FeedEntry, Run]] = []
        for _ in range(LOOKED_AT_MAX // PAGE):
            entries = await self._below(before, PAGE, run_id)
            runs = await self._these([each.entry.run_id for each in entries])
            for each in entries:
                before = each.number
                run = runs.get(each.entry.run_id)
                is_asked = kinds is None or _alerted(each).alert.kind in kinds
                if run is None or not may_see(run) or not is_asked:
                    continue
                found.append((each, run))
                if len(found) == limit:
                    break
            if len(found) == limit or len(entries) < PAGE:
                break
        is_more = bool(await self._below(before, 1, run_id))
        return AlertPage(await self._judged(found), before if is_more else None)

    async def _below(self, before: int, limit: int, run_id: RunId | None) -> Sequence[FeedEntry]:
        return await self._off_loop(
            lambda: self._store.alerted(before=before, limit=limit, of=run_id)
        )

    async def _judged(self, found: Sequence[tuple[FeedEntry, Run]]) -> tuple[RaisedAlert, ...]:
        ids = list({run.id for _, run in found})
        news = await self._off_loop(lambda: self._store.news_of(ids))
        newest: set[tuple[RunId, AlertKind]] = set()
        raised = []
        for entry, run in found:
            kind = _alerted(entry).alert.kind
            mine = [row for row in news if row.message.run_id == run.id]
            fate, told = fate_of(_alerted(entry), run, mine)
            is_newest = (run.id, kind) not in newest
            newest.add((run.id, kind))
            stands = is_newest and any(each.kind is kind for each in self._concerns(run))
            raised.append(RaisedAlert(entry, run, fate, told, stands))
        return tuple(raised)


def fate_of(event: Alerted, run: Run, news: Iterable[InboxRow]) -> tuple[Fate, InboxRow | None]:
    """What became of an alert, and the message that told of it.

    Args:
        event: Of the journal.
        run: Whose it is, now.
        news: The alerts and blockers that the run sent, oldest first.
    """
    kind, at_ms = event.alert.kind, event.at_ms
    for row in news:
        if row.message.created_at_ms != at_ms:
            continue
        if row.message.id.endswith(f":{kind}"):
            return Fate.SENT, row
        if row.message.kind is MessageKind.BLOCKER and kind is AlertKind.STUCK:
            return Fate.ESCALATED, row
    if run.ended_at_ms is not None and at_ms >= run.ended_at_ms:
        return Fate.LATE, None
    if kind in run.resolved.alerts.off:
        return Fate.OFF, None
    digests = (row for row in news if row.message.id.endswith(f":{DIGEST}"))
    return Fate.HELD, next((row for row in digests if row.message.created_at_ms > at_ms), None)


def _alerted(entry: FeedEntry) -> Alerted:
    event = entry.entry.event
    assert isinstance(event, Alerted)  # noqa: S101  the store was asked for no others
    return event
