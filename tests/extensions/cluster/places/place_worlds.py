"""A cluster's way to places with all of it real: its table, and Temporal where it has that."""

import asyncio
import contextlib
import threading
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import Protocol

from tests.extensions.cluster.places.temporal_server import TemporalServer
from tests.extensions.cluster.postgres.postgres_server import PostgresServer

from subagents.domain.run.values import AttemptId, RunId, attempt_id
from subagents.engine.kernel.system_clock import SystemClock
from subagents.engine.kernel.threads import DaemonThreads, on_own_loop
from subagents.errors import RuntimeUnavailable
from subagents.extensions.cluster.node_ports import Offer, Places, Taking
from subagents.extensions.cluster.offers.postgres_offers import PostgresOffers
from subagents.extensions.cluster.places.polled_places import PolledPlaces, PolledTaking
from subagents.extensions.cluster.postgres.database_url import parse_url
from subagents.extensions.cluster.postgres.link import Link
from subagents.extensions.cluster.postgres.postgres_migrations import migrate
from subagents.extensions.cluster.shared_store import Survey
from subagents.ports.workers import OfAttempt

BOUND_S = 90.0


def offer(
    number: int,
    *,
    label: str | None = None,
    priority: int = 0,
    cwd: str = "/",
    epoch: int = 1,
    run: str = "r-offer",
) -> Offer:
    run_id = RunId(run)
    return Offer(attempt_id(run_id, number), run_id, epoch, label, priority, cwd)


async def no_nodes(_offer: Offer) -> None:
    """Nobody is there to be asked; what waits is found in its row."""


class Rows:
    """Offers in memory, each statement counted."""

    def __init__(self) -> None:
        self.kept: dict[AttemptId, tuple[Offer, str | None]] = {}
        self.asked: list[str] = []

    def put(self, offer: Offer) -> str | None:
        self.asked.append("put")
        return self.kept.setdefault(offer.attempt_id, (offer, None))[1]

    def takers(self, attempts: Collection[AttemptId]) -> Mapping[AttemptId, str]:
        found = {each: self.kept[each][1] for each in attempts if each in self.kept}
        return {each: taker for each, taker in found.items() if taker is not None}

    def open(self, labels: Collection[str], most: int) -> Sequence[Offer]:
        del labels, most
        self.asked.append("open")
        return [each for each, taker in self.kept.values() if taker is None]

    def take(self, attempts: Collection[AttemptId], node: str, most: int) -> list[AttemptId]:
        found = [each for each in attempts if each in self.kept and self.kept[each][1] is None]
        for each in found[:most]:
            self.kept[each] = (self.kept[each][0], node)
        return found[:most]

    def find(self, attempt: AttemptId) -> tuple[Offer, str | None] | None:
        return self.kept.get(attempt)

    def drop(self, attempt: AttemptId) -> None:
        self.kept.pop(attempt, None)

    def sweep(self) -> None: ...


class CountedSlots:
    """As many slots as there are."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.kept: set[AttemptId] = set()
        self._lock = threading.Lock()

    @property
    def free(self) -> int | None:
        with self._lock:
            return None if self.most is None else max(self.most - len(self.kept), 0)

    def keep(self, attempt: AttemptId) -> bool:
        with self._lock:
            if self.most is not None and len(self.kept | {attempt}) > self.most:
                return False
            self.kept.add(attempt)
            return True

    def give_up(self, attempt: AttemptId) -> None:
        with self._lock:
            self.kept.discard(attempt)

    @contextlib.contextmanager
    def starting(self, of: OfAttempt) -> Iterator[None]:
        if not self.keep(of.attempt_id):
            raise RuntimeUnavailable("no slot is free")
        yield


class PlaceWorld(Protocol):
    """One cluster: its owners' and its nodes' side."""

    offers: PostgresOffers

    def places(self) -> Places:
        """As a new owner has it."""
        ...

    def taking(self, node: str, slots: CountedSlots, labels: Collection[str]) -> Taking: ...


class PolledWorld:
    """PostgreSQL and nothing else."""

    def __init__(self, postgres: PostgresServer) -> None:
        url = postgres.url(postgres.new_schema())
        found = parse_url(url)
        link = Link(found.conninfo)
        migrate(link, found.schema)
        link.close()
        self.offers = PostgresOffers(url)
        self.off_loop = DaemonThreads("offers", threads_max=2)
        self.may_take = True

    def close(self) -> None:
        self.offers.close()
        self.off_loop.close()

    def places(self) -> Places:
        return PolledPlaces(self.offers, self.off_loop, SystemClock(), no_nodes)

    def taking(self, node: str, slots: CountedSlots, labels: Collection[str] = ()) -> Taking:
        return PolledTaking(
            self.offers,
            self.off_loop,
            SystemClock(),
            node=node,
            labels=labels,
            slots=slots,  # type: ignore[arg-type]  # as ``Slots``
            may_take=lambda: self.may_take,
            survey=lambda: Survey({}, {}, has_offers=True),
        )


class TemporalWorld(PolledWorld):
    """PostgreSQL, and Temporal that finds the nodes."""

    def __init__(self, postgres: PostgresServer, server: TemporalServer) -> None:
        super().__init__(postgres)
        from subagents.extensions.cluster.places.temporal_places import TemporalAddress  # noqa: PLC0415 - an extra

        self.server = server
        self.address = TemporalAddress(server.target, cluster=postgres.new_schema())

    def places(self) -> Places:
        from subagents.extensions.cluster.places.temporal_places import TemporalPlaces  # noqa: PLC0415

        return TemporalPlaces(self.address, self.offers, self.off_loop, SystemClock())

    def taking(self, node: str, slots: CountedSlots, labels: Collection[str] = ()) -> Taking:
        from subagents.extensions.cluster.places.temporal_places import TemporalTaking  # noqa: PLC0415

        return TemporalTaking(
            self.address,
            self.offers,
            on_own_loop,
            node=node,
            labels=labels,
            slots=slots,  # type: ignore[arg-type]  # as ``Slots``
            may_take=lambda: self.may_take,
        )


@asynccontextmanager
async def working(*takings: Taking) -> AsyncIterator[None]:
    """Nodes that take until the block ends."""
    tasks = [asyncio.create_task(each.run()) for each in takings]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(2 * BOUND_S):
            await scenario()

    asyncio.run(bounded())
