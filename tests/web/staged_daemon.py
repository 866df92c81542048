"""The daemon, but that time and ids are the test's: pictures of it are the same every time.

It is what ``python -m subagents`` is, with a wall clock that stands still until the test moves it
(milliseconds in the file that ``STAGE_CLOCK`` names), and with run ids in a fixed sequence. What
waits by itself still waits in real time.
"""

import os
import random
import sys
import time
import uuid
from pathlib import Path
from typing import Final

CLOCK: Final = "STAGE_CLOCK"
_SEED: Final = 7


def now_ms() -> int:
    """What the test says it is."""
    return int(Path(os.environ[CLOCK]).read_text("ascii"))


def _stage() -> None:
    # Before anything that takes these functions along when it is imported.
    time.time_ns = lambda: now_ms() * 1_000_000
    time.time = lambda: now_ms() / 1_000

    from subagents.domain.run.values import RunId  # noqa: PLC0415
    from subagents.engine.kernel import system_clock  # noqa: PLC0415

    letters = random.Random(_SEED)  # noqa: S311

    def run_id(self: system_clock.RandomIds) -> RunId:
        return RunId("r-" + "".join(letters.choices(system_clock._BASE32, k=10)))

    def session_uuid(self: system_clock.RandomIds) -> str:
        return str(uuid.UUID(int=letters.getrandbits(128), version=4))

    # Time that the test moves has passed; it is no step of a clock that was set.
    system_clock.SystemClock.now_ms = lambda self: now_ms()  # type: ignore[method-assign]
    system_clock.SystemClock.take_step_ms = lambda self: 0  # type: ignore[method-assign]
    system_clock.RandomIds.run_id = run_id  # type: ignore[method-assign]
    system_clock.RandomIds.session_uuid = session_uuid  # type: ignore[method-assign]


if __name__ == "__main__":
    _stage()
    from subagents.cli.main import main

    sys.exit(main())
