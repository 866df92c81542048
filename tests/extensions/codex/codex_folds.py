"""Recorded streams of Codex, folded as the turn reader does."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.extensions.conversation.folds import Document, Fold, an_opening

from subagents.extensions.codex.codex import CodexDialect
from subagents.extensions.codex.codex_turn import CodexState
from subagents.extensions.conversation.dialect import Opening

STREAMS: Final = Path(__file__).parents[2] / "data" / "streams" / "codex"
CODEX: Final = CodexDialect()


class CodexFold(Fold[CodexState]):
    def sent(self, key: str) -> Document:
        line = next(input_line.line for input_line in self.input_lines if input_line.key == key)
        found: Document = json.loads(line)
        return found


def opening(**changes: Any) -> Opening:
    return an_opening(**{"bridge": ("subagents", "mcp"), **changes})


def lines_of(name: str) -> list[bytes]:
    return (STREAMS / f"{name}.jsonl").read_bytes().splitlines()


def fold(lines: Iterable[bytes], **changes: Any) -> CodexFold:
    """The stream, heard from its beginning to its end."""
    found = CodexFold(CODEX, opening(**changes))
    found.hear(*lines)
    found.finish()
    return found


def working() -> CodexState:
    """In the middle of the recorded turn of ``text``."""
    lines = lines_of("text")
    begun = next(i for i, line in enumerate(lines) if b'"turn/started"' in line)
    found = CodexFold(CODEX, opening())
    found.hear(*lines[: begun + 1])
    return found.state
