"""Partitions come into the memory of an engine at work, and leave it.

A run may leave with its worker: that goes on at its place, and whoever decides about it next reads
on there, as after a take-over (docs/decisions/0109).

Each is done alone, and no commit is between what is decided and what is done about it: so runs are
in the memory of the node that the store says has them, or in nobody's.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from subagents.domain.rules.admission import holds_slot, lane_key
from subagents.domain.run.run import AT_WORK, Phase, Run
from subagents.domain.run.values import RunId, SessionKey
from subagents.engine.attempts.supervisor import WATCHED
from subagents.engine.engine import Engine
from subagents.errors import Fenced, StoreUnavailable
from subagents.extensions.cluster.engine.permit_desk import PermitDesk
from subagents.extensions.cluster.engine.shared_partitions import SharedPartitions
from subagents.extensions.cluster.shared_store import SharedStore
from subagents.ports import LaneKey, OffLoop
from subagents.text import counted

log = logging.getLogger(__name__)

UNDER_WAY: Final = AT_WORK | {Phase.ANNOUNCING}
"""Where something of a run is under way on this machine."""


class Moves:
    """Takes partitions into an engine at work, and lets them go.

    Args:
        store: Of the cluster.
        engine: Of this node.
        partitions: What is ours.
        off_loop: For the store.
        memory: Held by whoever loads runs, or gives some back.
    """

    def __init__(
        self,
        store: SharedStore,
        engine: Engine,
        partitions: SharedPartitions,
        off_loop: OffLoop,
        memory: asyncio.Lock,
    ) -> None:
        self._store = store
        self._engine = engine
        self._partitions, self._ledger = partitions, engine.ledger
        self._off_loop = off_loop
        self._memory = memory

    async def adopt(self, partitions: Collection[int]) -> None:
        """Claim partitions and go on with their runs; those that are ours already are loaded.

        Raises:
            StoreUnavailable: What was claimed may not be loaded; the next look finds it.
            Fenced: All of our partitions are others'.
        """
        engine, store = self._engine, self._store
        async with self._memory:
            if self._ledger.failure is not None:
                return  # what is ours is loaded with the rest
            loads = self._ledger.loads
            # What was ours in a look before may have been given back while this waited.
            await self._partitions.look()
            taken = self._partitions.claimed & frozenset(partitions)
            if others := frozenset(partitions) - taken:
                taken |= await self._off_loop(lambda: store.claim(others))
            taken -= self._partitions.owned
            if not taken:
                return
            loaded = await self._off_loop(lambda: store.load_partitions(taken))
            aside = await self._off_loop(store.set_aside)
            keys = await engine.spawner.keys.stored()
            await engine.shared_spending.adopt(loaded.runs)
            await engine.spawner.environments.load(loaded.runs)

            async def has(session: SessionKey) -> bool:
                return await self._partitions.partition_of_session(session) in taken

            takes = [await part.read(has) for part in engine.parts.values()]
            if self._ledger.failure is not None or self._ledger.loads != loads:
                return
            # Nothing is awaited from here on, as in a start.
            self._partitions.owned |= taken
            engine.spawner.keys.adopt(keys)
            outbox = self._ledger.adopt(loaded, aside)
            for run in loaded.runs:
                engine.timers.arm(run)
            engine.counters.reset()
            engine.recorder.adopt(loaded.runs)
            engine.supervisor.take_on(loaded.runs)
            for entry in outbox:
                engine.outbox.add(entry)
            self._ledger.fill_lanes()
            for take in takes:
                take()
        words = counted(len(taken), "partition"), counted(len(loaded.runs), "run")
        log.info("took over %s with %s", *words)

    def idle(self) -> Mapping[int, int]:
        """Ours without a worker or an effect under way, and how many open runs each has."""
        return self._idle_among(self._partitions.owned)

    def movable(self, *, in_effect: bool) -> frozenset[int]:
        """Ours that others can go on with, workers and all; with ``in_effect`` also where an effect
        is under way, which is performed again there."""
        stays = {
            self._partitions.of_live(self._ledger.live, run)
            for run in self._ledger.live.values()
            # Of a daemon before there were nodes: nobody else could say where it works.
            if (run.phase in WATCHED and run.attempt.node is None)
            or (not in_effect and run.id in self._engine.outbox.busy)
        }
        return self._partitions.owned - stays

    def _idle_among(self, partitions: Collection[int]) -> dict[int, int]:
        found = dict.fromkeys(partitions, 0)
        for run in self._ledger.live.values():
            partition = self._partitions.of_live(self._ledger.live, run)
            if partition is None or partition not in found:
                continue
            if run.phase in UNDER_WAY or self._acts((run,)):
                del found[partition]
            else:
                found[partition] += 1
        return found

    async def give_back(self, partitions: Collection[int], *, at_work: bool = False) -> None:
        """Let others have partitions; one in which something began stays, unless ``at_work``.

        Raises:
            StoreUnavailable: They are out of memory, and may be ours still; the next look finds it.
            Fenced: All of our partitions are others'.
        """
        engine, parts = self._engine, self._engine.parts.values()
        async with self._memory:
            # Before anything is changed: the store may not answer.
            partition_of: dict[SessionKey, int] = {}
            while new := {each for part in parts for each in part.sessions} - partition_of.keys():
                for session in new:
                    partition_of[session] = await self._partitions.partition_of_session(session)
            strays = await self._strays()
            leaving = self._partitions.owned & frozenset(partitions)
            self._partitions.owned -= leaving  # who calls from here on is sent to who has them
            runs: list[Run] = []
            is_out = False
            while not is_out:
                try:
                    if at_work:
                        await engine.outbox.leave(e for e in strays if strays[e] in leaving)
                        await self._let_go(self._runs_of(leaving))
                    await self._ledger.committed()
                except (StoreUnavailable, Fenced):
                    return  # what is ours is loaded again with the rest
                if not at_work:
                    idle = frozenset(self._idle_among(leaving)) - self._busy_among(strays)
                    self._partitions.owned |= leaving - idle
                    leaving = idle
                runs = self._runs_of(leaving)
                held = self._held_by(runs)
                is_free = leaving.isdisjoint(self._busy_among(strays)) and not self._acts(runs)
                is_out = is_free and self._ledger.give_back(runs)
                if not is_out:
                    await asyncio.sleep(0)  # what still acts for them gets a turn to end
            for run in runs:
                engine.timers.disarm(run.id)
            engine.supervisor.leave(run.id for run in runs)
            engine.recorder.leave(runs)
            engine.counters.reset()
            if isinstance(engine.permit_desk, PermitDesk):
                engine.permit_desk.hand_over(held)
            gone = {session for session, its in partition_of.items() if its in leaving}
            for part in parts:
                part.leave(gone)
            if leaving:
                # What was decided about them besides their runs is durable before they are free.
                await self._ledger.committed()
                await self._off_loop(lambda: self._store.release(leaving))
            # Whoever waits here for one of them asks again, and is sent to who has it.
            engine.mailbox.wake_all()
            engine.questions.wake_all()
            engine.request_desk.look_again()
            engine.recorder.readers.wake([run.id for run in runs])
        words = counted(len(leaving), "partition"), counted(len(runs), "run")
        log.info("gave back %s with %s", *words)

    async def _let_go(self, runs: Collection[Run]) -> None:
        """End what acts for them here, as the end of this process would; their workers go on."""
        run_ids = [run.id for run in runs]
        await self._engine.outbox.leave(run_ids)
        await self._engine.supervisor.let_go(run_ids)
        for run in runs:
            # What is not written now is read again by who has them next.
            with contextlib.suppress(StoreUnavailable, OSError):
                await self._engine.recorder.sync(run)

    def _acts(self, runs: Collection[Run]) -> bool:
        """Whether something acts for them again: a commit that was under way began it."""
        engine = self._engine
        return any(r.id in engine.outbox.busy or engine.supervisor.reads(r.id) for r in runs)

    async def _strays(self) -> Mapping[RunId, int | None]:
        """The partitions of runs with those above them out of memory, and of such as left it
        although something is to be done for them yet.
        """
        live, found = self._ledger.live, dict[RunId, int | None]()
        while (
            new := {
                *(run.id for run in live.values() if self._partitions.of_live(live, run) is None),
                *(run_id for run_id in self._engine.outbox.busy if run_id not in live),
            }
            - found.keys()
        ):
            for run_id in new:
                found[run_id] = await self._partitions.partition_of_run(run_id)
        return found

    def _busy_among(self, strays: Mapping[RunId, int | None]) -> set[int | None]:
        return {part for run_id, part in strays.items() if run_id in self._engine.outbox.busy}

    def _held_by(self, runs: Collection[Run]) -> dict[int, Counter[LaneKey]]:
        """The slots of lanes that these hold, by their partitions."""
        found: dict[int, Counter[LaneKey]] = {}
        for run in runs:
            part = self._partitions.of_live(self._ledger.live, run)
            if part is not None and holds_slot(run):
                found.setdefault(part, Counter())[lane_key(run)] += 1
        return found

    def _runs_of(self, partitions: Collection[int]) -> list[Run]:
        live = self._ledger.live
        return [run for run in live.values() if self._partitions.of_live(live, run) in partitions]
