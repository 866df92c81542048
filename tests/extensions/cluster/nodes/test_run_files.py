"""What a run of one node leaves in files is had through every node, also when that one is gone."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.api.home_daemon import DEADLINE_S, UnixConnection, segment, until
from tests.extensions.cluster.engine.engine_cluster import owned_by
from tests.extensions.cluster.nodes.door_daemons import DoorDaemon, cluster, node
from tests.extensions.cluster.pinned_nodes import ClusterHomes

from subagents.domain.cluster.partitioning import PARTITIONS
from subagents.domain.run.worker_output import RESULT_BYTES_MAX

TASK = """
echo "token $TOKEN" | wc -c
printf 0123456789 > out.txt
for number in $(seq 1 9000); do echo "line $number"; done
"""

WHOLE = "\n".join(["21", *(f"line {number}" for number in range(1, 9_001))])
"""What it says."""
assert len(WHOLE) > RESULT_BYTES_MAX


async def ended(door: DoorDaemon, session: str, run_id: str) -> Mapping[str, object]:
    asked = {"runIds": [run_id], "timeoutSeconds": 15}
    async with asyncio.timeout(DEADLINE_S):
        waited = await door.ok(session, "POST", "/v1/wait", asked)
    (found,) = waited["completed"]
    assert found.get("status", "ok") == "ok", found
    return dict(found)


async def require_all(door: DoorDaemon, session: str, run_id: str) -> None:
    """Its lines, its whole result and its file."""
    log = await door.ok(session, "GET", f"/v1/runs/{run_id}/log?grep=line%208999")
    assert [line["text"] for line in log["lines"]] == ["line 8999"]
    target = f"/v1/runs/{run_id}/result/text?offset=100&limit={len(WHOLE)}"
    assert await asyncio.to_thread(downloaded, door, session, target) == WHOLE[100:].encode()
    listed = await door.ok(session, "GET", f"/v1/runs/{run_id}/artifacts")
    assert [(each["path"], each["bytes"]) for each in listed["artifacts"]] == [("out.txt", 10)]
    target = f"/v1/runs/{run_id}/artifacts/content?path={segment('out.txt')}"
    assert await asyncio.to_thread(downloaded, door, session, target, "bytes=3-6") == b"3456"


def downloaded(door: DoorDaemon, session: str, target: str, part: str = "") -> bytes:
    connection = UnixConnection(door.home.services.paths.socket)
    try:
        headers = {"X-Subagents-Session": session, **({"Range": part} if part else {})}
        connection.request("GET", target, headers=headers)
        answered = connection.getresponse()
        content = answered.read()
        assert answered.status == (206 if part else 200), content
        return content
    finally:
        connection.close()


@pytest.mark.requirement("cluster:run-files")
def test_lines_results_files_and_variables_of_a_run_outlive_its_node(
    homes: ClusterHomes, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()

    async def scenario() -> None:
        async with cluster(homes, "a") as (a,):
            async with node(homes, "b") as b:
                await until(lambda: bool(owned_by(b.engine)))
                session = b.session()
                body = {
                    "spec": {
                        "task": TASK,
                        "agentId": "shell",
                        "verification": {"artifacts": [{"path": "out.txt"}]},
                    },
                    "cwd": str(work),
                    "environment": {"given": {"TOKEN": "hush-hush-hush"}},
                }
                run_id = (await a.ok(session, "POST", "/v1/runs", body))["runId"]
                await ended(a, session, run_id)
                (work / "out.txt").unlink()
                for door in (a, b):
                    await require_all(door, session, run_id)
            await until(lambda: len(owned_by(a.engine)) == PARTITIONS)
            await require_all(a, session, run_id)
            again = (await a.ok(session, "POST", f"/v1/runs/{run_id}/retry", {}))["runId"]
            await ended(a, session, again)
            log = await a.ok(session, "GET", f"/v1/runs/{again}/log?grep=%5E21%24")
            assert [line["text"] for line in log["lines"]] == ["21"], "its variable was there"

    asyncio.run(scenario())
