"""A bounded wait on the injected clock, so that tests and the simulator own the time."""

import asyncio

from subagents.ports import Clock


async def wait_at_most(clock: Clock, seconds: float, event: asyncio.Event) -> None:
    """Return when ``event`` is set or the time is over, whichever comes first."""
    waking = asyncio.ensure_future(event.wait())
    sleeping = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((waking, sleeping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waking.cancel()
        sleeping.cancel()
