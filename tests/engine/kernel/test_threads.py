"""Blocking work runs on threads that hold nobody up, not even the end of the process."""

import asyncio
import sys
import threading

import pytest

from subagents.engine.kernel.threads import DaemonThreads


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
        stuck = [asyncio.ensure_future(threads(lambda: release.wait(30))) for _ in range(7)]
        assert await asyncio.wait_for(threads(lambda: "free"), timeout=5) == "free"
        queued = [asyncio.ensure_future(threads(lambda: release.wait(30))) for _ in range(20)]
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
