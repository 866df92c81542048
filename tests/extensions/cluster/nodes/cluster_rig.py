"""Several nodes on one machine: daemons with homes of their own on one real PostgreSQL.

Each node reaches the database, and the others reach it, over lines that can be cut. A node can be
killed alone or with everything that its machine ran, frozen, drained and started again.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import psycopg
from tests.e2e.live_home import LiveHome, until
from tests.extensions.cluster.nodes.cuttable_line import CuttableLine, is_of
from tests.extensions.cluster.pinned_nodes import SECRET
from tests.extensions.cluster.places.temporal_server import TemporalServer
from tests.extensions.cluster.postgres.postgres_server import PostgresPlace, PostgresServer
from tests.free_ports import free_port
from tests.live_processes import carrying

from subagents.client.client import Client
from subagents.domain.cluster.partitioning import PARTITIONS, partition_of
from subagents.domain.run.values import SessionKey
from subagents.errors import SubagentsError
from subagents.runtimes.process.processes import scan

SOCKET: Final = ".s.PGSQL.5432"
LEASE_S: Final = 2.0
COMMAND_S: Final = 60
SETTLED_S: Final = 60.0
"""For a cluster whose nodes all live to divide the partitions."""
T = TypeVar("T")

CONFIG: Final = """
[agents.defaults.subagents]
max_children_per_agent = 5000
max_concurrent = {slots}
max_spawn_depth = 3

[daemon]
node = "{name}"
lease_seconds = 30
http_port = {http_port}

