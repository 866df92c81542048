"""What a runtime saw of an attempt: raw evidence, possibly late, doubled, out of order or wrong.

A signal's ``key`` is unique within its run; the journal applies each key at most once, so an
adapter that reads its stream again after a crash repeats the same keys and nothing happens twice.
"""

from typing import TypeAlias

from subagents.domain.run.run import Exit, Progress, Report, ResultFile
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import Value
from subagents.domain.run.workspace import Remains


class Exited(Value, frozen=True, tag=True):
    """The process is gone."""

    key: str
    exit: Exit
    drained: bool
    """Its output was read to the end before this signal."""
    stderr_tail: str | None = None


class ResultSeen(Value, frozen=True, tag=True):
    """The stream gave the attempt's result; the last one counts."""

    key: str
    text: str
    bytes_total: int = 0
    """Size of the whole result in UTF-8 bytes, when ``text`` had to be cut; else 0."""
    file: ResultFile | None = None
    """Where the engine put the whole; runtimes leave it alone."""
    is_error: bool = False
    error: str | None = None
    is_limit: bool = False
    """The model's provider refused for now (429, 529): waiting helps, and is no failure."""
    retry_after_ms: int | None = None
    """How long the provider asked to wait."""


class SessionSeen(Value, frozen=True, tag=True):
    """The worker's program named its session, by which a later attempt can continue it."""

    key: str
    session_id: str


class ReportSeen(Value, frozen=True, tag=True):
    key: str
    report: Report


class UsageSeen(Value, frozen=True, tag=True):
    """Totals of the attempt so far, not increments, so that a doubled one changes nothing."""

    key: str
    usage: Usage


class ProgressSeen(Value, frozen=True, tag=True):
    key: str
    progress: Progress
    is_paced: bool = True
    """The next one is taken 30 s after it; one that came too soon is shown, and delays nothing."""


class ToolSeen(Value, frozen=True, tag=True):
    """The worker used a tool; a report given before it is no longer the last call."""

    key: str
    name: str


class PermissionAsked(Value, frozen=True, tag=True):
    """The worker's program asks whether it may use a tool, and waits for the answer."""

    key: str
    call_id: str
    """Names the call to its program; one answer for each."""
    tool: str
    what: str
    """What the tool would do: a command, a path."""
    call: str | None = None
    """Tool and command or path, if that is all of the call; None = other calls read the same."""
    is_allowed: bool = False
    """The user allows it in all runs of the agent."""


class RemainsSeen(Value, frozen=True, tag=True):
    """What the attempt left besides its result; looked for before its end is journaled."""

    key: str
    remains: Remains


class Vanished(Value, frozen=True, tag=True):
    """The attempt cannot be found or adopted again: no exit evidence will ever come."""

    key: str
    error: str


Signal: TypeAlias = (
    Exited
    | ResultSeen
    | SessionSeen
    | ReportSeen
    | UsageSeen
    | ProgressSeen
    | ToolSeen
    | PermissionAsked
    | RemainsSeen
    | Vanished
)
TERMINAL = (Exited, Vanished)
