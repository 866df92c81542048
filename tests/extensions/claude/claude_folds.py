"""How the tests start Claude Code, and recorded streams of it, folded as the turn reader does."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.extensions.conversation.folds import Fold, an_opening

from subagents.domain.run.values import replace
from subagents.extensions.claude.claude_code import ClaudeDialect
from subagents.extensions.claude.claude_state import ClaudeState
from subagents.extensions.conversation.dialect import Opening

STREAMS: Final = Path(__file__).parents[2] / "data" / "streams" / "claude"
SESSION: Final = "11111111-2222-4333-8444-555555555555"
NAMES: Final = sorted(each.stem for each in STREAMS.glob("*.jsonl"))
DIALECT: Final = ClaudeDialect()
OPENING: Final = an_opening(
    attempt_id="r-recorded#1",
    run_id="r-recorded",
    cwd="/place/project",
    session_uuid=SESSION,
    bridge=("/usr/bin/subagents", "mcp"),
)


class ClaudeFold(Fold[ClaudeState]):
    @property
    def ends(self) -> list[Any]:
        return [each.tool for each in self.output if each.tool is not None and each.tool.is_end]


def lines(name: str) -> list[bytes]:
    return (STREAMS / f"{name}.jsonl").read_bytes().splitlines()


def fold(
    found: Sequence[bytes], opening: Opening = OPENING, now_ms: int | None = None
) -> ClaudeFold:
    folded = ClaudeFold(DIALECT, opening, now_ms=now_ms)
    folded.hear(*found)
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
