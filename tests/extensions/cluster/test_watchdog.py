"""The workers of a node end when its right does, whatever became of its daemon."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtimes.attempt_harness import Harness, until

from subagents.extensions.cluster import node_deadline, watchdog
from subagents.extensions.cluster.watchdog import LOCK, Watchdog
from subagents.runtimes.process import cgroups
from subagents.runtimes.process.processes import alive, look, scan

FAR_MS = 600_000


class Node:
    """A home with workers, a daemon that renews its right, and the watchdog that this starts."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.state = harness.root.parent
        self.watchdog = Watchdog(self.state, harness.root)

    def extend(self, left_ms: int) -> None:
        self.watchdog.extend(node_deadline.elapsed_ms() + left_ms)

    def worker(self, script: str, number: int = 1) -> int:
        launch = self.harness.launch("sh", "-c", script, number=number)
        asyncio.run(self.harness.runtime().start(launch))
        worker = until("the worker runs", self.harness.directory(number).worker)
        assert worker is not None
        return worker.pid

    def watchers(self) -> list[int]:
        """Processes that watch over this home."""
        wanted = f"{watchdog.__name__}\0{self.state}\0".encode()
        found = []
        for each in scan():
            with contextlib.suppress(OSError):
                if wanted in Path(f"/proc/{each.pid}/cmdline").read_bytes():
                    found.append(each.pid)
        return found


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Harness(tmp_path) as harness:
        node = Node(harness)
        try:
            yield node
        finally:
            for pid in node.watchers():
                os.kill(pid, signal.SIGKILL)


