"""What a program wrote, folded through its dialect as the turn reader does."""

import json
from dataclasses import InitVar, dataclass, field
from typing import Any, Generic, TypeVar

from subagents.domain.run.signals import ResultSeen, Signal, ToolSeen, UsageSeen
from subagents.domain.run.usage import Usage
from subagents.domain.run.worker_output import LineType, OutputItem
from subagents.extensions.conversation.dialect import Dialect, InputLine, Opening, TurnStep

S = TypeVar("S")
Document = dict[str, Any]


@dataclass
class Fold(Generic[S]):
    """One turn, line by line, and what came of it."""

    dialect: Dialect[S] = field(compare=False)
    opening: InitVar[Opening]
    now_ms: int | None = field(default=None, compare=False, kw_only=True)
    state: S = field(init=False)
    output: list[OutputItem] = field(default_factory=list, init=False)
    signals: list[Signal] = field(default_factory=list, init=False)
    input_lines: list[InputLine] = field(default_factory=list, init=False)

    def __post_init__(self, opening: Opening) -> None:
        self._keep(self.dialect.begin(opening))

    def hear(self, *lines: Document | bytes) -> None:
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode()
            self._keep(self.dialect.read_line(self.state, data, now_ms=self.now_ms))

    def finish(self) -> None:
        self._keep(self.dialect.finish(self.state))

    def _keep(self, step: TurnStep[S]) -> None:
        self.state = step.state
        self.output += step.output
        self.signals += step.signals
        self.input_lines += step.input_lines

    # -- what came of it -----------------------------------------------------------------------

    def texts(self, kind: LineType | None = None) -> list[str]:
        return [each.text for each in self.output if each.text and kind in {None, each.type}]

    @property
    def results(self) -> list[ResultSeen]:
        return [each for each in self.signals if isinstance(each, ResultSeen)]

    @property
    def result(self) -> ResultSeen:
        """The only one."""
        (found,) = self.results
        return found

    @property
    def usage(self) -> Usage:
        return [each.usage for each in self.signals if isinstance(each, UsageSeen)][-1]

    @property
    def tools(self) -> list[str]:
        return [each.name for each in self.signals if isinstance(each, ToolSeen)]


def an_opening(**changes: Any) -> Opening:
    """The first turn of a run's first attempt."""
    facts: Document = {
        "attempt_id": "r-abcdefghij#1",
        "run_id": "r-abcdefghij",
        "number": 1,
        "turn": 1,
        "message": "do it",
        "system_prompt": "You are a worker.",
        "cwd": "/home/ada/project",
        "session_uuid": "11111111-2222-4333-8444-555555555555",
    }
    return Opening(**(facts | changes))
