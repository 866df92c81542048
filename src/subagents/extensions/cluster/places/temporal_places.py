"""Places through Temporal: its queues find the node, and nothing else is asked of it.

Each attempt is one short activity, on a queue of its cluster and label. The node that gets it
writes into the store that it has taken the offer, and the activity is over: what runs is known by
the store and watched by its owner. So an outage of Temporal holds up what has no place yet, and
nothing else. Temporal is told ids and labels only.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from temporalio import activity
from temporalio.client import ActivityFailureError, ActivityHandle, Client
from temporalio.common import (
    ActivityIDConflictPolicy,
    ActivityIDReusePolicy,
    Priority,
    RetryPolicy,
)
from temporalio.exceptions import TemporalError
from temporalio.service import TLSConfig
from temporalio.worker import (
    CustomSlotSupplier,
    FixedSizeSlotSupplier,
    PollerBehaviorSimpleMaximum,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    Worker,
    WorkerTuner,
)

from subagents.domain.run.values import AttemptId
from subagents.extensions.cluster.node_ports import Offer
from subagents.extensions.cluster.places.polled_places import fits
from subagents.extensions.cluster.remote.slots import Slots
from subagents.ports import Clock, OffLoop, OwnLoop

if TYPE_CHECKING:  # of an extra
    from subagents.extensions.cluster.offers.postgres_offers import PostgresOffers

log = logging.getLogger(__name__)

TAKE: Final = "subagents-take"
"""The activity's type."""
TAKE_S: Final = 10.0
"""How long one activity may take from its start: some statements in the store. Its node may be gone
by then; and one that is later than this still takes what nobody has."""
CALL_S: Final = 10.0
"""How long one call may take; a server that is frozen answers none."""
STARTS_MAX: Final = 8
"""Calls at the same time that put something into a queue: all that waited come at once when
Temporal is back, and it would answer none of them in time."""
AGAIN_S: Final = 1.0
"""The wait after nobody could be asked, or the node that got it could not take it."""
LOOK_AGAIN_S: Final = 20.0
"""How often the store is asked besides Temporal, which may have forgotten an activity."""
FREE_LOOK_S: Final = 0.1
"""How often a node without a free slot looks for one."""
PRIORITIES: Final = 5
"""Temporal's, of which 1 is the first and 3 what has none."""


class TemporalAddress(NamedTuple):
    """How Temporal is reached."""

    target: str
    """``HOST:PORT``."""
    cluster: str
    """Begins the names of our queues."""
    namespace: str = "default"
    api_key: str | None = None
    tls: TLSConfig | bool | None = None

    def queue(self, label: str | None) -> str:
        """Of offers with this label; None = of those for any node."""
        return f"{self.cluster}/any" if label is None else f"{self.cluster}/label/{label}"

    async def connect(self, *, is_lazy: bool) -> Client:
        """A client.

        Args:
            is_lazy: It connects when it is first used; workers take none of these.

        Raises:
            RuntimeError: Nobody answers there.
        """
        return await Client.connect(
            self.target,
            namespace=self.namespace,
            api_key=self.api_key,
            tls=self.tls,
            lazy=is_lazy,
        )


def temporal_address(
    target: str,
    *,
    cluster: str,
    namespace: str,
    api_key: str | None,
    is_tls: bool,
    files: tuple[str | None, str | None, str | None],
) -> TemporalAddress:
    """Read what is needed to reach it.

    Args:
        target: ``HOST:PORT``.
        cluster: Begins the names of our queues.
        namespace: In that Temporal.
        api_key: None = none.
        is_tls: Whether it is reached over TLS, also without any of the files.
        files: PEM files: of who signed its certificate, of ours, and of the key of that.

    Raises:
        OSError: A file cannot be read.
    """
    ca, cert, key = (
        None if each is None else Path(each).expanduser().read_bytes() for each in files
    )
    tls: TLSConfig | bool = is_tls
    if ca or cert or key:
        tls = TLSConfig(server_root_ca_cert=ca, client_cert=cert, client_private_key=key)
    return TemporalAddress(target, cluster, namespace, api_key, tls)


class TemporalPlaces:
    """See ``ports.Places``.

    Args:
        address: Of Temporal.
        offers: Where they are kept, with their takers.
        off_loop: For questions to it.
        clock: Only waits.
    """

    def __init__(
        self, address: TemporalAddress, offers: "PostgresOffers", off_loop: OffLoop, clock: Clock
    ) -> None:
        self._address = address
        self._offers = offers
        self._off_loop = off_loop
        self._clock = clock
        self._client: Client | None = None
        self._turn = asyncio.Lock()
        self._starts = asyncio.Semaphore(STARTS_MAX)
        self._is_away = False
        """Nobody answered last time; said once, however many wait."""

    async def place(self, offer: Offer) -> str:
        """See ``ports.Places.place``."""
        while True:
            # First what the store knows: an answer of Temporal may have been lost.
            taker = await self._off_loop(partial(self._offers.put, offer))
            if taker is not None:
                return taker
            try:
                async with asyncio.timeout(LOOK_AGAIN_S):
                    if await _answer(await self._dispatched(offer)) is not None:
                        continue
            except TimeoutError:
                continue  # the store may know more: an answer may be lost, with all of Temporal
            except ActivityFailureError as error:
                log.info("no node took %s: %s", offer.attempt_id, error.cause or error)
            except (TemporalError, RuntimeError) as error:
                self._note(error)
            await self._clock.sleep(AGAIN_S)

    async def settle(self, attempt_id: AttemptId) -> None:
        """See ``ports.Places.settle``; the activity of one that waits still finds no offer."""
        await self._off_loop(partial(self._offers.drop, attempt_id))

    def _note(self, error: Exception | None) -> None:
        """Temporal answered, or it did not and why."""
        if error is not None and not self._is_away:
            log.warning(
                "new attempts get no place on other nodes until Temporal answers: %s", error
            )
        elif error is None and self._is_away:
            log.info("Temporal answers again")
        self._is_away = error is not None

    async def _dispatched(self, offer: Offer) -> ActivityHandle[str | None]:
        """Put it into its queue; while Temporal is away one of all that wait asks at a time."""
        async with self._turn:
            if self._is_away:
                try:
                    return await self._start(offer)
                except (TemporalError, RuntimeError):
                    await self._clock.sleep(AGAIN_S)
                    raise
        async with self._starts:
            return await self._start(offer)

    async def _start(self, offer: Offer) -> ActivityHandle[str | None]:
        """Its activity, which may be there already."""
        self._client = self._client or await self._address.connect(is_lazy=True)
        handle: ActivityHandle[str | None] = await self._client.start_activity(
            TAKE,
            args=[offer.attempt_id, offer.epoch],
            id=f"{offer.attempt_id}/{offer.epoch}",
            task_queue=self._address.queue(offer.label),
            result_type=str,
            start_to_close_timeout=timedelta(seconds=TAKE_S),
            retry_policy=RetryPolicy(maximum_attempts=1),
            id_conflict_policy=ActivityIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=ActivityIDReusePolicy.ALLOW_DUPLICATE,
            priority=Priority(priority_key=_priority_key(offer.priority)),
            rpc_timeout=timedelta(seconds=CALL_S),
        )
        self._note(None)
        return handle


