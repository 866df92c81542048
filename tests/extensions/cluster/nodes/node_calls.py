"""What a caller says to one node: single runs, beside ``cluster_load``, which draws its nodes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.extensions.cluster.nodes.cluster_rig import ClusterNode, ClusterRig, patiently

from subagents.client.client import Client


def client_of(node: ClusterNode, session: str) -> Client:
    return Client(node.home.paths.socket, session=session, reader="r", timeout_s=15)


def other_than(rig: ClusterRig, node: ClusterNode) -> ClusterNode:
    return next(each for each in rig.nodes if each is not node)


def spawned(
    client: Client,
    cwd: Path,
    script: str,
    *,
    environment: Mapping[str, str] | None = None,
    **parameters: object,
) -> str:
    """The id of a run that does what a shell script says."""
    spec = {"task": script, "agentId": "sh", **parameters}
    given = {} if environment is None else {"environment": {"given": environment}}
    body = {"spec": spec, "cwd": str(cwd), **given}
    return str(patiently(lambda: client.post("/v1/runs", body), within_s=20)["runId"])


def result_of(client: Client, run_id: str) -> tuple[object, object]:
    """How a run ended, and what it came to; waits for it."""
    body = {"runIds": [run_id], "until": "all", "timeoutSeconds": 40}
    found = patiently(lambda: client.post("/v1/wait", body, timeout_s=45), within_s=60)
    answer: Any = found
    [item] = answer["completed"]
    return item["outcome"]["status"], item.get("result")
