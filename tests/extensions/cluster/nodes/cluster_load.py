"""Callers of a cluster, their workers, and the judge of what both saw.

A worker appends to one file of its run when it begins, often while it lives, and when it ends, each
with its attempt, its pid and the machine's uptime. So two workers of one run that were alive at the
same time are seen, also where one of them was killed.
"""

import random
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from tests.extensions.cluster.nodes.cluster_rig import ClusterRig, patiently

from subagents.client.client import Client
from subagents.domain.run.events import AnnouncementConsumed, SlotGranted

WAIT_S: Final = 4
PATIENCE_S: Final = 120.0

WORKER: Final = """
spans="{spans}/${{SUBAGENTS_ATTEMPT%#*}}"
say() {{ read up rest < /proc/uptime; echo "$1 $SUBAGENTS_ATTEMPT $$ $up" >> "$spans"; }}
say start
i=0; while [ $i -lt {beats} ]; do sleep {beat}; say alive; i=$((i+1)); done
say end; echo "done by $SUBAGENTS_ATTEMPT"
"""


def work(rig: ClusterRig, seconds: float) -> str:
    """The task of a worker that takes so long."""
    beats = max(round(seconds / rig.beat_s), 1)
    return WORKER.format(spans=rig.spans, beats=beats, beat=rig.beat_s)


@dataclass(slots=True)
class Accepted:
    """One run that somebody was told is stored."""

    run_id: str
    session: str
    settled_at: float | None = None
    """By this process's clock, when its result was there."""
    result: str | None = None
    outcome: str | None = None


class Blow(NamedTuple):
    """Something that was done to a node."""

    at: float
    what: str
    victim: str
    open_runs: frozenset[str]
    """What it decided about then."""


class Caller:
    """One session: spawns, reads its results, takes each over; at random nodes."""

    def __init__(self, load: "ClusterLoad", number: int, chance: random.Random) -> None:
        self.session = f"agent:main:s{number}"
        self._load, self._chance = load, chance
        self._number = number
        self.accepted: dict[str, Accepted] = {}
        self.handed: Counter[str] = Counter()
        """How often an acknowledgement of its result was confirmed."""

    def call(self, ask: Callable[[Client], dict[str, Any]]) -> dict[str, Any]:
        """At a node drawn anew for each try."""

        def once() -> dict[str, Any]:
            reader = f"{self.session}/reader"
            with self._load.rig.client(self._chance, session=self.session, reader=reader) as client:
                return ask(client)

        return patiently(once, within_s=PATIENCE_S)

    def spawn(self, index: int, seconds: float) -> None:
        body = {
            "spec": {
                "task": work(self._load.rig, seconds),
                "agentId": "sh",
                "label": f"{self._number}-{index}",
                **(
                    {}
                    if self._load.place_of is None
                    else {"place": self._load.place_of(self.session)}
                ),
                "retryCount": self._load.retries,
                "retryDelay": 100,
                "idempotencyKey": f"{self._load.seed}/{self._number}-{index}",
            },
            "cwd": str(self._load.rig.root),
        }
        receipt = self.call(lambda client: client.post("/v1/runs", body))
        run_id = str(receipt["runId"])
        self.accepted[run_id] = Accepted(run_id, self.session)
        self._load.note_accepted(run_id)

    def run(self, lengths: Sequence[float], pause_s: float) -> None:
        """All of its runs, one spawned every ``pause_s`` seconds, until each result is taken."""
        spawned = 0
        begin = time.monotonic()
        left: set[str] = set()
        while spawned < len(lengths) or left:
            if self._load.is_enough:
                lengths = lengths[:spawned]
            if spawned < len(lengths) and time.monotonic() >= begin + spawned * pause_s:
                known = set(self.accepted)
                self.spawn(spawned, lengths[spawned])
                left |= set(self.accepted) - known
                spawned += 1
                continue
            if not left:
                threading.Event().wait(max(begin + spawned * pause_s - time.monotonic(), 0))
                continue
            until_next = begin + spawned * pause_s - time.monotonic()
            is_spawning = spawned < len(lengths)
            left -= self._read(left, min(max(until_next, 0.1), WAIT_S) if is_spawning else WAIT_S)

    def _read(self, wanted: set[str], wait_s: float) -> set[str]:
        body = {"runIds": sorted(wanted), "until": "any", "timeoutSeconds": wait_s}
        found = self.call(lambda client: client.post("/v1/wait", body, timeout_s=wait_s))
        ended = set()
        for item in found["completed"]:
            run = self.accepted[str(item["runId"])]
            if run.settled_at is None:
                run.settled_at = time.monotonic()
            run.result, run.outcome = item.get("result"), item["outcome"]["status"]
            ended.add(run.run_id)
        if found["messages"]:
            taken = {"messageIds": found["messages"]}
            self.call(lambda client: client.post("/v1/inbox/ack", taken))
            for message_id in found["messages"]:
                self.handed[str(message_id)] += 1
        return ended