def stand_in(node: Node, left_ms: int) -> "subprocess.Popen[str]":
    """A daemon of its own process that renews once, starts a worker, and does nothing more."""
    program = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from tests.runtimes.attempt_harness import Harness\n"
        "from subagents.extensions.cluster import node_deadline\n"
        "from subagents.extensions.cluster.watchdog import Watchdog\n"
        f"harness = Harness(Path({str(node.state)!r}))\n"
        "launch = harness.launch('sh', '-c', 'while :; do sleep 0.01; done')\n"
        "started = asyncio.run(harness.runtime().start(launch))\n"
        "watchdog = Watchdog(harness.root.parent, harness.root)\n"
        f"watchdog.extend(node_deadline.elapsed_ms() + {left_ms})\n"
        "print(started.pid, flush=True)\nsys.stdin.read()\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_workers_end_at_the_deadline_of_a_daemon_that_is_frozen_or_dead(
    node: Node, number: signal.Signals
) -> None:
    with stand_in(node, left_ms=4_000) as daemon:
        try:
            assert daemon.stdout is not None
            pid = int(daemon.stdout.readline())
            daemon.send_signal(number)
            assert look(pid) is not None
            deadline = node_deadline.read(node.state)
            assert deadline is not None
            until("all ended", lambda: not node.harness.carriers())
            assert deadline.left_ms == 0
            assert node.watchers()
        finally:
            daemon.kill()


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
def test_nothing_of_a_worker_is_left_neither_its_shim_nor_what_hid_from_it(node: Node) -> None:
    hidden = node.harness.cwd / "hidden"
    node.worker(f"(env -i setsid sh -c 'echo $$ > {hidden}; exec sleep 600' &); exec sleep 600")
    pid = int(until("hidden", lambda: hidden.exists() and hidden.read_text()))
    assert look(pid) is not None

    node.extend(100)

    until("all ended", lambda: not node.harness.carriers() and look(pid) is None)
    assert node.harness.directory().exit() is None


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
def test_a_deadline_that_was_moved_on_or_taken_away_meanwhile_ends_nothing(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = node.worker("exec sleep 600")
    slept: list[int] = []

    def sleep_until(_timer: int | None, until_ms: int) -> None:
        slept.append(until_ms)
        if len(slept) == 1:
            node_deadline.write(node.state, until_ms + FAR_MS)
        else:
            node.watchdog.leave()

    monkeypatch.setattr(watchdog, "_sleep_until", sleep_until)
    first_ms = node_deadline.elapsed_ms() + FAR_MS
    node_deadline.write(node.state, first_ms)

    watchdog.watch(node.state, node.harness.root, None)

    assert slept == [first_ms, first_ms + FAR_MS]
    assert look(pid) is not None


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
def test_a_worker_that_appears_after_the_deadline_is_ended_until_there_is_a_later_one(
    node: Node,
) -> None:
    node.extend(0)
    mark = node.harness.runtime().marker(node.harness.ref())
    with subprocess.Popen(["sleep", "600"], env={**os.environ, **mark}) as late:
        assert late.wait(60) == -signal.SIGKILL

    node.extend(FAR_MS)

    pid = node.worker("exec sleep 600", number=2)
    worker = node.harness.directory(2).worker()
    assert worker is not None
    assert (worker.pid, alive(worker)) == (pid, True)


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
def test_what_begins_after_a_later_deadline_lives_also_in_a_cgroup(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon renews its right, and starts a worker, while the watchdog looks."""
    killed: list[str] = []

    def renewed(_root: str, _base: str) -> list[str]:
        node_deadline.write(node.state, node_deadline.elapsed_ms() + FAR_MS)
        node.worker("exec sleep 600")
        return ["its cgroup"]

    monkeypatch.setattr(cgroups, "groups_of", renewed)
    monkeypatch.setattr(cgroups, "kill", lambda group, **_: killed.append(group))
    node_deadline.write(node.state, 0)

    assert not watchdog.end_workers(node.harness.root, "/sys/fs/cgroup", daemon=0)

    assert killed == []
    assert node.harness.carriers()


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
# The shim reads hundredths of a second, rounded down.
@pytest.mark.parametrize("left_ms", [-10, -FAR_MS])
def test_a_shim_starts_no_worker_after_the_deadline(node: Node, left_ms: int) -> None:
    node_deadline.write(node.state, node_deadline.elapsed_ms() + left_ms)

    ended = node.harness.ended("sh", "-c", "touch ran")

    assert "never ran" in ended.vanished.error
    assert not (node.harness.cwd / "ran").exists()


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
@pytest.mark.parametrize("left_ms", [None, FAR_MS])
def test_a_shim_starts_workers_before_the_deadline_and_where_there_is_none(
    node: Node, left_ms: int | None
) -> None:
    if left_ms is not None:
        node_deadline.write(node.state, node_deadline.elapsed_ms() + left_ms)

    ended = node.harness.ended("sh", "-c", "touch ran")

    assert ended.exited.exit.code == 0
    assert (node.harness.cwd / "ran").exists()


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
def test_a_deadline_of_another_boot_is_over(node: Node) -> None:
    node_deadline.write(node.state, node_deadline.elapsed_ms() + FAR_MS)
    file = node.state / node_deadline.FILE
    words = file.read_text().split()
    file.write_text(f"{words[0]} {words[1]} {'0' * 36} {words[3]}\n")

    found = node_deadline.read(node.state)

    assert found is not None
    assert found.left_ms == 0
    assert "never ran" in node.harness.ended("true").vanished.error


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
def test_one_watchdog_watches_a_home_and_another_one_when_it_was_killed(node: Node) -> None:
    node.extend(FAR_MS)
    [first] = node.watchers()
    Watchdog(node.state, node.harness.root).extend(node_deadline.elapsed_ms() + FAR_MS)
    assert node.watchers() == [first]

    os.kill(first, signal.SIGKILL)
    # Who was killed has its lock a little longer than its command line.
    until("it is gone", lambda: not watchdog._is_watched(node.state))
    node.extend(FAR_MS)

    [second] = node.watchers()
    assert second != first
    assert os.getsid(second) == second


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
@pytest.mark.parametrize("is_asked", [True, False])
def test_a_watchdog_that_finds_its_home_locked_tries_again_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_asked: bool
) -> None:
    """Its daemon has the lock while it asks whether there is a watchdog."""
    watched: list[Path] = []
    monkeypatch.setattr(watchdog, "watch", lambda state, *_: watched.append(state))
    monkeypatch.setattr(sys, "argv", ["watchdog", str(tmp_path), str(tmp_path / "attempts")])
    with contextlib.ExitStack() as held:
        assert held.enter_context(watchdog._lock(tmp_path))
        times = iter(range(10))
        monkeypatch.setattr(time, "monotonic", lambda: float(next(times)))
        monkeypatch.setattr(watchdog, "TAKE_BOUND_S", 3.0)
        monkeypatch.setattr(time, "sleep", lambda _: held.close() if is_asked else None)

        watchdog.main()

    assert watched == ([tmp_path] if is_asked else [])


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
def test_a_watchdog_sleeps_until_the_deadline_and_goes_when_there_is_none_any_more(
    node: Node,
) -> None:
    node.extend(3_000)
    [watcher] = node.watchers()

    node.watchdog.leave()

    until("it is gone", lambda: look(watcher) is None)


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
def test_a_watchdog_that_has_nothing_to_do_for_long_goes(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "LINGER_S", 0.0)
    node_deadline.write(node.state, 0)

    watchdog.watch(node.state, node.harness.root, None)

    assert not (node.state / LOCK).exists()


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
def test_it_spares_the_daemon_that_a_worker_started_and_what_leads_to_it(node: Node) -> None:
    mark = node.harness.runtime().marker(node.harness.ref())
    with subprocess.Popen(["sleep", "600"], env={**os.environ, **mark}) as daemon:
        try:
            assert not watchdog.end_workers(node.harness.root, None, daemon=daemon.pid)
            assert daemon.poll() is None
            assert watchdog.end_workers(node.harness.root, None, daemon=0)
        finally:
            daemon.kill()


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
def test_the_margin_is_a_quarter_of_a_short_lease_and_never_more_than_a_second_and_a_half() -> None:
    assert [node_deadline.margin_s(each) for each in (2, 6, 60)] == [0.5, 1.5, 1.5]


def freezer_of_a_worker(node: Node) -> Path:
    """What stops one that was just started, by its cgroup."""
    base = cgroups.place().path
    if base is None:
        pytest.skip(f"no cgroups here: {cgroups.place().problem}")
    node.worker("exec sleep 600")
    [group] = cgroups.groups_of(str(node.harness.root), base)
    return Path(group, "cgroup.freeze")


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
def test_workers_in_cgroups_stand_still_before_anything_is_looked_at(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a pause of the whole machine they would go on while the watchdog looks for them."""
    frozen = freezer_of_a_worker(node)
    stood: list[str] = []

    def scanned() -> object:
        stood.append(frozen.read_text().strip())
        return scan()

    monkeypatch.setattr(watchdog, "scan", scanned)
    node_deadline.write(node.state, 0)

    assert watchdog.end_workers(node.harness.root, str(frozen.parents[1]), daemon=0)

    assert stood[0] == "1"
    assert not node.harness.carriers()


@pytest.mark.requirement("cluster:cut-off-node-ends-its-workers")
def test_what_a_killed_watchdog_left_standing_goes_on_under_a_later_deadline(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = freezer_of_a_worker(node)
    frozen.write_text("1")
    monkeypatch.setattr(watchdog, "_sleep_until", lambda *_: node.watchdog.leave())
    node_deadline.write(node.state, node_deadline.elapsed_ms() + FAR_MS)

    watchdog.watch(node.state, node.harness.root, str(frozen.parents[1]))

    assert frozen.read_text().strip() == "0"
