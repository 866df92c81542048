"""Runs, messages and schedules for trying a store: small, and each unlike the others."""

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.events import CleanedUp, Event, Spawned
from subagents.domain.run.outcome import OK, Outcome
from subagents.domain.run.run import Conclusion, Message, MessageKind, Phase, Run
from subagents.domain.run.spec import Mode, Resolved, RunSpec
from subagents.domain.run.values import (
    MessageId,
    RunId,
    SessionKey,
    announcement_id,
    replace,
)
from subagents.domain.schedules.schedule import Schedule, ScheduleId
from subagents.extensions.testing.conformance import (
    StorePlace,
)
from subagents.ports import Batch, JournalEntry, Store

NOW_MS = 1_700_000_000_000
ME = SessionKey("agent:main:main")


def a_run(number: int, *, requester: SessionKey = ME, **changes: object) -> Run:
    """A queued run; its id and creation time grow with its number."""
    event = Spawned(
        at_ms=NOW_MS + number,
        run_id=RunId(f"r-{number:010}"),
        spec=RunSpec(task=f"task {number} ☃"),
        resolved=Resolved(
            agent_id="worker",
            runtime="scripted",
            mode=Mode.RUN,
            label=f"label{number}",
            cwd="/tmp",  # noqa: S108 - a value, no file is made
            lane="default",
            lane_slots=1,
        ),
        requester=requester,
        depth=1,
        session_key=SessionKey(f"agent:worker:subagent:{number}"),
    )
    return replace(reduce(None, event).run, **changes)


def over(run: Run, *, ended_ms: int = NOW_MS, result: str | None = None) -> Run:
    end = Conclusion(outcome=OK, ended_at_ms=ended_ms, result=result)
    return replace(run, phase=Phase.COMPLETED, conclusion=end)


def with_end(run: Run, outcome: Outcome) -> Run:
    """The run as one that is over, and ended so."""
    end = Conclusion(outcome=outcome, ended_at_ms=NOW_MS)
    return replace(run, phase=Phase.COMPLETED, conclusion=end)


def archived(run: Run, at_ms: int) -> Run:
    return replace(run, times=replace(run.times, archived_at_ms=at_ms))


def below(run: Run, parent: Run) -> Run:
    """The run as one that ``parent`` asked for."""
    return replace(run, lineage=replace(run.lineage, requester_run=parent.id))


def entry(
    run: Run, *, seq: int = 1, key: str | None = None, event: Event | None = None
) -> JournalEntry:
    happened = event or CleanedUp(at_ms=NOW_MS + seq)
    return JournalEntry(run_id=run.id, seq=seq, at_ms=happened.at_ms, event=happened, key=key)


def a_schedule(name: str, created_at_ms: int) -> Schedule:
    """One that nothing was decided about."""
    return Schedule(
        id=ScheduleId(name),
        name=name,
        when="@daily",
        zone="UTC",
        specs=(RunSpec(task="count the files", tags=("nightly",)),),
        cwd="/",
        requester=ME,
        created_at_ms=created_at_ms,
        decided_to_ms=created_at_ms,
    )


def spawned(*runs: Run) -> Batch:
    """A batch that creates these runs, each with its first journal entry."""
    return Batch(
        runs={run.id: run for run in runs},
        created={run.id for run in runs},
        journal=[entry(run) for run in runs],
    )


def message(run: Run, **changes: object) -> Message:
    first = Message(
        id=announcement_id(run.id),
        session_key=run.requester,
        run_id=run.id,
        kind=MessageKind.ANNOUNCEMENT,
        created_at_ms=NOW_MS,
        text=f"{run.id} ended",
    )
    return replace(first, **changes)


def alert(run: Run) -> Message:
    return message(run, id=MessageId(f"{run.id}:a1:stuck"), kind=MessageKind.ALERT)


def _blocker(run: Run) -> Message:
    return message(run, id=MessageId(f"{run.id}:escalation"), kind=MessageKind.BLOCKER)


def opened(place: StorePlace, owner: str = "one") -> Store:
    store = place.store()
    store.open(owner)
    return store