class ClusterLoad:
    """Sessions with runs, each a thread, beside whoever does something to the nodes.

    Args:
        rig: The nodes.
        sessions: How many callers.
        runs: Of each.
        seconds: A worker works between so many.
        pause_s: Between two spawns of one caller.
        seed: Of everything that is drawn.
        place_of: What the runs of a session ask for; None = nothing.
        retries: Of each run.
    """

    def __init__(
        self,
        rig: ClusterRig,
        *,
        sessions: int,
        runs: int,
        seconds: tuple[float, float],
        pause_s: float = 0.0,
        seed: str = "",
        place_of: Callable[[str], str] | None = None,
        retries: int = 20,
    ) -> None:
        self.rig, self.place_of, self.retries = rig, place_of, retries
        self.seed, self._pause_s = seed, pause_s
        self._runs, self._seconds = runs, seconds
        self.callers = [
            Caller(self, number, random.Random(f"{seed}:{number}"))  # noqa: S311 - no secret
            for number in range(sessions)
        ]
        self._pool = ThreadPoolExecutor(sessions)
        self._working: list[Future[None]] = []
        self._accepted = threading.Semaphore(0)
        self.blows: list[Blow] = []
        self.is_enough = False
        """Nobody spawns any more; what is under way ends."""

    def note_accepted(self, _run_id: str) -> None:
        self._accepted.release()

    def begin(self) -> None:
        for caller in self.callers:
            chance = random.Random(f"{self.seed}:{caller.session}:lengths")  # noqa: S311
            lengths = [chance.uniform(*self._seconds) for _ in range(self._runs)]
            self._working.append(self._pool.submit(caller.run, lengths, self._pause_s))

    def until_accepted(self, number: int) -> None:
        """Return when so many more runs were accepted."""
        for _ in range(number):
            assert self._accepted.acquire(timeout=PATIENCE_S), "no run is accepted"

    @property
    def is_done(self) -> bool:
        return all(each.done() for each in self._working)

    def finish(self, within_s: float = 300.0) -> None:
        """Return when every caller has all its results."""
        due = time.monotonic() + within_s
        for each in self._working:
            each.result(timeout=max(due - time.monotonic(), 0.1))
        self._pool.shutdown()

    def note(self, what: str, victim: str) -> int:
        """Something is about to be done to a node; how many open runs it decides about."""
        open_runs = frozenset(self.rig.open_runs_of(victim)) & frozenset(self.accepted)
        self.blows.append(Blow(time.monotonic(), what, victim, open_runs))
        return len(open_runs)

    @property
    def accepted(self) -> dict[str, Accepted]:
        return {key: run for caller in self.callers for key, run in caller.accepted.items()}


class Span(NamedTuple):
    """When one worker of a run was seen alive, by the machine's uptime."""

    attempt: str
    pid: int
    begin: float
    end: float
    has_ended: bool


class Judgement(NamedTuple):
    """What came of a load."""

    runs: int
    attempts: int
    repeated: int
    """Attempts beyond the first of each run."""
    wrong: list[str]
    settled_after_s: list[float]
    """Of runs that were open when something was done to a node: from then to their results."""
    why: list[str]
    """How the first attempts of the repeated runs ended, as the journal has it."""


def spans_of(rig: ClusterRig, run_id: str) -> list[Span]:
    """The workers of a run, in the order in which they began."""
    seen: dict[tuple[str, int], list[tuple[str, float]]] = defaultdict(list)
    for line in (rig.spans / run_id).read_text().splitlines():
        match line.split():
            case [kind, attempt, pid, at]:
                seen[attempt, int(pid)].append((kind, float(at)))
            case _:
                pass  # the last line of a worker that was killed while it wrote
    found = [
        Span(attempt, pid, told[0][1], told[-1][1], told[-1][0] == "end")
        for (attempt, pid), told in seen.items()
    ]
    return sorted(found, key=lambda span: span.begin)


