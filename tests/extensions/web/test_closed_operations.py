"""Each operation of the daemon, called over TCP by who has no business with it.

With ``-s`` each is printed with what it answered. What viewers get is in ``test_viewer.py``, and
what workers may read in ``test_worker_reads.py``.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.api.home_daemon import segment
from tests.extensions.web.test_tcp import Headers, Port, play

from subagents.api.server.openapi import operations

SPEC: Final = {"task": "x", "agentId": "shell"}
OF_WORKERS: Final[dict[str, tuple[Any, int]]] = {
    "/v1/inbox": ({}, 200),
    "/v1/inbox/ack": ({"messageIds": ["THEIRS:announce"]}, 403),
    "/v1/requests": ({"runId": "THEIRS", "question": "which?"}, 403),
    "/v1/runs": ({"spec": SPEC, "cwd": "/"}, 403),
    "/v1/runs/dry-run": ({"spec": SPEC, "cwd": "/"}, 403),
    "/v1/plans": ({"specs": [SPEC], "cwd": "/"}, 403),
    "/v1/plans/dry-run": ({"specs": [SPEC], "cwd": "/"}, 403),
    "/v1/plans/{sel}/cancel": ({}, 404),
    "/v1/plans/{sel}/retry": ({}, 404),
    "/v1/tools/{name}": ({"action": "kill", "target": "THEIRS"}, 200),
    "/v1/wait": ({"runIds": ["THEIRS"], "timeoutSeconds": 0}, 200),
}
"""What a worker may call at all, with what it may not have, and the status of the answer."""


@pytest.mark.requirement("tcp:token", "identity:reads")
def test_no_operation_does_anything_for_who_has_no_business_with_it(tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        home = port.home
        other = {"X-Subagents-Session": "agent:main:other"}
        theirs = (await home.spawn("hang", headers=other, label="theirs"))["runId"]
        mine = (await home.spawn("hang"))["runId"]
        for each in (theirs, mine):
            await home.until_phase(each, "running")
        plan = {"specs": [{"task": "x", "agentId": "hang"}], "cwd": home.cwd}
        planned = (await home.ok("POST", "/v1/plans", plan, other))["planId"]
        before = await home.ok("GET", "/v1/runs")
        timeline = await home.ok("GET", f"/v1/runs/{theirs}/timeline")

        lies = {"X-Subagents-Caller": "operator", **other}
        nobodies: tuple[Headers, ...] = ({}, {**lies, "Authorization": f"Bearer {'a' * 43}"})
        workers: tuple[Headers, ...] = (home.worker(mine), {**home.worker(mine), **lies})
        for method, path in sorted(operations(), key=lambda each: each[::-1]):
            at = path.replace("{sel}", planned if path.startswith("/v1/plans/") else theirs)
            at = at.replace("{id}", segment(f"{theirs}:q1")).replace("{thread}", theirs)
            at = at.replace("{name}", "subagents")
            given, fits = OF_WORKERS.get(path, ({}, 403))
            body = json.loads(json.dumps(given).replace("THEIRS", theirs))
            told = []
            for headers in nobodies if method == "GET" else nobodies + workers:
                status, document, _ = await port.call(at, headers, method=method, body=body)
                told.append(f"{status} {document.get('message') or document}")
                is_worker = headers in workers
                by_page = (method, path) == ("POST", "/v1/login")
                wanted = fits if is_worker else 403 if by_page else 401
                assert status == wanted or path == "/healthz", (method, at, told)
                if is_worker and path in {"/v1/tools/{name}", "/v1/wait"}:
                    assert "belongs to another session" in told[-1]
            sys.stdout.write(f"{method:<6} {path:<42} {told}\n")
        assert await home.ok("GET", f"/v1/runs/{theirs}/timeline") == timeline
        assert (await home.ok("GET", "/v1/runs"))["total"] == before["total"]

    play(tmp_path, scenario)
