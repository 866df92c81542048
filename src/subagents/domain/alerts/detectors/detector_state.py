"""What the detectors know of a run so far.

Written with every batch of lines, so it is small: of texts that only have to be known again it
keeps checksums, of what is open the few words that are still needed.
"""

import zlib
from typing import NamedTuple

from subagents.domain.run.values import Value
from subagents.domain.run.worker_output import PlanStatus


class OpenTool(Value, frozen=True):
    """A tool that began and has not ended."""

    id: str
    """The call's own, else the tool's name."""
    command: str | None = None
    """Its end may be reported without it."""
    agents: int = 0
    """Counted when it began."""


class Pending(Value, frozen=True):
    """News of one kind that are gathered into one alert."""

    key: str
    """The key of the coming alert, made from the first of them."""
    since_ms: int
    last: int
    """Number of the newest piece that belongs to it."""
    count: int = 1
    words: tuple[str, ...] = ()
    """Commit messages, or the team."""


class FailedCall(Value, frozen=True):
    """A tool that failed, in few words."""

    tool: str
    asked: str = ""
    """Its command, or what else it was asked."""
    error: str = ""
    """``exit code 1: no such file``"""
    at_ms: int = 0


class PlanMark(NamedTuple):
    """One item of the newest plan; an array when written down."""

    text: int
    """Its checksum."""
    status: PlanStatus


class Watch(Value, frozen=True):
    """Everything needed to go on after a restart; JSON by msgspec, every field has a default."""

    attempt: int = 0
    pieces: int = 0
    """How many pieces of this attempt's output were looked at: a piece's number is part of the keys
    of its alerts."""
    tools_used: int = 0
    last_activity: str | None = None
    """``editing src/bridge.py``; None before anything was seen."""
    last_at_ms: int | None = None
    """When anything last came on the stream."""
    context_tokens: int | None = None
    context_percent: int | None = None
    """None where the window is unknown."""

    is_silence_told: bool = False
    open: tuple[OpenTool, ...] = ()
    failures: int = 0
    """How many tools failed in a row."""
    failed_tool: str | None = None
    """The name all of these have; None when they are several."""
    failed_call: FailedCall | None = None
    """The last one, also when others succeeded since: what a worker that is stuck ran into."""
    api_errors: tuple[int, ...] = ()
    """Checksums of those reported since something succeeded."""
    context_told: int = 0
    """The highest threshold that was reported and is not undone by a compaction; 0 = none."""
    context_round: int = 1
    """Grows with every compaction that made thresholds due again."""
    plan: tuple[PlanMark, ...] = ()
    passing: tuple[int, ...] = ()
    """Checksums of the command families that passed when they last ran."""
    commits: Pending | None = None
    spawned: Pending | None = None


def checksum(text: str) -> int:
    """Knows a text again; two different ones alike would cost one alert."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
