"""An attempt on another node does what one here does, whoever comes and goes meanwhile."""

import asyncio
import contextlib
import errno
import itertools
import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.extensions.cluster.remote.loopback_nodes import LoopbackClient, NodeServer
from tests.extensions.conversation.echo_place import EchoPlace
from tests.runtimes.attempt_harness import BOUND_S, Ended, Harness, off_loop, until_async
from tests.runtimes.runtime_places import CommandPlace

from subagents.domain.run.signals import Exited, Signal
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import OutputBatch
from subagents.engine.kernel.system_clock import SystemClock
from subagents.errors import (
    LACKS,
    NodeOver,
    NodeUnreachable,
    RuntimeUnavailable,
    UsageError,
    lack_of,
)
from subagents.extensions.cluster.node_ports import LACK, SURE
from subagents.extensions.cluster.remote import attempt_host
from subagents.extensions.cluster.remote import slots as slots_of_node
from subagents.extensions.cluster.remote.attempt_calls import AttemptCall, encode
from subagents.extensions.cluster.remote.attempt_host import AttemptHost
from subagents.extensions.cluster.remote.node_health import SICK_AFTER, NodeHealth
from subagents.extensions.cluster.remote.remote_runtime import RemoteRuntime
from subagents.extensions.cluster.remote.slots import Slots
from subagents.extensions.conversation import conversation
from subagents.extensions.testing.conformance import Behaviour
from subagents.extensions.testing.runtime_suite import SUITE, RuntimePlace
from subagents.ports import Freezable, LongResult, Runtime, Tidied
from subagents.runtimes.process import shim
from subagents.runtimes.process.launcher import LAUNCHER
from subagents.runtimes.process.processes import look

NODE = "b"
RESULT_BYTES_MAX = 1_000_000

each_with_its_requirement = [
    pytest.param(each, id=each.name, marks=pytest.mark.requirement(each.requirement))
    for each in SUITE.behaviours
]


class Far:
    """A node with a runtime, its door, and runtimes of owners that reach it."""

    def __init__(self, place: CommandPlace | EchoPlace, slots: int | None = None) -> None:
        self.place = place
        self.harness = place.harness
        self.harness.root.mkdir(parents=True, exist_ok=True)
        self.there = place.runtime()
        self.health = NodeHealth(lambda: None, SystemClock().elapsed_ms)
        self.slots = Slots(self.harness.root, slots, SystemClock().elapsed_ms, self.health)
        host = AttemptHost(
            {self.there.name: self.there}, self.slots, off_loop, {"SUBAGENTS_SOCKET": "/there"}
        )
        self.door = NodeServer(host)
        self.client = LoopbackClient({NODE: self.door})

    def runtime(self) -> RemoteRuntime:
        """As a new owner has it."""
        return RemoteRuntime(
            self.place.runtime(),
            NODE,
            self.client,
            SystemClock(),
            off_loop,
            result_bytes_max=RESULT_BYTES_MAX,
        )


class FarCommandPlace(CommandPlace):
    far: Far

    def runtime(self) -> Runtime:
        return self.far.runtime()


class FarEchoPlace(EchoPlace):
    far: Far

    def runtime(self) -> Runtime:
        return self.far.runtime()


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Far]:
    place = CommandPlace(tmp_path)
    with place.harness:
        far = Far(place)
        with far.door:
            yield far


@pytest.mark.parametrize("behaviour", each_with_its_requirement)
def test_a_command_elsewhere_keeps_this_promise(
    behaviour: Behaviour[RuntimePlace], tmp_path: Path
) -> None:
    place = FarCommandPlace(tmp_path)
    place.far = Far(CommandPlace(tmp_path))
    with place.harness, place.far.door:
        behaviour.check(place)


