"""The daemon's tools, as a worker gets and calls them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Self

import pytest

from subagents.client import client
from subagents.errors import DaemonUnreachable, UsageError
from subagents.extensions.llm.agent_loop.tools import daemon_tools
from subagents.extensions.llm.agent_loop.tools.daemon_tools import ASK, DaemonTools
from subagents.extensions.llm.agent_loop.tools.loop_tools import LoopTool, Returned
from subagents.extensions.llm.agent_loop.tools.path_bounds import ToolRefused

Document = dict[str, Any]
SHOWN = [
    {"name": "sessions_spawn", "description": "Spawn.", "inputSchema": {"type": "object"}},
    {"name": ASK, "description": "Ask.", "inputSchema": {"type": "object"}},
    {"name": "Web", "description": "Search.", "inputSchema": {"type": "object"}},
]


class Daemon:
    """Answers in place of the client; ``answer`` gets the path and the body of each POST."""

    def __init__(self, answer: Callable[[str, Document], Document]) -> None:
        self.answer = answer
        self.away = 0
        self.headers: list[Mapping[str, str]] = []

    def client(self, socket: str, *, headers: Mapping[str, str], **_: object) -> "Daemon":
        assert socket == "/daemon.sock"
        self.headers.append(headers)
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def get(self, path: str) -> Document:
        if self.away:
            self.away -= 1
            raise DaemonUnreachable("no daemon")
        return {"tools": SHOWN} if path == "/v1/tools" else {}

    async def post(self, path: str, body: Document, **_: object) -> Document:
        return self.answer(path, body)


def made(
    monkeypatch: pytest.MonkeyPatch, daemon: Daemon, *deny: str, has_news: bool = False
) -> dict[str, LoopTool]:
    monkeypatch.setenv("SUBAGENTS_SOCKET", "/daemon.sock")
    monkeypatch.setenv("SUBAGENTS_ATTEMPT", "r-1#1")
    monkeypatch.setattr(daemon_tools, "AsyncClient", daemon.client)
    monkeypatch.setattr(client, "RECONNECT_POLL_S", 0.0)
    tools = asyncio.run(DaemonTools(deny, lambda: has_news).tools())
    return {each.name: each for each in tools}


def ran(tool: LoopTool, **arguments: object) -> Returned:
    return asyncio.run(_run(tool, arguments))


async def _run(tool: LoopTool, arguments: Mapping[str, object]) -> Returned:
    return await tool.run(arguments, "c1")


def text(answer: str, **more: object) -> Document:
    return {"text": answer, "isError": False, **more}


@pytest.mark.requirement("llm:scope")
def test_a_tool_that_is_denied_is_not_there_and_without_a_daemon_none_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert set(made(monkeypatch, Daemon(lambda *_: {}), "web")) == {"sessions_spawn", ASK}
    monkeypatch.delenv("SUBAGENTS_SOCKET")
    assert asyncio.run(DaemonTools((), lambda: False).tools()) == []


@pytest.mark.requirement("llm:daemon-killed")
def test_a_daemon_that_comes_back_is_waited_for_and_a_call_has_one_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    daemon = Daemon(lambda path, _: text(path, offered=["m1"]))
    tools = made(monkeypatch, daemon)
    daemon.away = 3

    returned = ran(tools["Web"], query="x")

    assert returned == Returned("/v1/tools/Web", handed_over=("m1",))
    assert daemon.headers[-1] == {daemon_tools.CALL_ID: "r-1#1:c1"}


@pytest.mark.requirement("llm:tools:arguments")
def test_what_the_daemon_refuses_goes_to_the_model_with_its_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(path: str, body: Document) -> Document:
        raise UsageError("`task` is missing", hint="name it")

    with pytest.raises(ToolRefused, match=r"`task` is missing \(name it\)"):
        ran(made(monkeypatch, Daemon(refuse))["sessions_spawn"])


@pytest.mark.requirement("llm:steer")
@pytest.mark.parametrize(("has_news", "asked"), [(False, 3), (True, 1)])
def test_a_question_waits_for_its_answer_unless_something_else_came(
    monkeypatch: pytest.MonkeyPatch,
    has_news: bool,  # noqa: FBT001
    asked: int,
) -> None:
    bodies: list[Document] = []

    def answer(path: str, body: Document) -> Document:
        bodies.append(body)
        is_over = len(bodies) == 3
        status = "answered" if is_over else "pending"
        return text("yes" if is_over else "wait", structured={"status": status, "requestId": "q1"})

    tools = made(monkeypatch, Daemon(answer), has_news=has_news)
    returned = ran(tools[ASK], question="go on?")

    assert len(bodies) == asked
    assert returned.text == ("wait" if has_news else "yes")
    assert bodies[1:] == [{"requestId": "q1"}] * (asked - 1)
