"""Simulated callers who talk to sessions: they continue ended ones, and interrupt live ones.

They draw from a generator of their own, so that what else happens in a seed stays as it was.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Protocol, TypeVar

from subagents.config.settings import Settings
from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, SessionKey
from subagents.engine.engine import Engine
from subagents.engine.runs.sessions import (
    EITHER,
    FOLLOWUP,
    STEER,
    Sent,
)
from subagents.engine.runs.spawn_call import SpawnContext
from subagents.errors import SubagentsError

PAUSE_S: Final = 10.0

T = TypeVar("T")


class Host(Protocol):
    """The daemon, as its callers reach it over every crash."""

    settings: Settings
    is_calm: bool

    async def call(self, request: Callable[[Engine], Coroutine[Any, Any, T]]) -> T: ...


class Judge(Protocol):
    """Who hears of what was promised, and of what does not hold."""

    view: dict[RunId, Run]

    def promised(self, run: Run) -> None: ...

    def fail(self, invariant: str, detail: str) -> None: ...


class SessionTalk:
    """One caller of a simulation, for as long as things may go wrong in it."""

    def __init__(self, seed: int, host: Host, judge: Judge, caller: SessionKey) -> None:
        self._rng = random.Random(f"{seed}:sessions")
        self._host, self._judge, self._caller = host, judge, caller
        self._talks = self._rng.random() < 0.6
        self._heard: dict[str, RunId] = {}
        """By key: which run has that message."""

    async def go_on(self) -> None:
        """Pick runs and talk to them until the simulation becomes calm."""
        rng = self._rng
        while self._talks and not self._host.is_calm:
            await asyncio.sleep(rng.random() * PAUSE_S)
            known = list(self._judge.view)
            if not known:
                continue
            run_id = rng.choice(known)
            if rng.random() < 0.3:
                await self._interrupt(run_id)
            else:
                await self._send(run_id)

    async def _interrupt(self, run_id: RunId) -> None:
        try:
            await self._host.call(lambda engine: engine.control.interrupt(run_id, by="simulation"))
        except SubagentsError:
            return

    async def _send(self, run_id: RunId) -> None:
        """One message; some are sent twice under one key, and some were not answered."""
        rng = self._rng
        mode = rng.choice((EITHER, EITHER, FOLLOWUP, STEER))
        key = rng.choice((None, f"message {len(self._heard)} of {self._caller}"))

        async def send(engine: Engine) -> Sent:
            return await engine.sessions.send(
                run_id,
                "and now?",
                SpawnContext(session=self._caller, settings=self._host.settings),
                mode=mode,
                key=key,
            )

        for _ in range(rng.choice((1, 1, 2))):
            try:
                sent = await self._host.call(send)
            except SubagentsError:
                continue
            self._judge.promised(sent.run)
            if key is None:
                return
            first = self._heard.setdefault(key, sent.run.id)
            if first != sent.run.id:
                self._judge.fail("a message is taken once", f"{key}: {first}, {sent.run.id}")


def shared_sessions(runs: Mapping[RunId, Run]) -> list[str]:
    """Sessions in which two runs are at work, in words; there must be none."""
    at_work: dict[RunId, RunId] = {}
    found = []
    for run in runs.values():
        if run.is_settled:
            continue
        other = at_work.setdefault(run.root, run.id)
        if other != run.id:
            found.append(f"{run.id} beside {other} in the session of {run.root}")
    return found


def broken_links(runs: Mapping[RunId, Run], run: Run) -> str | None:
    """What is wrong between a run and the one whose session it continues; None = nothing."""
    if run.session.continues is None:
        return None
    before = runs.get(run.session.continues.run_id)
    if before is None or before.outcome is None:
        return f"{run.id} continues {run.session.continues.run_id}, which did not end"
    if before.session.continued_by is None:
        return f"{before.id} does not know that {run.id} continues it"
    return None
