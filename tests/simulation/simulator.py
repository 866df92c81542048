"""``python -m tests.simulation.simulator``: the real engine under seeded crashes.

Every seed is one small world: a handful of runs with dependencies, retries, contracts, children
and readers, on the real engine and a real SQLite file, in virtual time, with faults and crashes
drawn from the seed. A broken invariant prints the seed; the same seed gives the same run again.
"""

import argparse
import atexit
import gc
import logging
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Final, TypeAlias

from tests.extensions.cluster.postgres.postgres_server import running
from tests.simulation.host import Host
from tests.simulation.invariants import Broken, Judge
from tests.simulation.known_seeds import known_seeds
from tests.simulation.low_memory import low_bounds
from tests.simulation.of_commit import commit, seeds_of_commit
from tests.simulation.outside_world import Injected, World
from tests.simulation.postgres_host import PostgresHost
from tests.simulation.scenario import (
    OPERATORS,
    Scenario,
    burst_of,
    faults_of,
    hardware_faults_of,
    retention_of,
    settings_of,
)
from tests.simulation.virtual_loop import Stuck, VirtualClock, VirtualLoop

from subagents.domain.run.run import OVER
from subagents.domain.run.values import replace as replace_in
from subagents.errors import NodeUnreachable, StoreUnavailable, lack_of
from subagents.store.sqlite.sqlite_store import SqliteStore

MakeHost: TypeAlias = Callable[..., Host]

STEPS_MAX: Final = 400_000
MEMORY_DISK: Final = Path("/dev/shm")
PROGRESS_S: Final = 5.0
BROKEN_MAX: Final = 20
"""So many broken seeds say enough."""
COLLECTIONS_MAX: Final = 9


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one seed came to."""

    seed: int
    broken: Broken | None
    digest: str
    crashes: int
    events: int
    runs: int
    virtual_s: float
    steps: int
    program: str = "simulator"
    """What simulated it; see ``_report``."""


INJECTED: Final = (Injected, StoreUnavailable, NodeUnreachable)
"""What goes wrong because the seed wants it."""


class _Listener(logging.Handler):
    """An error that nothing injected is a broken promise, even if the engine got over it."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(logging.ERROR)
        self._judge = judge

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, INJECTED) and lack_of(error) is None:
            self._judge.fail("no error inside", f"{record.getMessage()}: {error!r}")


def simulate(
    seed: int, *, is_traced: bool = False, is_sound: bool = False, make_host: MakeHost = Host
) -> Verdict:
    """Run one seed from an empty file to the end of everything.

    The same seed, code and ``PYTHONHASHSEED`` give the same ``digest``. With ``is_sound`` no disk,
    power or memory fails; all else is as without. ``make_host`` says where the store is.
    """
    with _collected():
        return _judged(seed, make_host, is_traced=is_traced, is_sound=is_sound)


def _judged(seed: int, make_host: MakeHost, *, is_traced: bool, is_sound: bool) -> Verdict:
    judge = Judge(_say if is_traced else _ignore)
    with _listening(judge), tempfile.TemporaryDirectory(dir=_directory()) as directory:
        return _simulate(seed, judge, Path(directory), make_host, is_sound=is_sound)


