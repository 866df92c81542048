"""Walks a route once: direct, steered, queued; every path tried is on record.

Transport only. What the outcome means for the run is decided in ``domain.rules.delivery_policy``.

A courier takes the same lease as a reader before it tries (``leases``), and steps back where
another holds the message or waits for it: a requester that waits gets it once, by its wait.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from subagents.domain.rules import delivery_policy
from subagents.domain.run.outcome import (
    DeferReason,
    Deferred,
    Delivered,
    DeliveryFailed,
    DeliveryOutcome,
    DeliveryPath,
)
from subagents.domain.run.run import DeliveryTry, Message, Run
from subagents.domain.run.values import SessionKey, announcement_id, replace
from subagents.domain.text import announcement
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.messages.mailbox import Mailbox
from subagents.errors import StoreUnavailable, SubagentsError, plain_error
from subagents.ports import Courier

log = logging.getLogger(__name__)

LEASE_MARGIN_MS: Final = 5_000
"""A courier's lease outlasts the longest try."""
BUSY: Final = Deferred(reason=DeferReason.REQUESTER_BUSY)


class Deliveries:
    """One delivery try at a time per run; couriers by the first word of the phase's name."""

    def __init__(
        self,
        kernel: Kernel,
        mailbox: Mailbox,
        couriers: Mapping[str, Sequence[Courier]],
        *,
        timeout_ms: int,
    ) -> None:
        self._ledger, self._clock = kernel.ledger, kernel.clock
        self._mailbox = mailbox
        self._couriers = couriers
        self._timeout_ms = timeout_ms

    async def deliver(self, run: Run, number: int) -> DeliveryTry:
        """Try every path of the run's route until one is certain; returns the trace of this try."""
        target = self._ledger.living_inbox(run)
        if target != run.requester:
            # The session that asked is gone: the message goes to whoever asked for *it*.
            self._ledger.move_inbox(run.requester, target)
        requester = self._requester(target)
        route = delivery_policy.route(run)
        outcome, tried = await self._outcome(run, target, requester, route)
        return DeliveryTry(
            at_ms=self._clock.now_ms(),
            target=target,
            requester_depth=run.lineage.depth - 1,
            nested=run.lineage.requester_run is not None,
            route_mode="bound" if any(p.startswith("direct") for p in tried) else route.mode,
            phases=tried,
            outcome=outcome,
            idempotency_key=f"{announcement_id(run.id)}/{number}",
        )

    def courier_of(self, session: SessionKey) -> str | None:
        """The name of a courier that reaches that session; None = it has to look itself."""
        requester = self._requester(session)
        couriers = chain.from_iterable(self._couriers.values())
        return next((each.name for each in couriers if _serves(each, session, requester)), None)

    def _requester(self, target: SessionKey) -> Run | None:
        run_id = self._ledger.lanes.run_of(target)
        return None if run_id is None else self._ledger.published.get(run_id)

    async def _outcome(
        self, run: Run, target: SessionKey, requester: Run | None, route: delivery_policy.Route
    ) -> tuple[DeliveryOutcome, tuple[str, ...]]:
        if run.announcement_consumed_ms is not None:
            return Delivered(path=DeliveryPath.PULLED), ("consumed-already",)
        skipped = delivery_policy.skip_reason(run)
        if skipped is not None:
            return skipped, ()
        tried: list[str] = []
        refused: DeliveryOutcome | None = None
        for phase in route.phases:
            path = phase.partition("-")[0]
            if path == "queue":
                # The inbox row was committed with the outcome: it cannot fail any more. After a
                # courier that failed, the try is repeated, or given up, while the row waits.
                return refused or Delivered(path=DeliveryPath.QUEUED), (*tried, phase)
            for courier in self._couriers.get(path, ()):
                if not _serves(courier, target, requester):
                    continue
                tried.append(phase)
                outcome = await self._hand_over(courier, run, target, requester)
                if isinstance(outcome, Delivered):
                    return outcome, tuple(tried)
                # What cannot be put into a run's attempt waits for its next turn.
                is_final = isinstance(outcome, DeliveryFailed) and not outcome.retryable
                if not is_final or (refused is None and path == "direct"):
                    refused = outcome
        return refused or Delivered(path=DeliveryPath.QUEUED), tuple(tried)

    async def _hand_over(
        self, courier: Courier, run: Run, target: SessionKey, requester: Run | None
    ) -> DeliveryOutcome:
        """One courier's try under a lease, and the consumption that follows a good one."""
        message_id, reader = announcement_id(run.id), f"courier:{courier.name}"
        leases = self._mailbox.leases
        # A wait that is under way hands over by itself; pushing as well would say it twice.
        if self._mailbox.is_awaited(run.id, target):
            return BUSY
        if not leases.acquire(message_id, reader, for_ms=self._timeout_ms + LEASE_MARGIN_MS):
            return BUSY
        try:
            # Written here and not kept: most deliveries have no courier to read it.
            message = replace(announcement.announcement(run, consumed=False), session_key=target)
            if requester is not None:
                # Into an agent's own session: it reads of tools, a person of commands.
                message = replace(message, text=announcement.announcement_text(run, by_tool=True))
            outcome = await self._try(courier, run, message, requester)
            if isinstance(outcome, Delivered):
                self._consumed(run, outcome.path, target if requester else courier.name)
        finally:
            leases.release(message_id, reader)
        return outcome

    async def _try(
        self, courier: Courier, run: Run, message: Message, requester: Run | None
    ) -> DeliveryOutcome:
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                outcome: object = await courier.deliver(run, message, requester)
        except StoreUnavailable:
            raise
        except TimeoutError:
            limit = f"announce_timeout_ms = {self._timeout_ms}"
            text = f"courier {courier.name} did not end within {limit}"
            return DeliveryFailed(retryable=True, error=text)
        except SubagentsError as error:
            return DeliveryFailed(retryable=error.retryable, error=error.message)
        except Exception as error:
            log.exception("courier %s failed for %s", courier.name, run.id)
            return DeliveryFailed(retryable=True, error=plain_error(error))
        if isinstance(outcome, DeliveryOutcome):
            return outcome
        # It may have handed it over: what is tried again is perhaps told twice.
        text = f"courier {courier.name} returned {outcome!r}, no DeliveryOutcome"
        return DeliveryFailed(retryable=False, error=text)

    def _consumed(self, run: Run, path: DeliveryPath, reader: str) -> None:
        """A courier that carried the text has handed it over: nothing else does so again."""
        live = self._ledger.live.get(run.id)
        if live is not None and live.announcement_consumed_ms is None:
            self._ledger.consume(live, reader=reader, path=path)


def _serves(courier: Courier, target: SessionKey, requester: Run | None) -> bool:
    """Whether it says so; others' code must keep no run from its end."""
    try:
        return bool(courier.name) and courier.serves(target, requester)
    except Exception:
        log.exception("the courier %r is passed over", courier)
        return False
