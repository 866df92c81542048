"""Conversations with a real program over files: sent once, read to the end, adopted, ended."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.extensions.conversation.echo_dialect import EchoDialect, EchoState
from tests.runtimes.attempt_harness import BOUND_S, Ended, Harness, off_loop, until_async

from subagents.domain.run.run import Exit
from subagents.domain.run.signals import SessionSeen, Signal
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import OutputBatch
from subagents.engine.kernel.system_clock import SystemClock
from subagents.errors import RuntimeUnavailable
from subagents.extensions.conversation import conversation, turn_reader
from subagents.extensions.conversation.conversation import ConversationRuntime
from subagents.ports import AttemptRef, Launch, LongResult
from subagents.runtimes.process.shim import ProcessAttempts
from subagents.runtimes.runtime_plugins import RuntimeHost


def runtime_of(harness: Harness) -> ConversationRuntime[EchoState]:
    """A runtime as a new daemon has it: it knows nothing but the files."""
    clock = SystemClock()
    attempts = ProcessAttempts(harness.root, clock, off_loop)
    return ConversationRuntime(EchoDialect(), attempts, clock, off_loop, bridge=())


def saying(harness: Harness, words: str) -> Launch:
    return replace(harness.launch(), prompt=words, options={})


async def read_all(
    runtime: ConversationRuntime[EchoState], ref: AttemptRef, **where: object
) -> Ended:
    given = {"cursor": 0, "positions": {}} | where
    async with asyncio.timeout(BOUND_S):
        return Ended([each async for each in runtime.watch(ref, **given)])  # type: ignore[arg-type]


@pytest.mark.requirement("plugin:dialect")
def test_a_dialect_that_lacks_something_is_refused_by_name_when_its_runtime_is_made(
    tmp_path: Path,
) -> None:
    lacking = SimpleNamespace(
        **{each: None for each in dir(EchoDialect) if each not in {"is_done", "passes"}}
    )
    clock = SystemClock()
    host = RuntimeHost(ProcessAttempts(tmp_path, clock, off_loop), clock, off_loop, bridge=())

    with pytest.raises(TypeError, match=r"has no passes, is_done$"):
        host.conversation(lacking)


@asynccontextmanager
async def watched(
    runtime: ConversationRuntime[EchoState], ref: AttemptRef
) -> AsyncIterator[list[tuple[Signal | OutputBatch | LongResult, int]]]:
    """Reads it in the background, as the supervisor does."""
    seen: list[tuple[Signal | OutputBatch | LongResult, int]] = []

    async def follow() -> None:
        async for each in runtime.watch(ref, cursor=0, positions={}):
            seen.append(each)  # noqa: PERF401 - looked at while it grows

    task = asyncio.create_task(follow())
    try:
        yield seen
        async with asyncio.timeout(BOUND_S):
            await task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def texts(ended: Ended) -> list[str]:
    return [each.text for each in ended.output]


@pytest.mark.requirement("conversation:turn:whole")
def test_a_turn_is_asked_answered_and_its_program_ended(tmp_path: Path) -> None:
    with Harness(tmp_path) as harness:

        async def go() -> Ended:
            runtime = runtime_of(harness)
            await runtime.start(saying(harness, "text hello;usage 12"))
            return await read_all(runtime, harness.ref())

        ended = asyncio.run(go())
        assert texts(ended) == ["hello"]
        assert ended.result.text == "hello"
        assert ended.exited.exit == Exit(code=0)
        assert [each.session_id for each in ended.signals if isinstance(each, SessionSeen)] == [
            "s-new"
        ]
        assert not harness.carriers()


@pytest.mark.requirement("conversation:end:program-that-stays")
def test_a_program_that_stays_after_its_turn_is_ended_and_did_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "EXIT_BOUND_S", 0.05)
    monkeypatch.setattr(conversation, "END_GRACE_S", 0.05)
    with Harness(tmp_path) as harness:

        async def go() -> Ended:
            runtime = runtime_of(harness)
            await runtime.start(saying(harness, "text fine;linger"))
            return await read_all(runtime, harness.ref())

        ended = asyncio.run(go())
        assert (ended.result.text, ended.exited.exit) == ("fine", Exit(code=0))
        assert not harness.carriers()


@pytest.mark.requirement("conversation:end:middle-of-a-turn")
def test_a_program_that_ends_in_its_turn_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    with Harness(tmp_path) as harness:

        async def go() -> Ended:
            runtime = runtime_of(harness)
            await runtime.start(saying(harness, "text half;exit 0"))
            return await read_all(runtime, harness.ref())

        ended = asyncio.run(go())
        assert (ended.result.text, ended.result.is_error) == ("half", True)


@pytest.mark.requirement("conversation:steer:taken-once")
def test_a_message_is_put_into_the_turn_once_whatever_how_often_it_is_sent(tmp_path: Path) -> None:
    with Harness(tmp_path) as harness:

        async def go() -> list[str]:
            runtime = runtime_of(harness)
            await runtime.start(saying(harness, "text begun;listen"))
            async with watched(runtime, harness.ref()) as seen:
                await runtime.steer(harness.ref(), "left", key="k1")
                await runtime.steer(harness.ref(), "left", key="k1")
                await runtime.steer(harness.ref(), "enough", key="k2")
            return texts(Ended(seen))

        assert asyncio.run(go()) == ["begun", "heard left", "heard enough"]


@pytest.mark.requirement("conversation:steer:after-the-end")
def test_a_message_after_the_turn_is_refused_so_that_it_waits_for_the_next(tmp_path: Path) -> None:
    with Harness(tmp_path) as harness:

        async def go() -> None:
            runtime = runtime_of(harness)
            await runtime.start(saying(harness, "text over"))
            await read_all(runtime, harness.ref())
            with pytest.raises(RuntimeUnavailable):
                await runtime.steer(harness.ref(), "late", key="k1")

        asyncio.run(go())


@pytest.mark.requirement("conversation:interrupt:turn")
def test_an_interrupted_turn_ends_and_its_children_with_the_attempt(tmp_path: Path) -> None:
    with Harness(tmp_path) as harness:

        async def go() -> Ended:
            runtime = runtime_of(harness)
            await runtime.start(saying(harness, "text busy;child;listen"))
            async with watched(runtime, harness.ref()) as seen:
                await until_async("a child", lambda: any(_is_tool(each) for each, _ in seen))
                await runtime.interrupt(harness.ref(), key="stop1")
                await runtime.stop(harness.ref(), grace_s=0)
            return Ended(seen)

        ended = asyncio.run(go())
        assert (ended.result.text, ended.exited.exit) == ("busy", Exit(code=0))
        assert not harness.carriers()


def _is_tool(seen: object) -> bool:
    return type(seen).__name__ == "ToolSeen"


@pytest.mark.requirement("conversation:adopt:goes-on")
def test_a_new_daemon_goes_on_without_asking_or_telling_twice(tmp_path: Path) -> None:
    with Harness(tmp_path) as harness:

        async def go() -> tuple[Ended, Ended]:
            first = runtime_of(harness)
            await first.start(saying(harness, "text one;listen"))
            seen: list[tuple[Signal | OutputBatch | LongResult, int]] = []
            with contextlib.suppress(TimeoutError):
                async for each in first.watch(harness.ref(), cursor=0, positions={}):
                    seen.append(each)
                    if texts(Ended(seen)):
                        break
            before = Ended(seen)

            second = runtime_of(harness)
            info = await second.start(saying(harness, "text one;listen"))
            assert info.adopted
            after: list[tuple[Signal | OutputBatch | LongResult, int]] = []

            async def follow() -> None:
                at = max(cursor for _, cursor in seen)
                async for each in second.watch(
                    harness.ref(), cursor=at, positions=before.positions
                ):
                    after.append(each)  # noqa: PERF401 - as above

            task = asyncio.create_task(follow())
            await second.steer(harness.ref(), "enough", key="k1")
            async with asyncio.timeout(BOUND_S):
                await task
            return before, Ended(after)

        before, after = asyncio.run(go())
        assert texts(before) + texts(after) == ["one", "heard enough"]
        assert after.result.text == "heard enough"
        sent = (harness.directory().path / "in").read_text().splitlines()
        assert sent == ["say text one;listen", "steer k1 enough"]


@pytest.mark.requirement("conversation:resume:next-turn")
def test_a_further_turn_is_a_new_process_in_the_same_session(tmp_path: Path) -> None:
    with Harness(tmp_path) as harness:

        async def go() -> tuple[Ended, Ended]:
            runtime = runtime_of(harness)
            await runtime.start(saying(harness, "text first"))
            first = await read_all(runtime, harness.ref())
            ref = replace(harness.ref(), turns=2, native_session="s-new")
            await runtime.resume(ref, "text second", env={})
            second = await read_all(runtime, ref)
            await runtime.discard(ref, cursor=0, positions={}, ended=True)
            await runtime.tidy(ref)
            left.update(each.name for each in (harness.root / "r-bench").glob("*/*"))
            await runtime.forget(ref)
            return first, second

        left = set[str]()
        first, second = asyncio.run(go())
        assert left == {"claim"}
        assert (texts(first), texts(second)) == (["first"], ["second"])
        sessions = [each.session_id for each in second.signals if isinstance(each, SessionSeen)]
        assert sessions == ["s-new+"]
        assert not set(first.positions) & set(second.positions)
        assert not (harness.root / "r-bench").exists()


@pytest.mark.requirement("conversation:resume:not-cleaned-up")
@pytest.mark.parametrize("what", ["stopped again", "discarded late"])
def test_cleaning_up_after_a_turn_leaves_the_next_turn_alone(tmp_path: Path, what: str) -> None:
    with Harness(tmp_path) as harness:

        async def go() -> Ended:
            runtime = runtime_of(harness)
            await runtime.start(saying(harness, "text first"))
            await read_all(runtime, harness.ref())
            ref = replace(harness.ref(), turns=2, native_session="s-new")
            await runtime.resume(ref, "text second;listen", env={})
            if what == "discarded late":
                # What was read had to be durable first, and the next turn had begun by then.
                await runtime.discard(harness.ref(), cursor=0, positions={}, ended=True)
                assert not (harness.directory().path / "out").exists()
            async with watched(runtime, ref) as seen:
                if what == "stopped again":
                    # As after a crash: nobody knows yet that the next turn was started.
                    await runtime.stop(harness.ref(), grace_s=0)
                await runtime.steer(ref, "enough", key="k1")
            return Ended(seen)

        assert texts(asyncio.run(go())) == ["second", "heard enough"]


@pytest.mark.requirement("conversation:resume:no-session")
def test_a_turn_without_a_session_to_go_on_with_is_refused(tmp_path: Path) -> None:
    with Harness(tmp_path) as harness:

        async def go() -> None:
            with pytest.raises(RuntimeUnavailable, match="no session"):
                await runtime_of(harness).resume(
                    replace(harness.ref(), turns=2, native_session="s-new"), "go on", env={}
                )

        asyncio.run(go())


@pytest.mark.requirement("conversation:discard:checkpoint")
def test_what_was_discarded_is_not_needed_to_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_reader, "CHECKPOINT_BYTES", 4096)
    with Harness(tmp_path) as harness:

        async def go() -> tuple[Ended, Ended, int]:
            first = runtime_of(harness)
            words = ";".join(f"text {number:0100d}" for number in range(500))
            await first.start(saying(harness, f"{words};listen"))
            async with watched(first, harness.ref()) as seen:
                await until_async("all of it", lambda: len(texts(Ended(seen))) == 500)
                positions = Ended(seen).positions
                await first.discard(harness.ref(), cursor=positions["out"], positions=positions)
                blocks = _blocks(harness.directory().out) * 512
                second = runtime_of(harness)
                after = asyncio.create_task(
                    read_all(second, harness.ref(), cursor=positions["out"], positions=positions)
                )
                await second.steer(harness.ref(), "enough", key="k1")
                later = await after
            return Ended(seen), later, blocks

        _, later, blocks = asyncio.run(go())
        assert texts(later) == ["heard enough"]
        assert later.result.text == "heard enough"
        assert blocks < 500 * 100


def _blocks(path: str) -> int:
    return Path(path).stat().st_blocks


@pytest.mark.requirement("conversation:stream:garbage")
def test_garbage_on_the_stream_is_said_and_stops_nobody(tmp_path: Path) -> None:
    with Harness(tmp_path) as harness:

        async def go() -> Ended:
            runtime = runtime_of(harness)
            await runtime.start(saying(harness, "garbage;text still here"))
            return await read_all(runtime, harness.ref())

        ended = asyncio.run(go())
        assert texts(ended)[-1] == "still here"
        assert texts(ended)[0].startswith("unknown event")


@pytest.mark.requirement("conversation:worker:killed")
def test_a_killed_program_leaves_no_feeder_behind(tmp_path: Path) -> None:
    with Harness(tmp_path) as harness:

        async def go() -> Ended:
            runtime = runtime_of(harness)
            await runtime.start(saying(harness, "text begun;listen"))
            async with watched(runtime, harness.ref()) as seen:
                worker = harness.directory().worker()
                assert worker is not None
                os.kill(worker.pid, signal.SIGKILL)
            return Ended(seen)

        ended = asyncio.run(go())
        assert ended.exited.exit == Exit(signal=9)
        assert ended.result.is_error
        assert not harness.carriers()