async def _answer(handle: ActivityHandle[str | None]) -> str | None:
    """Who took it; a call that the server canceled is an error as any, not the end of our task."""
    try:
        taker: str | None = await handle.result()
    except asyncio.CancelledError as canceled:
        if isinstance(canceled.__cause__, TemporalError):
            raise canceled.__cause__ from None
        raise
    return taker


def _priority_key(priority: int) -> int:
    """Temporal has five: what is ahead of others stays so, as far as five can tell."""
    middle = (PRIORITIES + 1) // 2
    step = 2 if abs(priority) >= 10 else 1 if priority else 0
    return middle - step if priority > 0 else middle + step


class TemporalTaking:
    """See ``ports.Taking``: workers of Temporal.

    Args:
        address: Of Temporal.
        offers: Where they are kept.
        own_loop: Nothing that the engine is busy with delays them, and nothing of theirs the
            engine.
        node: Our name.
        labels: Of this node.
        slots: What is free here.
        may_take: Whether we take any now: one that drains, or whose right is over, does not.
    """

    def __init__(
        self,
        address: TemporalAddress,
        offers: "PostgresOffers",
        own_loop: OwnLoop,
        *,
        node: str,
        labels: Collection[str],
        slots: Slots,
        may_take: Callable[[], bool],
    ) -> None:
        self._address = address
        self._offers = offers
        self._own_loop = own_loop
        self._node = node
        self._labels = tuple(labels)
        self._slots = slots
        self._may_take = may_take

    async def run(self) -> None:
        """See ``ports.Taking.run``."""
        await self._own_loop(self._work)

    async def _work(self) -> None:
        while True:
            try:
                await self._serve()
            except Exception as error:  # noqa: BLE001 - a server may refuse in many ways
                log.warning("Temporal cannot be reached: %s", error)
            await asyncio.sleep(AGAIN_S)

    async def _serve(self) -> None:
        client = await self._address.connect(is_lazy=False)
        async with asyncio.TaskGroup() as group:
            for label in (None, *self._labels):
                group.create_task(self._worker(client, self._address.queue(label)).run())

    def _worker(self, client: Client, queue: str) -> Worker:
        @activity.defn(name=TAKE)
        async def take(attempt_id: str, epoch: int) -> str | None:
            try:
                return await asyncio.to_thread(self._take, AttemptId(attempt_id), epoch)
            except Exception as error:  # noqa: BLE001 - its text is for us, not for Temporal
                log.warning("%s cannot be taken now: %s", attempt_id, error)
                return None

        none = FixedSizeSlotSupplier(1)
        return Worker(
            client,
            task_queue=queue,
            activities=[take],
            identity=self._node,
            tuner=WorkerTuner.create_composite(
                workflow_supplier=none,
                activity_supplier=_Supplier(self._slots, self._may_take),
                local_activity_supplier=none,
                nexus_supplier=none,
            ),
            activity_task_poller_behavior=PollerBehaviorSimpleMaximum(maximum=1),
        )

    def _take(self, attempt: AttemptId, epoch: int) -> str | None:
        """Take an offer that its newest owner still makes; who has it then, None = nobody.

        Raises:
            StoreUnavailable: Nobody can say.
        """
        found = self._offers.find(attempt)
        if found is None or found[0].epoch != epoch:
            return None  # settled, or offered again by the owner after
        offer, taker = found
        if taker is not None:
            return taker
        if not self._may_take() or not fits(offer) or not self._slots.keep(attempt):
            return None
        if attempt in self._offers.take([attempt], self._node, 1):
            return self._node
        self._slots.give_up(attempt)
        return self._offers.takers([attempt]).get(attempt)


class _Supplier(CustomSlotSupplier):
    """Lets a worker ask for a task while there is a slot; whether it gets one is seen then."""

    def __init__(self, slots: Slots, may_take: Callable[[], bool]) -> None:
        self._slots = slots
        self._may_take = may_take

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        del ctx
        while not self._may_take() or self._slots.free == 0:  # noqa: ASYNC110 - workers end unseen
            await asyncio.sleep(FREE_LOOK_S)
        return SlotPermit()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        del ctx
        return None  # for eager tasks of workflows, and there are none

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """The slot is kept by the activity."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """An attempt outlives its activity."""
