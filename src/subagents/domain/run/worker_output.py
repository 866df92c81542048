"""What a worker writes while it works: items of its output, as its runtime decoded them.

The engine redacts, numbers and keeps them as lines of the run's transcript (``transcript``) and
shows them to the detectors (``detectors``). Nothing of it decides anything of the run: a
transcript that cannot be kept never holds up the work.
"""

from enum import StrEnum
from typing import Final

from subagents.domain.run.values import Value

THINKING_CHARS_MAX: Final = 300
LINE_CHARS_MAX: Final = 8_000
"""The longest text of one line; a longer one is cut and says by how much."""
RESULT_BYTES_MAX: Final = 32_768
"""The most UTF-8 bytes of a result's text that its run holds: the end of it; the whole is in a
file."""
OUTPUT_CHARS_MAX: Final = 32_000
"""The most of a tool's output that detectors see: its beginning and its end."""


class LineType(StrEnum):
    """The kind of a line in a run's log."""

    TEXT = "text"
    THINKING = "thinking"
    TOOL = "tool"
    ERROR = "error"
    SYSTEM = "system"
    USER = "user"


class PlanStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class PlanItem(Value, frozen=True):
    """One item of the worker's own plan (task and todo tools, plan updates)."""

    text: str
    status: PlanStatus = PlanStatus.PENDING


class ToolUse(Value, frozen=True):
    """A tool that began (``is_end`` false) or ended; a stream may tell only of the end."""

    name: str
    call_id: str | None = None
    is_end: bool = True
    input: str = ""
    """Short: what it was asked, on one line."""
    command: str | None = None
    """The whole command line of a shell tool; None with any other."""
    path: str | None = None
    """The file it works on."""
    plan: tuple[PlanItem, ...] | None = None
    """The whole plan, when the tool writes one."""
    agents: int = 0
    """How many sub-agents this call starts inside the worker's program."""
    team: str | None = None
    exit_code: int | None = None
    is_error: bool = False
    output: str = ""
    """What came out, at most ``OUTPUT_CHARS_MAX``; for the detectors, the line shows a summary."""
    duration_ms: int | None = None


class ApiError(Value, frozen=True):
    """The model's provider, the program or a permission refused."""

    message: str
    retry: str | None = None
    """``2/5`` when the program says which try this was."""
    status: int | None = None
    """The HTTP status; 429 and 529 say that the provider takes no more for now."""
    retry_after_ms: int | None = None
    """How long the program, or its provider, waits before the next try."""


class ContextUse(Value, frozen=True):
    """How full the model's window is."""

    tokens: int
    window: int | None = None
    """None = by the model's name, else unknown."""
    model: str | None = None


class OutputItem(Value, frozen=True):
    """One item of an attempt's output, as its runtime decoded it."""

    type: LineType
    text: str = ""
    """Empty = for the detectors only; no line is kept of it."""
    tool: ToolUse | None = None
    api_error: ApiError | None = None
    context: ContextUse | None = None
    is_stderr: bool = False
    """Standard error is a separate stream: its lines do not interrupt those of the other."""
    waits_ms: int | None = None
    """How long it waits for its model's provider, which refused another worker."""


class OutputBatch(Value, frozen=True):
    """Items in the order they came, and how far each of the attempt's files was read for them.

    Positions are the runtime's own: names and numbers that it gets back after a restart.
    """

    items: tuple[OutputItem, ...]
    positions: dict[str, int] = {}
