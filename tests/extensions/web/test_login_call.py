"""A call with a login: how often a browser is told of events."""

import asyncio
from pathlib import Path
from typing import Final

import pytest
from starlette.types import Message, Receive, Scope, Send

from subagents.api.calls.login import Login, Role
from subagents.config.paths import Paths
from subagents.extensions.web import login_call
from subagents.extensions.web.logins import Logins

LONG_S: Final = 3_600.0
A_LOGIN: Final = Login(
    id="w-1", digest="", role=Role.OPERATOR, port=1, created_ms=0, used_ms=0, browser=""
)


@pytest.mark.requirement("web:live")
async def test_the_stream_of_events_rests_after_what_it_said_and_no_other_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(login_call, "REST_S", LONG_S)
    said: list[tuple[str, bytes]] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for each in (b"1", b"2"):
            await send({"type": "http.response.body", "body": each, "more_body": True})

    async def receive() -> Message:
        raise AssertionError

    async def answered(path: str) -> None:
        async def send(message: Message) -> None:
            said.append((path, message.get("body", b"")))

        call = login_call.LoginCall(logins, A_LOGIN)
        await call(app, {"type": "http", "path": path}, receive, send)

    paths = Paths.resolve({"SUBAGENTS_HOME": str(tmp_path)})
    logins = Logins(paths, asyncio.to_thread, lambda: 0)
    calls = [asyncio.ensure_future(answered(path)) for path in ("/v1/events", "/v1/runs/r/ag-ui")]
    await calls[1]
    calls[0].cancel()

    assert [body for path, body in said if path == "/v1/events"] == [b"", b"1"]
    assert [body for path, body in said if path != "/v1/events"] == [b"", b"1", b"2", b""]
