"""A real receiver for what is steered: a live attempt."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from subagents.couriers.steer_courier import SteerCourier
from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.events import AttemptStarted, SlotGranted, Spawned
from subagents.domain.run.run import Run
from subagents.domain.run.spec import (
    Abilities,
    Mode,
    Resolved,
    RunSpec,
)
from subagents.domain.run.values import RunId, SessionKey
from subagents.engine.attempts.launch import launch_of
from subagents.errors import RuntimeUnavailable
from subagents.extensions.testing.conformance import Received
from subagents.ports import AttemptRef, Clock
from subagents.runtimes.scripted import ScriptedRuntime

OUTSIDE: Final = SessionKey("agent:main:project-1")
ELSEWHERE: Final = SessionKey("agent:other:main")
NOW_MS: Final = 1_700_000_000_000


class Willingness:
    """What a test does to a receiver, as files that the receiver looks at."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def refuse(self) -> None:
        (self.directory / "refuse").touch()

    def hang(self) -> None:
        (self.directory / "hang").touch()

    def mend(self) -> None:
        for name in ("refuse", "hang", "begun"):
            (self.directory / name).unlink(missing_ok=True)

    def has_begun(self) -> bool:
        return (self.directory / "begun").exists()


class SteeredPlace(Willingness):
    """A live scripted attempt; what was put into it under one key is there once."""

    target: SessionKey
    requester: Run | None
    dedupes = True

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.requester = live_run()
        self.target = self.requester.session.first_key
        plain = live_run(abilities=Abilities())
        self.stranger: tuple[SessionKey, Run | None] = (plain.session.first_key, plain)
        self._runtime: PickyRuntime | None = None

    async def courier(self) -> SteerCourier:
        assert self.requester is not None
        self._runtime = PickyRuntime(Standstill(), self)
        await self._runtime.start(launch_of(self.requester, {}))
        return SteerCourier(lambda _run: self._runtime)

    def received(self) -> Sequence[Received]:
        return [] if self._runtime is None else list(self._runtime.taken)

    def left_behind(self) -> int:
        return 0 if self._runtime is None else self._runtime.at_it


class PickyRuntime(ScriptedRuntime):
    """A scripted runtime whose attempts can refuse messages, or take for ever to take one."""

    def __init__(self, clock: Clock, place: Willingness) -> None:
        super().__init__(clock)
        self.taken: list[Received] = []
        self.at_it = 0
        self._place = place

    async def steer(self, ref: AttemptRef, message: str, *, key: str) -> None:
        if (self._place.directory / "refuse").exists():
            raise RuntimeUnavailable("not now")
        if (self._place.directory / "hang").exists():
            (self._place.directory / "begun").touch()
            self.at_it += 1
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.at_it -= 1
        await super().steer(ref, message, key=key)
        played = self._attempts[ref.attempt_id]
        self.taken = [Received(name, text) for name, text in played.messages.items()]


class Standstill:
    """A clock on which nothing is ever due."""

    def now_ms(self) -> int:
        return NOW_MS

    async def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        await asyncio.get_running_loop().create_future()


def live_run(*, abilities: Abilities = ScriptedRuntime.abilities) -> Run:
    """A run whose first attempt works."""
    session = SessionKey("agent:worker:subagent:parent")
    run: Run | None = None
    for event in (
        Spawned(
            at_ms=NOW_MS,
            run_id=RunId("r-parent0000"),
            spec=RunSpec(task="lead"),
            resolved=Resolved(
                agent_id="worker",
                runtime="scripted",
                mode=Mode.RUN,
                label="lead",
                cwd="/",
                lane="default",
                lane_slots=1,
                abilities=abilities,
                options={"script": [{"hang": True}]},
            ),
            requester=SessionKey("agent:main:main"),
            depth=1,
            session_key=session,
        ),
        SlotGranted(at_ms=NOW_MS, session_key=session),
        AttemptStarted(at_ms=NOW_MS, attempt=1, turn=1),
    ):
        run = reduce(run, event).run
    assert run is not None
    return run
