"""Any node takes any call: real daemons on one PostgreSQL, each with its own socket."""

import asyncio
import json
import select
import socket

import pytest
from tests.api.home_daemon import DEADLINE_S, until
from tests.extensions.cluster.engine.engine_cluster import owned_by
from tests.extensions.cluster.nodes.door_daemons import DoorDaemon, cluster, eventually
from tests.extensions.cluster.pinned_nodes import ClusterHomes

from subagents.domain.cluster.partitioning import PARTITIONS


@pytest.mark.requirement("cluster:doors")
def test_a_run_that_one_node_decides_about_is_had_through_any(homes: ClusterHomes) -> None:
    async def scenario() -> None:
        async with cluster(homes, "a", "b", "c") as nodes:
            for owner in nodes:
                session = owner.session()
                for door in nodes:
                    receipt = await door.spawn(session, label=f"by-{door.name}")
                    run_id = receipt["runId"]
                    waited = await door.ok(
                        session, "POST", "/v1/wait", {"runIds": [run_id], "timeoutSeconds": 15}
                    )
                    assert [each["runId"] for each in waited["completed"]] == [run_id]
                    ack = {"messageIds": waited["messages"]}
                    await door.ok(session, "POST", "/v1/inbox/ack", ack)
                    for each in nodes:
                        shown = await each.ok(session, "GET", f"/v1/runs/{run_id}")
                        assert (shown["runId"], shown["outcome"]["status"]) == (run_id, "ok")
                        result = await each.ok(session, "GET", f"/v1/runs/{run_id}/result")
                        assert result["result"] == "done"
                for each in nodes:
                    assert not (await each.ok(session, "GET", "/v1/inbox"))["messages"]
                    listed = await each.ok(session, "GET", "/v1/runs")
                    labels = {row["label"] for row in listed["runs"]}
                    assert labels >= {f"by-{door.name}" for door in nodes}

    asyncio.run(scenario())


@pytest.mark.requirement("cluster:doors", "performance:stats")
def test_every_node_says_what_the_attempts_of_all_came_to(homes: ClusterHomes) -> None:
    async def scenario() -> None:
        async with cluster(homes, "a", "b") as nodes:
            for number, asked in enumerate([*nodes, *nodes], 1):
                owner = nodes[number % len(nodes)]
                session = owner.session()
                await owner.spawn(session)
                await owner.ok(session, "POST", "/v1/wait", {"timeoutSeconds": 15})

                async def has_all(
                    asked: DoorDaemon = asked, session: str = session, number: int = number
                ) -> bool:
                    stats = (await asked.ok(session, "GET", "/v1/agents/stats"))["stats"]
                    counts = {each["name"]: each["attemptCount"] for each in stats}
                    assert counts.get("quick", 0) <= number
                    return counts.get("quick") == number

                # The journal is read as far as no older transaction is under way.
                await eventually(has_all)

    asyncio.run(scenario())


@pytest.mark.requirement("cluster:doors")
def test_an_open_run_is_shown_steered_and_cancelled_through_any_node(homes: ClusterHomes) -> None:
    async def scenario() -> None:
        async with cluster(homes, "a", "b") as (a, b):
            session = b.session()
            run_id = (await a.spawn(session, "hang"))["runId"]
            for door in (a, b):

                async def is_running(door: DoorDaemon = door) -> bool:
                    shown = await door.ok(session, "GET", f"/v1/runs/{run_id}/status")
                    return bool(shown["phase"] == "running")

                await eventually(is_running)
                for path in ("", "/why", "/timeline", "/log", "/tree"):
                    await door.ok(session, "GET", f"/v1/runs/{run_id}{path}")
            paused = await a.ok(session, "POST", f"/v1/runs/{run_id}/priority", {"priority": 5})
            assert paused
            await a.ok(session, "POST", f"/v1/runs/{run_id}/steer", {"message": "left"})
            await a.ok(session, "POST", f"/v1/runs/{run_id}/cancel", {})
            waited = await a.ok(
                session, "POST", "/v1/wait", {"runIds": [run_id], "timeoutSeconds": 15}
            )
            assert [each["outcome"]["status"] for each in waited["completed"]] == ["cancelled"]

    asyncio.run(scenario())


@pytest.mark.requirement("cluster:doors")
def test_agents_use_their_tools_over_mcp_at_any_node(homes: ClusterHomes) -> None:
    async def scenario() -> None:
        async with cluster(homes, "a", "b") as (a, b):
            session = b.session()
            spawned = await a.tool(
                session, "sessions_spawn", {"task": "work", "agentId": "quick", "cwd": a.home.cwd}
            )
            assert not spawned["isError"], spawned
            run_id = spawned["structuredContent"]["runId"]
            waited = await a.tool(session, "sessions_wait", {"runIds": [run_id]})
            assert not waited["isError"], waited
            assert [each["runId"] for each in waited["structuredContent"]["completed"]] == [run_id]
            # What was read through the other node is consumed at the owner.

            async def is_consumed() -> bool:
                return not (await b.ok(session, "GET", "/v1/inbox"))["messages"]

            await eventually(is_consumed)
            for door in (a, b):
                for name, arguments in (
                    ("sessions_list", {}),
                    ("sessions_tree", {}),
                    ("sessions_history", {"sessionKey": run_id}),
                    ("subagents", {"action": "status", "target": run_id}),
                ):
                    found = await door.tool(session, name, arguments)
                    assert run_id in json.dumps(found) or name == "sessions_history", found

    asyncio.run(scenario())


