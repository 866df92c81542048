"""The simulator itself: virtual time, real crashes, and replays that are identical."""

import asyncio
import gc
import os
import random
import re
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from tests.simulation import cluster_simulator, simulator
from tests.simulation.invariants import Broken
from tests.simulation.known_seeds import known_seeds
from tests.simulation.machine_disk import MachineDisk
from tests.simulation.of_commit import seeds_of_commit
from tests.simulation.outside_world import Faults
from tests.simulation.scenario import burst_of, faults_of
from tests.simulation.simulator import Verdict, main, simulate
from tests.simulation.virtual_loop import (
    Process,
    Stuck,
    VirtualClock,
    VirtualLoop,
    context_of,
)

from subagents.domain.lifecycle import conclusion as announcing
from subagents.domain.run.effects import Transition
from subagents.engine.engine import Engine
from subagents.store.sqlite.sqlite_store import SqliteStore

REPLAYED = 6


def virtual_loop(seed: int = 0) -> VirtualLoop:
    return VirtualLoop(random.Random(seed))  # type: ignore[abstract]


def replayed(seed: int, hash_seed: str, *flags: str) -> str:
    """The digest of one seed in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.simulator", "--seed", str(seed), *flags],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.requirement("simulator:invariants")
def test_every_invariant_holds_over_seeded_crashes() -> None:
    verdicts = [simulate(seed) for seed in range(12)]
    assert [str(v.broken) for v in verdicts if v.broken is not None] == []
    assert sum(v.crashes for v in verdicts) > 10
    assert sum(v.runs for v in verdicts) > 48


@pytest.mark.requirement("simulator:invariants")
@pytest.mark.parametrize(
    "seed",
    [
        1030,  # the power is lost behind a recorded end, before the transcript was synced
        2716,  # who waits while the disk is full cannot hear of an end before it can be stored
    ],
)
def test_what_failing_hardware_makes_impossible_is_not_asked_for(seed: int) -> None:
    assert simulate(seed).broken is None


@pytest.mark.requirement("simulator:burst", "field:launched-more-than-notified")
def test_fifty_children_that_end_in_the_same_instant_are_each_consumed_once() -> None:
    seeds = [seed for seed in range(400) if burst_of(seed) == 50][:1]
    verdicts = [simulate(seed) for seed in seeds]

    assert [str(v.broken) for v in verdicts if v.broken is not None] == []
    assert all(v.runs > 50 for v in verdicts)


@pytest.mark.requirement("simulator:replay")
@pytest.mark.parametrize("module", ["simulator", "cluster_simulator"])
def test_seeds_are_replayed_identically_in_another_process(module: str) -> None:
    """There sets of strings have another order: whatever goes through one is not replayed."""
    program = (
        f"from tests.simulation.{module} import simulate\n"
        f"print(*(simulate(seed).digest for seed in range({REPLAYED})))"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        ).stdout.split()
        for hash_seed in ("1", "2")
    )
    assert len(first) == REPLAYED
    assert first == second


@pytest.mark.requirement("simulator:replay")
def test_a_seed_is_replayed_identically_after_others() -> None:
    first = simulate(11).digest
    simulate(12)
    assert simulate(11).digest == first
    assert simulate(12).digest != first


@pytest.mark.requirement("simulator:judges-rightly")
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(3556, id="an event is committed behind the last look at the feed"),
        pytest.param(4003, id="a turn follows one whose lease ran out"),
        pytest.param(7811, id="a turn whose lease ran out is read on beside the next one"),
        pytest.param(9375, id="a turn whose lease ran out had a result, and the next one none"),
        pytest.param(5927, id="an answer is in the file that the daemon has yet to read again"),
    ],
)
def test_what_is_right_is_not_called_broken(seed: int) -> None:
    assert replayed(seed, "0", "--sound")


@pytest.mark.requirement("simulator:prints-seed")
def test_a_failure_prints_its_seed_its_invariant_and_how_to_replay_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(announcing, "clean_up", lambda run, _: Transition(run))
    status = main(["--seeds", "3", "--start", "100", "--workers", "1"])
    said = capsys.readouterr().out
    assert status == 1
    assert "seed 100 broke: " in said
    assert "no effect is lost" in said or "comes to rest" in said
    assert "python -m tests.simulation.simulator --seed 100 --trace" in said


@pytest.mark.requirement("simulator:prints-seed")
def test_many_seeds_report_progress_and_the_crashes_they_simulated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seeds", "4", "--workers", "2"]) == 0
    said = capsys.readouterr().out
    assert "4/4 seeds" in said
    assert "crashes" in said
    assert "all invariants held" in said


@pytest.mark.requirement("simulator:seeds-of-commit")
@pytest.mark.parametrize("program", [simulator, cluster_simulator])
def test_besides_the_seeds_of_every_time_those_of_the_commit_and_known_ones_are_tried(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[int] = []

    def simulated(seed: int, **_: object) -> Verdict:
        tried.append(seed)
        broken = Broken("this commit breaks nothing", "") if seed in new else None
        return Verdict(seed, broken, "", 0, 0, 0, 0.0, 0, name)

    name, new = program.__name__.rpartition(".")[2], seeds_of_commit(2)
    monkeypatch.setattr(program, "simulate", simulated)

    assert program.main(["--seeds", "4", "--known", "--of-commit", "2", "--workers", "1"]) == 1
    said = capsys.readouterr().out

    assert tried[:4] == [0, 1, 2, 3]
    assert tried[-2:] == list(new)
    assert set(tried) >= set(known_seeds(name).values())
    assert len(tried) == len(set(tried))
    assert f"--start {new.start} --seeds 2" in said
    assert f"python -m tests.simulation.{name} --seed {new.start} --trace" in said


@pytest.mark.requirement("simulator:prints-seed")
def test_a_trace_shows_every_event_of_the_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3", "--trace"]) == 0
    said = capsys.readouterr().out
    assert "Spawned(" in said
    assert re.search(r"life \d+ serves", said)


@pytest.mark.requirement("simulator:crash")
def test_a_crash_in_the_middle_leaves_no_half_spawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def faults(rng: random.Random) -> Faults:
        return replace(faults_of(rng), crash_in_commit=0.2, courier_dead=False)

    monkeypatch.setattr(simulator, "faults_of", faults)
    verdicts = [simulate(seed) for seed in range(5)]
    assert [str(v.broken) for v in verdicts if v.broken is not None] == []
    assert sum(v.crashes for v in verdicts) > 20


@pytest.mark.requirement("simulator:virtual-time")
def test_hours_of_virtual_time_pass_without_waiting() -> None:
    loop = virtual_loop()
    clock = VirtualClock(loop)
    woken: list[float] = []

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(loop.time())

    for seconds in (7200.0, 60.0, 3600.0):
        loop.call_soon(loop.create_task, sleep(seconds))
    loop.run(is_over=lambda: len(woken) == 3, steps_max=100)
    assert woken == [60.0, 3600.0, 7200.0]


@pytest.mark.requirement("simulator:scheduler")
def test_what_is_ready_runs_in_an_order_of_the_seed() -> None:
    def order(seed: int) -> list[int]:
        loop = virtual_loop(seed)
        ran: list[int] = []
        for number in range(20):
            loop.call_soon(ran.append, number)
        loop.run(is_over=lambda: len(ran) == 20, steps_max=100)
        return ran

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert sorted(order(2)) == list(range(20))


@pytest.mark.requirement("simulator:crash")
def test_nothing_of_a_dead_process_ever_runs_again() -> None:
    loop, process = virtual_loop(), Process()
    did: list[str] = []

    async def work() -> None:
        try:
            did.append("began")
            await asyncio.sleep(1)
            did.append("went on")
        finally:
            did.append("cleaned up")

    def kill() -> None:
        process.is_dead = True

    task = loop.create_task(work(), context=context_of(process))
    loop.call_later(0.5, kill)
    loop.call_later(5, did.append, "the world went on")
    loop.run(is_over=lambda: loop.time() >= 5 and len(did) > 1, steps_max=100)
    assert did == ["began", "the world went on"]
    assert not task.done()
    _drop(task)


def _drop(task: "asyncio.Task[None]") -> None:
    """End the abandoned coroutine by hand, so that the collector has nothing to say."""
    task.get_coro().close()


@pytest.mark.requirement("simulator:scheduler")
def test_a_world_in_which_nothing_can_happen_any_more_is_stuck() -> None:
    with pytest.raises(Stuck, match="nothing is left"):
        virtual_loop().run(is_over=lambda: False, steps_max=100)


@pytest.mark.requirement("simulator:power")
def test_a_loss_of_power_leaves_what_was_synced_and_any_part_of_the_rest(tmp_path: Path) -> None:
    left: set[tuple[str | None, str | None]] = set()
    for seed in range(40):
        root = tmp_path / str(seed) / "state"
        root.mkdir(parents=True)
        database = root.parent / "run.db"
        database.touch()
        disk = MachineDisk(root, happens=lambda _: False, rng=random.Random(seed))
        with disk.installed():
            for name in ("synced", "deleted", "new"):
                (root / name).write_text("abc")
                if name != "new":
                    sync(root / name)
                    sync(root)
            (root / "deleted").unlink()
            (root / "synced").write_text("abcdef")
            disk.lose_power(database, disk.database_left(database))
            assert (root / "synced").read_text().startswith("abc")
            left.add((text_of(root / "deleted"), text_of(root / "new")))
    assert {deleted for deleted, _ in left} == {None, "abc"}
    assert {new for _, new in left} >= {None, "", "a", "abc"}


def sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)


def text_of(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


@pytest.mark.requirement("simulator:power")
def test_a_store_that_does_not_sync_its_commits_loses_them_with_the_power(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = SqliteStore._connect

    def connect(self: SqliteStore) -> sqlite3.Connection:
        connection = original(self)
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    monkeypatch.setattr(SqliteStore, "_connect", connect)
    monkeypatch.setattr(
        simulator, "hardware_faults_of", lambda _: {"power_loss": 1.0, "power_loss_in_commit": 0.05}
    )
    broken = [str(found) for seed in range(10) if (found := simulate(seed).broken) is not None]
    assert any("nothing acknowledged is lost" in each for each in broken)


@pytest.mark.requirement("simulator:leaves-nothing")
def test_a_seed_leaves_nothing_behind_that_a_later_test_would_collect() -> None:
    def found() -> list[object]:
        return [each for each in gc.get_objects() if isinstance(each, (VirtualLoop, Engine))]

    before = found()
    simulate(3)
    assert [each for each in found() if not any(each is one for one in before)] == []