def _simulate(
    seed: int, judge: Judge, directory: Path, make_host: MakeHost, *, is_sound: bool
) -> Verdict:
    loop = VirtualLoop(random.Random(f"{seed}:order"))  # type: ignore[abstract]  # no sockets, no signals
    clock = VirtualClock(loop)
    world = World(seed, loop, clock, judge)
    judge.now_s = loop.time
    judge.clock_set_ms = lambda: clock.moved_ms
    rng = random.Random(f"{seed}:settings")
    settings, faults = settings_of(rng, burst=burst_of(seed)), faults_of(rng)
    if not is_sound:
        faults = replace(faults, **hardware_faults_of(random.Random(f"{seed}:hardware")))
    judge.note(f"seed {seed} {faults}")
    settings = replace_in(settings, retention=retention_of(seed))
    judge.may_cut = max(faults.writes_fail, faults.disk_full_s, faults.memory_fails) > 0
    judge.operators = OPERATORS
    judge.children_max = settings.defaults.max_children_per_agent
    host = make_host(
        seed=seed,
        loop=loop,
        clock=clock,
        world=world,
        judge=judge,
        faults=faults,
        settings=settings,
        template=_template(),
        directory=directory,
    )
    scenario = Scenario(seed, host, world, judge)
    loop.call_soon(_begin, loop, host, scenario)
    clock.before_sleep = host.check_memory
    try:
        with host.disk.installed(), low_bounds(is_small=faults.is_small):
            loop.run(is_over=lambda: scenario.is_over or judge.is_broken, steps_max=STEPS_MAX)
    except Stuck as stuck:
        judge.fail("everything comes to rest", _unfinished(judge, stuck))
    if host.life is not None:
        host.life.is_dead = True
        host.life.store.close()
    host.close()
    _look_at_complaints(loop, judge)
    loop.close()
    return Verdict(
        seed=seed,
        broken=judge.broken,
        digest=judge.digest,
        crashes=host.crashes,
        events=judge.events,
        runs=len(judge.view),
        virtual_s=loop.time(),
        steps=loop.steps,
    )


def _begin(loop: VirtualLoop, host: Host, scenario: Scenario) -> None:
    loop.create_task(host.live(), name="host")
    scenario.start()


def _ignore(_line: str) -> None:
    """Nobody wants the trace."""


def _unfinished(judge: Judge, stuck: Stuck) -> str:
    left = [f"{run.id} {run.phase}" for run in judge.view.values() if run.phase not in OVER]
    return f"{stuck}; open: {', '.join(left) or 'none'}; effects: {', '.join(judge.outstanding)}"


def _look_at_complaints(loop: VirtualLoop, judge: Judge) -> None:
    for complaint in loop.complaints:
        error = complaint.get("exception")
        if not isinstance(error, INJECTED):
            judge.fail("no error inside", f"{complaint.get('message')}: {error!r}")


@contextmanager
def _listening(judge: Judge) -> Iterator[None]:
    """The engine's log goes to the judge."""
    log = logging.getLogger("subagents")
    listener = _Listener(judge)
    propagates, log.propagate = log.propagate, False
    log.addHandler(listener)
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.propagate = propagates


@contextmanager
def _collected() -> Iterator[None]:
    """What a seed leaves behind is collected at its end: whoever calls may hold none of it.

    What was there before is not looked through: that would take longer than the seed.
    """
    gc.disable()
    gc.freeze()
    complains, sys.unraisablehook = sys.unraisablehook, _ignore_abandoned
    with warnings.catch_warnings():
        # A crash leaves coroutines behind that never ran.
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            yield
        finally:
            # What a collected coroutine cancels when it is closed is left for the next round.
            for _ in range(COLLECTIONS_MAX):
                if gc.collect() == 0:
                    break
            gc.unfreeze()
            gc.enable()
            sys.unraisablehook = complains


def _ignore_abandoned(_complaint: object) -> None:
    """A crash leaves coroutines behind that would await something when they are closed."""


def _directory() -> str | None:
    return str(MEMORY_DISK) if os.access(MEMORY_DISK, os.W_OK) else None


@cache
def _template() -> Path:
    """An empty, migrated database, made once per process."""
    directory = Path(tempfile.mkdtemp(dir=_directory()))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    store = SqliteStore(directory / "empty.db")
    store.open("template")
    store.close()
    return directory / "empty.db"


