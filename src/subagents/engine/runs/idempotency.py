"""Idempotency keys: which run one stands for, for 24 hours, over every restart.

Source: 2-lifecycle §2 ("The same idempotencyKey").
"""

from collections.abc import Sequence
from typing import Final

from subagents.domain.run.spec import IDEMPOTENCY_WINDOW_MS, RunSpec
from subagents.domain.run.values import RunId, SessionKey
from subagents.engine.kernel.ledger import Ledger
from subagents.ports import Clock, OffLoop, Store

KEYS: Final = 10_000
"""With so many in memory, those that are over are dropped."""


class Keys:
    """Of each requester; durable with the commit that follows."""

    def __init__(self, ledger: Ledger, store: Store, off_loop: OffLoop, clock: Clock) -> None:
        self._ledger = ledger
        self._store = store
        self._off_loop = off_loop
        self._clock = clock
        self._runs: dict[tuple[SessionKey, str], tuple[RunId, int]] = {}
        self._most = KEYS

    async def load(self) -> None:
        """Read those that still count."""
        since = self._since()
        found = await self._off_loop(lambda: self._store.load_idempotency(since))
        self._runs = {(r, key): (run_id, at) for r, key, run_id, at in found}

    def _since(self) -> int:
        return self._clock.now_ms() - IDEMPOTENCY_WINDOW_MS

    def known(self, requester: SessionKey, key: str) -> RunId | None:
        """The run that a key stands for."""
        found = self._runs.get((requester, key))
        return None if found is None or found[1] < self._since() else found[0]

    def of(self, specs: Sequence[RunSpec], requester: SessionKey) -> dict[str, RunId]:
        """The keys among these specs that made a run before."""
        keys = [spec.idempotency_key for spec in specs if spec.idempotency_key is not None]
        found = {key: self.known(requester, key) for key in keys}
        return {key: run_id for key, run_id in found.items() if run_id is not None}

    def remember(self, requester: SessionKey, key: str, run_id: RunId) -> None:
        """Let a key stand for a run, from the next commit on."""
        self._ledger.remember(requester, key, run_id)
        self._runs[requester, key] = (run_id, self._clock.now_ms())
        if len(self._runs) >= self._most:
            since = self._since()
            self._runs = {k: v for k, v in self._runs.items() if v[1] > since}
            self._most = 2 * len(self._runs) + KEYS
