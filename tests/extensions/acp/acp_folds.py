"""Folds what an ACP agent wrote through the dialect, as ``talk`` does; and makes such lines."""

import json
from pathlib import Path
from typing import Any, Final

from subagents.domain.run.signals import ResultSeen, Signal
from subagents.domain.run.worker_output import LineType, OutputItem
from subagents.extensions.acp.acp import AcpDialect
from subagents.extensions.acp.acp_agents import AGENTS
from subagents.extensions.acp.acp_turn import AcpState
from subagents.extensions.conversation.dialect import InputLine, Opening, TurnStep

RECORDED: Final = Path(__file__).parents[2] / "data" / "streams" / "acp"
DIALECT: Final = AcpDialect()
Document = dict[str, Any]


def opening(**changes: Any) -> Opening:
    """A turn of ``some-agent``, which steers."""
    options = {"command": ["some-agent"], "second_prompt": "steers", "tokens": "turn"}
    return Opening(
        **{
            "attempt_id": "r-1#1",
            "run_id": "r-1",
            "number": 1,
            "turn": 1,
            "message": "do it",
            "system_prompt": "you are a worker",
            "cwd": "/w",
            "session_uuid": "u",
            "options": options,
            **changes,
        }
    )


def of_agent(agent: str, **changes: Any) -> Opening:
    return opening(options={"agent": agent}, model=None, **changes)


class Fold:
    """One turn, line by line."""

    def __init__(self, given: Opening, *, now_ms: int | None = 1_000) -> None:
        first = DIALECT.begin(given)
        self.state: AcpState = first.state
        self.now_ms = now_ms
        self.output: list[OutputItem] = []
        self.signals: list[Signal] = []
        self.input_lines: list[InputLine] = list(first.input_lines)

    def hear(self, *lines: Document | bytes) -> TurnStep[AcpState]:
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode()
            step = DIALECT.read_line(self.state, data, now_ms=self.now_ms)
            self._keep(step)
        return step

    def finish(self) -> None:
        self._keep(DIALECT.finish(self.state))

    def _keep(self, step: TurnStep[AcpState]) -> None:
        self.state = step.state
        self.output += step.output
        self.signals += step.signals
        self.input_lines += step.input_lines

    def open(self, **session: Any) -> None:
        """Through the setup, to the first prompt."""
        self.hear(answer("initialize", {"protocolVersion": 1, "agentCapabilities": {}}))
        self.hear(answer("session", {"sessionId": "s-1", **session}))

    # -- what came of it -----------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        return DIALECT.is_done(self.state)

    @property
    def result(self) -> ResultSeen:
        (found,) = [each for each in self.signals if isinstance(each, ResultSeen)]
        return found

    def lines(self, kind: LineType) -> list[str]:
        return [each.text for each in self.output if each.type is kind and each.text]

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