# -- the command line ---------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run many seeds, or one; 0 = nothing broke."""
    parser = _parser("simulator")
    parser.add_argument("--postgres", action="store_true", help="the store is there; is --sound")
    parser.add_argument("--sound", action="store_true", help="no disk, power or memory fails")
    options = parser.parse_args(arguments)
    if not options.postgres:
        return _simulated(options, partial(simulate, is_sound=options.sound))
    with running(is_durable=False) as server:
        make_host = partial(PostgresHost, server)
        return _simulated(options, partial(simulate, is_sound=True, make_host=make_host))


def _simulated(options: argparse.Namespace, simulated: Callable[..., Verdict]) -> int:
    if options.seed is not None:
        return _one(options.seed, simulated, is_traced=options.trace)
    return _many(_seeds_of(options, "simulator"), options.workers, simulated)


def _seeds_of(options: argparse.Namespace, program: str) -> list[int]:
    """Every time the same, and with ``--of-commit`` some that nobody has tried before."""
    seeds = [*range(options.start, options.start + options.seeds)]
    if options.known:
        seeds += sorted(set(known_seeds(program).values()).difference(seeds))
    new = seeds_of_commit(options.of_commit)
    if new:
        again = f"--start {new.start} --seeds {len(new)}"
        _say(f"{len(new)} seeds of commit {commit()[:12]}: {again}")
    return [*seeds, *new]


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m tests.simulation.{program}")
    parser.add_argument("--seeds", type=int, default=200, help="how many (200)")
    parser.add_argument("--start", type=int, default=0, help="the first (0)")
    parser.add_argument("--known", action="store_true", help="and those known to catch a mutation")
    parser.add_argument(
        "--of-commit",
        type=int,
        default=0,
        metavar="N",
        help="and N that are others with every commit",
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seed", type=int, help="replay this one only")
    parser.add_argument("--trace", action="store_true", help="with --seed: print every event")
    return parser


def _one(seed: int, simulated: Callable[..., Verdict], *, is_traced: bool) -> int:
    verdict = simulated(seed, is_traced=is_traced)
    _say(f"seed {seed}: {verdict.runs} runs, {verdict.events} events, {verdict.crashes} crashes")
    _say(f"digest {verdict.digest}")
    if verdict.broken is None:
        return 0
    _report(verdict)
    return 1


def _many(seeds: Sequence[int], workers: int, simulated: Callable[[int], Verdict]) -> int:
    began, done, crashes, events = time.monotonic(), 0, 0, 0
    said = began
    broken: list[Verdict] = []
    for verdict in _verdicts(seeds, workers, simulated):
        done, crashes, events = done + 1, crashes + verdict.crashes, events + verdict.events
        if verdict.broken is not None:
            broken.append(verdict)
            _report(verdict)
        now = time.monotonic()
        if now - said > PROGRESS_S or done == len(seeds):
            said = now
            rate = done / (now - began)
            _say(f"{done}/{len(seeds)} seeds, {rate:.1f}/s, {crashes} crashes, {events} events")
        if len(broken) >= BROKEN_MAX:
            break
    _say(f"{len(broken)} of {done} seeds broke an invariant" if broken else "all invariants held")
    return 1 if broken else 0


def _verdicts(
    seeds: Sequence[int], workers: int, simulated: Callable[[int], Verdict]
) -> Iterator[Verdict]:
    if workers <= 1:
        yield from map(simulated, seeds)
        return
    _template()
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        yield from pool.imap_unordered(simulated, seeds, chunksize=4)


def _report(verdict: Verdict) -> None:
    _say(f"seed {verdict.seed} broke: {verdict.broken}")
    _say(f"  again: python -m tests.simulation.{verdict.program} --seed {verdict.seed} --trace")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _hash_alike() -> None:
    """Sets of strings have another order in every process; a replay must be identical."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        command = [sys.executable, "-m", "tests.simulation.simulator", *sys.argv[1:]]
        os.execv(sys.executable, command)  # noqa: S606 - itself again


if __name__ == "__main__":
    _hash_alike()
    sys.exit(main())
