"""Real attempts for the tests of the process runtimes; whatever a test leaves running is ended."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Self, TypeVar

from subagents.domain.run.signals import (
    Exited,
    ResultSeen,
    Signal,
    Vanished,
)
from subagents.domain.run.values import attempt_id, replace
from subagents.domain.run.worker_output import OutputBatch, OutputItem
from subagents.engine.kernel.system_clock import SystemClock
from subagents.extensions.testing.process_place import RUN, a_launch, end_all
from subagents.ports import AttemptRef, Launch, LongResult
from subagents.runtimes.command import CommandRuntime
from subagents.runtimes.process.processes import marked
from subagents.runtimes.process.shim import AttemptDirectory

T = TypeVar("T")
BOUND_S = 60.0


def off_loop(work: Callable[[], T], /) -> Awaitable[T]:
    return asyncio.to_thread(work)


class Harness:
    """An attempts directory of its own, and short ways to start and read attempts in it."""

    def __init__(self, root: Path) -> None:
        self.root = root / "attempts"
        self.cwd = root / "work"
        self.cwd.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end_all(self.root)

    def runtime(self) -> CommandRuntime:
        return CommandRuntime(self.root, SystemClock(), off_loop)

    def launch(self, *argv: str, number: int = 1, **options: object) -> Launch:
        """A launch with ``options``; vary other fields with ``replace``."""
        return replace(a_launch(self.cwd, number), options={"command": list(argv), **options})

    def ref(self, number: int = 1) -> AttemptRef:
        return AttemptRef(attempt_id=attempt_id(RUN, number), run_id=RUN, number=number)

    def directory(self, number: int = 1) -> AttemptDirectory:
        return AttemptDirectory(self.root, RUN, number)

    def carriers(self) -> list[int]:
        """Live processes of any attempt of this bench, shims included."""
        return [pid for _, pid in marked(str(self.root))]

    def ended(self, *argv: str) -> "Ended":
        """Start ``argv`` and read it to its end."""
        return self.ended_launch(self.launch(*argv))

    def ended_launch(self, launch: Launch) -> "Ended":
        async def go() -> Ended:
            runtime = self.runtime()
            await runtime.start(launch)
            return await self.read(runtime, number=launch.number)

        return asyncio.run(go())

    async def read(
        self,
        runtime: CommandRuntime,
        *,
        cursor: int = 0,
        positions: Mapping[str, int] | None = None,
        number: int = 1,
    ) -> "Ended":
        watch = runtime.watch(self.ref(number), cursor=cursor, positions=positions or {})
        async with asyncio.timeout(BOUND_S):
            return Ended([pair async for pair in watch])


class Ended:
    """Everything that was seen of an attempt."""

    def __init__(self, seen: Iterable[tuple[Signal | OutputBatch | LongResult, int]]) -> None:
        self.pairs: list[tuple[Signal, int]] = []
        self.batches: list[OutputBatch] = []
        for each, cursor in seen:
            if isinstance(each, OutputBatch):
                self.batches.append(each)
            else:
                signal = each.seen if isinstance(each, LongResult) else each
                self.pairs.append((signal, cursor))
        self.signals = [signal for signal, _ in self.pairs]

    @property
    def output(self) -> list[OutputItem]:
        return [item for batch in self.batches for item in batch.items]

    @property
    def positions(self) -> dict[str, int]:
        return self.batches[-1].positions

    @property
    def exited(self) -> Exited:
        assert isinstance(self.signals[-1], Exited), self.signals[-1]
        return self.signals[-1]

    @property
    def vanished(self) -> Vanished:
        assert isinstance(self.signals[-1], Vanished), self.signals[-1]
        return self.signals[-1]

    @property
    def result(self) -> ResultSeen:
        return [each for each in self.signals if isinstance(each, ResultSeen)][-1]


def until(what: str, condition: Callable[[], T], *, bound_s: float = BOUND_S) -> T:
    """Return the condition's first true value; fail after ``bound_s``."""
    end = time.monotonic() + bound_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what}: not within {bound_s} s"
        time.sleep(0.005)


async def until_async(what: str, condition: Callable[[], T], *, bound_s: float = BOUND_S) -> T:
    return await asyncio.to_thread(until, what, condition, bound_s=bound_s)