[cluster]
listen = "127.0.0.1:{listen}"
url = "https://127.0.0.1:{port}"
lease_seconds = {lease}
labels = {labels}
"""
TEMPORAL: Final = """
temporal = "127.0.0.1:{port}"
"""


@dataclass(slots=True)
class ClusterNode:
    """One of them: its home, and the lines that lead from and to it."""

    name: str
    home: LiveHome
    to_database: CuttableLine
    to_node: CuttableLine
    to_temporal: CuttableLine | None = None
    is_frozen: bool = False
    is_up: bool = False
    cut_from_peers: bool = False

    @property
    def can_answer(self) -> bool:
        return self.is_up and not self.is_frozen

    def command(self, *words: str) -> str:
        """What a command prints that is run on its machine."""
        with self.program(*words) as program:
            try:
                out, err = program.communicate(timeout=COMMAND_S)
            finally:
                program.kill()
        assert program.returncode == 0, err
        return out.strip()

    def program(self, *words: str) -> "subprocess.Popen[str]":
        """A command that is run on its machine, under way; nothing is typed into it yet."""
        return subprocess.Popen(
            [sys.executable, "-m", "subagents", *words],
            env=self.home._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start(self) -> None:
        self.home.start()
        self.is_up = True

    def kill(self) -> None:
        """SIGKILL of the daemon alone: its workers go on, and what watches them."""
        self.is_up = False
        self.home.kill()

    def kill_with_workers(self) -> None:
        """All that the machine ran is gone, as when its power is."""
        self.is_up = False
        self.thaw()
        # No part of it sees another one die: its keeper would renew the right of the dead daemon.
        for pid in self._on_machine():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        self.home.kill()

        def is_gone() -> bool:
            left = self._on_machine()
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not left

        until(is_gone, what=f"the end of all that {self.name} ran", pause_s=0.05)

    def _on_machine(self) -> list[int]:
        """What runs there: workers of runs that were spawned at another node, too."""
        root, home = str(self.home.paths.attempts_dir), self.home._env["SUBAGENTS_HOME"]
        workers = {e.pid for e in scan() if e.marker is not None and e.marker.root == root}
        return sorted({*workers, *carrying("SUBAGENTS_HOME", home)} - {os.getpid()})

    def drain(self) -> None:
        """All is given back, as its workers end; then SIGTERM, and the end of it."""
        self.command("cluster", "drain", "--wait", "--timeout", "50s")
        self.stop()

    def stop(self) -> None:
        """SIGTERM, and the end of it; workers go on."""
        self.is_up = False
        self.home.stop()

    def freeze(self) -> None:
        """SIGSTOP of the daemon: it believes what it believed, and its workers go on."""
        self.is_frozen = True
        os.kill(self.home.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        if self.is_frozen:
            os.kill(self.home.pid, signal.SIGCONT)
        self.is_frozen = False

    def is_well(self) -> bool:
        """Whether it serves, and can store what it decides."""
        with Client(self.home.paths.socket, timeout_s=5) as client:
            try:
                return client.get("/healthz").get("degraded") is None
            except SubagentsError:
                return False


class ClusterRig:
    """The nodes, while a ``with`` lasts: they have divided the partitions, and none is left behind.

    Args:
        server: Of the database.
        root: An empty directory.
        nodes: How many.
        lease_s: Of a node.
        slots: Runs at work at the same time at most.
        beat_s: A worker says so often that it is alive.
        env: More variables of each daemon.
        agents: Tables of agents, the same in the configuration of each.
        has_page: Whether each answers on a TCP port, too.
        labels: Those of some nodes, beside their names.
        temporal: Finds the places of attempts; None = PostgreSQL does.
        module: What each daemon is started as.
        pooler: Where the socket of what stands before the server is; None = nothing does.
    """

    def __init__(
        self,
        server: PostgresServer,
        root: Path,
        *,
        nodes: int = 3,
        lease_s: float = LEASE_S,
        slots: int = 64,
        beat_s: float = 0.1,
        env: dict[str, str] | None = None,
        agents: str = "",
        has_page: bool = False,
        labels: Mapping[str, Sequence[str]] | None = None,
        temporal: TemporalServer | None = None,
        module: str = "subagents",
        pooler: Path | None = None,
    ) -> None:
        self._module, self._socket = module, (pooler or server.directory) / SOCKET
        self._agents, self._has_page = agents, has_page
        self.temporal, self._labels = temporal, labels or {}
        self.server, self.lease_s, self.beat_s = server, lease_s, beat_s
        self.root = root
        self.spans = root / "spans"
        self.spans.mkdir()
        self.schema = server.new_schema()
        self._lines = Path(tempfile.mkdtemp(prefix="subagents-lines-"))
        self._lines.chmod(0o755)
        self.nodes = [
            self._node(f"n{number}", slots=slots, env=env or {}) for number in range(1, nodes + 1)
        ]

    def _node(self, name: str, *, slots: int, env: dict[str, str]) -> ClusterNode:
        directory = self._lines / name
        directory.mkdir()
        to_database = CuttableLine(directory / SOCKET, self._socket)
        listen = free_port()
        to_node = CuttableLine(("127.0.0.1", 0), ("127.0.0.1", listen))
        place = PostgresPlace(self.server, self.root / name, host=directory)
        place.schema, place.url = self.schema, self.server.url(self.schema, host=directory)
        config = CONFIG.format(
            name=name,
            listen=listen,
            port=to_node.port,
            lease=self.lease_s,
            slots=slots,
            http_port=free_port() if self._has_page else 0,
            labels=json.dumps([name, *self._labels.get(name, ())]),
        )
        to_temporal = None
        if self.temporal is not None:
            to_temporal = CuttableLine(("127.0.0.1", 0), ("127.0.0.1", self.temporal.port))
            config += TEMPORAL.format(port=to_temporal.port)
        home = LiveHome(
            self.root / name,
            config=config + self._agents,
            grace_s=0.5,
            env={**env, "SUBAGENTS_CLUSTER__SECRET": SECRET},
            descriptors=None,
            place=place,
            module=self._module,
        )
        node = ClusterNode(name, home, to_database, to_node, to_temporal)
        to_node.is_cut_for = lambda port: self._is_cut(node, port)
        return node

    def _is_cut(self, node: ClusterNode, port: int | None) -> bool:
        if node.cut_from_peers:
            return True
        return port is not None and any(
            is_of(each.home.pid, port) for each in self.nodes if each.cut_from_peers and each.is_up
        )

    # -- life --------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Start all of them, and wait until each has its share."""
        try:
            for node in self.nodes:
                node.start()
            self.until_divided()
        except BaseException:
            self._clean_up()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._clean_up()

    def until_divided(self, within_s: float = SETTLED_S) -> None:
        """All partitions are somebody's who lives, and nobody has too many."""
        alive = [node.name for node in self.nodes if node.is_up]
        most = -(-PARTITIONS // len(alive))

        def is_divided() -> bool:
            owned = self.owned()
            return sum(owned.values()) == PARTITIONS and all(
                owned.get(name, 0) <= most for name in alive
            )

        until(is_divided, what="each node has its share", within_s=within_s, pause_s=0.1)

    def fail_over(self, standby: PostgresServer) -> None:
        """The database is killed, and the other one takes its place."""
        self.server.kill()
        standby.asked("SELECT pg_promote()")
        self.server = standby
        for node in self.nodes:
            node.to_database.lead_to(standby.directory / SOCKET)

    def _clean_up(self) -> None:
        for node in self.nodes:
            node.thaw()
        for node in self.nodes:
            node.home.clean_up()
            node.to_database.close()
            node.to_node.close()
            if node.to_temporal is not None:
                node.to_temporal.close()
        for node in self.nodes:
            (self._lines / node.name / SOCKET).unlink(missing_ok=True)
            (self._lines / node.name).rmdir()
        self._lines.rmdir()

    # -- what the database knows -------------------------------------------------------------

    def asked(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Past every line."""
        with psycopg.connect(self.server.conninfo(), autocommit=True) as connection:
            connection.execute(f"SET search_path = {self.schema}".encode())
            return connection.execute(sql.encode(), parameters or None).fetchall()

    def owners(self) -> dict[int, str]:
        """Of each partition, the name of the node that has it, alive or not."""
        found = self.asked(
            "SELECT part.part, node.name FROM part JOIN node ON node.identity = part.owner"
        )
        return {int(part): str(name) for part, name in found}

    def owned(self) -> dict[str, int]:
        """How many partitions each node has whose right holds."""
        found = self.asked(
            "SELECT node.name, count(*) FROM part JOIN node ON node.identity = part.owner"
            " WHERE node.is_over::int = 0 AND node.until > clock_timestamp() GROUP BY node.name"
        )
        return {str(name): int(number) for name, number in found}

    def epochs(self) -> dict[int, int]:
        """How often each partition changed hands."""
        return {int(part): int(epoch) for part, epoch in self.asked("SELECT part, epoch FROM part")}

    def owner_of(self, session: str) -> ClusterNode:
        """Who decides about a session now."""
        name = until(lambda: self.owners().get(partition_of(SessionKey(session))), what="an owner")
        return next(node for node in self.nodes if node.name == name)

    def open_runs_of(self, name: str) -> list[str]:
        """The open runs that a node decides about."""
        found = self.asked(
            "SELECT run.run_id FROM run JOIN part USING (part)"
            " JOIN node ON node.identity = part.owner WHERE run.is_over = 0 AND node.name = %s",
            name,
        )
        return [str(run_id) for (run_id,) in found]

    # -- calls -------------------------------------------------------------------------------

    def client(self, chance: random.Random, *, session: str, reader: str) -> Client:
        """Of a node that can answer, drawn anew for each call that is to go anywhere."""
        able = [node for node in self.nodes if node.can_answer] or self.nodes
        node = chance.choice(able)
        return Client(node.home.paths.socket, session=session, reader=reader, timeout_s=15)


def patiently(call: Callable[[], T], *, within_s: float, pause_s: float = 0.05) -> T:
    """Repeat a call until somebody answers it; what is refused for good is raised."""
    due = time.monotonic() + within_s
    while True:
        try:
            return call()
        except SubagentsError as error:
            if not error.retryable or time.monotonic() > due:
                raise
        time.sleep(pause_s)
