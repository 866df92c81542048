"""Reading a turn continues from its checkpoint, also from one that an older version wrote."""

import shutil
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.extensions.dialects import dialects

from subagents.domain.run.signals import Signal
from subagents.domain.run.values import RunId
from subagents.domain.run.worker_output import LineType, OutputBatch, OutputItem
from subagents.extensions.claude.claude_code import ClaudeDialect
from subagents.extensions.conversation.conversation import LAUNCH, OPENING
from subagents.extensions.conversation.dialect import Dialect, Opening
from subagents.extensions.conversation.turn_reader import CHECKPOINT, TurnReader
from subagents.extensions.conversation.worker_input import WorkerInput
from subagents.ports import Launch, LongResult
from subagents.runtimes.process.shim import AttemptDirectory

DATA: Final = Path(__file__).parents[2] / "data"
ATTEMPTS: Final = DATA / "attempts-0.1.0"
"""Files of attempts that 0.1.0 left in the middle of a turn, beside the stream it was reading."""
PROGRAMS: Final = {"claude": "claude-code"}


def dialect_of(attempt: str) -> tuple[Dialect[Any], Path]:
    program, _, stream = attempt.partition("-")
    name = PROGRAMS.get(program, program)
    (found,) = (each for each in dialects() if each.name == name)
    return found, DATA / "streams" / program / f"{stream}.jsonl"


def read(
    root: Path, attempt: str, *, cursor: int = 0
) -> tuple[list[OutputItem], list[Signal], Any]:
    """All that the reader tells from ``cursor`` on, and its last state."""
    dialect, stream = dialect_of(attempt)
    directory = AttemptDirectory(root, RunId("r-recorded"), 1)
    directory.path.mkdir(parents=True, exist_ok=True)
    shutil.copy(stream, directory.out)
    opening = msgspec.json.decode((ATTEMPTS / attempt / OPENING).read_bytes(), type=Opening)
    reader = TurnReader(
        dialect,
        opening,
        directory,
        WorkerInput(directory.path),
        cursor=cursor,
        positions={"out": cursor},
        now_ms=lambda: 1_700_000_000_000,
        on_change=lambda: None,
    )
    seen, more = reader.read()
    while more:
        found, more = reader.read()
        seen += found
    seen += reader.finish()
    output = [piece for each, _ in seen if isinstance(each, OutputBatch) for piece in each.items]
    signals = [each for each, _ in seen if not isinstance(each, OutputBatch | LongResult)]
    return output, signals, reader.state


@pytest.mark.requirement("conversation:adopt:goes-on")
@pytest.mark.parametrize("attempt", sorted(each.name for each in ATTEMPTS.iterdir()))
def test_a_turn_that_0_1_0_was_reading_is_gone_on_with_from_its_checkpoint(
    tmp_path: Path, attempt: str
) -> None:
    checkpoint = ATTEMPTS / attempt / CHECKPOINT
    offset = msgspec.json.decode(checkpoint.read_bytes())["offset"]
    folded = read(tmp_path / "folded", attempt, cursor=offset)
    directory = tmp_path / "gone-on" / "r-recorded" / "1"
    directory.mkdir(parents=True)
    shutil.copy(checkpoint, directory)

    gone_on = read(tmp_path / "gone-on", attempt, cursor=offset)

    assert gone_on[1]
    assert gone_on == folded


@pytest.mark.requirement("conversation:adopt:goes-on")
@pytest.mark.parametrize("attempt", sorted(each.name for each in ATTEMPTS.iterdir()))
def test_what_0_1_0_wrote_down_of_a_start_is_read_whole(attempt: str) -> None:
    for name, form in ((OPENING, Opening), (LAUNCH, Launch)):
        written = (ATTEMPTS / attempt / name).read_bytes()

        again = msgspec.json.encode(msgspec.json.decode(written, type=form))

        assert msgspec.json.decode(again) == msgspec.json.decode(written)


@pytest.mark.requirement("security:hostile-output")
def test_an_event_that_breaks_its_dialect_is_said_and_the_turn_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, signals, state = read(tmp_path / "whole", "claude-tools")
    reads = ClaudeDialect.read_line

    def breaks(self: ClaudeDialect, state: Any, line: bytes, *, now_ms: int | None) -> Any:
        if b'"tool_result"' in line:
            raise RuntimeError("odd")
        return reads(self, state, line, now_ms=now_ms)

    monkeypatch.setattr(ClaudeDialect, "read_line", breaks)
    output, seen, _ = read(tmp_path / "broken", "claude-tools")

    said = [each.text for each in output if each.type is LineType.ERROR]
    assert "an event could not be read: RuntimeError: odd" in said
    assert state.is_over
    assert whole[-1] == output[-1]
    assert signals[-1] == seen[-1]
