"""Where the runtimes' suite runs attempts, and how it reads them.

See ``runtime_suite``, which says how to use it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Final, Protocol

from subagents.domain.run.signals import (
    TERMINAL,
    ResultSeen,
    SessionSeen,
    Signal,
    ToolSeen,
)
from subagents.domain.run.worker_output import LineType, OutputBatch
from subagents.errors import RuntimeUnavailable, UsageError
from subagents.extensions.testing.conformance import Broken
from subagents.ports import AttemptRef, Launch, LongResult, Runtime

BOUND_S: Final = 30.0
"""No single step takes longer."""
LOOK_S: Final = 0.01
SPOKEN: Final = ("one", "two", "three")


class Work(StrEnum):
    """What a worker is to do; the place puts it into words that its worker understands."""

    SAYS = "says"
    """Says ``one``, ``two`` and ``three``, a text each, and ends well; the result has ``three``."""
    WAITS = "waits"
    """Says ``waiting`` and works on until it is stopped or interrupted."""
    LISTENS = "listens"
    """Says ``waiting``, waits for a message, says it, and ends well."""
    LEAVES_A_CHILD = "leaves a child"
    """Starts a process that leads a session of its own, says ``waiting``, and works on."""
    USES_A_TOOL = "uses a tool"
    """Uses the tool ``RuntimePlace.tool`` and ends well."""
    CANNOT_START = "cannot start"
    """Its program is not there, or its directory."""


class RuntimePlace(Protocol):
    """Where attempts of one runtime run, with whatever their worker needs to be predictable."""

    tool: str
    """A tool of the worker's, for ``Work.USES_A_TOOL``; empty = it has none."""

    def runtime(self) -> Runtime:
        """The runtime as a new daemon has it; called inside a running loop.

        One that does not survive its daemon may return the same object each time.
        """
        ...

    def launch(self, work: Work, number: int = 1) -> Launch | None:
        """An attempt that does that; None = this worker cannot. ``number`` makes another one."""
        ...

    def messages(self, runtime: Runtime, ref: AttemptRef, texts: Sequence[str]) -> Sequence[str]:
        """The messages that the worker got so far, from its output ``texts`` or otherwise."""
        ...

    def used_tool(self, names: Sequence[str]) -> bool:
        """Whether the worker of ``Work.USES_A_TOOL`` really did; ``names`` = its tools' names."""
        ...

    def alive(self) -> int:
        """How many processes of attempts are alive, whoever started them."""
        ...

    def files(self) -> int:
        """How many files of attempts there are."""
        ...


class Seen:
    """What ``watch`` yielded, in order."""

    def __init__(self) -> None:
        self.all: list[tuple[Signal | OutputBatch, int]] = []
        self.is_over = False

    def add(self, seen: Signal | OutputBatch | LongResult, cursor: int) -> None:
        """One more; a long result as its runs shows it."""
        self.all.append((seen.seen if isinstance(seen, LongResult) else seen, cursor))

    @property
    def signals(self) -> list[Signal]:
        return [each for each, _ in self.all if not isinstance(each, OutputBatch)]

    @property
    def texts(self) -> list[str]:
        """What it said, without what its program said about itself."""
        batches = [each for each, _ in self.all if isinstance(each, OutputBatch)]
        return [s.text for each in batches for s in each.items if s.type is LineType.TEXT]

    @property
    def words(self) -> list[str]:
        """What ``Work.SAYS`` is to say; a program may say more, and at any time."""
        return [text for text in self.texts if text in SPOKEN]

    @property
    def tools(self) -> list[str]:
        return [each.name for each in self.signals if isinstance(each, ToolSeen)]

    @property
    def cursor(self) -> int:
        return self.all[-1][1] if self.all else 0

    @property
    def positions(self) -> Mapping[str, int]:
        return next((e.positions for e, _ in reversed(self.all) if isinstance(e, OutputBatch)), {})

    @property
    def session(self) -> str | None:
        named = [each.session_id for each in self.signals if isinstance(each, SessionSeen)]
        return named[-1] if named else None

    @property
    def result(self) -> str | None:
        results = [each for each in self.signals if isinstance(each, ResultSeen)]
        return results[-1].text if results else None

    @property
    def terminal(self) -> Signal | None:
        found = [each for each in self.signals if isinstance(each, TERMINAL)]
        return found[-1] if found else None

    async def waiting(self) -> None:
        """Look until the worker says ``waiting``, or ended without."""
        with contextlib.suppress(Broken):
            await until(lambda: self.is_over or "waiting" in self.texts, "it waits")
        if "waiting" not in self.texts:
            raise Broken(f"it says `waiting`\n  found: {self.texts!r}")

    def upto(self, count: int) -> "Seen":
        seen = Seen()
        seen.all = self.all[:count]
        return seen


