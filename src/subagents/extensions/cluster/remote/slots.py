"""How many workers this node may have besides those that it has, whoever decides about them.

What counts is live shims: they are in the attempts directory, and a daemon that was started again
finds them there. A slot is kept for an attempt that has taken it and not started yet.
"""

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from errno import EAGAIN, ECHILD
from pathlib import Path
from typing import Final

from subagents.domain.run.values import AttemptId, RunId, attempt_id
from subagents.errors import LACKS, RuntimeUnavailable, SubagentsError, lack_of
from subagents.extensions.cluster.node_ports import SURE
from subagents.extensions.cluster.remote.node_health import NodeHealth, require_room
from subagents.ports.workers import OfAttempt
from subagents.runtimes.process.processes import alive
from subagents.runtimes.process.shim import AttemptDirectory

LOOK_MS: Final = 50
"""How often, at most, it is looked which workers are still there."""
KEPT_MS: Final = 30_000
"""How long a slot is kept for an attempt whose owner does not start it."""


class Slots:
    """The slots of one node. For any thread. Making it blocks: it looks at every attempt once.

    Args:
        attempts_dir: Of its home.
        most: ``[cluster] slots``; None = no limit.
        elapsed_ms: A clock that goes on while the machine sleeps.
        health: Hears what starts come to; while it says that nothing can be started, no slot is
            free.
    """

    def __init__(
        self,
        attempts_dir: Path,
        most: int | None,
        elapsed_ms: Callable[[], int],
        health: NodeHealth,
    ) -> None:
        self._attempts_dir = attempts_dir
        self._most = most
        self._elapsed_ms = elapsed_ms
        self._health = health
        self._under_way: Counter[AttemptId] = Counter()
        """Calls that start something of an attempt."""
        self._live: dict[AttemptId, AttemptDirectory] = {}
        self._kept: dict[AttemptId, int] = {}
        """The time until which a slot is kept for an attempt."""
        self._look_ms, self._lock = 0, threading.Lock()
        # Before anything is started here: what an earlier daemon left at work has its slots.
        for run in os.scandir(attempts_dir) if attempts_dir.is_dir() else ():
            for attempt in os.scandir(run) if run.is_dir() else ():
                number, _, turn = attempt.name.partition(".")
                if number.isdecimal() and (not turn or turn.isdecimal()):
                    directory = self._directory(RunId(run.name), int(number), int(turn or 1))
                    if _is_live(directory):
                        self._live[attempt_id(RunId(run.name), int(number))] = directory

    @property
    def used(self) -> int:
        """Workers that are there, and slots that are kept; some microseconds for each."""
        with self._lock:
            return self._used()

    def _used(self) -> int:
        now = self._elapsed_ms()
        if now >= self._look_ms:
            # Not for each of the many that wait for one here: it reads files of every worker.
            self._look_ms = now + LOOK_MS
            self._live = {each: where for each, where in self._live.items() if _is_live(where)}
            self._kept = {each: until_ms for each, until_ms in self._kept.items() if until_ms > now}
        return len(self._live.keys() | self._kept.keys())

    @property
    def free(self) -> int | None:
        """How many more workers; None = as many as anybody likes."""
        if self._health.lack is not None:
            return 0
        return None if self._most is None else max(self._most - self.used, 0)

    def keep(self, attempt: AttemptId) -> bool:
        """Keep one for an attempt that will be started, for ``KEPT_MS``; False = there is none."""
        with self._lock:
            used = self._used()
            is_full = self._most is not None and used >= self._most
            if (is_full or self._health.lack is not None) and not self._has(attempt):
                return False
            self._kept[attempt] = self._elapsed_ms() + KEPT_MS
            return True

    def _has(self, attempt: AttemptId) -> bool:
        """Whether it has a slot, or was started here by a daemon that could not say so."""
        if attempt in self._kept or attempt in self._live:
            return True
        run_id, _, number = attempt.rpartition("#")
        return self._directory(RunId(run_id), int(number)).is_claimed

    def give_up(self, attempt: AttemptId) -> None:
        """It is not started here. Idempotent, as is ``keep``."""
        with self._lock:
            self._kept.pop(attempt, None)

    @contextlib.contextmanager
    def starting(self, of: OfAttempt) -> Iterator[None]:
        """Use a slot for an attempt that is started in the block, its own where one is kept.

        Raises:
            RuntimeUnavailable: All are in use, or the machine lacks something to start it with.
        """
        if not self.keep(of.attempt_id):
            lack, full = self._health.lack, f"all {self._most} slots of this node are in use"
            why = full if lack is None else f"nothing is started here: {LACKS[lack]}"
            # What is done before a start may take longer than a slot is kept: no failed attempt.
            sure = {SURE: not self._under_way[of.attempt_id]}
            raise RuntimeUnavailable(why, details=sure) from OSError(lack or EAGAIN, why)
        with self.resuming(of):
            yield

    @contextlib.contextmanager
    def resuming(self, of: OfAttempt, turn: int = 1) -> Iterator[None]:
        """The same for a further turn: it goes on where its session is, slot or no slot.

        Raises:
            RuntimeUnavailable: The machine lacked something to start it with; see ``SURE``.
        """
        attempt, directory = of.attempt_id, self._directory(of.run_id, of.number, turn)
        is_new, is_begun, is_sure = not directory.is_claimed, False, True
        self._under_way[attempt] += 1
        try:
            if is_new:
                require_room(self._attempts_dir.parent)
            is_begun = True
            yield
            if is_new:
                self._health.worked()
        except (SubagentsError, OSError) as error:
            lack = lack_of(error)
            if lack is None:
                raise
            self._health.failed(lack)
            # A shim may be there that has not claimed it yet, or another call may start one.
            is_told = isinstance(error, RuntimeUnavailable) and lack != ECHILD
            is_sure = (is_told or not is_begun) and self._under_way[attempt] == 1
            is_sure = is_sure and not directory.is_claimed
            raise RuntimeUnavailable(
                f"nothing was started: {LACKS[lack]}", details={SURE: is_sure}
            ) from error
        finally:
            self._under_way[attempt] -= 1
            self._under_way = +self._under_way
            with self._lock:
                if is_sure:  # else it is tried here again, and nowhere else
                    self._kept.pop(attempt, None)
                if _is_live(directory):
                    self._live[attempt] = directory

    def _directory(self, run_id: RunId, number: int, turn: int = 1) -> AttemptDirectory:
        return AttemptDirectory(self._attempts_dir, run_id, number, turn)


def _is_live(directory: AttemptDirectory) -> bool:
    shim = directory.shim()
    return shim is not None and alive(shim)
