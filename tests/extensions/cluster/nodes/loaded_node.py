"""``python -m subagents``, but that a daemon has callers inside its own process.

A call over HTTP costs several times what the engine does about a run; here sessions call the engine
itself. The rest is a node as any: its store, its lease, its doors.
"""

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.extensions.cluster.nodes.loaded_nodes import AGENT, ASKED, DONE, Load, Loaded, write

from subagents import wiring
from subagents.cli.main import main
from subagents.config.settings import Settings
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import SessionKey
from subagents.engine.engine import Engine
from subagents.engine.runs.spawn_call import RunAsked, SpawnContext
from subagents.errors import SubagentsError

BATCH: Final = 10
LOOK_S: Final = 0.2
WAIT_S: Final = 60.0


class _Callers:
    """All sessions of one node."""

    def __init__(self, engine: Engine, settings: Settings, load: Load) -> None:
        self._engine, self._settings, self._load = engine, settings, load
        self._runs = 0
        self._wrong: list[str] = []

    async def play(self) -> Loaded:
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for session in self._load.sessions:
                group.create_task(self._session(SessionKey(session), began + self._load.seconds))
        return Loaded(self._runs, time.monotonic() - began, self._wrong)

    async def _session(self, session: SessionKey, due: float) -> None:
        pause_s = BATCH * len(self._load.sessions) / self._load.runs_per_s
        next_at = time.monotonic()
        while time.monotonic() < due:
            await self._batch(session)
            next_at += pause_s
            await asyncio.sleep(max(next_at - time.monotonic(), 0))

    async def _batch(self, session: SessionKey) -> None:
        engine, reader = self._engine, f"{session}/reader"
        # With keys, so that what was refused after it was stored is not made again.
        specs = [
            RunSpec(task="work", agent_id=AGENT, idempotency_key=uuid.uuid4().hex)
            for _ in range(BATCH)
        ]
        receipts = await self._patiently(
            lambda: engine.spawner.spawn_batch(
                [RunAsked(spec=each) for each in specs],
                SpawnContext(session=session, settings=self._settings, cwd="/"),
            )
        )
        ids = [each.run.id for each in receipts]
        found = await self._patiently(
            lambda: engine.mailbox.wait(
                ids, session=session, until="all", timeout_s=WAIT_S, reader=reader
            )
        )
        ended = [run.id for run in found.completed if not run.has_failed]
        await self._patiently(lambda: engine.mailbox.acknowledge(found.offered, reader=reader))
        if sorted(ended) != sorted(ids):
            self._wrong.append(f"{session}: of {ids} ended {ended}")
        self._runs += BATCH

    async def _patiently(self, call: Callable[[], Any]) -> Any:
        while True:
            try:
                return await call()
            except SubagentsError as error:
                if not error.retryable:
                    raise
            await asyncio.sleep(LOOK_S)


async def _load_when_asked(state_dir: Path, engine: Engine, settings: Settings) -> None:
    while not (state_dir / ASKED).exists():  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(LOOK_S)
    load = Load(**json.loads((state_dir / ASKED).read_text()))
    try:
        found = await _Callers(engine, settings, load).play()
    except Exception as error:  # noqa: BLE001 - whoever waits for the file is told
        found = Loaded(0, load.seconds, [repr(error)])
    write(state_dir / DONE, found._asdict())


_as_it_is = wiring.build_node
_working: set[asyncio.Task[None]] = set()


def _build(paths: Any, config: Any, *more: Any, **named: Any) -> wiring.Node:
    node = _as_it_is(paths, config, *more, **named)
    start = node.engine.start

    async def start_and_load() -> None:
        await start()
        load = _load_when_asked(paths.state_dir, node.engine, config.settings)
        _working.add(asyncio.create_task(load))

    node.engine.start = start_and_load  # type: ignore[method-assign]
    return node


if __name__ == "__main__":
    wiring.build_node = _build
    sys.exit(main())
