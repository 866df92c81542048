"""What all runs of one model's provider and key learn together from its refusals.

While a provider refuses, no new attempt that would ask it is started: the lanes pass such runs
over (``admit``). When the time is over one goes first, and the others follow once it, or any other
run of that provider and key, got through. Attempts that are live go on: their programs wait by
themselves (``backing_off``).

In memory only: after a restart the first refusal closes the gate again. In a cluster the nodes tell
each other: what closes or opens here is news for them, and ``learn`` takes theirs over.

See docs/decisions/0027 and 0079.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from subagents.domain.rules import provider_limits
from subagents.domain.rules.provider_limits import LIMIT_STATUSES, PROBE_MS, Gate, Provider
from subagents.domain.rules.wait_causes import Refusal
from subagents.domain.run.events import ProviderClosed
from subagents.domain.run.outcome import Reason
from subagents.domain.run.run import HOLDS_SLOT, Phase, Run
from subagents.domain.run.signals import ResultSeen, Signal, UsageSeen
from subagents.domain.run.values import RunId, replace
from subagents.domain.run.worker_output import LineType, OutputBatch
from subagents.engine.kernel.kernel import Kernel
from subagents.engine.kernel.tasks import wait_at_most
from subagents.ports import Batch, SharedGate
from subagents.text import duration

FORGET_MS: Final = 600_000
"""How long a gate that could open is remembered while no run goes through."""
LOOK_MS_MAX: Final = 60_000
_ANSWERS: Final = frozenset({LineType.TEXT, LineType.THINKING, LineType.TOOL})


ProviderOf = Callable[[Run], Provider]


def own_provider(run: Run) -> Provider:
    """Without more knowledge: what runs of the same agent share."""
    name = run.resolved.agent_id
    return Provider(name=name, key=f"{run.resolved.runtime}/{name}")


class _BackOff(NamedTuple):
    """A live attempt whose program waits before it asks its provider again."""

    attempt: int
    status: int | None
    until_ms: int | None


class ProviderGates:
    """One gate per provider and key.

    Args:
        kernel: Has the runs.
        provider_of: Whose limits a run shares.
    """

    def __init__(self, kernel: Kernel, provider_of: ProviderOf) -> None:
        self._ledger, self._clock = kernel.ledger, kernel.clock
        self._shared_by = provider_of
        self._gates: dict[str, Gate] = {}
        self._backing_off: dict[RunId, _BackOff] = {}
        self._changed = asyncio.Event()
        self._leaving: dict[RunId, str] = {}
        """Runs that another agent takes over, and why."""
        self._tell: Callable[[], None] | None = None
        """What is called when there is news; None = there is no other node."""
        self._closed: set[str] = set()
        """Gates that refusals here closed, or for longer, since that was told."""
        self._opened: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        """Gates that all nodes know, and of which change we know."""

    def _provider_of(self, run: Run) -> Provider:
        found, before = self._shared_by(run), run.resolved.began_as
        if before is None or before.agent_id != run.resolved.agent_id:
            return found
        # It took another model since the first one's limit need not be that one's.
        return replace(found, key=f"{found.key}/{run.resolved.model}")

    # -- what the lanes ask ----------------------------------------------------------------

    def admit(self, run: Run) -> bool:
        """Whether the run may start an attempt now; the first one behind a gate is its probe."""
        if not self._gates:
            return True
        key, now = self._provider_of(run).key, self._clock.now_ms()
        gate = self._gates.get(key)
        if gate is None:
            return True
        if gate.is_closed(now):
            step, until_ms = provider_limits.step_of(run), max(gate.until_ms, gate.told_until_ms)
            if step.agent is not None and until_ms > now + step.wait_ms:
                why = provider_limits.refusal_text(gate.provider, gate.status)
                self._leaving[run.id] = f"{why} for {duration(until_ms - now)}"
                self._changed.set()
            return False
        if gate.is_probing(now):
            return gate.probe == run.id
        if gate.probe is None:
            self._gates[key] = replace(gate, probe=run.id, probe_at_ms=now)
            self._changed.set()
        else:
            self._open(key)
        return True

    # -- what is learned -------------------------------------------------------------------

    def see(self, run: Run, signal: Signal) -> None:
        """Learn from a signal of the run's newest attempt."""
        match signal:
            case ResultSeen(is_limit=True):
                self._refused(run, signal.retry_after_ms)
            case ResultSeen(is_error=False):
                self._got_through(run)
            case UsageSeen(usage=usage) if self._gates:
                live = self._ledger.live.get(run.id, run)
                known = live.attempt.usage
                before = (known.tokens_out or 0) if known is not None else 0
                if (usage.tokens_out or 0) > before and not live.attempt.evidence.is_limit:
                    self._got_through(run)

    def see_output(self, run: Run, output: OutputBatch) -> None:
        """Learn from what the run's newest attempt says."""
        for item in output.items:
            error = item.api_error
            if error is not None and error.status in LIMIT_STATUSES:
                now, wait_ms = self._clock.now_ms(), error.retry_after_ms
                until_ms = None if wait_ms is None else now + wait_ms
                self._backing_off[run.id] = _BackOff(len(run.attempts), error.status, until_ms)
                self._refused_live(run, error.status, wait_ms)
            elif item.waits_ms is not None:
                known = self._backing_off.get(run.id)
                status = None if known is None else known.status
                until_ms = self._clock.now_ms() + item.waits_ms
                self._backing_off[run.id] = _BackOff(len(run.attempts), status, until_ms)
            elif error is None and item.type in _ANSWERS:
                self._backing_off.pop(run.id, None)
                if item.tool is not None:
                    self._got_through(run)

    def on_commit(self, batch: Batch) -> None:
        """An attempt that is over backs off no more, and a probe that ended tells how it went."""
        if not self._gates and not self._backing_off:
            return
        for run in batch.runs.values():
            live = self._ledger.live.get(run.id)
            if live is None or live.phase not in HOLDS_SLOT:
                self._backing_off.pop(run.id, None)
                for key, gate in tuple(self._gates.items()):
                    if gate.probe != run.id:
                        continue
                    ended = run.attempts[-1].outcome if run.attempts else None
                    if ended is not None and ended.reason is Reason.PROVIDER_LIMIT:
                        self._refused(run, None)  # stopped while its program waited
                    else:
                        self._open(key)

    def _refused(self, run: Run, retry_after_ms: int | None) -> None:
        """A refusal ended the run's attempt."""
        known = self._backing_off.get(run.id)
        provider = self._provider_of(run)
        self._gates[provider.key] = provider_limits.refused(
            self._gates.get(provider.key),
            provider=provider.name,
            now_ms=self._clock.now_ms(),
            status=None if known is None else known.status,
            retry_after_ms=retry_after_ms,
        )
        self._close(provider.key)

    def _refused_live(self, run: Run, status: int | None, retry_after_ms: int | None) -> None:
        """The run's program was refused and tries again by itself."""
        provider = self._provider_of(run)
        self._gates[provider.key] = provider_limits.refused_live(
            self._gates.get(provider.key),
            provider=provider.name,
            run_id=run.id,
            now_ms=self._clock.now_ms(),
            status=status,
            retry_after_ms=retry_after_ms,
        )
        self._close(provider.key)

    def _got_through(self, run: Run) -> None:
        self._backing_off.pop(run.id, None)
        if self._gates:
            key = self._provider_of(run).key
            if key in self._gates:
                self._open(key)

    def _close(self, key: str) -> None:
        self._changed.set()
        if self._tell is not None:
            self._closed.add(key)
            self._tell()

    def _open(self, key: str) -> None:
        del self._gates[key]
        self._changed.set()
        self._closed.discard(key)
        if self._tell is not None and key in self._numbers:
            self._opened[key] = self._numbers.pop(key)
            self._tell()

    # -- what other nodes learn, and we from them ------------------------------------------

    def share(self, tell: Callable[[], None]) -> None:
        """Other nodes ask the same providers: ``tell`` is called when there is news for them."""
        self._tell = tell

    @property
    def has_news(self) -> bool:
        """Whether ``take_news`` has something."""
        return bool(self._closed or self._opened)

    def take_news(self) -> tuple[list[SharedGate], dict[str, int]]:
        """Gates that closed here since it was asked last, and those that opened."""
        now = self._clock.now_ms()
        closed = [
            SharedGate(key, gate.provider, gate.until_ms - now, gate.status, gate.waits)
            for key in sorted(self._closed)
            if (gate := self._gates.get(key)) is not None
        ]
        opened, self._opened = self._opened, {}
        self._closed.clear()
        return closed, opened

    def take_back(self, closed: Iterable[SharedGate], opened: Mapping[str, int]) -> None:
        """Say these news again: no other node may have heard them."""
        self._closed.update(gate.key for gate in closed if gate.key in self._gates)
        self._opened = {**opened, **self._opened}

    def learn(self, shared: Iterable[SharedGate]) -> None:
        """Take over what is known of every gate that is not open to all nodes."""
        now, numbers = self._clock.now_ms(), self._numbers
        self._numbers = {}
        for each in shared:
            if each.key in self._opened:
                continue  # we got through, and say so next
            self._numbers[each.key] = each.number
            gate, until_ms = self._gates.get(each.key), now + each.left_ms
            if gate is None:
                self._gates[each.key] = Gate(
                    provider=each.provider, until_ms=until_ms, status=each.status, waits=each.waits
                )
            elif numbers.get(each.key) != each.number and until_ms > gate.until_ms:
                # Refused again somewhere: the run that went first here will fare no better.
                gate = replace(gate, until_ms=until_ms, waits=max(gate.waits, each.waits))
                self._gates[each.key] = replace(gate, status=each.status, probe=None)
            else:
                continue
            self._changed.set()
        for key in numbers.keys() - self._numbers.keys() - self._closed:
            # Another node got through.
            if self._gates.pop(key, None) is not None:
                self._changed.set()

    def clock_stepped(self, by_ms: int) -> None:
        """Each wait takes as long as it would have."""
        for key, gate in self._gates.items():
            moved = ("until_ms", "told_until_ms", "probe_at_ms")
            later = {name: getattr(gate, name) + by_ms for name in moved}
            self._gates[key] = replace(gate, **later)
        for run_id, found in self._backing_off.items():
            if found.until_ms is not None:
                self._backing_off[run_id] = found._replace(until_ms=found.until_ms + by_ms)

    # -- what is shown ---------------------------------------------------------------------

    def gate_of(self, run: Run) -> Gate | None:
        """What keeps a queued run from starting; None = its provider does not."""
        if run.phase is not Phase.QUEUED or not self._gates:
            return None
        now = self._clock.now_ms()
        gate = self._gates.get(self._provider_of(run).key)
        if gate is None or not (gate.is_closed(now) or gate.is_probing(now)):
            return None
        return gate

    def refusal_of(self, run: Run) -> Refusal | None:
        """What its provider keeps the run waiting with; None = it does not."""
        gate = self.gate_of(run)
        if gate is not None:
            is_closed = gate.is_closed(self._clock.now_ms())
            until_ms = gate.until_ms if is_closed else None
            return Refusal(gate.provider, gate.status, until_ms, gate.probe)
        if run.phase is Phase.RETRY_WAIT and run.retry.limited is not None:
            return Refusal(self._provider_of(run).name, until_ms=run.retry.due_ms)
        if not self.is_backing_off(run):
            return None
        found = self._backing_off[run.id]
        return Refusal(self._provider_of(run).name, found.status, found.until_ms)

    def backing_off(self, run: Run) -> str | None:
        """``provider limit (429), next try in 4 s``: what a live attempt's program waits for."""
        found = self._backing_off.get(run.id)
        if found is None or not self.is_backing_off(run):
            return None
        text = "provider limit" if found.status is None else f"provider limit ({found.status})"
        if found.until_ms is None:
            return text
        left_s = -(-max(found.until_ms - self._clock.now_ms(), 0) // 1000)
        return f"{text}, next try in {left_s} s" if left_s else f"{text}, trying again"

    def is_backing_off(self, run: Run) -> bool:
        """Whether the newest attempt's program waits for its provider."""
        found = self._backing_off.get(run.id)
        return found is not None and found.attempt == len(run.attempts)

    # -- time ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Let runs start as gates open, until cancelled."""
        while True:
            await wait_at_most(self._clock, self._wait_ms() / 1000, self._changed)
            self._changed.clear()
            leaving, self._leaving = self._leaving, {}
            for run_id, why in leaving.items():
                now = self._clock.now_ms()
                await self._ledger.apply(run_id, ProviderClosed(at_ms=now, why=why))
            self._forget()
            if self._ledger.failure is None and self._ledger.lanes.unpark():
                self._ledger.fill_lanes()

    def _wait_ms(self) -> int:
        now = self._clock.now_ms()
        deadlines = [
            gate.until_ms if gate.is_closed(now) else gate.probe_at_ms + PROBE_MS
            for gate in self._gates.values()
        ]
        coming = [due - now for due in deadlines if due > now]
        return min([LOOK_MS_MAX, *coming])

    def _forget(self) -> None:
        before = self._clock.now_ms() - FORGET_MS
        for key, gate in tuple(self._gates.items()):
            if max(gate.until_ms, gate.probe_at_ms) < before:
                del self._gates[key]
