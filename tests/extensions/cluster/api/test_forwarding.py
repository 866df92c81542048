"""Any node takes any call, and what the client sees is what the owner answered."""

import asyncio
import hashlib
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.extensions.cluster.api.door_nodes import DEADLINE_S, TOKEN, Node, Nodes, play, until
from tests.extensions.cluster.pinned_nodes import PinnedNodes

from subagents.api.calls.auth import Connection
from subagents.api.calls.login import Login, Role
from subagents.extensions.cluster.api import forwarding
from subagents.extensions.cluster.api.peers import LostError, NotSentError, Peers
from subagents.extensions.cluster.shared_store import Survey


@pytest.mark.requirement("cluster:doors")
def test_every_node_gives_the_answer_of_the_owner(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        for partition, owner in ((1, "a"), (2, "b"), (3, "c")):
            answers = [
                await client.get(f"{node.plain_url}/who/{partition}?x=%2F&y=ü") for node in nodes
            ]
            for node, found in zip(nodes, answers, strict=True):
                document = found.json()
                assert (found.status_code, document.pop("node")) == (200, owner)
                assert found.headers["x-mine"] == owner
                assert found.headers["content-length"] == str(len(found.content))
                by = document.pop("by")
                assert by == (None if node.name == owner else node.name)
            assert nodes[owner].served[f"GET /who/{partition}"] == 3
        same = {found.json()["query"] for found in answers}
        assert same == {"x=%2F&y=%C3%BC"}

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_an_escaped_path_and_a_large_body_reach_the_owner_as_they_were_sent(tmp_path: Path) -> None:
    body = bytes(range(256)) * (40 << 12)

    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(body), 1 << 20):
                yield body[at : at + (1 << 20)]

        for content in (body, pieces()):
            found = await client.post(f"{nodes['a'].plain_url}/who/2?q=a%2Fb", content=content)
            document = found.json()
            assert (document["node"], document["bytes"]) == ("b", len(body))
            assert document["digest"] == hashlib.sha256(body).hexdigest()
        raw = await client.get(nodes["a"].plain_url + "/who/%32")
        assert (raw.json()["node"], raw.json()["raw"]) == ("b", "/who/%32")
        head = await client.head(nodes["a"].plain_url + "/who/2")
        assert (head.status_code, head.headers["x-mine"], head.content) == (200, "b", b"")
        missing = await client.get(nodes["a"].plain_url + "/nowhere/2")
        assert missing.status_code == 404

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_a_body_that_no_route_takes_is_refused_where_it_came(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        found = await client.post(nodes["a"].plain_url + "/who/2", content=bytes(65 << 20))
        assert (found.status_code, found.json()["code"]) == (413, "invalid")
        assert not nodes["b"].served

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_the_owner_hears_who_calls_from_the_node_that_was_called(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        node = nodes["a"]
        said = {
            "X-Subagents-Session": "agent:main:me",
            "X-Subagents-Cwd": "/some%20where",
            "Cookie": "subagents=secret",
            "Authorization": "Bearer operators-own-token",
        }
        node.connection = Connection("127.0.0.1:4711", is_operator=True)
        person = (await client.get(node.plain_url + "/who/2", headers=said)).json()
        assert person["session"], person["operator"] == ("agent:main:me", True)
        assert (person["cwd"], person["peer"]) == ("/some where", "node a: 127.0.0.1:4711")
        assert (person["authorization"], person["cookie"]) == (None, None)

        agent = (
            await client.get(
                node.plain_url + "/who/2", headers={**said, "X-Subagents-Caller": "agent"}
            )
        ).json()
        assert (agent["operator"], agent["worker"]) == (False, None)

        node.connection = Connection("pid 4711")
        worker = {"Authorization": f"Bearer {TOKEN}"}
        found = (await client.get(node.plain_url + "/who/2", headers=worker)).json()
        assert (found["node"], found["worker"], found["operator"]) == ("b", "r-of-b", False)
        unknown = {"Authorization": "Bearer nonsense"}
        refused = await client.get(node.plain_url + "/who/2", headers=unknown)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_a_viewer_looks_through_another_node_and_changes_nothing(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        node = nodes["a"]
        login = Login(
            id="l", digest="", role=Role.VIEWER, port=1, created_ms=0, used_ms=0, browser=""
        )
        node.connection = Connection("x", is_operator=True, login=login)
        assert (await client.get(node.plain_url + "/who/2")).json()["node"] == "b"
        # The listener refuses it; the owner does not rely on that.
        refused = await client.post(node.plain_url + "/who/2")
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert nodes["b"].served == {"GET /who/2": 1}

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_headers_of_trust_mean_nothing_on_an_ordinary_door(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        lies = {
            "X-Subagents-Forwarded": "c",
            "X-Subagents-Behalf": "person",
            "X-Subagents-Peer": "somebody else",
        }
        for partition in (1, 2):
            found = (
                await client.get(f"{nodes['a'].plain_url}/who/{partition}", headers=lies)
            ).json()
            assert (found["node"], found["by"]) == (("a", None), ("b", "a"))[partition - 1]
            assert "somebody" not in found["peer"]

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_a_foreign_certificate_is_let_in_nowhere(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        stranger = PinnedNodes(tmp_path).trust("a", file="stranger")
        stranger._survey = nodes["a"].member.trust._survey
        foreign = Peers(stranger)
        headers = [(b"x-subagents-forwarded", b"a"), (b"x-subagents-behalf", b"person")]
        with pytest.raises((NotSentError, LostError)):
            async with foreign.call(nodes["b"].member.url, "GET", b"/who/2", headers):
                pass
        with pytest.raises(httpx2.HTTPError):
            await httpx2.AsyncClient(verify=False).get(nodes["b"].member.url + "/who/2")
        assert not nodes["b"].served
        # Nor do we talk to one that shows a foreign one.
        async with nodes["a"].peers.call(nodes["b"].member.url, "GET", b"/who/2", headers) as found:
            assert found.status == 200
        nodes["a"].member.trust._survey = lambda: Survey({}, {})
        with pytest.raises((NotSentError, LostError)):
            async with nodes["a"].peers.call(nodes["b"].member.url, "GET", b"/who/2", headers):
                pass

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_a_call_that_names_no_node_and_no_caller_is_refused_at_the_node_door(
    tmp_path: Path,
) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        for headers in ((), [(b"x-subagents-forwarded", b"a")]):
            calling = nodes["a"].peers.call(nodes["b"].member.url, "GET", b"/who/2", headers)
            async with calling as found:
                assert found.status == 422
        assert not nodes["b"].served

    play(tmp_path, scenario)


# -- streams ------------------------------------------------------------------------------------


@pytest.mark.requirement("cluster:doors")
def test_a_stream_comes_as_it_is_written_and_ends_with_its_client(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        owner = nodes["b"]
        async with client.stream("GET", nodes["a"].plain_url + "/stream/2") as found:
            assert found.headers["content-type"].startswith("text/event-stream")
            lines = found.aiter_lines()
            for number in range(3):
                owner.lines.put_nowait(str(number))
                assert await anext(lines) == f"data: {number}"
                assert await anext(lines) == ""
            assert not owner.left.is_set()
        await asyncio.wait_for(owner.left.wait(), DEADLINE_S)

        async with client.stream("GET", nodes["a"].plain_url + "/stream/2") as found:
            owner.lines.put_nowait(None)
            assert await found.aread() == b""

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_a_long_poll_at_the_owner_ends_when_the_client_of_another_node_goes(
    tmp_path: Path,
) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        calling = asyncio.create_task(client.get(nodes["a"].plain_url + "/wait/2"))
        await asyncio.wait_for(nodes["b"].begun.wait(), DEADLINE_S)
        calling.cancel()
        await asyncio.wait_for(nodes["b"].left.wait(), DEADLINE_S)

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_a_stream_whose_owner_dies_is_cut_off_and_not_ended(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        async with client.stream("GET", nodes["a"].plain_url + "/stream/2") as found:
            nodes["b"].lines.put_nowait("one")
            lines = found.aiter_lines()
            assert await anext(lines) == "data: one"
            await nodes.kill("b")
            with pytest.raises(httpx2.HTTPError):
                async for _ in lines:
                    pass

    play(tmp_path, scenario)


# -- owners that change -------------------------------------------------------------------------


@pytest.mark.requirement("cluster:doors")
def test_a_call_follows_its_partition_to_the_node_that_has_it_now(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        await nodes.give("c", 2, seen="bc")  # a believes that it is still b's
        assert (await client.head(nodes["a"].plain_url + "/who/2")).headers["x-mine"] == "c"
        await nodes.give("b", 2, seen="a")
        nodes.table.owners[2] = "start-of-c"
        found = await client.get(nodes["a"].plain_url + "/who/2")
        assert found.json()["node"] == "c"
        assert nodes["b"].served == {}

        await nodes.give("a", 2, seen="bc")
        assert (await client.get(nodes["a"].plain_url + "/who/2")).json()["node"] == "a"

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_a_call_follows_a_partition_that_moves_twice(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        await nodes.give("c", 2, seen="b")  # c has not loaded it when it is asked
        nodes["c"].owners.is_loaded = False
        calling = asyncio.create_task(client.get(nodes["a"].plain_url + "/who/2"))
        await nodes["a"].owners.looked(3)
        await nodes.give("b", 2, seen="bc")
        assert (await calling).json()["node"] == "b"

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_a_call_waits_until_somebody_has_its_partition(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        for owner in "ab":
            await nodes.give(None, 4)
            before = nodes["a"].owners.looks
            calling = asyncio.create_task(
                client.post(nodes["a"].plain_url + "/who/4", content=b"kept")
            )
            await nodes["a"].owners.looked(before + 2)
            await nodes.give(owner, 4)
            found = (await calling).json()
            assert (found["node"], found["bytes"]) == (owner, 4)

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_a_call_that_nobody_owns_for_long_is_refused_and_may_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "NO_OWNER_S", 0.6)

    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        found = await client.get(nodes["a"].plain_url + "/who/4")
        document = found.json()
        assert (found.status_code, document["code"], document["retryable"]) == (
            503,
            "elsewhere",
            True,
        )
        assert document["details"]["partition"] == 4
        assert nodes["a"].owners.looks >= 3

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_two_nodes_that_believe_in_each_other_do_not_send_a_call_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "NO_OWNER_S", 0.6)

    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        await nodes.give("a", 2, seen="b")
        nodes.table.owners[2] = "start-of-b"  # what a sees whenever it looks, and b never
        found = await client.get(nodes["a"].plain_url + "/who/2")
        assert (found.status_code, found.json()["code"]) == (503, "elsewhere")
        assert all(not node.served for node in nodes)
        # a was told 421 by b, each time; b asked nobody.
        assert nodes["b"].calls._calls == {}

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_a_forwarded_call_that_is_not_the_nodes_own_is_answered_421(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        headers = [(b"x-subagents-forwarded", b"a"), (b"x-subagents-behalf", b"person")]
        calling = nodes["a"].peers.call(nodes["b"].member.url, "GET", b"/who/3", headers)
        async with calling as found:
            document = json.loads(await found.body())
            assert (found.status, document["code"]) == (421, "elsewhere")
            assert document["details"]["node"] == "c"

    play(tmp_path, scenario)


# -- owners that are lost -----------------------------------------------------------------------


@pytest.mark.requirement("cluster:doors")
def test_a_read_that_was_under_way_at_a_lost_owner_is_answered_by_the_next(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        calling = asyncio.create_task(client.get(nodes["a"].plain_url + "/wait/2"))
        await asyncio.wait_for(nodes["b"].begun.wait(), DEADLINE_S)
        nodes["c"].may_answer.set()
        await nodes.kill("b")
        await nodes.give("c", 2)
        assert (await calling).json()["node"] == "c"

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_a_spawn_at_a_lost_owner_is_repeated_under_the_key_that_it_had(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        for headers in ({}, {"Idempotency-Key": "mine"}):
            nodes["b"].begun.clear()
            await nodes.give("b", 2)
            spawn = client.post(
                nodes["a"].plain_url + "/v1/runs", json={"part": 2}, headers=headers
            )
            calling = asyncio.create_task(spawn)
            await asyncio.wait_for(nodes["b"].begun.wait(), DEADLINE_S)
            nodes["c"].may_answer.set()
            for connection in list(nodes._servers["b"][1].server_state.connections):
                connection.transport.abort()
            await nodes.give("c", 2)
            found = await calling
            assert (found.status_code, found.json()["node"]) == (201, "c")
        assert nodes["b"].keys == nodes["c"].keys
        generated, mine = nodes["c"].keys
        assert mine == "mine"
        assert len(generated) == 32

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_whoever_called_what_is_not_to_be_repeated_hears_that_nobody_knows_what_became_of_it(
    tmp_path: Path,
) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        calling = asyncio.create_task(client.post(nodes["a"].plain_url + "/steer/2"))
        await asyncio.wait_for(nodes["b"].begun.wait(), DEADLINE_S)
        await nodes.kill("b")
        await nodes.give("c", 2)
        found = await calling
        document = found.json()
        assert (found.status_code, document["code"]) == (502, "outcome_unknown")
        assert not document["retryable"]
        assert "node b" in document["message"]
        assert not nodes["c"].served

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_what_never_reached_the_owner_is_sent_to_the_next_whatever_it_is(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        await nodes.kill("b")
        nodes["c"].may_answer.set()
        calling = asyncio.create_task(client.post(nodes["a"].plain_url + "/steer/2"))
        await nodes["a"].owners.looked(2)
        await nodes.give("c", 2)
        assert (await calling).json()["node"] == "c"

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_nobody_waits_for_an_owner_that_says_nothing_and_whose_right_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "ALIVE_S", 0.05)

    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        reading = asyncio.create_task(client.get(nodes["a"].plain_url + "/wait/2"))
        await asyncio.wait_for(nodes["b"].begun.wait(), DEADLINE_S)
        acting = asyncio.create_task(client.post(nodes["a"].plain_url + "/steer/2"))
        await until(lambda: nodes["b"].served["POST /steer/2"])
        nodes["c"].may_answer.set()
        frozen = nodes.table.nodes["start-of-b"]
        nodes.table.nodes["start-of-b"] = frozen._replace(left_s=0.0)
        await nodes.give("c", 2)
        assert (await reading).json()["node"] == "c"
        assert (await acting).json()["code"] == "outcome_unknown"

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_whoever_waits_at_a_node_that_gave_its_partition_back_waits_at_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "ALIVE_S", 0.05)

    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        reading = asyncio.create_task(client.get(nodes["a"].plain_url + "/wait/2"))
        await asyncio.wait_for(nodes["b"].begun.wait(), DEADLINE_S)
        nodes["c"].may_answer.set()
        await nodes.give("c", 2)
        assert (await reading).json()["node"] == "c"
        await asyncio.wait_for(nodes["b"].left.wait(), DEADLINE_S)

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_how_long_a_call_waited_at_an_owner_does_not_count_against_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        loop = asyncio.get_running_loop()
        reading = asyncio.create_task(client.get(nodes["a"].plain_url + "/wait/2"))
        await asyncio.wait_for(nodes["b"].begun.wait(), DEADLINE_S)
        real = loop.time
        monkeypatch.setattr(loop, "time", lambda: real() + 1.2 * forwarding.NO_OWNER_S)
        nodes["c"].may_answer.set()
        await nodes.give("c", 2)
        found = await reading
        assert (found.status_code, found.json().get("node")) == (200, "c")

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_a_node_that_stops_tells_whoever_waits_through_it_and_does_not_wait_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "ALIVE_S", 0.05)

    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        reading = asyncio.create_task(client.get(nodes["a"].plain_url + "/wait/2"))
        await asyncio.wait_for(nodes["b"].begun.wait(), DEADLINE_S)
        nodes["a"].stopping.set()
        found = await reading
        assert (found.status_code, found.json()["message"]) == (503, "the daemon is stopping")
        await asyncio.wait_for(nodes["b"].left.wait(), DEADLINE_S)

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_a_wait_is_forwarded_unread_and_is_for_runs_that_one_node_decides_about(
    tmp_path: Path,
) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        async def wait(at: str, *run_ids: str) -> httpx2.Response:
            body = {"runIds": run_ids}
            return await client.post(nodes[at].plain_url + "/v1/wait", json=body)

        assert (await wait("a", "r-of-b", "r-of-none")).json()["node"] == "b"
        assert not nodes["a"].served
        for at, *run_ids in (("a", "r-of-b", "r-of-a"), ("c", "r-of-a", "r-of-b")):
            found = await wait(at, *run_ids)
            assert (found.status_code, found.json()["retryable"]) == (422, False)
            assert "one session at a time" in found.json()["hint"]

    play(tmp_path, scenario)


# -- what an answer hands over ------------------------------------------------------------------


async def _begun(node: Node) -> None:
    """Some client has got something of an answer."""
    await until(lambda: any(call.is_begun for call in node.calls._calls.values()))


async def _post(url: str, path: str) -> socket.socket:
    """A request on a socket of its own, whose answer nobody reads yet."""
    parts = urlsplit(url)
    loop = asyncio.get_running_loop()
    made = socket.socket()
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await loop.sock_connect(made, (parts.hostname, parts.port))
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"
    await loop.sock_sendall(made, head.encode())
    return made


@pytest.mark.requirement("cluster:doors")
@pytest.mark.parametrize("path", ["/offer/2", "/offer/2?large=1"])
def test_what_was_read_through_another_node_is_taken(tmp_path: Path, path: str) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        found = await client.post(nodes["a"].plain_url + path)
        assert set(found.text) == {"x"}
        assert await asyncio.wait_for(nodes["b"].taken.get(), DEADLINE_S)

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_what_a_client_read_before_it_went_is_taken(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        loop = asyncio.get_running_loop()
        with await _post(nodes["a"].plain_url, "/offer/2") as made:
            got = b""
            while not got.endswith(20 * b"x"):
                got += await loop.sock_recv(made, 65536)
        assert await asyncio.wait_for(nodes["b"].taken.get(), DEADLINE_S)

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
@pytest.mark.parametrize("path", ["/offer/2", "/offer/2?large=1"])
def test_what_a_client_of_another_node_left_unread_is_not_taken(tmp_path: Path, path: str) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        with await _post(nodes["a"].plain_url, path):
            await _begun(nodes["a"])
        assert not await asyncio.wait_for(nodes["b"].taken.get(), DEADLINE_S)

    play(tmp_path, scenario)


@pytest.mark.requirement("cluster:doors")
def test_what_was_sent_through_a_node_that_died_is_not_taken(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes, client: httpx2.AsyncClient) -> None:
        with await _post(nodes["a"].plain_url, "/offer/2"):
            await _begun(nodes["a"])
            await nodes.kill("a")
            assert not await asyncio.wait_for(nodes["b"].taken.get(), DEADLINE_S)

    play(tmp_path, scenario)
