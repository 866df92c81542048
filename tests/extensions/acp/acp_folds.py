"""Folds what an ACP agent wrote through the dialect, as ``talk`` does; and makes such lines."""

import json
from pathlib import Path
from typing import Any, Final

from tests.extensions.conversation.folds import Document, Fold, an_opening

from subagents.extensions.acp.acp import AcpDialect
from subagents.extensions.acp.acp_agents import AGENTS
from subagents.extensions.acp.acp_turn import AcpState
from subagents.extensions.conversation.dialect import Opening

RECORDED: Final = Path(__file__).parents[2] / "data" / "streams" / "acp"
DIALECT: Final = AcpDialect()


def opening(**changes: Any) -> Opening:
    """A turn of ``some-agent``, which steers."""
    options = {"command": ["some-agent"], "second_prompt": "steers", "tokens": "turn"}
    return an_opening(**{"options": options, **changes})


def of_agent(agent: str, **changes: Any) -> Opening:
    return opening(options={"agent": agent}, model=None, **changes)


class AcpFold(Fold[AcpState]):
    def __init__(self, given: Opening, *, now_ms: int | None = 1_000) -> None:
        super().__init__(DIALECT, given, now_ms=now_ms)

    def open(self, **session: Any) -> None:
        """Through the setup, to the first prompt."""
        self.hear(answer("initialize", {"protocolVersion": 1, "agentCapabilities": {}}))
        self.hear(answer("session", {"sessionId": "s-1", **session}))

    @property
    def is_done(self) -> bool:
        return DIALECT.is_done(self.state)

    def sent(self, method: str) -> list[Document]:
        """The parameters of every request or notification of this method."""
        found = [json.loads(input_line.line) for input_line in self.input_lines]
        return [each["params"] for each in found if each.get("method") == method]

    def answers(self) -> list[Document]:
        found = [json.loads(input_line.line) for input_line in self.input_lines]
        return [each for each in found if "method" not in each]


def answer(id: str, result: Any) -> Document:  # noqa: A002
    return {"jsonrpc": "2.0", "id": id, "result": result}


def failure(id: str, code: int, message: str, data: Any = None) -> Document:  # noqa: A002
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}}


def update(session_update: str, /, **fields: Any) -> Document:
    params = {"sessionId": "s-1", "update": {"sessionUpdate": session_update, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def chunk(text: str, *, kind: str = "agent_message_chunk", id: str | None = None) -> Document:  # noqa: A002
    named = {} if id is None else {"messageId": id}
    return update(kind, content={"type": "text", "text": text}, **named)


def permission(name: str, kind: str, *, id: int | str = 0, **call: Any) -> Document:  # noqa: A002
    options = [
        {"optionId": "n", "name": "No", "kind": "reject_once"},
        {"optionId": "y", "name": "Yes", "kind": "allow_once"},
        {"optionId": "a", "name": "Always", "kind": "allow_always"},
    ]
    asked = {"toolCallId": "c-1", "title": name, "kind": kind, **call}
    params = {"sessionId": "s-1", "toolCall": asked, "options": options}
    return {"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params}


def recordings() -> list[Path]:
    return sorted(RECORDED.glob("*.jsonl"))


def agent_of(recording: Path) -> str:
    name = recording.name.partition(".")[0]
    assert name in AGENTS
    return name
