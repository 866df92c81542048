"""What a second node may be asked when the first one was lost with it."""

import json

import pytest

from subagents.extensions.cluster.api.repeating import is_repeatable, keyed


def tool(name: str, **arguments: object) -> bytes:
    params = {"name": name, "arguments": arguments}
    return json.dumps({"id": 1, "method": "tools/call", "params": params}).encode()


@pytest.mark.requirement("cluster:repeats")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/runs/a/log", b""),
        ("POST", "/v1/runs", b"{}"),
        ("POST", "/v1/plans", b"{}"),
        ("POST", "/v1/wait", b"{}"),
        ("POST", "/v1/inbox/ack", b"{}"),
        ("POST", "/v1/runs/r%2Fx/cancel", b"{}"),
        ("POST", "/v1/tools/sessions_spawn", b"{}"),
        ("POST", "/v1/tools/subagents", b'{"action": "kill"}'),
        ("POST", "/mcp", tool("sessions_wait")),
        ("POST", "/mcp", b'{"method": "tools/list"}'),
    ],
)
def test_what_looks_or_says_what_is_to_be_so_is_harmless_twice(
    method: str, path: str, body: bytes
) -> None:
    assert is_repeatable(method, path, body)


@pytest.mark.requirement("cluster:repeats")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/runs/a/steer", b"{}"),
        ("POST", "/v1/runs/a/retry", b"{}"),
        ("POST", "/v1/runs/a/send", b"{}"),
        ("POST", "/v1/requests/q/respond", b"{}"),
        ("DELETE", "/v1/runs/a/cancel", b""),
        ("POST", "/v1/tools/notify_parent", b"{}"),
        ("POST", "/v1/tools/subagents", b'{"action": "steer"}'),
        ("POST", "/v1/tools/subagents", b"no json"),
        ("POST", "/mcp", tool("sessions_send")),
        ("POST", "/a2a/agent", b"{}"),
    ],
)
def test_what_adds_something_is_not_sent_twice(method: str, path: str, body: bytes) -> None:
    assert not is_repeatable(method, path, body)


@pytest.mark.requirement("cluster:repeats")
def test_what_starts_runs_gets_a_key_unless_its_client_gave_one() -> None:
    for path, name in (
        ("/v1/runs", b"idempotency-key"),
        ("/v1/plans", b"idempotency-key"),
        ("/mcp", b"x-subagents-call-id"),
        ("/v1/tools/sessions_spawn", b"x-subagents-call-id"),
    ):
        ((given, key),) = keyed("POST", path, ())
        ((_, other),) = keyed("POST", path, ())
        assert given == name
        assert key != other
        own = [(name, b"mine")]
        assert keyed("POST", path, own) == own
    assert keyed("GET", "/v1/runs", ()) == ()
    assert keyed("POST", "/v1/runs/a/steer", ()) == ()
