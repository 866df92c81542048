"""What a call may touch."""

import pytest
from tests.api.home_daemon import Home

from subagents.api.calls.call import disconnected


@pytest.mark.requirement("http:ownership")
async def test_a_worker_touches_only_its_own_subtree(home: Home) -> None:
    other = (await home.spawn("hang", label="other"))["runId"]
    receipt = await home.spawn("hang", label="w")
    await home.until_phase(receipt["runId"], "running")
    me = home.worker(receipt["runId"])
    child = await home.spawn("quick", headers=me, label="child")

    for method, path, body in (
        ("GET", f"/v1/runs/{other}", None),
        ("POST", f"/v1/runs/{other}/cancel", {}),
        ("POST", f"/v1/runs/{other}/report", {"summary": "s"}),
        ("POST", "/v1/requests", {"runId": other, "question": "?"}),
        ("POST", "/v1/inbox/ack", {"messageIds": [f"{other}:announce"]}),
        ("POST", "/v1/shutdown", {}),
        ("POST", "/v1/sweep", {}),
    ):
        status, document = await home.call(method, path, body, me)
        assert (status, document["code"]) == (403, "forbidden"), path
    assert (await home.ok("GET", f"/v1/runs/{child['runId']}", None, me))["depth"] == 2
    mine = await home.ok("GET", "/v1/runs", None, me)
    assert [row["label"] for row in mine["runs"]] == ["child"]
    waited = await home.ok("POST", "/v1/wait", {"runIds": [other], "timeoutSeconds": 1}, me)
    assert "belongs to another session" in waited["errors"][0]["error"]
    assert (await home.ok("GET", f"/v1/runs/{other}/status"))["phase"] == "running"


@pytest.mark.requirement("http:client-gone")
async def test_a_client_is_gone_when_it_left_and_not_when_it_sends_more() -> None:
    left = [{"type": "http.disconnect"}, {"type": "http.request"}, {"type": "http.request"}]

    async def receive() -> dict[str, str]:
        return left.pop()

    await disconnected(receive)

    assert left == []
