"""What the simulated workers say in passing, and whether all of it was recorded, once.

Every piece has a text of its own, so that a lost or doubled one has a name.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.invariants import ALL, Judge

from subagents.domain.run.events import Alerted, AttemptStarted, Event, LeaseExpired
from subagents.domain.run.run import Attempt, Phase, Run
from subagents.domain.run.spec import Cleanup
from subagents.domain.run.values import AttemptId, attempt_id
from subagents.domain.run.worker_output import (
    ApiError,
    ContextUse,
    LineType,
    OutputItem,
    ToolUse,
)
from subagents.domain.transcript.transcript_query import LogQuery
from subagents.engine.attempts.supervisor import DISCARD_AFTER
from subagents.ports import Store, TranscriptLog

PIECES_MAX: Final = 9
SPEAKS_S: Final = 60.0
"""So long a worker has something to say, however long it lives."""
MARK: Final = "~"
STRIDE: Final = DISCARD_AFTER // 3
"""Between the positions of two pieces: with some of them there is enough to let go."""
LINES_MAX: Final = 10_000

Spoken = tuple[float, OutputItem]
"""When, and what."""


def name_of(turn: int) -> str:
    """Under which a turn's position is kept."""
    return f"turn{turn}"


def plan_talk(
    seed: object, attempt_id: AttemptId, turn: int, *, begins_s: float, ends_s: float
) -> list[Spoken]:
    """What a worker says in one turn; the same seed gives the same."""
    rng = random.Random(f"{seed}:talk")
    span_s = min(ends_s - begins_s, SPEAKS_S)
    times = sorted(begins_s + span_s * rng.random() for _ in range(rng.randrange(PIECES_MAX)))
    fails = rng.random() < 0.3
    return [
        (at_s, _piece(rng, f"{MARK}{attempt_id}/{turn}/{number}", fails=fails))
        for number, at_s in enumerate(times)
    ]


def _piece(rng: random.Random, text: str, *, fails: bool) -> OutputItem:
    choice = rng.random()
    if choice < 0.4:
        failed = fails and rng.random() < 0.9
        tool = ToolUse(name="Bash", command="make test", exit_code=int(failed), is_error=failed)
        return OutputItem(type=LineType.TOOL, text=text, tool=tool)
    if choice < 0.5:
        return OutputItem(type=LineType.ERROR, text=text, api_error=ApiError(message="overloaded"))
    if choice < 0.6:
        context = ContextUse(tokens=rng.randrange(200_000), window=200_000)
        return OutputItem(type=LineType.SYSTEM, text=text, context=context)
    return OutputItem(type=LineType.TEXT, text=text)


@dataclass(slots=True)
class LetGo:
    """What of one attempt its runtime was told to let go, by turn."""

    cursor: dict[int, int] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    turns_over: int = 0

    def note(self, turn: int, *, cursor: int, positions: Mapping[str, int], ended: bool) -> None:
        self.cursor[turn] = max(self.cursor.get(turn, 0), cursor)
        self.positions[turn] = max(self.positions.get(turn, 0), positions.get(name_of(turn), 0))
        if ended:
            self.turns_over = max(self.turns_over, turn)

    def is_before(self, turn: int, *, cursor: int, positions: Mapping[str, int]) -> bool:
        """Whether a reader that begins there asks for what may be gone."""
        return (
            self.turns_over >= turn
            or cursor < self.cursor.get(turn, 0)
            or positions.get(name_of(turn), 0) < self.positions.get(turn, 0)
        )


def check_let_go(judge: Judge, run_id: object, number: int, *, turn: int) -> None:
    """All of a turn may go: its end must be durable."""
    run = next((each for each in judge.view.values() if each.id == run_id), None)
    attempt = run.attempts[number - 1] if run is not None and len(run.attempts) >= number else None
    if attempt is None or not (attempt.turn.number > turn or _has_ended(attempt)):
        judge.fail("nothing is let go that may be read again", f"{run_id}#{number}")


def _has_ended(attempt: Attempt) -> bool:
    evidence = attempt.evidence
    return evidence.exit is not None or evidence.lease_lost or attempt.outcome is not None


