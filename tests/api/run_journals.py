"""Runs for tests of words and documents, made by the reducer and never by hand."""

from collections.abc import Iterable

from subagents.api.answers.explain import Step, fold, steps_of
from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run import events as e
from subagents.domain.run.linked_runs import Dependency
from subagents.domain.run.outcome import Outcome
from subagents.domain.run.run import RULES, Exit, Run
from subagents.domain.run.signals import Exited, ResultSeen, Signal
from subagents.domain.run.spec import Abilities, Mode, Resolved, RunSpec
from subagents.domain.run.values import RunId, SessionKey
from subagents.ports import JournalEntry

ID = RunId("r-0000000001")
MAIN = SessionKey("agent:main:main")
CHILD = SessionKey("agent:quick:subagent:1")


def spawned(
    spec: RunSpec | None = None, *, waits_for: Iterable[str] = (), timeout_ms: int = 0
) -> e.Spawned:
    return e.Spawned(
        at_ms=1000,
        run_id=ID,
        spec=spec or RunSpec(task="work"),
        resolved=Resolved(
            agent_id="quick",
            runtime="scripted",
            mode=Mode.RUN,
            label="L",
            cwd="/w",
            lane="default",
            lane_slots=4,
            timeout_ms=timeout_ms,
            abilities=Abilities(steer=True),
            options={"env": {"KEY": "planted-secret"}, "command": ["true"]},
        ),
        requester=MAIN,
        depth=1,
        session_key=CHILD,
        rules=RULES,
        dependencies=tuple(Dependency(run_id=RunId(f"r-{name}"), label=name) for name in waits_for),
    )


def slot(at_ms: int = 1000) -> e.SlotGranted:
    return e.SlotGranted(at_ms=at_ms, session_key=CHILD)


def started(attempt: int = 1, at_ms: int = 1000, pid: int | None = 7) -> e.AttemptStarted:
    return e.AttemptStarted(at_ms=at_ms, attempt=attempt, pid=pid)


def signal(value: Signal, attempt: int = 1, at_ms: int = 2000) -> e.SignalReceived:
    return e.SignalReceived(at_ms=at_ms, attempt=attempt, signal=value)


def result(text: str = "done") -> e.SignalReceived:
    return signal(ResultSeen(key="result", text=text))


def exited(code: int | None = 0, *, number: int | None = None) -> e.SignalReceived:
    return signal(Exited(key="exit", exit=Exit(code=code, signal=number), drained=True))


def journal(*events: e.Event) -> list[JournalEntry]:
    return [
        JournalEntry(run_id=ID, seq=number, at_ms=event.at_ms, event=event)
        for number, event in enumerate(events, 1)
    ]


def steps(entries: Iterable[JournalEntry]) -> list[Step]:
    """The lines of ``why`` for a journal from its first event on."""
    return [step for folded in fold(entries) for step in steps_of(folded)]


def run_after(*events: e.Event) -> Run:
    run: Run | None = None
    for event in events:
        run = reduce(run, event).run
    assert run is not None
    return run


def settled(name: str, outcome: Outcome, at_ms: int = 1500) -> e.DependencySettled:
    return e.DependencySettled(at_ms=at_ms, run_id=RunId(f"r-{name}"), outcome=outcome)
