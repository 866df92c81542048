"""What files tell of a run whose record is lost."""

import contextlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from subagents.domain.run.events import Spawned
from subagents.domain.run.run import RULES
from subagents.domain.run.spec import LABEL_CHARS_MAX, Mode, Resolved, RunSpec
from subagents.domain.run.values import RunId, SessionKey, Value
from subagents.text import one_line

NOBODY: Final = SessionKey("agent:main:main")
"""Whom a run is listed under whose requester nobody knows."""
TEXT_BYTES_MAX: Final = 256 * 1024
_TASK: Final = re.compile(r"task from (\S+): (.*)", re.DOTALL)
_first_line: Final = msgspec.json.Decoder(tuple[int, int, str, int, str])


class AttemptRecord(Value, frozen=True):
    """As much of an ended attempt's performance record as tells of its run."""

    run_id: RunId
    attempt: int
    agent_id: str
    spawner_session_key: SessionKey
    outcome: str
    reason: str | None


_record: Final = msgspec.json.Decoder(AttemptRecord)


class Remains(NamedTuple):
    """Of one run; None = no file tells."""

    task: str | None = None
    requester: SessionKey | None = None
    since_ms: int | None = None
    exit: str | None = None
    """``code 0``, ``signal 9``, …; of its newest attempt."""
    record: AttemptRecord | None = None
    """The record of its newest attempt that ended."""

    def spawned(self, run_id: RunId, *, requester: SessionKey | None, now_ms: int) -> Spawned:
        """An event that says of the run what is known of its spawn."""
        agent_id = "unknown" if self.record is None else self.record.agent_id
        task = self.task or "(lost)"
        known = None if self.record is None else self.record.spawner_session_key
        resolved = Resolved(
            agent_id=agent_id,
            runtime="command",
            mode=Mode.RUN,
            label=one_line(task, chars_max=LABEL_CHARS_MAX) or str(run_id),
            cwd="/",
            lane="default",
            lane_slots=1,
        )
        return Spawned(
            at_ms=self.since_ms or now_ms,
            run_id=run_id,
            spec=RunSpec(task=task, agent_id=agent_id),
            resolved=resolved,
            requester=requester or self.requester or known or NOBODY,
            depth=1,
            session_key=SessionKey(f"agent:{agent_id}:subagent:{run_id}"),
            rules=RULES,
        )

    def words(self) -> str:
        """What is known of its end: ``; its newest attempt ended with code 0``."""
        if self.record is not None:
            reason = f" ({self.record.reason})" if self.record.reason else ""
            return f"; attempt {self.record.attempt} came to {self.record.outcome}{reason}"
        return f"; its newest attempt ended with {self.exit or 'nobody knows what'}"


def runs_with_files(belongings: Iterable[Path]) -> list[RunId]:
    """The runs with an entry in one of these directories."""
    entries = (each for folder in belongings if folder.is_dir() for each in folder.iterdir())
    return sorted({RunId(each.name.partition(".")[0]) for each in entries})


def records_in(state_dir: Path) -> Mapping[RunId, AttemptRecord]:
    """The record of the newest attempt of every run that has one."""
    found = dict[RunId, AttemptRecord]()
    for file in sorted(state_dir.glob("agent-performance-*.jsonl")):
        with file.open("rb") as lines:
            for line in lines:
                with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    record = _record.decode(line)
                    found[record.run_id] = record
    return found


def remains_of(
    run_id: RunId, *, attempts: Path, transcripts: Path, record: AttemptRecord | None
) -> Remains:
    """What is left of a run in its directories below these, and its record."""
    turns = sorted((attempts / run_id).glob("*"))
    exits = [found for each in turns if (found := _text(each / "exit"))]
    task, requester, since_ms = None, None, None
    for file in sorted((transcripts / run_id).glob("*"))[:1]:
        try:
            _, since_ms, _, _, text = _first_line.decode(_text(file).partition("\n")[0])
            if begun := _TASK.fullmatch(text):
                requester, task = SessionKey(begun[1]), begun[2]
        except msgspec.DecodeError:
            pass
    for each in turns[:1]:
        task = task or _text(each / "task") or None
    return Remains(task, requester, since_ms, exits[-1] if exits else None, record)


def _text(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(TEXT_BYTES_MAX).strip()
    except OSError:
        return ""