Scenario = Callable[[Runtime], Awaitable[None]]


def play(scenario: Scenario, place: RuntimePlace) -> None:
    """Run a scenario on a fresh event loop, and fail when it does not end."""

    async def bounded() -> None:
        async with asyncio.timeout(6 * BOUND_S):
            await scenario(place.runtime())

    asyncio.run(bounded())


def ref_of(launch: Launch, *, turns: int = 1, session: str | None = None) -> AttemptRef:
    return AttemptRef(
        attempt_id=launch.attempt_id,
        run_id=launch.run_id,
        number=launch.number,
        options=launch.options,
        turns=turns,
        native_session=session,
    )


def asked(place: RuntimePlace, work: Work, *, number: int = 1, why: str = "") -> Launch:
    """The launch; ``why`` the place must have one: for what its runtime claims."""
    launch = place.launch(work, number)
    if launch is None:
        reason = f"abilities say {why}" if why else "every worker can do that"
        raise Broken(f"the place must show Work.{work.name}: {reason}")
    return launch


async def read(
    runtime: Runtime,
    ref: AttemptRef,
    *,
    cursor: int = 0,
    positions: Mapping[str, int] | None = None,
) -> Seen:
    """All of it, to its end."""
    seen = Seen()
    async with asyncio.timeout(BOUND_S):
        async for each in runtime.watch(ref, cursor=cursor, positions=positions or {}):
            if seen.terminal is not None:
                raise Broken(f"nothing comes after the terminal signal\n  found: {each!r}")
            seen.add(*each)
    if seen.terminal is None:
        raise Broken("watch ends after a terminal signal, not before")
    seen.is_over = True
    return seen


@asynccontextmanager
async def watched(
    runtime: Runtime, ref: AttemptRef, *, after: Seen | None = None
) -> AsyncIterator[Seen]:
    """Reads in the background, as the supervisor does; ends reading, not the attempt."""
    seen = Seen()
    cursor, positions = (after.cursor, after.positions) if after is not None else (0, {})

    async def follow() -> None:
        async for each in runtime.watch(ref, cursor=cursor, positions=positions):
            seen.add(*each)
        seen.is_over = True

    task = asyncio.create_task(follow())
    try:
        yield seen
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(happened: Callable[[], object], what: str) -> None:
    """Look again and again, at most ``BOUND_S``."""
    due = asyncio.get_running_loop().time() + BOUND_S
    while not happened():
        if asyncio.get_running_loop().time() > due:
            raise Broken(f"not within {BOUND_S:g} s: {what}")
        await asyncio.sleep(LOOK_S)


async def gone(place: RuntimePlace) -> None:
    await until(lambda: place.alive() == 0, "no process of the attempt is left")


async def unavailable(promise: str, asking: Awaitable[object]) -> None:
    """Fail unless it is refused as something that cannot be done."""
    try:
        await asking
    except (RuntimeUnavailable, UsageError):
        return
    raise Broken(f"{promise}: RuntimeUnavailable was not raised")
