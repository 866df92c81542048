"""Recorded streams of Codex, folded as the turn reader does."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from subagents.domain.run.run import Usage
from subagents.domain.run.signals import (
    ResultSeen,
    Signal,
    UsageSeen,
)
from subagents.domain.run.worker_output import LineType, OutputItem
from subagents.runtimes.codex.codex import CodexDialect
from subagents.runtimes.codex.codex_turn import CodexState
from subagents.runtimes.conversation.dialect import InputLine, Opening, TurnStep

STREAMS: Final = Path(__file__).parents[2] / "data" / "streams" / "codex"


CODEX: Final = CodexDialect()


Document = dict[str, Any]


class Told(NamedTuple):
    """What a whole stream came to."""

    state: CodexState
    output: list[OutputItem]
    signals: list[Signal]
    input_lines: list[InputLine]

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.output if each.text]

    @property
    def result(self) -> ResultSeen:
        return next(each for each in reversed(self.signals) if isinstance(each, ResultSeen))

    @property
    def used(self) -> Usage:
        return next(each.usage for each in reversed(self.signals) if isinstance(each, UsageSeen))

    def of(self, kind: LineType) -> list[str]:
        return [each.text for each in self.output if each.type is kind and each.text]

    def sent(self, key: str) -> Document:
        line = next(input_line.line for input_line in self.input_lines if input_line.key == key)
        found: Document = json.loads(line)
        return found


def opening(**changes: Any) -> Opening:
    facts: Document = {
        "attempt_id": "r-abcdefghij#1",
        "run_id": "r-abcdefghij",
        "number": 1,
        "turn": 1,
        "message": "Do it.",
        "system_prompt": "You are a worker.",
        "cwd": "/home/ada/project",
        "session_uuid": "11111111-2222-4333-8444-555555555555",
        "bridge": ("subagents", "mcp"),
    }
    return Opening(**(facts | changes))


def lines_of(name: str) -> list[bytes]:
    return (STREAMS / f"{name}.jsonl").read_bytes().splitlines()


def folded(lines: Iterable[bytes], **changes: Any) -> Told:
    """The stream, heard from its beginning to its end."""
    step = CODEX.begin(opening(**changes))
    told = Told(step.state, [], [], list(step.input_lines))
    for line in lines:
        told = heard(told, CODEX.read_line(told.state, line, now_ms=None))
    return heard(told, CODEX.finish(told.state))


def heard(told: Told, step: TurnStep[CodexState]) -> Told:
    return Told(
        step.state,
        [*told.output, *step.output],
        [*told.signals, *step.signals],
        [*told.input_lines, *step.input_lines],
    )


def working() -> CodexState:
    """In the middle of the recorded turn of ``text``."""
    lines = lines_of("text")
    begun = next(i for i, line in enumerate(lines) if b'"turn/started"' in line)
    step = CODEX.begin(opening())
    for line in lines[: begun + 1]:
        step = CODEX.read_line(step.state, line, now_ms=None)
    return step.state
