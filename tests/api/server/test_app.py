"""The daemon's calls against a real engine, over a real Unix socket, with the stdlib's client."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from starlette.types import Message, Receive, Scope, Send
from tests.api.home_daemon import Home

from subagents.api.calls.services import Services
from subagents.api.server.app import CurrentAnswers
from subagents.errors import StoreUnavailable


@pytest.mark.requirement("http:errors:one-document")
async def test_every_refusal_is_one_problem_document_with_its_status(
    home: Home, tmp_path: Path
) -> None:
    spawn = {"spec": {"task": "x", "agentId": "quick"}, "cwd": str(tmp_path)}
    cases: list[tuple[str, str, object, int, str, str]] = [
        ("GET", "/nope", None, 404, "not_found", "no such path: /nope"),
        ("DELETE", "/v1/runs", None, 405, "invalid", "DELETE is not possible at /v1/runs"),
        ("GET", "/v1/runs/nothing", None, 404, "not_found", 'no run "nothing"'),
        ("GET", "/v1/runs/%FF", None, 422, "invalid", "the path must be valid UTF-8"),
        ("GET", "/v1/runs?lable=a", None, 422, "invalid", 'did you mean "label"?'),
        ("GET", "/v1/runs?limit=1_0", None, 422, "invalid", "limit must be a whole number"),
        ("GET", "/v1/runs?limit=1&limit=2", None, 422, "invalid", "limit is given twice"),
        ("GET", "/v1/runs?phase=runing", None, 422, "invalid", 'did you mean "running"?'),
        ("GET", "/v1/runs?archived=yes", None, 422, "invalid", "archived must be 1 or 0"),
        ("POST", "/v1/runs", b"{", 422, "invalid", "not JSON"),
        ("POST", "/v1/runs", b"x" * (5 << 20), 413, "invalid", "at most 4194304 bytes"),
        ("POST", "/v1/wait", b"x" * (2 << 20), 413, "invalid", "at most 1048576 bytes"),
        ("POST", "/v1/runs", {"spec": {"task": "x"}}, 422, "invalid", "cwd is required"),
        ("POST", "/v1/wait", {"until": "one"}, 422, "invalid", 'until must be "any" or "all"'),
        ("GET", "/v1/requests/r-nope:q1", None, 404, "not_found", "does not exist"),
        ("GET", "/v1/agents?cwd=a", None, 422, "invalid", "absolute"),
    ]
    for method, path, body, status, code, message in cases:
        found, document = await home.call(method, path, body)
        assert (found, document["code"]) == (status, code), (path, document)
        assert message in document["message"]
        assert set(document) >= {"code", "message", "details", "retryable", "hint", "status"}
    status, document = await home.call("GET", "/v1/runs", None, {"X-Subagents-Session": "nobody"})
    assert (status, document["code"]) == (422, "invalid")
    assert (await home.ok("POST", "/v1/runs", spawn))["status"] == "accepted"


@pytest.mark.requirement("ownership:lapse")
async def test_nothing_is_answered_from_memory_while_the_runs_may_be_anothers(home: Home) -> None:
    run_id = (await home.spawn())["runId"]
    await home.until_phase(run_id, "completed")
    home.services.engine.may_be_over = True  # as on a store that lends the right
    ownership = home.services.engine.ownership
    ownership.given(0.0, asked_ms=0)

    for path in ("/v1/runs", f"/v1/runs/{run_id}", "/v1/inbox", "/v1/runs/nothing"):
        status, document = await home.call("GET", path)
        assert (status, document["code"]) == (503, "store_unavailable"), path
        assert document["retryable"]
    again = {"runIds": [run_id], "timeoutSeconds": 0}
    assert (await home.call("POST", "/v1/wait", again))[0] == 503
    assert (await home.call("GET", "/healthz"))[0] == 200
    version = await home.ok("GET", "/version")
    assert "whether its runs are still ours" in version["degraded"]

    ownership.given(None, asked_ms=0)
    assert (await home.ok("GET", f"/v1/runs/{run_id}"))["runId"] == run_id
    assert (await home.call("GET", "/readyz"))[0] == 200


@pytest.mark.requirement("ownership:answers")
def test_whoever_hands_something_over_learns_that_its_answer_was_not_sent() -> None:
    def refuse() -> None:
        raise StoreUnavailable("nobody knows whose the runs are")

    engine = SimpleNamespace(may_be_over=True, require_ownership=refuse)
    sent: list[Message] = []
    acknowledged = False

    async def handing_over(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal acknowledged
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a result"})
        acknowledged = True

    async def keep(message: Message) -> None:
        sent.append(message)

    async def nothing() -> Message:
        return {"type": "http.disconnect"}

    services = cast("Services", SimpleNamespace(engine=engine))
    scope: Scope = {"type": "http", "method": "POST", "path": "/v1/tools/x"}
    asyncio.run(CurrentAnswers(handing_over, services)(scope, nothing, keep))

    assert not acknowledged
    assert sent[0]["status"] == 503
    assert b"a result" not in b"".join(each.get("body", b"") for each in sent)
