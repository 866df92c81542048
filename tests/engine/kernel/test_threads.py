"""Blocking work runs on threads that hold nobody up, not even the end of the process."""

import asyncio
import sys
import threading

import pytest

from subagents.engine.kernel.threads import DaemonThreads, on_own_loop


@pytest.mark.requirement("off-loop:threads")
def test_work_returns_its_value_or_its_exception_and_reuses_an_idle_thread() -> None:
    threads = DaemonThreads("reuse")

    async def run() -> None:
        for number in range(50):
            assert await threads(lambda number=number: number * 2) == number * 2  # type: ignore[misc]
            with pytest.raises(ZeroDivisionError):
                await threads(lambda: 1 // 0)
            with pytest.raises(RuntimeError, match="StopIteration"):
                await threads(lambda: next(iter(())))

    asyncio.run(run())
    asyncio.run(run())  # from another loop

    assert threads.threads <= 2
    threads.close()
    threads.close()


@pytest.mark.requirement("off-loop:threads")
def test_stuck_work_never_delays_other_work_below_the_cap() -> None:
    threads = DaemonThreads("cap", threads_max=8)
    release = threading.Event()

    async def run() -> None:
        stuck = [asyncio.ensure_future(threads(lambda: release.wait(120))) for _ in range(7)]
        assert await asyncio.wait_for(threads(lambda: "free"), timeout=60) == "free"
        queued = [asyncio.ensure_future(threads(lambda: release.wait(120))) for _ in range(20)]
        queued[-1].cancel()
        assert threads.threads == 8
        release.set()
        assert all(await asyncio.gather(*stuck, *queued[:-1]))

    asyncio.run(asyncio.wait_for(run(), timeout=20))


@pytest.mark.requirement("off-loop:threads")
def test_one_thread_keeps_the_order_and_a_closed_pool_takes_nothing() -> None:
    threads = DaemonThreads("order", threads_max=1)
    order: list[int] = []

    async def run() -> None:
        await asyncio.gather(*(threads(lambda n=n: order.append(n)) for n in range(200)))  # type: ignore[misc]
        threads.close()
        with pytest.raises(RuntimeError, match="order is closed"):
            await threads(lambda: None)

    asyncio.run(run())

    assert order == list(range(200))


@pytest.mark.requirement("off-loop:shutdown")
def test_a_process_with_a_stuck_thread_still_ends() -> None:
    program = (
        "import asyncio, threading\n"
        "from subagents.engine.kernel.threads import DaemonThreads\n"
        "threads = DaemonThreads('stuck')\n"
        "async def main():\n"
        "    asyncio.ensure_future(threads(threading.Event().wait))\n"
        "    print(await threads(lambda: 'done'))\n"
        "asyncio.run(main())\n"
        "threads.close()\n"
    )

    async def run() -> tuple[bytes, int | None]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(), timeout=10)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        return output, process.returncode

    assert asyncio.run(run()) == (b"done\n", 0)


@pytest.mark.requirement("off-loop:threads")
def test_work_on_a_loop_of_its_own_goes_on_while_ours_is_busy() -> None:
    turned = threading.Event()

    async def turns() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        turned.set()

    async def run() -> None:
        work = asyncio.ensure_future(on_own_loop(turns))
        await asyncio.sleep(0)  # it begins
        assert turned.wait(90)  # and our loop does nothing meanwhile
        await work

    asyncio.run(run())


@pytest.mark.requirement("off-loop:threads")
def test_what_work_on_a_loop_of_its_own_raises_is_raised_and_a_cancelled_one_has_ended() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def fails() -> None:
        raise ZeroDivisionError

    async def waits() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.set()

    async def run() -> None:
        with pytest.raises(ZeroDivisionError):
            await on_own_loop(fails)
        work = asyncio.ensure_future(on_own_loop(waits))
        await asyncio.to_thread(begun.wait, 20)
        assert not ended.is_set()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert ended.is_set()

    asyncio.run(run())