def judge(load: ClusterLoad) -> Judgement:
    """Look for what must never be: in the workers' files, in the answers, and in the journal."""
    rig, accepted = load.rig, load.accepted
    wrong: list[str] = []
    attempts, again = 0, []
    consumed, granted = _events(rig, AnnouncementConsumed), _events(rig, SlotGranted)
    for run_id, run in accepted.items():
        if run.settled_at is None or run.outcome != "ok":
            wrong.append(f"{run_id} came to {run.outcome}: {run.result}")
            continue
        spans = spans_of(rig, run_id)
        names = {span.attempt for span in spans}
        attempts += len(names)
        again += [run_id] if len(names) > 1 else []
        wrong += [
            f"two workers of {run_id} at once: {one} and {two}"
            for one, two in pairwise(spans)
            if two.begin < one.end
        ]
        doubled = [a for a, n in Counter(span.attempt for span in spans).items() if n > 1]
        wrong += [f"{attempt} was started twice" for attempt in doubled]
        ended = [span.attempt for span in spans if span.has_ended]
        if run.result not in {f"done by {attempt}" for attempt in ended}:
            wrong.append(f"{run_id}: the result {run.result!r} is of no worker that ended: {ended}")
        if consumed[run_id] != 1:
            wrong.append(f"{run_id} was consumed {consumed[run_id]} times")
        if granted[run_id] < len(names):
            wrong.append(f"{run_id}: more workers than attempts")
    stored = {run_id for (run_id,) in rig.asked("SELECT run_id FROM run")}
    wrong += [f"{run_id} was acknowledged, and is lost" for run_id in set(accepted) - stored]
    made = rig.asked("SELECT count(*) FROM idempotency WHERE key LIKE %s", f"{load.seed}/%")
    if made != [(len(accepted),)]:
        wrong.append(f"{made} keys were given to {len(accepted)} runs")
    wrong += _gaps(rig)
    return Judgement(
        runs=len(accepted),
        attempts=attempts,
        repeated=attempts - len(accepted),
        wrong=wrong,
        settled_after_s=settled(load),
        why=[text for run_id in again for text in _signals(rig, run_id)],
    )


def _events(rig: ClusterRig, kind: type) -> Counter[str]:
    found = rig.asked(
        "SELECT run_id, count(*) FROM journal WHERE type = %s GROUP BY run_id", kind.__name__
    )
    return Counter({str(run_id): int(number) for run_id, number in found})


def _signals(rig: ClusterRig, run_id: str) -> list[str]:
    found = rig.asked(
        "SELECT type, data FROM journal WHERE run_id = %s"
        " AND type IN ('SignalReceived', 'AttemptTakenOver', 'AttemptRefused') ORDER BY seq",
        run_id,
    )
    return [f"{run_id} {kind} {bytes(data)[:160]!r}" for kind, data in found]


def _gaps(rig: ClusterRig) -> list[str]:
    found = rig.asked(
        "SELECT run_id, count(*), max(seq) FROM journal GROUP BY run_id HAVING count(*) <> max(seq)"
    )
    return [f"the journal of {run_id} has {n} events up to {seq}" for run_id, n, seq in found]


def settled(load: ClusterLoad) -> list[float]:
    """Of each run that a node decided about when something was done to it: until its result."""
    accepted = load.accepted
    return [
        settled_at - blow.at
        for blow in load.blows
        for run_id in blow.open_runs
        if (settled_at := accepted[run_id].settled_at) is not None and settled_at > blow.at
    ]


def most_at_once(rig: ClusterRig, run_ids: Sequence[str]) -> int:
    """How many workers of these runs were alive at the same time at most."""
    steps = [
        step
        for run_id in run_ids
        for span in spans_of(rig, run_id)
        for step in ((span.begin, 1), (span.end, -1))
    ]
    now = most = 0
    for _, change in sorted(steps):
        now += change
        most = max(most, now)
    return most


def pause(seconds: float) -> None:
    """What is measured takes this long; nothing is waited for."""
    threading.Event().wait(seconds)


def shown(times_s: Sequence[float]) -> str:
    """Half and the longest of some times, for people."""
    if not times_s:
        return "nothing was timed"
    return f"p50 {statistics.median(times_s):.2f} s, max {max(times_s):.2f} s of {len(times_s)}"
