"""What a record comes to, property by property: what callers, workers and readers wrote down.

Each judge is a pure function of a record; `docs/resume-means-resume.md` has the definitions.
"""

import enum
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

SHOWN_MAX: Final = 5
"""More findings of one kind tell nothing new."""


class Says(enum.StrEnum):
    """The verdict."""

    HOLDS = "holds"
    DOES_NOT = "does not"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table.

    Args:
        name: Which of the six.
        tried: As what.
        trials: How often.
        kills: Of daemons, and where it says so of workers.
        says: The verdict.
        evidence: What it rests on.
        wrong: What must not have happened and did.
        expected: What the page says.
    """

    name: str
    tried: str
    trials: int
    kills: int
    says: Says
    evidence: str
    wrong: tuple[str, ...] = ()
    expected: Says = Says.HOLDS

    @property
    def is_as_documented(self) -> bool:
        return self.says is self.expected and not self.wrong


class Finding(NamedTuple):
    """What a judge found; nothing wrong = the property held."""

    trials: int
    evidence: str
    wrong: tuple[str, ...]


def _shown(wrong: Iterable[str]) -> tuple[str, ...]:
    found = [*wrong]
    more = len(found) - SHOWN_MAX
    return (*found[:SHOWN_MAX], *([f"and {more} more"] if more > 0 else []))


# -- 1. prefix continuation ------------------------------------------------------------------------

Seen = Sequence[Sequence[Any]]
"""A journal or a transcript, as it was read once: each entry begins with its number."""


@dataclass(slots=True)
class Lines:
    """Runs that wrote numbered lines while daemons were killed.

    Args:
        looks: Of each journal and transcript, what was read, one time after the other.
        printed: The numbers that each worker printed, as its transcript has them.
        done: The numbers that it wrote into its directory.
    """

    looks: dict[str, list[Seen]] = field(default_factory=lambda: defaultdict(list))
    printed: dict[str, list[int]] = field(default_factory=dict)
    done: dict[str, list[int]] = field(default_factory=dict)


def judge_lines(record: Lines) -> Finding:
    """What was read stays as it was, and a worker goes on where it was."""
    wrong = []
    for name, looks in record.looks.items():
        for before, after in pairwise(looks):
            if (at := breaks_off(before, after)) is not None:
                wrong.append(f"{name}: entry {at + 1} of {len(before)} is another one after a kill")
    for name, numbers in [*record.printed.items(), *record.done.items()]:
        if [*numbers] != [*range(1, len(numbers) + 1)] or not numbers:
            wrong.append(f"{name}: not 1, 2, 3 … each once, but {_first_odd(numbers)}")
    for name, numbers in record.done.items():
        if len(record.printed.get(name, ())) != len(numbers):
            wrong.append(f"{name}: {len(numbers)} steps, {len(record.printed[name])} lines of them")
    looks_n = sum(map(len, record.looks.values()))
    steps = sum(map(len, record.done.values()))
    told = f"{looks_n} readings, each continues the one before; {steps} steps, each once"
    return Finding(looks_n, told, _shown(wrong))


def breaks_off(before: Seen, after: Seen) -> int | None:
    """The first place where `after` does not continue `before`; None = it does."""
    for at, entry in enumerate(before):
        if at >= len(after) or after[at] != entry:
            return at
    return None


def _first_odd(numbers: Sequence[int]) -> str:
    for at, number in enumerate(numbers):
        if number != at + 1:
            return f"{number} in place {at + 1}"
    return "nothing"


class Turn(NamedTuple):
    """A turn of a conversation, as its worker wrote it down: digests of what was said so far."""

    session: str
    before: str
    after: str
    told: str


@dataclass(slots=True)
class Talks:
    """Conversations that were gone on with.

    Args:
        turns: In the order in which they were.
        sent: Of each conversation, the messages that were acknowledged.
    """

    turns: list[Turn] = field(default_factory=list)
    sent: list[list[str]] = field(default_factory=list)


def judge_talks(record: Talks, *, in_order: bool = True) -> Finding:
    """Each turn begins from the whole conversation so far, and each message is in one.

    Args:
        record: The turns, and what was sent.
        in_order: Whether the messages of a conversation were sent one after the other.
    """
    wrong = []
    by_session: dict[str, list[Turn]] = defaultdict(list)
    for each in record.turns:
        by_session[each.session].append(each)
    for session, turns in by_session.items():
        if not turns[0].before.startswith("0:"):
            wrong.append(f"{session} began with {turns[0].before}")
        wrong += [
            f"{session}: a turn began from {after.before}, and {before.after} was said before it"
            for before, after in pairwise(turns)
            if after.before != before.after
        ]
    heard = [[each.told for each in turns] for turns in by_session.values()]
    for sent in record.sent:
        found = [
            [(at, word) for at, told in enumerate(each) for word in sent if _has(told, word)]
            for each in heard
        ]
        [words] = [each for each in found if each] or [[]]
        once = Counter(word for _, word in words)
        wrong += [f"{word} was told {once[word]} times" for word in sent if once[word] != 1]
        if in_order and [word for _, word in words] != sent:
            wrong.append(f"the messages of {sent[0]} came in another order")
    told = f"{len(record.turns)} turns in {len(by_session)} conversations"
    return Finding(len(record.turns), f"{told}, each begins with all that was said", _shown(wrong))


def _has(told: str, word: str) -> bool:
    return f"<{word}>" in told


# -- 2. effects exactly once -----------------------------------------------------------------------


@dataclass(slots=True)
class Effects:
    """What was asked for, and what became of it outside of the service.

    Args:
        acknowledged: Of each key, the run that its spawns were answered with, each answer.
        began: Of each key, the attempts that began, as they wrote down themselves.
    """

    acknowledged: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    began: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def judge_starts(record: Effects, *, attempts: int = 1) -> Finding:
    """A key is one run, and each of its attempts begins once.

    Args:
        record: Of spawns, by callers or by workers.
        attempts: How many each run should come to at most.
    """
    wrong = []
    for key in sorted({*record.acknowledged, *record.began}):
        runs = {*record.acknowledged.get(key, ())}
        began = record.began.get(key, [])
        of = {each.partition("#")[0] for each in began}
        if len(runs | of) > 1:
            wrong.append(f"{key} was spawned under one key and is {len(runs | of)} runs")
        if not began:
            wrong.append(f"{key} was acknowledged and never began")
        wrong += [f"{each} began {n} times" for each, n in Counter(began).items() if n > 1]
        if len({*began}) > attempts:
            wrong.append(f"{key} came to {len({*began})} attempts")
    starts = sum(map(len, record.began.values()))
    asked = sum(map(len, record.acknowledged.values()))
    told = f"{len(record.began)} keys acknowledged {asked} times are one run each; {starts} starts"
    return Finding(len(record.began), told, _shown(wrong))


@dataclass(slots=True)
class Handed:
    """Messages of workers and couriers' deliveries.

    Args:
        due: What is to be handed over: the text of a message, or a run.
        unsure: Of these, what its sender was not told to be taken.
        came: What arrived, with its id, each time.
    """

    due: list[str] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)
    came: list[tuple[str, str]] = field(default_factory=list)


def judge_handed(record: Handed, *, repeats_max: int) -> Finding:
    """Whatever is due arrives under one id; how often that id comes is bounded.

    Args:
        record: What was due, and what came.
        repeats_max: Under the same id, in all; each kill allows as many as were on their way.
    """
    ids: dict[str, list[str]] = defaultdict(list)
    for what, id_ in record.came:
        ids[what].append(id_)
    wrong = [f"{each} never came" for each in record.due if each not in {*ids, *record.unsure}]
    wrong += [f"{what} came under {len({*by})} ids" for what, by in ids.items() if len({*by}) > 1]
    wrong += [f"{what} came and nobody sent it" for what in ids if what not in record.due]
    again = len(record.came) - len(ids)
    if again > repeats_max:
        wrong.append(f"{again} came again under the same id, more than {repeats_max}")
    told = f"{len(ids)} came, each under one id; {again} of them again under it"
    if record.unsure:
        told += f"; {len(record.unsure)} whose sender was not answered came once or not at all"
    return Finding(len(record.due), told, _shown(wrong))


def judge_outside(done: Mapping[str, int]) -> Finding:
    """How often workers that were killed, and tried again as they asked, did their own work."""
    twice = sum(n > 1 for n in done.values())
    wrong = (f"{twice} of {len(done)} did their work again",) if twice else ()
    return Finding(len(done), f"done {sum(done.values())} times by {len(done)} runs", wrong)


# -- 3. fork determinism ---------------------------------------------------------------------------


@dataclass(slots=True)
class Fork:
    """Runs that ended, and the runs that were started from them.

    Args:
        written: Of each that ended, its journal and its transcript, before and after.
        known: Of each, how it ended and with what, before and after.
        beginnings: What each of those from one end began with, by its id: parameters, and what its
            worker saw.
    """

    written: list[tuple[Seen, Seen]] = field(default_factory=list)
    known: list[tuple[object, object]] = field(default_factory=list)
    beginnings: dict[str, object] = field(default_factory=dict)


def _is_link(entry: Sequence[Any]) -> bool:
    """What may be added to a run that ended: which run goes on with its session."""
    return entry[1] == "Continued" or str(entry[2]).endswith(" continues its session")


def judge_forks(forks: Sequence[Fork]) -> Finding:
    """All that come from one end begin alike, and leave it as it was."""
    wrong = []
    for at, each in enumerate(forks, 1):
        for before, after in each.written:
            if breaks_off(before, after) is not None:
                wrong.append(f"what an origin of fork {at} wrote is not what it was")
            wrong += [
                f"fork {at} added {entry[1]} to its origin"
                for entry in after[len(before) :]
                if not _is_link(entry)
            ]
        if any(before != after for before, after in each.known):
            wrong.append(f"how an origin of fork {at} ended is not what it was")
        if len(each.beginnings) < 3:  # the origin and two from it
            wrong.append(f"fork {at} has {len(each.beginnings)} runs")
        first, *others = [*each.beginnings.items()] or [("", None)]
        wrong += [
            f"fork {at}: {name} began otherwise than {first[0]}"
            for name, beginning in others
            if beginning != first[1]
        ]
    runs = sum(len(each.beginnings) for each in forks)
    told = f"{runs} runs of {len(forks)} forks: alike in each, and the ends as they were"
    return Finding(len(forks), told, _shown(wrong))


# -- 4. checkpoint validity ------------------------------------------------------------------------


@dataclass(slots=True)
class Checkpoint:
    """A copy of what was committed at some instant, and what became of it.

    Args:
        told: Journals as they were read before it was taken, by run.
        whole: Of the same and of later runs, as they were in the end where it was taken.
        resumed: As they were in the end where it was gone on with.
        ended: How and with what each run ended there: outcome and result.
        ended_before: The same of runs that had ended before it was taken.
        trouble: What was wrong with going on, if anything.
    """

    told: dict[str, Seen] = field(default_factory=dict)
    whole: dict[str, Seen] = field(default_factory=dict)
    resumed: dict[str, Seen] = field(default_factory=dict)
    ended: dict[str, object] = field(default_factory=dict)
    ended_before: dict[str, object] = field(default_factory=dict)
    trouble: str = ""


def judge_checkpoints(checkpoints: Sequence[Checkpoint]) -> Finding:
    """Nothing that was told is missing, all of it is a prefix, and it can be gone on with."""
    wrong, runs = [], 0
    for at, each in enumerate(checkpoints, 1):
        runs += len(each.resumed)
        if each.trouble:
            wrong.append(f"checkpoint {at}: {each.trouble}")
        for run, told in each.told.items():
            kept = each.resumed.get(run)
            if kept is None:
                wrong.append(f"checkpoint {at}: {run} was acknowledged before it and is not in it")
            for where, journal in (("it", kept or told), ("the original", each.whole.get(run, ()))):
                if (broken := breaks_off(told, journal)) is not None:
                    wrong.append(f"checkpoint {at}: event {broken + 1} of {run} changed in {where}")
        for run, kept in each.resumed.items():
            if not _begins_alike(kept, each.whole.get(run, ())):
                wrong.append(f"checkpoint {at}: {run} never was so where it was taken")
            if not each.ended.get(run):
                wrong.append(f"checkpoint {at}: {run} never ended after it")
        wrong += [
            f"checkpoint {at}: {run} had ended as {ended}, and is {each.ended.get(run)}"
            for run, ended in each.ended_before.items()
            if each.ended.get(run) != ended
        ]
    told = f"{len(checkpoints)} gone on with: {runs} runs in them, none missing, all ended"
    return Finding(len(checkpoints), told, _shown(wrong))


def _begins_alike(one: Seen, other: Seen) -> bool:
    """Whether two journals of a run have their first event in common."""
    return bool(one) and bool(other) and one[0] == other[0]


# -- 5. consume once -------------------------------------------------------------------------------


class Offer(NamedTuple):
    """A message in the hands of a reader.

    Args:
        reader: Which.
        message: Its id.
        run: Whose end it tells.
        asked_s: When the call began whose answer had it.
        at_s: When that answer came.
    """

    reader: str
    message: str
    run: str
    asked_s: float
    at_s: float


class Ack(NamedTuple):
    """An acknowledgement that was answered.

    Args:
        reader: Who gave it.
        message: Of which message.
        consumed: 1 = it was unread until now, 0 = somebody had it.
        is_repeated: An earlier try of the same was not answered.
        at_s: When it was answered.
    """

    reader: str
    message: str
    consumed: int
    is_repeated: bool
    at_s: float


@dataclass(slots=True)
class Readings:
    """What competing readers of one session did.

    Args:
        runs: Whose end was to be told.
        offers: What they were handed.
        acks: What they acknowledged.
        kills_s: When a daemon was killed.
        unread: Messages that nobody had taken in the end.
    """

    runs: list[str] = field(default_factory=list)
    offers: list[Offer] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    kills_s: list[float] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


LEASE_S: Final = 60.0
"""A reader that says nothing keeps a message for so long."""
MARGIN_S: Final = 5.0
"""Whoever was handed something notes it a moment later: its daemon may be dead by then."""


def judge_readings(record: Readings) -> Finding:
    """Each end is one message, which one reader consumes, and nobody sees afterwards."""
    wrong = [f"{each} was never read" for each in record.unread]
    ids: dict[str, set[str]] = defaultdict(set)
    offers: dict[str, list[Offer]] = defaultdict(list)
    for each in record.offers:
        ids[each.run].add(each.message)
        offers[each.message].append(each)
    wrong += [f"the end of {run} was never handed over" for run in record.runs if run not in ids]
    wrong += [f"the end of {run} is {len(by)} messages" for run, by in ids.items() if len(by) > 1]
    acks: dict[str, list[Ack]] = defaultdict(list)
    for ack in record.acks:
        acks[ack.message].append(ack)
    again = 0
    for message, seen in offers.items():
        taken = [each for each in acks[message] if each.consumed]
        if len(taken) > 1:
            wrong.append(f"{message} was consumed by {' and '.join(each.reader for each in taken)}")
        if not taken and not any(each.is_repeated for each in acks[message]):
            wrong.append(f"{message} was acknowledged and consumed by nobody")
        for before, after in pairwise(sorted(seen, key=lambda each: each.at_s)):
            again += 1
            if any(each.at_s < after.asked_s for each in acks[message]):
                wrong.append(f"{message} came again after it was acknowledged")
            since_s = before.at_s - MARGIN_S
            is_free = after.at_s - before.at_s > LEASE_S or any(
                since_s <= each <= after.at_s for each in record.kills_s
            )
            if not is_free:
                wrong.append(f"{message} was with {before.reader} and {after.reader} at once")
    told = f"{len(ids)} ends, each consumed by one of {len({o.reader for o in record.offers})}"
    told += f" readers; {again} offered again, after a kill, under the same id"
    return Finding(len(record.runs), told, _shown(wrong))


# -- 6. recovery determinism -----------------------------------------------------------------------


@dataclass(slots=True)
class Recovery:
    """One journal that was recovered from in several places.

    Args:
        states: Of each place, the state of every run.
        outbox: Of each place, what was handed over or lies in an inbox.
    """

    states: dict[str, dict[str, object]] = field(default_factory=dict)
    outbox: dict[str, set[str]] = field(default_factory=dict)


def judge_recoveries(recoveries: Sequence[Recovery]) -> Finding:
    """The same journal comes to the same states, and to the same things to hand over."""
    wrong, runs = [], 0
    for at, each in enumerate(recoveries, 1):
        (first, states), *others = each.states.items()
        runs += len(states)
        if not others:
            wrong.append(f"recovery {at} was in one place only")
        for place, found in others:
            wrong += [
                f"recovery {at}: {run} is {states.get(run)} at {first}, {found.get(run)} at {place}"
                for run in sorted({*states, *found})
                if states.get(run) != found.get(run)
            ]
        for place, sent in each.outbox.items():
            odd = sent ^ each.outbox[first]
            wrong += [f"recovery {at}: {what} only at {first} or {place}" for what in sorted(odd)]
    told = f"{len(recoveries)} recovered, {runs} runs: the same states and messages everywhere"
    return Finding(len(recoveries), told, _shown(wrong))
