"""The store on a disk that fails at any operation, and one that loses its power there."""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from tests.old_state import restore
from tests.store.sqlite import faulty_disk
from tests.store.sqlite.faulty_disk import FaultyDisk, Operation, after_power_loss

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.effects import CleanUp
from subagents.domain.run.events import Prioritized
from subagents.domain.run.run import Run
from subagents.domain.run.values import announcement_id
from subagents.errors import CorruptState, StoreUnavailable
from subagents.extensions.testing.stored_values import (
    ME,
    NOW_MS,
    a_run,
    archived,
    entry,
    message,
    over,
    spawned,
)
from subagents.ports import Batch, Lease, OutboxEntry, RememberedKey, RunFilter
from subagents.store.sqlite.sqlite_store import SqliteStore

FAULTS: Final = {
    "write refused": ("write", faulty_disk.IO_WRITE),
    "no room": ("write", faulty_disk.FULL),
    "sync refused": ("sync", faulty_disk.IO_FSYNC),
    "truncate refused": ("truncate", faulty_disk.IO_TRUNCATE),
    "lock refused": ("lock", faulty_disk.IO_LOCK),
}
STRIDE: Final = int(os.environ.get("DISK_FAULTS_STRIDE", "29"))
"""Of the operations of the workload every so manieth fails; 1 takes a quarter of an hour."""
STATE_MAX: Final = 10_000


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    try:
        found = faulty_disk.faulty_disk()
        with found as made:
            yield made
    except OSError as error:
        pytest.skip(f"no disk below SQLite can be put in here: {error}")


def batches(path: Path) -> Iterator[Batch | Callable[[SqliteStore], None]]:
    """Spawn, go on, end, deliver, prune and copy."""
    for number in range(4):
        run = a_run(number)
        start = spawned(run)
        start.outbox = [
            OutboxEntry(run_id=run.id, seq=1, index=0, effect=CleanUp(delete=False)),
        ]
        start.leases[run.id] = Lease(run_id=run.id, attempt=1, owner="me", epoch=1, until_ms=9)
        start.idempotency = [RememberedKey(ME, f"key {number}", run.id, NOW_MS, "{}")]
        yield start
        event = Prioritized(at_ms=NOW_MS, by="me", priority=1)
        run = reduce(run, event).run
        yield Batch(
            runs={run.id: run},
            journal=[entry(run, seq=2, key="k", event=event)],
            performed=[(run.id, 1, 0)],
        )
        ended = archived(over(run, result="x" * 9_000), NOW_MS)
        yield Batch(
            runs={run.id: ended},
            journal=[entry(run, seq=3)],
            messages=[message(run)],
            leases={run.id: None},
        )
        yield Batch(consumed=[(announcement_id(run.id), NOW_MS, "me")])
    yield lambda store: store.prune([a_run(0).id])
    yield lambda store: store.backup(str(path.with_name("copy.db")))


def state(store: SqliteStore) -> tuple[object, ...]:
    """All that it says."""
    runs: list[Run] = [*store.runs(RunFilter(archived=True, limit=STATE_MAX))]
    return (
        runs,
        [*store.feed(after=0, limit=STATE_MAX)],
        [*store.inbox(None, unconsumed=False)],
        [*store.load_outbox()],
        [(each.run_id, each.attempt) for each in store.load_leases()],
        [*store.load_idempotency(0)],
        [*store.set_aside()],
    )


def state_in_the_end(store: SqliteStore, tries: int) -> tuple[object, ...]:
    """The same, from a disk that may also refuse to be read."""
    for _ in range(tries):
        try:
            return state(store)
        except StoreUnavailable:
            continue
    return state(store)


def do(store: SqliteStore, step: Batch | Callable[[SqliteStore], None]) -> None:
    if isinstance(step, Batch):
        store.commit(step)
    else:
        step(store)


