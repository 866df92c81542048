"""Nodes of a cluster that break a promise, and databases that do: each one must be caught."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.simulation.mutation_table import cluster_mutation, ignored, ignored_async, wrap
from tests.simulation.shared_database import NodeRow, SharedSqlite

from subagents.engine.engine import Engine
from subagents.engine.kernel.ownership import Ownership
from subagents.errors import Fenced, NodeOver, StoreUnavailable
from subagents.extensions.cluster.engine import membership, moves
from subagents.extensions.cluster.engine.moves import Moves
from subagents.extensions.cluster.engine.shared_partitions import SharedPartitions
from subagents.extensions.cluster.node_ports import SURE
from subagents.extensions.cluster.remote.remote_runtime import RemoteRuntime
from subagents.ports import Loaded

LONG_MS = 1_000_000


def _loads(patch: pytest.MonkeyPatch, change: Callable[[Loaded], Loaded]) -> None:
    """What a node takes over, it takes over like this."""

    def make(original: Any) -> Any:
        def load(self: SharedSqlite, partitions: Any) -> Loaded:
            return change(original(self, partitions))

        return load

    wrap(patch, SharedSqlite, "load_partitions", make)


# -- the right of a node -----------------------------------------------------------------------


@cluster_mutation
def lets_workers_live_without_end(patch: pytest.MonkeyPatch) -> None:
    async def prolong_work(ownership: Ownership, asked_ms: int) -> None:
        ownership._extend(asked_ms + LONG_MS)

    patch.setattr(Ownership, "prolong_work", prolong_work)


@cluster_mutation
def believes_in_its_right_without_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ownership, "lapse", None)


@cluster_mutation
def answers_from_memory_when_its_right_is_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Engine, "require_ownership", ignored)


@cluster_mutation
def takes_partitions_without_having_held_its_right(patch: pytest.MonkeyPatch) -> None:
    """Node and database forget it; each alone is the other's safety net."""

    def is_proven(store: SharedSqlite, row: NodeRow) -> bool:
        return row.until_s > store._shared.now_s()

    patch.setattr(Ownership, "is_proven", True)
    patch.setattr(SharedSqlite, "_is_proven", is_proven)


@cluster_mutation
def calls_over_who_is_late_after_an_outage(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharedPartitions, "_given_time", lambda _partitions, seen: seen)


@cluster_mutation
def prolongs_work_without_a_promise(patch: pytest.MonkeyPatch) -> None:
    async def promised(_ownership: Ownership) -> bool:
        return True

    patch.setattr(Ownership, "_promised", promised)


@cluster_mutation
def asks_no_other_node_for_its_promise(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def look(self: SharedPartitions) -> None:
            await original(self)
            self.peers = ()

        return look

    wrap(patch, SharedPartitions, "look", make)


# -- the fence -----------------------------------------------------------------------------------


@cluster_mutation
def lets_nodes_write_that_are_over(patch: pytest.MonkeyPatch) -> None:
    def row(store: SharedSqlite) -> NodeRow:
        store._require_reached()
        return store._shared.nodes[store.identity]

    patch.setattr(SharedSqlite, "_row", row)


@cluster_mutation
def ends_nodes_whose_right_holds(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def claim(self: SharedSqlite, partitions: Any) -> Any:
            shared = self._shared
            held, shared.now_s = shared.now_s, lambda: held() + self._member.lease_s / 2
            try:
                return original(self, partitions)
            finally:
                shared.now_s = held

        return claim

    wrap(patch, SharedSqlite, "claim", make)
    patch.setattr(membership.Membership, "_is_over", lambda *_: True)


@cluster_mutation
def hears_of_no_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Engine, "_give_up", ignored_async)


@cluster_mutation
def takes_a_fence_for_an_outage(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        def failed(self: Engine, error: Exception) -> None:
            is_fence = isinstance(error, Fenced)
            original(self, StoreUnavailable("it will be back") if is_fence else error)

        return failed

    wrap(patch, Engine, "_failed", make)


# -- partitions come and go ----------------------------------------------------------------------


@cluster_mutation
def gives_nothing_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(membership, "excess", lambda *_: 0)


@cluster_mutation
def loads_no_runs_of_what_it_takes(patch: pytest.MonkeyPatch) -> None:
    _loads(patch, lambda loaded: loaded._replace(runs=[], outbox=[], leases=[], keys={}))


@cluster_mutation
def loads_no_effects_of_what_it_takes(patch: pytest.MonkeyPatch) -> None:
    _loads(patch, lambda loaded: loaded._replace(outbox=[]))


@cluster_mutation
def loads_no_leases_of_what_it_takes(patch: pytest.MonkeyPatch) -> None:
    _loads(patch, lambda loaded: loaded._replace(leases=[]))


@cluster_mutation
def gives_back_what_is_at_work(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(moves, "UNDER_WAY", frozenset())
    patch.setattr(Moves, "_acts", lambda *_: False)


@cluster_mutation
def gives_back_before_it_is_written(patch: pytest.MonkeyPatch) -> None:
    async def give_back(self: Moves, partitions: Any, *, at_work: bool = False) -> None:
        del at_work
        leaving = frozenset(partitions) & frozenset(self._idle_among(self._partitions.owned))
        runs = self._runs_of(leaving)
        self._partitions.owned -= leaving
        self._ledger._runs.give_back(runs)
        await self._off_loop(lambda: self._store.release(leaving))

    patch.setattr(Moves, "give_back", give_back)


# -- who decides ---------------------------------------------------------------------------------


@cluster_mutation
def decides_what_others_have(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharedPartitions, "require", ignored)


@cluster_mutation
def reads_what_others_have_as_it_stands(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharedPartitions, "require_read", ignored_async)


@cluster_mutation
def forgets_what_it_gave_back_is_no_more_its(patch: pytest.MonkeyPatch) -> None:
    def make(original: Any) -> Any:
        async def give_back(self: Moves, partitions: Any, *, at_work: bool = False) -> None:
            before = self._partitions.owned
            await original(self, partitions, at_work=at_work)
            self._partitions.owned |= before

        return give_back

    wrap(patch, Moves, "give_back", make)


# -- between the yes of a node and the start -----------------------------------------------------


def _knows_of_starts(patch: pytest.MonkeyPatch, *, is_sure: bool) -> None:
    def make(original: Any) -> Any:
        async def start(self: RemoteRuntime, launch: Any) -> Any:
            try:
                return await original(self, launch)
            except NodeOver as error:
                error.details = {SURE: is_sure}
                raise

        return start

    wrap(patch, RemoteRuntime, "start", make)


@cluster_mutation
def uses_a_retry_for_what_no_node_was_told_to_start(patch: pytest.MonkeyPatch) -> None:
    _knows_of_starts(patch, is_sure=False)


@cluster_mutation
def starts_elsewhere_what_a_node_may_have_started(patch: pytest.MonkeyPatch) -> None:
    _knows_of_starts(patch, is_sure=True)
