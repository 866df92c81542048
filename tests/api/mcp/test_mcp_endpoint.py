"""``/mcp`` with the protocol's own client, in both of its eras, and byte by byte."""

import asyncio
import http.client
import json
from pathlib import Path
from typing import Any

import pytest
from tests.api.home_daemon import Home, UnixConnection
from tests.api.mcp.mcp_clients import (
    Wire,
    play,
)

from subagents.api.mcp.mcp_endpoint import BODY_BYTES_MAX, McpEndpoint
from subagents.domain.run.run import Phase
from subagents.domain.run.values import replace
from subagents.ports import Batch


def raw(home: Home, method: str, headers: dict[str, str], body: bytes = b"{}") -> Any:
    connection = UnixConnection(home.services.paths.socket)
    try:
        connection.request(method, "/mcp", body, headers)
        answered: http.client.HTTPResponse = connection.getresponse()
        return answered.status, dict(answered.getheaders()), answered.read()
    finally:
        connection.close()


@pytest.mark.requirement("mcp:endpoint")
def test_there_is_no_stream_to_get_and_a_body_has_a_limit(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        for method in ("GET", "DELETE"):
            status, headers, _ = await asyncio.to_thread(raw, home, method, {})
            assert (status, headers["allow"]) == (405, "POST")
        kind = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        large = b'{"a":"' + b"x" * BODY_BYTES_MAX + b'"}'
        status, _, _ = await asyncio.to_thread(raw, home, "POST", kind, large)
        assert status == 413

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:identity")
def test_a_bad_token_is_told_so_in_the_protocols_form_and_noted(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        status, headers, body = await asyncio.to_thread(
            raw, home, "POST", {"Authorization": "Bearer sa_r-nothing_1_" + "x" * 43}
        )
        error = json.loads(body)["error"]
        assert (status, error["code"]) == (401, -32000)
        assert error["data"]["code"] == "unauthorized"
        assert headers["www-authenticate"] == "Bearer"
        await home.services.refusals.flush()
        noted = await asyncio.to_thread(home.services.refusals.file.read_text)
        assert "POST /mcp" in noted

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:identity")
def test_an_agent_cannot_see_another_sessions_runs(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        other = str((await home.spawn("hang"))["runId"])  # the operator's own session
        found = await Wire(home, tasks=False).call("subagents", action="status", target=other)
        assert found["isError"]
        assert found["structuredContent"]["status"] == "forbidden"

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:endpoint")
def test_space_around_a_header_is_no_part_of_it(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        status, message = await Wire(home).send(
            "tools/call", {"Mcp-Name": "  sessions_list  "}, name="sessions_list", arguments={}
        )
        assert (status, message["result"]["isError"]) == (200, False)

    play(tmp_path, scenario)


@pytest.mark.requirement("mcp:loaded-when-needed")
def test_the_protocol_is_loaded_when_a_worker_that_speaks_it_is_started_and_not_for_a_command(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        endpoint = McpEndpoint(home.services)
        home.services.engine.on_commit(endpoint.on_commit)
        run_id = (await home.spawn("hang"))["runId"]
        await home.until_phase(run_id, "running")
        run = home.services.queries.open_run(run_id)
        assert run is not None
        assert not endpoint.is_due

        other = replace(run, resolved=replace(run.resolved, runtime="claude-code"))
        endpoint.expect([replace(other, phase=Phase.QUEUED)])
        assert not endpoint.is_due
        endpoint.on_commit(Batch(runs={other.id: other}))
        assert endpoint.is_due
        await endpoint.stop()

    play(tmp_path, scenario)
