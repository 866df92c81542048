"""How the tests start Claude Code, and recorded streams of it, folded as the turn reader does."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from subagents.domain.run.run import Usage
from subagents.domain.run.signals import (
    ResultSeen,
    Signal,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.run.values import AttemptId, RunId, replace
from subagents.domain.run.worker_output import LineType, OutputItem
from subagents.extensions.claude.claude_code import ClaudeDialect
from subagents.extensions.claude.claude_state import ClaudeState
from subagents.extensions.conversation.dialect import InputLine, Opening, TurnStep

STREAMS: Final = Path(__file__).parents[2] / "data" / "streams" / "claude"


SESSION: Final = "11111111-2222-4333-8444-555555555555"


NAMES: Final = sorted(each.stem for each in STREAMS.glob("*.jsonl"))


DIALECT: Final = ClaudeDialect()


OPENING: Final = Opening(
    attempt_id=AttemptId("r-recorded#1"),
    run_id=RunId("r-recorded"),
    number=1,
    turn=1,
    message="do it",
    system_prompt="You are a worker.",
    cwd="/place/project",
    session_uuid=SESSION,
    bridge=("/usr/bin/subagents", "mcp"),
)


class Folded(NamedTuple):
    """All that a stream came to."""

    state: ClaudeState
    output: list[OutputItem]
    signals: list[Signal]
    input_lines: list[InputLine]

    def texts(self, kind: LineType) -> list[str]:
        return [each.text for each in self.output if each.type is kind and each.text]

    @property
    def results(self) -> list[ResultSeen]:
        return [each for each in self.signals if isinstance(each, ResultSeen)]

    @property
    def result(self) -> ResultSeen:
        return self.results[-1]

    @property
    def usage(self) -> Usage:
        return [each.usage for each in self.signals if isinstance(each, UsageSeen)][-1]

    @property
    def tools(self) -> list[str]:
        return [each.name for each in self.signals if isinstance(each, ToolSeen)]

    @property
    def ends(self) -> list[Any]:
        return [each.tool for each in self.output if each.tool is not None and each.tool.is_end]


def lines(name: str) -> list[bytes]:
    return (STREAMS / f"{name}.jsonl").read_bytes().splitlines()


def fold(found: Sequence[bytes], opening: Opening = OPENING, now_ms: int | None = None) -> Folded:
    step: TurnStep[ClaudeState] = DIALECT.begin(opening)
    folded = Folded(step.state, [], [], [])
    for line in found:
        step = DIALECT.read_line(folded.state, line, now_ms=now_ms)
        folded.output.extend(step.output)
        folded.signals.extend(step.signals)
        folded.input_lines.extend(step.input_lines)
        folded = folded._replace(state=step.state)
    return folded


def turn_two(name: str) -> Opening:
    """Some recordings are second turns: ids of their messages differ."""
    is_second = name in {"resumed", "repaired", "no-session"}
    return replace(OPENING, turn=2, session_id=SESSION) if is_second else OPENING


def event(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def argv(**changes: Any) -> list[str]:
    options = {"program": "/bin/true", **changes.pop("options", {})}
    opening = replace(OPENING, options=options, **changes)
    return list(DIALECT.invocation(opening, directory="/attempt", path="/usr/bin").argv)
