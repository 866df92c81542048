"""Lets workers ask before each request to their model, so that no cap can be crossed by one.

What is granted is an event of the run (``RequestHeld``) in the step that looked at the caps, and
nothing happens in between: no two workers under one cap can be granted the same rest.
Being part of the run, it is as durable as the run, and over with the attempt.

In a cluster what one node may grant of a cap over several runs is kept for it in advance, so one
that is short asks the cluster first.

See docs/decisions/0036 and 0079.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec.structs import asdict

from subagents.domain.rules.budgets.request_holds import (
    Cap,
    Counted,
    Granted,
    Need,
    Short,
    caps_above,
    decide,
)
from subagents.domain.run.events import BudgetExhausted, RequestHeld
from subagents.domain.run.run import BudgetStop, Run
from subagents.domain.run.values import AttemptId, RunId, Value, attempt_id
from subagents.engine.kernel.addresses import ancestors
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.tasks import wait_at_most
from subagents.engine.messages.questions import live_attempt
from subagents.errors import Conflict
from subagents.ports import Batch

PATIENCE_MS: Final = 600_000
"""So long a worker waits for the requests of others to use less than they hold."""
LINE_S: Final = 20.0
"""One call waits at most so long; its worker asks again."""

MoreCaps = Callable[[Run, Counted], Sequence[Cap]]
"""Caps over several runs, with what is gone of each for this run."""


class Reserves(Protocol):
    """Keeps parts of shared caps free for this node."""

    async def reserve(self, run: Run, need: Need, counted: Counted) -> None:
        """Ask for what the request needs, and go on asking; returns with the next answer."""
        ...

    def unreserve(self, attempt: AttemptId) -> None:
        """Ask no more."""
        ...


class HoldAnswer(Value, frozen=True):
    """What a worker that asked may do."""

    granted: bool
    output_tokens: int | None = None
    """The limit of its answer; None = it was not lowered, or nothing was granted."""
    is_limited: bool = False
    """A cap applies: the next request must be asked for, too."""
    again: bool = False
    """Not yet: requests of others hold the rest; ask again."""
    reason: str | None = None


class RequestDesk:
    """See the module.

    Args:
        kernel: Has the runs.
        more_caps: Those over several runs.
        reserves: Of a cluster; None = there is none.
    """

    def __init__(self, kernel: Kernel, more_caps: MoreCaps, reserves: Reserves | None) -> None:
        self._ledger, _, _, self._clock = kernel
        self._more_caps = more_caps
        self._reserves = reserves
        self._waiting: dict[str, asyncio.Event] = {}
        """Events of the calls that wait, by the key of the cap that is short."""
        self._since: dict[AttemptId, int] = {}
        """When each attempt that waits began to, by ``steady_ms``."""

    async def hold(
        self,
        run_id: RunId,
        attempt: int,
        need: Need,
        counted: Counted,
        *,
        is_firm: bool = True,
        line_s: float = LINE_S,
    ) -> HoldAnswer:
        """Keep free what the request may use, or say why it must not start.

        Args:
            run_id: Whose worker asks.
            attempt: Its attempt.
            need: What the request may use.
            counted: What the attempt used so far.
            is_firm: Whether the run ends when there is no room.
            line_s: Wait at most so long for others.

        Raises:
            Conflict: That attempt is over, or its run is being stopped.
            StoreUnavailable: Nothing was kept.
        """
        due_ms = self._clock.steady_ms() + int(line_s * 1000)
        reserves = self._reserves
        try:
            while True:
                await self._ledger.partitions.require_run(run_id)
                run = live_attempt(self._ledger, run_id)
                if len(run.attempts) != attempt or run.attempt.evidence.stop is not None:
                    raise Conflict(f"attempt {attempt} of run {run_id} is being ended")
                shared = self._more_caps(run, counted)
                caps = [*caps_above(run, list(ancestors(self._ledger.live, run)), counted), *shared]
                if not caps:
                    return HoldAnswer(granted=True)
                found = decide(caps, need)
                now = self._clock.steady_ms()
                if isinstance(found, Granted):
                    self._since.pop(run.attempt_id, None)
                    return await self._grant(run, found, need, counted)
                if reserves is not None and shared and found.may_fit_later:
                    # Once per call: the other nodes may have given up a part of the cap since.
                    asked, reserves = reserves, None
                    await asked.reserve(run, need, counted)
                    continue
                if not is_firm:
                    return HoldAnswer(granted=False, is_limited=True, reason=found.used)
                since = self._since.setdefault(run.attempt_id, now)
                if not found.may_fit_later or now - since >= PATIENCE_MS:
                    self._since.pop(run.attempt_id, None)
                    return await self._refuse(run, found)
                if now >= due_ms:
                    return HoldAnswer(granted=False, is_limited=True, again=True, reason=found.used)
                changed = self._waiting.setdefault(found.cap.key, asyncio.Event())
                await wait_at_most(self._clock, (due_ms - now) / 1000, changed)
        finally:
            if self._reserves is not None:
                self._reserves.unreserve(attempt_id(run_id, attempt))

    async def _grant(self, run: Run, granted: Granted, need: Need, counted: Counted) -> HoldAnswer:
        event = RequestHeld(
            at_ms=self._clock.now_ms(),
            attempt=len(run.attempts),
            tokens=granted.tokens,
            cost_usd=granted.cost_usd,
            **asdict(counted),
        )
        self._ledger.apply_now(run.id, event)
        # A request that started and is not on the disk would be forgotten by the next kill -9.
        await self._ledger.committed()
        output = granted.output_tokens if granted.output_tokens < need.output_tokens else None
        return HoldAnswer(granted=True, is_limited=True, output_tokens=output)

    async def _refuse(self, run: Run, short: Short) -> HoldAnswer:
        """The run ends with what it has: nothing more of it fits into the cap."""
        by, now = RunId(short.cap.key), self._clock.now_ms()
        holder = self._ledger.live.get(by)
        # The cap of a run is named by its label, one over several runs by its own name.
        label, name = ("", short.cap.whose) if holder is None else (holder.resolved.label, "")
        stop = BudgetStop(by=by, label=label, used=short.used, at_ms=now, name=name)
        self._ledger.apply_now(run.id, BudgetExhausted(at_ms=now, stop=stop))
        await self._ledger.committed()
        reason = f"{short.cap.whose} has no room for it: {short.used}"
        return HoldAnswer(granted=False, is_limited=True, reason=reason)

    def look_again(self) -> None:
        """Wake all that wait: another part of a shared cap is kept for this node."""
        for changed in self._waiting.values():
            changed.set()
        self._waiting.clear()

    def on_commit(self, batch: Batch) -> None:
        """Wake those that wait for a cap of which something changed."""
        if not self._waiting:
            return
        for key in tuple(self._waiting):
            # A cap over several runs changes with any of them.
            if RunId(key) in batch.runs or RunId(key) not in self._ledger.live:
                self._waiting.pop(key).set()
