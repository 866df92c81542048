"""A run's transcript: its lines, what may be asked of them, and where recording continues."""

from typing import Final, TypeAlias

from subagents.domain.alerts.detectors import Watch
from subagents.domain.redaction.redact import Redactor
from subagents.domain.run.values import Value
from subagents.domain.run.worker_output import LineType

LOG_LINES: Final = 50
LOG_LINES_MAX: Final = 10_000
GREP_CHARS_MAX: Final = 1_000


Hits: TypeAlias = tuple[tuple[int, int], ...]
"""Where a pattern matched in a text: from and to, in characters."""


class Line(Value, frozen=True):
    """One line of a run's transcript; ``seq`` grows by one over all its attempts, from 1."""

    seq: int
    ts: int
    """When it was recorded, in milliseconds since the epoch; never less than the line before."""
    type: LineType
    text: str
    attempt: int


class LogQuery(Value, frozen=True):
    """Which lines are wanted: the filters first, then the window."""

    offset: int | None = None
    """How many lines that pass the filters are skipped, from the oldest; None = the newest
    ``limit`` are shown."""
    limit: int = LOG_LINES
    grep: str | None = None
    """A regular expression, searched in the text."""
    hits: bool = False
    """Whether to say where it matched, too."""
    since_ms: int | None = None
    """Lines recorded at or after this time, in milliseconds since the epoch."""
    types: tuple[LineType, ...] = ()
    """Empty = all."""
    attempt: int | None = None
    after_seq: int | None = None
    """Only lines behind this one: the cursor of a reader that follows."""


class LogPage(Value, frozen=True):
    """The lines that fit a query, and where they stand in the whole."""

    total_lines: int
    """How many lines pass the filters; without filters also those that were dropped."""
    offset: int
    """The offset of the first line of ``lines``."""
    lines: tuple[Line, ...]
    next_seq: int
    """The ``after_seq`` of the next call: the newest line looked at, whether it passed or not."""
    dropped_lines: int = 0
    """The oldest ones, given up because the transcript was full."""
    hits: tuple[Hits, ...] = ()
    """Where each line matched, if that was asked for."""


class Checkpoint(Value, frozen=True):
    """Where recording continues after a restart; kept together with the lines it belongs to."""

    seq: int = 0
    """The number of the last line."""
    ts: int = 0
    positions: dict[str, int] = {}
    """``<attempt>/<name>`` → how far the runtime had read that file of the attempt."""
    journal_seq: int = 0
    """Events of the run up to here have their lines."""
    watch: Watch = Watch()
    """What the detectors know."""
    redactor: Redactor = Redactor()
    """Whether a private key is being printed."""
    redactor_stderr: Redactor = Redactor()
    """The same, for standard error."""