@pytest.mark.parametrize("behaviour", each_with_its_requirement)
def test_a_conversation_elsewhere_keeps_this_promise(
    behaviour: Behaviour[RuntimePlace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "EXIT_BOUND_S", 1.0)
    place = FarEchoPlace(tmp_path)
    place.far = Far(EchoPlace(tmp_path))
    with place.harness, place.far.door:
        behaviour.check(place)


async def read(far: Far, runtime: RemoteRuntime) -> Ended:
    async with asyncio.timeout(BOUND_S):
        watching = runtime.watch(far.harness.ref(), cursor=0, positions={})
        return Ended([each async for each in watching])


@pytest.mark.requirement("cluster:remote-attempts")
def test_a_worker_goes_on_when_its_owner_dies_and_the_next_owner_reads_from_the_cursor(
    far: Far,
) -> None:
    async def go() -> None:
        script = "echo one; until test -e go; do sleep 0.01; done; echo two"
        first = far.runtime()
        started = await first.start(far.harness.launch("sh", "-c", script))
        seen = []
        async for each, at in first.watch(far.harness.ref(), cursor=0, positions={}):
            seen.append((each, at))
            break
        positions = Ended(seen).positions

        second = far.runtime()
        assert (await second.start(far.harness.launch("sh", "-c", script))).adopted
        (far.harness.cwd / "go").touch()
        watching = second.watch(far.harness.ref(), cursor=seen[-1][1], positions=positions)
        async with asyncio.timeout(BOUND_S):
            rest = [each async for each in watching]
        assert started.pid is not None
        assert [item.text for item in Ended(rest).output] == ["two"]
        assert Ended(rest).exited.exit.code == 0

    asyncio.run(go())


@pytest.mark.requirement("cluster:remote-attempts")
def test_whoever_stops_reading_at_the_end_of_an_attempt_breaks_no_connection(far: Far) -> None:
    async def go() -> None:
        runtime = far.runtime()
        await runtime.start(far.harness.launch("echo", "done"))
        async with asyncio.timeout(BOUND_S):
            async for each, _ in runtime.watch(far.harness.ref(), cursor=0, positions={}):
                if isinstance(each, Exited):
                    break
        assert far.client.ended == 1

    asyncio.run(go())


@pytest.mark.requirement("cluster:remote-attempts")
def test_a_watch_waits_for_a_node_that_does_not_answer_and_loses_and_repeats_nothing(
    far: Far,
) -> None:
    async def go() -> None:
        script = "for n in 1 2 3; do echo $n; until test -e go$n; do sleep 0.01; done; done"
        runtime = far.runtime()
        await runtime.start(far.harness.launch("sh", "-c", script))
        seen = []

        async def follow() -> None:
            async for each in runtime.watch(far.harness.ref(), cursor=0, positions={}):
                seen.append(each)  # noqa: PERF401 - read meanwhile

        following = asyncio.create_task(follow())
        for n in (1, 2, 3):
            await until_async("said", partial(_has_said, seen, str(n)))
            await asyncio.to_thread(far.door.shut)
            (far.harness.cwd / f"go{n}").touch()
            await asyncio.to_thread(far.door.open)
        async with asyncio.timeout(BOUND_S):
            await following
        assert _texts(seen) == ["1", "2", "3"]
        assert Ended(seen).exited.exit.code == 0

    asyncio.run(go())


def _has_said(seen: Iterable[tuple[Signal | OutputBatch | LongResult, int]], text: str) -> bool:
    return text in _texts(seen)


def _texts(seen: Iterable[tuple[Signal | OutputBatch | LongResult, int]]) -> list[str]:
    return [item.text for item in Ended(seen).output]


@pytest.mark.requirement("cluster:remote-attempts")
def test_an_attempt_on_a_node_that_is_over_has_vanished_and_nothing_of_it_is_left_to_end(
    far: Far,
) -> None:
    async def go() -> None:
        runtime = far.runtime()
        await runtime.start(far.harness.launch("sleep", "600"))
        far.client.over.add(NODE)
        assert NODE in (await read(far, runtime)).vanished.error
        await runtime.stop(far.harness.ref(), grace_s=0)
        await runtime.tidy(far.harness.ref())
        await runtime.forget(far.harness.ref())
        with pytest.raises(RuntimeUnavailable):
            await runtime.steer(far.harness.ref(), "hello", key="k")
        with pytest.raises(NodeOver):
            await runtime.start(far.harness.launch("true", number=2))

    asyncio.run(go())


@pytest.mark.requirement("cluster:remote-attempts")
def test_a_node_that_does_not_answer_stops_nothing_and_says_so(far: Far) -> None:
    async def go() -> None:
        runtime = far.runtime()
        started = await runtime.start(far.harness.launch("sleep", "600"))
        await asyncio.to_thread(far.door.shut)
        with pytest.raises(NodeUnreachable):
            await runtime.stop(far.harness.ref(), grace_s=0)
        await runtime.forget(far.harness.ref())  # of a run that is pruned: others are to be, too
        assert started.pid is not None
        assert look(started.pid) is not None
        await asyncio.to_thread(far.door.open)
        await runtime.stop(far.harness.ref(), grace_s=0)
        assert look(started.pid) is None

    asyncio.run(go())


@pytest.mark.requirement("cluster:remote-attempts")
def test_a_start_is_repeated_until_the_node_answers_and_there_is_one_worker(far: Far) -> None:
    async def go() -> None:
        await asyncio.to_thread(far.door.shut)
        launch = far.harness.launch("sh", "-c", "echo ran >> ran")
        starting = asyncio.create_task(far.runtime().start(launch))
        await until_async("tried twice", lambda: len(far.client.calls) > 1)
        await asyncio.to_thread(far.door.open)
        async with asyncio.timeout(BOUND_S):
            await starting
        await read(far, far.runtime())

    asyncio.run(go())
    assert (far.harness.cwd / "ran").read_text() == "ran\n"


@pytest.mark.requirement("cluster:remote-attempts")
def test_a_long_result_comes_whole(far: Far) -> None:
    async def go() -> str:
        runtime = far.runtime()
        await runtime.start(far.harness.launch("seq", "100000", "150000"))
        async for each, _ in runtime.watch(far.harness.ref(), cursor=0, positions={}):
            if isinstance(each, LongResult):
                assert "".join(each.pieces(RESULT_BYTES_MAX)).startswith("100000\n100001\n")
                return "".join(each.pieces(12))
        raise AssertionError

    assert asyncio.run(go()) == "49999\n150000"


@pytest.mark.requirement("cluster:remote-attempts")
def test_what_can_never_start_there_is_refused_for_good_and_names_the_node(far: Far) -> None:
    async def go() -> None:
        launch = replace(far.harness.launch("true"), cwd="/not/there")
        with pytest.raises(UsageError, match="on node b: the working directory /not/there"):
            await far.runtime().start(launch)

    asyncio.run(go())


@pytest.mark.requirement("cluster:remote-attempts")
def test_a_worker_talks_to_the_daemon_of_the_node_that_it_is_on(far: Far) -> None:
    async def go() -> Ended:
        launch = far.harness.launch("sh", "-c", "echo $SUBAGENTS_SOCKET")
        await far.runtime().start(replace(launch, env={"SUBAGENTS_SOCKET": "/here"}))
        return await read(far, far.runtime())

    assert [each.text for each in asyncio.run(go()).output] == ["/there"]


@pytest.mark.requirement("cluster:remote-attempts")
def test_the_later_of_two_owners_that_watch_is_the_one_that_does(far: Far) -> None:
    async def go() -> None:
        stale, owner = far.runtime(), far.runtime()
        await stale.start(far.harness.launch("sh", "-c", "echo one; exec sleep 600"))
        watching = stale._watched_once(far.harness.ref(), cursor=0, positions={})
        assert await anext(watching)
        newer = owner.watch(far.harness.ref(), cursor=0, positions={})
        assert await anext(newer)
        async with asyncio.timeout(BOUND_S):
            assert [each async for each in watching] == []
        await owner.stop(far.harness.ref(), grace_s=0)
        assert isinstance([each async for each, _ in newer][-1], Exited)

    asyncio.run(go())


@pytest.mark.requirement("cluster:remote-attempts")
def test_a_watch_that_has_nothing_to_say_says_that_it_is_there(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_host, "QUIET_S", 0.01)

    async def go() -> None:
        runtime = far.runtime()
        await runtime.start(far.harness.launch("sleep", "600"))
        body = encode(AttemptCall(runtime="command", ref=far.harness.ref()))
        path = "/node/v1/attempts/watch"
        async with far.client.stream(NODE, "POST", path, body, idle_s=BOUND_S) as (status, lines):
            assert status == 200
            assert await anext(lines) == b"\n"
            assert await anext(lines) == b"\n"
        with contextlib.suppress(RuntimeUnavailable):
            await runtime.stop(far.harness.ref(), grace_s=0)

    asyncio.run(go())


@pytest.mark.requirement("cluster:remote-attempts")
def test_it_can_be_frozen_and_tidied_as_any_other(far: Far) -> None:
    async def go() -> None:
        runtime: Runtime = far.runtime()
        assert isinstance(runtime, Freezable)
        assert isinstance(runtime, Tidied)
        pid = (await runtime.start(far.harness.launch("sh", "-c", "while :; do :; done"))).pid
        await runtime.freeze(far.harness.ref())
        stat = Path(f"/proc/{pid}/stat")
        await until_async("stopped", lambda: stat.read_text().split()[2] == "T")
        await runtime.thaw(far.harness.ref())
        await until_async("goes on", lambda: stat.read_text().split()[2] != "T")
        await runtime.stop(far.harness.ref(), grace_s=0)
        await runtime.tidy(far.harness.ref())
        assert [each.name for each in far.harness.directory().path.iterdir()] == ["claim"]

    asyncio.run(go())


@pytest.mark.requirement("cluster:remote-attempts", "output:deleted-at-the-end")
def test_what_its_owner_keeps_is_deleted_where_it_was_written(far: Far) -> None:
    async def go() -> None:
        runtime = far.runtime()
        await runtime.start(far.harness.launch("sh", "-c", "echo one"))
        ended = await read(far, runtime)
        assert [item.text for item in ended.output] == ["one"]
        assert far.harness.directory().sizes().out > 0

        at = ended.pairs[-1][1]
        await runtime.discard(far.harness.ref(), cursor=at, positions=ended.positions, ended=True)

        assert far.harness.directory().sizes().out == 0
        assert (await read(far, far.runtime())).exited.exit.code == 0

    asyncio.run(go())


@pytest.mark.requirement("cluster:slots")
def test_no_more_workers_are_started_than_there_are_slots_whoever_asks(tmp_path: Path) -> None:
    async def go(far: Far) -> None:
        one, other = far.runtime(), far.runtime()
        await one.start(far.harness.launch("sleep", "600"))
        assert far.slots.keep(far.harness.ref(2).attempt_id)
        with pytest.raises(RuntimeUnavailable, match="all 2 slots") as refused:
            await other.start(far.harness.launch("sleep", "600", number=3))
        # Its slot was kept for as long as one is, and is another's: it gets another place.
        assert (lack_of(refused.value), refused.value.details[SURE]) == (errno.EAGAIN, True)
        await other.start(far.harness.launch("sleep", "600", number=2))
        assert (far.slots.used, far.slots.free) == (2, 0)
        # A daemon that was started anew finds the same, before it starts anything.
        again = Slots(far.harness.root, 2, SystemClock().elapsed_ms, far.health)
        assert again.used == 2
        await one.stop(far.harness.ref(), grace_s=0)
        await until_async("free again", lambda: far.slots.free == 1)
        await other.start(far.harness.launch("sleep", "600", number=3))

    place = CommandPlace(tmp_path)
    with place.harness:
        far = Far(place, slots=2)
        with far.door:
            asyncio.run(go(far))


@pytest.mark.requirement("cluster:slots")
def test_workers_that_ended_are_not_remembered_where_slots_have_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, live = Harness(tmp_path), {1}
    now_ms = itertools.count(0, 1000)
    health = NodeHealth(lambda: None, lambda: 0)
    slots = Slots(harness.root, None, lambda: next(now_ms), health)
    monkeypatch.setattr(slots_of_node, "_is_live", lambda of: of.attempt[1] in live)
    with slots.resuming(harness.ref(1)):
        pass
    assert slots.keep(harness.ref(2).attempt_id)
    assert [*slots._live] == [harness.ref(1).attempt_id]
    live.clear()
    assert slots.keep(harness.ref(2).attempt_id)
    assert not slots._live


@pytest.mark.requirement("cluster:places")
def test_a_slot_that_nobody_uses_is_free_again_after_some_time(tmp_path: Path) -> None:
    now_ms = 0
    harness = Harness(tmp_path)
    slots = Slots(harness.root, 1, lambda: now_ms, NodeHealth(lambda: None, lambda: now_ms))
    assert slots.keep(harness.ref(1).attempt_id)
    assert not slots.keep(harness.ref(2).attempt_id)
    now_ms = 30_000
    assert slots.keep(harness.ref(2).attempt_id)
    slots.give_up(harness.ref(2).attempt_id)
    assert slots.free == 1


@pytest.mark.requirement("cluster:sick-node")
def test_a_machine_without_descriptors_refuses_what_is_new_and_goes_on_with_what_it_has(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async def go() -> None:
        runtime, words = far.runtime(), LACKS[errno.EMFILE]
        first = far.harness.launch("sleep", "600")
        pid = (await runtime.start(first)).pid
        with monkeypatch.context() as patched:
            patched.setattr(LAUNCHER, "start", lacking)
            patched.setattr(shim, "START_AGAIN_S", ())
            for number in range(2, 2 + SICK_AFTER):
                with pytest.raises(RuntimeUnavailable, match=words) as refused:
                    await runtime.start(far.harness.launch("true", number=number))
                assert refused.value.details == {LACK: "EMFILE", SURE: True, "node": NODE}
                assert lack_of(refused.value) == errno.EMFILE
        assert (far.health.problem, far.slots.free) == (words, 0)
        with pytest.raises(RuntimeUnavailable, match="nothing is started here"):
            await runtime.start(far.harness.launch("true", number=9))
        # Its owner did not hear that it was started, and asks again.
        assert (await runtime.start(first)).pid == pid
        assert far.slots.keep(far.harness.ref().attempt_id)
        far.health.worked()
        await runtime.start(far.harness.launch("true", number=9))

    asyncio.run(go())


@pytest.mark.requirement("cluster:sick-node")
def test_what_may_be_started_all_the_same_is_not_told_as_not_there(far: Far) -> None:
    of, unsaid = far.harness.launch("true"), OSError(errno.EMFILE, "no look at it")
    gone = OSError(errno.ECHILD, "the launcher ended")
    for error, cause in ((unsaid, None), (RuntimeUnavailable("no"), gone)):
        with pytest.raises(RuntimeUnavailable) as refused, far.slots.starting(of):
            raise error from cause
        assert refused.value.details[SURE] is False
        assert far.slots.keep(of.attempt_id)
    other = far.slots.starting(of)
    with other, pytest.raises(RuntimeUnavailable) as refused, far.slots.starting(of):
        raise RuntimeUnavailable("no") from OSError(errno.ENOSPC, "full")
    assert refused.value.details[SURE] is False


@pytest.mark.requirement("cluster:sick-node")
def test_a_sick_machine_is_tried_ever_more_seldom_until_a_worker_is_started_on_it() -> None:
    now_ms, tries, is_full = 0, list[int](), True

    def try_start() -> None:
        tries.append(now_ms)
        if is_full:
            raise OSError(errno.ENOSPC, "full")

    async def go() -> None:
        nonlocal now_ms, is_full
        health = NodeHealth(try_start, lambda: now_ms)
        for _ in range(SICK_AFTER):
            assert health.problem is None
            health.failed(errno.ENOMEM)
        for each in range(0, 50_000, 500):
            now_ms = each
            await health.look(off_loop)
        assert tries == [1_000, 3_000, 7_000, 15_000, 30_000, 45_000]
        assert health.problem == LACKS[errno.ENOSPC]
        now_ms, is_full = 60_000, False
        assert await health.look(off_loop) is None
        # It is not well before a worker was started: one failure is enough now, and a long wait.
        health.failed(errno.ENOMEM)
        now_ms = 74_500
        assert await health.look(off_loop) == LACKS[errno.ENOMEM]
        health.worked()
        assert health.problem is None

    asyncio.run(go())
