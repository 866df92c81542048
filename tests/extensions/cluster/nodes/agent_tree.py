"""A tree of agents of three vendors over three nodes: Claude Code → Codex → a command.

The programs are real, and so are the nodes and PostgreSQL; only the models follow a script. The
trees are of sessions that ``n1`` decides about; Claude Code works on ``n2``, Codex on ``n3``, the
command on ``n1``.
"""

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.e2e.live_home import until, variable_of
from tests.e2e.program_setups import CLAUDE
from tests.e2e.runtime_cells import LOOP, RUN_S
from tests.e2e.scripted_model import Conversation, Say, ScriptedModel, Use
from tests.extensions.cluster.nodes.cluster_rig import ClusterNode, ClusterRig, patiently
from tests.extensions.cluster.postgres.postgres_server import PostgresServer
from tests.real.codex_setup import CODEX

from subagents.client.client import Client
from subagents.domain.cluster.partitioning import partition_of
from subagents.domain.run.events import AnnouncementConsumed
from subagents.domain.run.values import SessionKey
from subagents.errors import RateLimited
from subagents.runtimes.process.processes import scan

Document = dict[str, Any]

LEASE_S: Final = 6.0
WAIT_S: Final = 60
RUN: Final = r"r-[a-z0-9]{6,}"


@dataclass(slots=True)
class AgentTree:
    """The nodes, and the model of all agents."""

    rig: ClusterRig
    model: ScriptedModel
    work: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def node(self, name: str) -> ClusterNode:
        return next(each for each in self.rig.nodes if each.name == name)

    def session(self, owner: str = "n1") -> str:
        """A new session that this node decides about."""
        owners = self.rig.owners()
        names = (f"agent:main:s{number}" for number in self._numbers)
        return next(name for name in names if owners[partition_of(SessionKey(name))] == owner)

    def client(self, name: str, session: str) -> Client:
        """Of a node; the caller is to close it."""
        return Client(self.node(name).home.paths.socket, session=session, reader="r", timeout_s=15)

    def spawn(self, door: str, session: str, task: str, agent: str, **spec: object) -> str:
        """The id of a new run, asked for at a node."""
        body = {"spec": {"task": task, "agentId": agent, **spec}, "cwd": str(self.work)}
        with self.client(door, session) as client:
            return str(patiently(lambda: client.post("/v1/runs", body), within_s=20)["runId"])

    def get(self, door: str, path: str, **query: str | int) -> Document:
        with self.client(door, "agent:main:main") as client:
            return client.get(path, query)

    def post(self, door: str, path: str, body: object = None) -> Document:
        with self.client(door, "agent:main:main") as client:
            return client.post(path, body, timeout_s=60)

    def show(self, door: str, run_id: str) -> Document:
        return self.get(door, f"/v1/runs/{run_id}")

    def result(self, door: str, session: str, run_id: str) -> Document:
        """Wait for a run at a node, and take its result over there."""
        with self.client(door, session) as client:
            body = {"runIds": [run_id], "timeoutSeconds": WAIT_S}
            waited = client.post("/v1/wait", body, timeout_s=WAIT_S + 5)
            completed: Any = waited["completed"]
            assert completed, waited
            client.post("/v1/inbox/ack", {"messageIds": waited["messages"]})
        return dict(completed[0])

    def until_phase(self, door: str, run_id: str, phase: str) -> None:
        until(
            lambda: self.get(door, f"/v1/runs/{run_id}/status")["phase"] == phase,
            what=f"{run_id} is {phase}",
            within_s=RUN_S,
        )

    def labelled(self, label: str) -> str:
        """The id of the newest run with that label, once there is one."""

        def look() -> str | None:
            rows = self.get("n1", "/v1/runs", limit=200, archived=1)["runs"]
            return next((row["runId"] for row in rows if row["label"] == label), None)

        return until(look, what=f"a run {label}", within_s=RUN_S)

    def consumed(self, run_id: str) -> int:
        """How often its result was consumed, as its journal says."""
        return len(self.node("n1").home.events(run_id, AnnouncementConsumed))

    def steer(self, door: str, run_id: str, message: str) -> float:
        """As soon as it may be: a run takes one message in two seconds.

        Returns:
            When the call that was accepted began, by this process's clock.
        """

        def taken_at() -> float | None:
            begun = time.monotonic()
            try:
                self.post(door, f"/v1/runs/{run_id}/steer", {"message": message})
            except RateLimited:
                return None
            return begun

        return until(taken_at, what=f"{run_id} takes a message")

    def processes(self, run_id: str) -> dict[int, str]:
        """Of a run, wherever they live: the directory of attempts that each belongs to."""
        return {
            each.pid: each.marker.root
            for each in scan()
            if each.marker is not None and each.marker.attempt_id.startswith(f"{run_id}#")
        }

    def at_work(self, run_id: str) -> set[str]:
        """The nodes in whose directories processes of the run live."""
        names = {str(each.home.paths.attempts_dir): each.name for each in self.rig.nodes}
        return {names[root] for root in self.processes(run_id).values()}

    def sockets_told(self, run_id: str) -> set[str]:
        """The nodes whose sockets the processes of a run were told of."""
        names = {str(each.home.paths.socket): each.name for each in self.rig.nodes}
        told = {variable_of(pid, "SUBAGENTS_SOCKET") for pid in self.processes(run_id)}
        return {names[socket] for socket in told if socket is not None}

    # -- what the models say ------------------------------------------------------------------

    def plant(self, name: str, *, leaf: str) -> str:
        """Write the scripts of one tree; the task of its root.

        Args:
            name: Of the tree: ``NAME-codex`` and ``NAME-leaf`` label what is below its root.
            leaf: What the command does.
        """
        self.model.scripts[name] = [
            Use(
                "sessions_spawn",
                {
                    "task": f"script:{name}-codex",
                    "agentId": CODEX.name,
                    "label": f"{name}-codex",
                    "place": "n3",
                },
            ),
            wait_for_child,
            lambda seen: Say(f"Claude Code heard: {last_line(seen, 'Codex heard')}"),
        ]
        self.model.scripts[f"{name}-codex"] = [
            Use(
                "sessions_spawn",
                {"task": leaf, "agentId": "sh", "label": f"{name}-leaf", "place": "n1"},
            ),
            wait_for_child,
            lambda seen: Say(f"Codex heard: {last_line(seen, 'leaf:')}"),
        ]
        return f"script:{name}"


