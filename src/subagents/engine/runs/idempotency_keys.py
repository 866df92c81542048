"""Idempotency keys: the same key of the same requester is the same run, for a day."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from subagents.domain.rules import idempotency
from subagents.domain.run.spec import IDEMPOTENCY_WINDOW_MS
from subagents.domain.run.values import RunId, SessionKey
from subagents.engine.kernel.kernel import Kernel
from subagents.errors import IdempotencyConflict
from subagents.ports import RememberedKey

KEYS_MAX: Final = 10_000
"""How many are in memory when those that are over are dropped."""


class IdempotencyKeys:
    """Which run a requester's key stands for, for 24 hours and over restarts.

    A new key is durable with the commit that follows.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._ledger, self._store, self._off_loop, self._clock = kernel
        self._keys: dict[tuple[SessionKey, str], RememberedKey] = {}
        self._most = KEYS_MAX

    async def load(self) -> None:
        """Know those that are stored and still count, and no other."""
        found = await self.stored()
        self._keys.clear()
        self.adopt(found)

    async def stored(self) -> Sequence[RememberedKey]:
        """Those that still count, as they are stored now."""
        since = self._since()
        return await self._off_loop(lambda: self._store.load_idempotency(since))

    def adopt(self, found: Iterable[RememberedKey]) -> None:
        """Know these, too; what was remembered while they were read stays."""
        for each in found:
            known = self._keys.get((each.requester, each.key))
            if known is None or known.at_ms < each.at_ms:
                self._keys[each.requester, each.key] = each

    def _since(self) -> int:
        return self._clock.now_ms() - IDEMPOTENCY_WINDOW_MS

    def known(self, requester: SessionKey, key: str) -> RememberedKey | None:
        """What a key stands for."""
        found = self._keys.get((requester, key))
        return None if found is None or found.at_ms < self._since() else found

    def of(self, digests: Mapping[str, str], requester: SessionKey) -> dict[str, RunId]:
        """Those among these keys that made a run before, each for the same request.

        Args:
            digests: Of the request under each key.
            requester: Whose keys they are.

        Raises:
            IdempotencyConflict: One of them stands for another request.
        """
        made: dict[str, RunId] = {}
        for key, digest in digests.items():
            known = self.known(requester, key)
            if known is None:
                continue
            if differs := idempotency.differing(known.digest, digest):
                raise IdempotencyConflict.of(key, run_id=known.run_id, differs=differs)
            made[key] = known.run_id
        return made

    def remember(self, requester: SessionKey, key: str, run_id: RunId, *, digest: str) -> None:
        """Let a key stand for a run, from the next commit on."""
        known = RememberedKey(requester, key, run_id, self._clock.now_ms(), digest)
        self._ledger.remember(known)
        self._keys[requester, key] = known
        if len(self._keys) >= self._most:
            since = self._since()
            self._keys = {k: v for k, v in self._keys.items() if v.at_ms > since}
            # Each pass looks at all of them: the next comes when there are twice as many.
            self._most = 2 * len(self._keys) + KEYS_MAX