def copied(path: Path, into: Path) -> Path:
    """As a process that is killed now leaves its files."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    for suffix in ("", "-wal", ".lock"):
        if Path(f"{path}{suffix}").exists():
            shutil.copy(f"{path}{suffix}", into / f"subagents.db{suffix}")
    return into / "subagents.db"


def opened(path: Path) -> tuple[object, ...]:
    with closing(SqliteStore(path)) as store:
        store.open("again")
        assert store.check() == []
        return state(store)


def count_of(directory: Path, disk: FaultyDisk, kind: str) -> int:
    """How many operations of a kind the whole workload has."""
    seen = 0

    def fails(operation: Operation) -> int:
        nonlocal seen
        seen += operation.kind == kind
        return faulty_disk.OK

    disk.fails = fails
    path = directory / "whole" / "subagents.db"
    with closing(SqliteStore(path)) as store:
        store.open("one")
        for step in batches(path):
            do(store, step)
    return seen


def failing(kind: str, code: int, first: int, times: int) -> Callable[[Operation], int]:
    seen = 0

    def fails(operation: Operation) -> int:
        nonlocal seen
        if operation.kind != kind:
            return faulty_disk.OK
        seen += 1
        return code if first <= seen < first + times else faulty_disk.OK

    return fails


@pytest.mark.requirement("store:disk-faults")
@pytest.mark.parametrize("times", [1, 12])
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_operation_fails_what_was_acknowledged_is_there_and_nothing_by_half(
    tmp_path: Path, disk: FaultyDisk, fault: str, times: int
) -> None:
    kind, code = FAULTS[fault]
    most = count_of(tmp_path, disk, kind)
    refused = 0
    for first in range(1 + times % STRIDE, most + 1, STRIDE):
        place = tmp_path / f"{first}"
        path = place / "subagents.db"
        disk.fails = failing(kind, code, first, times)
        store = SqliteStore(path)
        for _ in range(3 * times):
            try:
                store.open("one")
                break
            except StoreUnavailable:
                refused += 1
        with closing(store):
            before = state_in_the_end(store, 3 * times)
            for step in batches(path):
                for _ in range(3 * times):
                    try:
                        do(store, step)
                        break
                    except (StoreUnavailable, sqlite3.Error):
                        refused += 1
                        path.with_name("copy.db").unlink(missing_ok=True)
                        found = state_in_the_end(store, 3 * times)
                        assert found == before, f"{fault} {first}: half of it is there"
                else:
                    raise AssertionError(f"{fault} {first}: it does not recover")
                before = state_in_the_end(store, 3 * times)
                if refused:
                    fails, disk.fails = disk.fails, lambda _: faulty_disk.OK
                    assert opened(copied(path, place / "copy")) == before, f"{fault} {first}"
                    refused, disk.fails = 0, fails
        disk.fails = lambda _: faulty_disk.OK
        assert opened(path) == before, f"{fault} {first}"
        shutil.rmtree(place)


@pytest.mark.requirement("store:power-loss")
def test_whenever_the_power_goes_what_was_acknowledged_is_there_and_nothing_by_half(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    path = tmp_path / "life" / "subagents.db"
    states: list[tuple[int, bytes, tuple[object, ...]]] = []
    with closing(SqliteStore(path)) as store:
        store.open("one")
        safe = {f"{path}{each}": Path(f"{path}{each}").read_bytes() for each in ("", "-wal")}
        disk.done.clear()

        def note() -> None:
            mark = Path(f"{path}.lock").read_bytes()
            states.append((len(disk.done), mark, state(store)))

        note()
        for step in batches(path):
            do(store, step)
            note()
        done = [*disk.done]
    drawn = random.Random(7)  # noqa: S311 - the same every time
    beginning, _, _ = states[0]
    for number in range(beginning, states[-1][0], max(STRIDE // 6, 1)):
        at = max(each for each, (count, _, _) in enumerate(states) if count <= number)
        _, mark, acknowledged = states[at]
        under_way = states[min(at + 1, len(states) - 1)][2]
        for chance in (None, drawn):
            left = after_power_loss(safe, done[:number], chance)
            place = tmp_path / "left"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            for name, content in left.items():
                if Path(name).name.startswith("subagents.db"):
                    (place / Path(name).name).write_bytes(content)
            (place / "subagents.db.lock").write_bytes(mark)

            found = opened(place / "subagents.db")

            assert found in (acknowledged, under_way), f"after operation {number}"


@pytest.mark.requirement("store:disk-faults", "store:migrations")
@pytest.mark.parametrize("fault", ["write refused", "no room", "sync refused"])
def test_a_migration_that_the_disk_refuses_is_made_at_the_next_start(
    tmp_path: Path, disk: FaultyDisk, fault: str
) -> None:
    kind, code = FAULTS[fault]
    whole = tmp_path / "whole.db"
    restore(whole)
    disk.done.clear()
    wanted = opened(whole)
    most = sum(each.kind == kind for each in disk.done)
    assert wanted[0]
    for first in range(1, most + 1, STRIDE * 2):
        path = tmp_path / f"{first}.db"
        disk.fails = lambda _: faulty_disk.OK
        restore(path)
        disk.fails = failing(kind, code, first, 1)
        try:
            with closing(SqliteStore(path)) as store:
                store.open("one")
        except (StoreUnavailable, CorruptState):
            disk.fails = lambda _: faulty_disk.OK

        assert opened(path) == wanted, f"{fault} {first}"