def wait_for_child(seen: Conversation) -> Use:
    run_ids = [seen.found(RUN)[0]]
    return Use("sessions_wait", {"runIds": run_ids, "timeoutSeconds": WAIT_S})


def last_line(seen: Conversation, begin: str) -> str:
    """What the model was told last that begins so; all that it was told, when nothing does."""
    found = seen.found(rf"{begin}[^\n\"\\]*")
    return found[-1] if found else f"nothing of {begin!r} in {seen.results[-1]}"


def held(path: Path) -> str:
    """A shell script that says on which node it is, once it may."""
    return f'echo begun > {path}.begun; {LOOP.format(gate=path)}; echo "leaf: $SUBAGENTS_SOCKET"'


@contextmanager
def agent_tree(server: PostgresServer, root: Path) -> Iterator[AgentTree]:
    """Three nodes with both programs, for the length of the block."""
    work, own = root / "work", root / "setups"
    work.mkdir()
    own.mkdir()
    with ScriptedModel({}) as model:
        agents = ""
        for setup in (CLAUDE, CODEX):
            (own / setup.name).mkdir()
            setup.prepare(model.url, own / setup.name)
            agents += setup.config(model.url, own / setup.name)
        with ClusterRig(server, root, lease_s=LEASE_S, agents=agents, has_page=True) as rig:
            yield AgentTree(rig, model, work)
