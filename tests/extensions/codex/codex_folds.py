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
from subagents.extensions.codex.codex import CodexDialect
from subagents.extensions.codex.codex_turn import CodexState
from subagents.extensions.conversation.dialect import InputLine, Opening, TurnStep

STREAMS: Final = Path(__file__).parents[2] / "data" / "streams" / "codex"


CODEX: Final = CodexDialect()


Document = dict[str, Any]


class Folded(NamedTuple):
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


def fold(lines: Iterable[bytes], **changes: Any) -> Folded:
    """The stream, heard from its beginning to its end."""
    step = CODEX.begin(opening(**changes))
    folded = Folded(step.state, [], [], list(step.input_lines))
    for line in lines:
        folded = heard(folded, CODEX.read_line(folded.state, line, now_ms=None))
    return heard(folded, CODEX.finish(folded.state))


def heard(folded: Folded, step: TurnStep[CodexState]) -> Folded:
    return Folded(
        step.state,
        [*folded.output, *step.output],
        [*folded.signals, *step.signals],
        [*folded.input_lines, *step.input_lines],
    )


def working() -> CodexState:
    """In the middle of the recorded turn of ``text``."""
    lines = lines_of("text")
    begun = next(i for i, line in enumerate(lines) if b'"turn/started"' in line)
    step = CODEX.begin(opening())
    for line in lines[: begun + 1]:
        step = CODEX.read_line(step.state, line, now_ms=None)
    return step.state
