"""Keeps a node's right for a while when its daemon is gone, so that one is back in time.

A daemon that was killed, or is upgraded, leaves workers that the next one adopts. For that its node
must not be over before. So a process of its own waits for the daemon's end, which closes its input,
and then renews the right in its place, at once and for ``KEPT_LEASES``, unless the next daemon ends
it by taking the node over. It ends with the machine, as its workers do: nobody else waits longer
for those.

    python -m subagents.extensions.cluster.node_keeper
"""

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import msgspec

from subagents.domain.cluster.partitioning import KEPT_LEASES, TRIES
from subagents.extensions.cluster import node_deadline
from subagents.runtimes.process.processes import unmarked

LOADED_AFTER_S: Final = 5.0
"""How long after its start what asks the database is loaded."""


class Kept(msgspec.Struct, frozen=True):
    """What it is told by the daemon, in the only line of its input."""

    state_dir: str
    """The state directory of the home, with the deadline of its workers."""
    url: str
    """The database's address; not among the arguments, which every user of the machine can read."""
    identity: str
    """The identity of the daemon's node."""
    lease_s: float


class NodeKeeper:
    """The daemon's side: sees to it that the process is there.

    Args:
        state_dir: Of the home.
        url: Of the database.
        lease_s: Of the node.
        identity: Of this start of it, once the store is open.
    """

    def __init__(
        self, state_dir: Path, url: str, lease_s: float, identity: Callable[[], str]
    ) -> None:
        self._state_dir, self._url, self._lease_s = state_dir, url, lease_s
        self._identity = identity
        self._process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Start it where it does not run. Blocking.

        Raises:
            OSError: It cannot be started.
        """
        if self._process is not None and self._process.poll() is None:
            return
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __spec__.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=unmarked(os.environ),
            cwd="/",
            start_new_session=True,
        )
        # A program in which the daemon is embedded lives on: somebody has to wait for its end.
        threading.Thread(target=self._process.wait, name="keeper", daemon=True).start()
        kept = Kept(str(self._state_dir), self._url, self._identity(), self._lease_s)
        if self._process.stdin is not None:
            self._process.stdin.write(msgspec.json.encode(kept) + b"\n")
            self._process.stdin.flush()

    def close(self) -> None:
        """The daemon goes. Idempotent."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()


def keep(kept: Kept, renew: Callable[[], bool]) -> None:
    """Renew a right until it is over, or for ``KEPT_LEASES``, and move the deadline on with it.

    Args:
        kept: Whose.
        renew: Once, in the database: False = it is over. ``OSError`` = it cannot be asked.
    """
    margin_ms = int(node_deadline.margin_s(kept.lease_s) * 1000)
    for number in range(KEPT_LEASES * TRIES + 1):
        if number:  # at once first: of what the daemon had left, half may be over already
            time.sleep(kept.lease_s / TRIES)
        asked_ms = node_deadline.elapsed_ms()
        try:
            if not renew():
                return
        except OSError:
            continue
        until_ms = asked_ms + int(kept.lease_s * 1000) - margin_ms
        node_deadline.move_on(Path(kept.state_dir), until_ms)


def main() -> None:
    """Wait for the daemon's end, and keep what it told."""
    told = sys.stdin.buffer.readline()
    if not told:
        return
    kept = msgspec.json.decode(told, type=Kept)
    # The daemon that starts needs the processor more. But before its end: on a machine that is busy
    # this takes as long as there is time then.
    select.select([sys.stdin], [], [], LOADED_AFTER_S)
    from subagents.extensions.cluster.postgres.kept_node import KeptNode  # noqa: PLC0415

    sys.stdin.buffer.read()
    with closing(KeptNode(kept.url, kept.identity)) as node:
        keep(kept, node.renew)


if __name__ == "__main__":
    main()
