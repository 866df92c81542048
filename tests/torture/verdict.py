"""What a storm came to, from the diaries of the callers and the journal of the workers alone."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from tests.torture.diary import Diary, Sighting, diaries

SECOND_NS: Final = 1_000_000_000
MARGIN_NS: Final = 5 * SECOND_NS
"""Whoever was handed something notes it a moment later: its daemon may be dead by then."""
ORPHANED_NS: Final = 3 * SECOND_NS
"""Its program that takes the lock may outlive a killed worker for so long, and have its slot."""
LEASE_NS: Final = 70 * SECOND_NS
"""What a dead reader held is offered again after so long at the latest."""


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill -9, when it was sent."""

    at_ns: int
    kind: str
    """``daemon``, ``caller``, ``client``, ``worker``, ``shim`` or ``courier``."""
    victim: str
    """The door for callers and their children, the attempt for workers and shims."""


@dataclass(slots=True)
class Verdict:
    """Counts, and what must not have happened."""

    spawns: int
    """Acknowledged."""
    starts: int
    """Attempts that began."""
    handed: int
    """Results that were handed over at least once."""
    redelivered: int
    """Hand-overs of the same message again, each after a kill that left it unacknowledged."""
    wrong: list[str]


def judge(root: Path, kills: Sequence[Kill]) -> Verdict:
    """Judge the storm in ``root``.

    Args:
        root: With ``journal`` and ``diaries``.
        kills: All of them.
    """
    starts = _starts(root / "journal")
    books = diaries(root / "diaries")
    verdict = Verdict(0, len(starts), 0, 0, [])
    verdict.wrong += _wrong_starts(starts, [k for k in kills if k.kind in {"worker", "shim"}])
    started: dict[str, set[str]] = defaultdict(set)
    for each in starts:
        started[each.token].add(each.attempt.partition("#")[0])
    verdict.wrong += [
        f"{token} was spawned once and became {len(runs)} runs: {sorted(runs)}"
        for token, runs in started.items()
        if len(runs) > 1
    ]
    struck = {each.victim.partition("#")[0] for each in kills if each.kind in {"worker", "shim"}}
    for diary in books:
        _judge_session(verdict, diary, started, kills, struck)
    return verdict


class _Start(NamedTuple):
    """An attempt that began, as it wrote down itself."""

    token: str
    attempt: str
    slot: str
    at_ns: int


def _starts(journal: Path) -> list[_Start]:
    lines = journal.read_text(encoding="utf-8").split("\n")[:-1] if journal.exists() else []
    found = []
    for line in lines:
        token, attempt, slot, up_s = line.split(" ")
        found.append(_Start(token, attempt, slot, round(float(up_s) * SECOND_NS)))
    return found


def _wrong_starts(starts: Sequence[_Start], strikes: Sequence[Kill]) -> list[str]:
    attempts = Counter(each.attempt for each in starts)
    doubled = [f"{attempt} began {n} times" for attempt, n in attempts.items() if n > 1]
    over = [
        f"{each.attempt} worked without a free slot"
        for each in starts
        if each.slot == "over"
        and not any(0 <= each.at_ns - kill.at_ns + SECOND_NS <= ORPHANED_NS for kill in strikes)
    ]
    return doubled + over


def _judge_session(
    verdict: Verdict,
    diary: Diary,
    started: Mapping[str, set[str]],
    kills: Sequence[Kill],
    struck: set[str],
) -> None:
    by_token: dict[str, list[Sighting]] = defaultdict(list)
    for each in diary.sightings():
        by_token[each.token].append(each)
    wanted, acknowledged = diary.wanted(), diary.acknowledged()
    verdict.spawns += len(acknowledged)
    verdict.handed += len(by_token)
    expected = set(acknowledged) | {token for token in wanted if token in started}
    verdict.wrong += [
        f"{diary.door}: the result of {token} was never handed over"
        + ("" if token in started else ", and its worker never began")
        for token in sorted(expected - set(by_token))
    ]
    verdict.wrong += [
        f"{diary.door}: was given {token}, which is of another session"
        for token in sorted(set(by_token) - set(wanted))
    ]
    causes = [k for k in kills if k.kind in {"daemon", "courier"} or k.victim == diary.door]
    for token, seen in by_token.items():
        runs = started.get(token, set()) | {acknowledged.get(token, "")}
        verdict.wrong += _wrong_result(
            diary.door, token, wanted.get(token, ""), seen, runs & struck
        )
        for before, after in pairwise(seen):
            if 0 < before.acked_ns < after.began_ns:
                verdict.wrong.append(f"{diary.door}: {token} came again after it was acknowledged")
            elif any(
                before.began_ns - MARGIN_NS <= kill.at_ns <= _latest(before, after)
                for kill in causes
            ):
                verdict.redelivered += 1
            else:
                verdict.wrong.append(f"{diary.door}: {token} came twice, and nobody was killed")


def _latest(before: Sighting, after: Sighting) -> int:
    """A kill after this did not make ``before`` unacknowledged."""
    return min(after.began_ns, before.began_ns + LEASE_NS)


def _wrong_result(
    door: str, token: str, ending: str, seen: Sequence[Sighting], struck: set[str]
) -> list[str]:
    """A result that is not what its worker said; one that was struck may have failed."""
    is_good = ending != "exit"
    found = []
    for each in seen:
        if each.is_ok and not each.is_whole:
            found.append(f"{door}: {token} is said to be ok and its result is not what it printed")
        if each.is_ok != is_good and not struck:
            found.append(
                f"{door}: {token} ({ending}) ended {'well' if each.is_ok else 'badly'}, "
                "though nothing was done to its worker"
            )
    return found