@pytest.mark.requirement("cluster:doors")
def test_a_key_stands_for_one_run_whichever_node_it_is_told_to(homes: ClusterHomes) -> None:
    async def scenario() -> None:
        async with cluster(homes, "a", "b") as (a, b):
            session = b.session()
            body = {"spec": {"task": "work", "agentId": "quick"}, "cwd": a.home.cwd}
            found = [
                await door.ok(session, "POST", "/v1/runs", body, **{"Idempotency-Key": "once"})
                for door in (a, b, a)
            ]
            assert len({each["runId"] for each in found}) == 1
            plan = {"specs": [body["spec"]], "cwd": a.home.cwd}
            plans = [
                await door.ok(session, "POST", "/v1/plans", plan, **{"Idempotency-Key": "plan"})
                for door in (a, b)
            ]
            assert len({each["receipts"][0]["runId"] for each in plans}) == 1

    asyncio.run(scenario())


@pytest.mark.requirement("cluster:doors")
def test_who_follows_at_one_node_hears_of_the_runs_of_all(homes: ClusterHomes) -> None:
    async def scenario() -> None:
        async with cluster(homes, "a", "b") as (a, b):
            reader, writer = await asyncio.open_unix_connection(a.home.services.paths.socket)
            writer.write(b"GET /v1/events HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            await reader.readuntil(b"\n\n")  # it has begun
            spawned = {(await door.spawn(door.session()))["runId"] for door in (a, b)}
            left = set(spawned)
            async with asyncio.timeout(DEADLINE_S):
                while left:
                    line = await reader.readline()
                    assert line
                    left -= {each for each in left if each.encode() in line}
            writer.close()

            page = (
                await a.ok(b.session(), "GET", "/v1/events?after=0", Accept="application/json")
            )["events"]
            assert {each["runId"] for each in page} >= spawned

    asyncio.run(scenario())


@pytest.mark.requirement("cluster:doors")
def test_a_node_shows_the_cluster_and_gives_its_partitions_away(homes: ClusterHomes) -> None:
    async def scenario() -> None:
        async with cluster(homes, "a", "b") as (a, b):
            for door in (a, b):
                found = await door.ok("agent:main:main", "GET", "/v1/cluster")
                assert [each["name"] for each in found["nodes"]] == ["a", "b"]
                owned = [each["partitions"] for each in found["nodes"]]
                assert sum(owned) + found["unowned"] == PARTITIONS
                assert min(owned) > 0
                assert [each["isSelf"] for each in found["nodes"]] == [
                    door is a,
                    door is b,
                ]
                assert all(each["alive"] and each["url"] for each in found["nodes"])
            session = b.session()
            run_id = (await b.spawn(session))["runId"]
            refused = await b.call(
                session, "POST", "/v1/cluster/drain", {}, **{"X-Subagents-Caller": "agent"}
            )
            assert (refused[0], refused[1]["code"]) == (403, "forbidden")
            found = await b.ok(session, "POST", "/v1/cluster/drain", {"on": True})
            assert [each["draining"] for each in found["nodes"]] == [False, True]
            await until(lambda: len(owned_by(a.engine)) == PARTITIONS)
            # The same session goes on through either door.
            for door in (a, b):
                waited = await door.ok(
                    session, "POST", "/v1/wait", {"runIds": [run_id], "timeoutSeconds": 15}
                )
                assert [each["runId"] for each in waited["completed"]] == [run_id]
                assert (await door.spawn(session))["status"] == "accepted"

    asyncio.run(scenario())


@pytest.mark.requirement("cluster:doors")
@pytest.mark.parametrize("reads", [True, False])
def test_what_a_client_of_another_node_took_is_consumed_and_what_it_left_is_offered_again(
    homes: ClusterHomes, *, reads: bool
) -> None:
    async def scenario() -> None:
        async with cluster(homes, "a", "b") as (a, b):
            session = b.session()
            run_id = (await b.spawn(session))["runId"]
            body = json.dumps({"runIds": [run_id]}).encode()
            head = (
                f"POST /v1/tools/sessions_wait HTTP/1.1\r\nhost: x\r\nx-subagents-ack: auto\r\n"
                f"x-subagents-session: {session}\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            loop = asyncio.get_running_loop()
            with socket.socket(socket.AF_UNIX) as client:
                client.setblocking(False)
                await loop.sock_connect(client, str(a.home.services.paths.socket))
                await loop.sock_sendall(client, head.encode() + body)
                answer = b""
                if reads:
                    while run_id.encode() not in answer or not answer.endswith(b"}"):
                        answer += (piece := await loop.sock_recv(client, 65536))
                        assert piece, answer
                else:
                    await until(lambda: bool(select.select([client], [], [], 0)[0]))

            async def is_settled() -> bool:
                offering = {"X-Subagents-Reader": "next"}
                offered = await b.ok(session, "POST", "/v1/inbox", {}, **offering)
                if reads:
                    return not (await b.ok(session, "GET", "/v1/inbox"))["messages"]
                return bool(offered["messages"])

            await eventually(is_settled)

    asyncio.run(scenario())