def check_transcripts(
    judge: Judge,
    store: Store,
    transcripts: TranscriptLog,
    said_by: Mapping[AttemptId, list[list[Spoken]]],
    *,
    torn: Collection[AttemptId],
    may_lose: bool,
) -> None:
    """At rest: each run's lines are whole, and no alert was raised twice.

    Args:
        judge: Has every run.
        store: The file.
        transcripts: The same directory, read anew.
        said_by: What each attempt's worker said, turn by turn.
        torn: Attempts behind whose recorded ends the power was lost before they were synced: some
            of what they said may be missing.
        may_lose: The same for all: files cannot always be written.
    """
    for run in judge.view.values():
        if run.id in judge.forgotten or run.id in judge.pruned:
            continue
        events = [entry.event for entry in store.journal(run.id, limit=ALL)]
        unseen = unseen_ends(events)
        _check_lines(judge, run, transcripts, said_by, unseen, torn=torn, may_lose=may_lose)
        keys = Counter(event.alert.key for event in events if isinstance(event, Alerted))
        for key, count in keys.items():
            if count > 1:
                judge.fail("an alert is raised once", f"{run.id} {key}: {count} times")


def _check_lines(
    judge: Judge,
    run: Run,
    transcripts: TranscriptLog,
    said_by: Mapping[AttemptId, list[list[Spoken]]],
    unseen: Collection[tuple[int, int]],
    *,
    torn: Collection[AttemptId],
    may_lose: bool,
) -> None:
    page = transcripts.read(run.id, LogQuery(offset=0, limit=LINES_MAX))
    if [line.seq for line in page.lines] != [*range(1, len(page.lines) + 1)]:
        judge.fail("transcripts have no gaps", f"{run.id}: {[line.seq for line in page.lines]}")
    found = [line.text for line in page.lines if line.text.startswith(MARK)]
    for text, count in Counter(found).items():
        if count > 1:
            judge.fail("a piece is recorded once", f"{run.id} {text}: {count} times")
    if run.spec.cleanup is Cleanup.DELETE and run.phase in {Phase.CLEANUP_PENDING, Phase.COMPLETED}:
        if found and run.phase is Phase.COMPLETED:
            judge.fail("a deleted session leaves no words", f"{run.id}: {found}")
        return
    for attempt in run.attempts:
        name = attempt_id(run.id, attempt.number)
        turns = said_by.get(name, [])
        # A turn that was stopped before anybody wrote down its start is not the run's.
        mine = [text for text in found if text.startswith(f"{MARK}{name}/")]
        may_miss = may_lose or name in torn
        wanted: list[str] = []
        for number, turn in enumerate(turns[: attempt.turn.number], start=1):
            texts = [said.text for _, said in turn]
            if (attempt.number, number) not in unseen:
                wanted += texts
                continue
            # Who still reads it reads beside the turn that follows, or no more.
            late = [text for text in mine if text in texts]
            mine = [text for text in mine if text not in texts]
            _compare(judge, name, late, texts, is_whole=False, may_miss=may_miss)
        is_whole = attempt.evidence.exit is not None
        _compare(judge, name, mine, wanted, is_whole=is_whole, may_miss=may_miss)


def _compare(
    judge: Judge,
    name: AttemptId,
    found: list[str],
    wanted: list[str],
    *,
    is_whole: bool,
    may_miss: bool,
) -> None:
    if may_miss:
        wanted = [text for text in wanted if text in found]
    if found != (wanted if is_whole else wanted[: len(found)]):
        judge.fail("no piece is lost", f"{name}: {found} of {wanted}")


def unseen_ends(events: Iterable[Event]) -> set[tuple[int, int]]:
    """The turns, each as ``(attempt, turn)``, of which nobody read the last words.

    A turn whose lease ran out is called over; when a further one follows, its output stays cut.
    """
    turns: dict[int, int] = {}
    unseen = set()
    for event in events:
        if isinstance(event, AttemptStarted):
            turns[event.attempt] = event.turn
        elif isinstance(event, LeaseExpired):
            unseen.add((event.attempt, turns.get(event.attempt, 1)))
    return unseen
