"""The structured events a plain program may print: one JSON object per line of standard output.

A line of standard output that is a JSON object with the key ``"subagents"`` is one; its forms are
described in docs/howto/workers.md. Some are evidence of how the attempt does (signals), most are
also output (lines of the transcript).

=============  ==============================================================================
``"result"``   ``text``, ``isError``?, ``error``?, ``isLimit``?, ``retryAfterMs``?: the attempt's
               result; the last one counts
``"report"``   ``summary``, ``status``?, ``confidence``?, ``artifacts``?, ``blockers``?,
               ``warnings``?: the worker's own claim of completion
``"usage"``    ``tokensIn``?, ``tokensOut``?, ``costUsd``?: totals of the attempt so far; the
               parts of ``tokensIn`` that the cache gave or took: ``tokensCacheRead``?,
               ``tokensCacheWrite``?
``"progress"`` ``phase``, ``percentComplete``? (0 to 100)
``"tool"``     ``name``, ``id``?, ``status``? (``started``, ``ended``), ``input``?, ``output``?,
               ``exitCode``?, ``isError``?, ``durationMs``?: a tool began or ended
``"text"``     ``text``: for the reader
``"thinking"`` ``text``
``"error"``    ``text``, ``api``?, ``retry``?, ``status``?, ``retryAfterMs``?: with ``api`` the
               model's provider, the program or a permission refused
``"system"``   ``text``, ``waitsMs``?: what the program itself did (compaction, a new session);
               so long it waits because its provider refused another worker
``"context"``  ``tokens``, ``window``?, ``model``?: how full the model's window is
``"session"``  ``sessionId``: the program's own session, by which a later turn resumes it
=============  ==============================================================================

Anything else, also a malformed event or one longer than ``LINE_BYTES_MAX``, is plain text. Of a
``tool`` only the fields that were always there are checked; an odd one among the others is taken
for absent.
"""

import re
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec.structs import asdict

from subagents.domain.run.run import Confidence, Progress, Report, ReportedArtifact, ReportStatus
from subagents.domain.run.signals import (
    ProgressSeen,
    ReportSeen,
    ResultSeen,
    SessionSeen,
    Signal,
    ToolSeen,
    UsageSeen,
)
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import ApiError, ContextUse, LineType, OutputItem
from subagents.runtimes.output.counts import COUNT_MAX, as_count
from subagents.runtimes.output.output_items import ALIVE, shown, system_item, tool_item
from subagents.runtimes.output.tool_lines import tool_use

LINE_BYTES_MAX: Final = 1024 * 1024
RETRY_CHARS_MAX: Final = 20
SESSION_CHARS_MAX: Final = 200

_NUL: Final = b"\\u0000"
_NUL_ESCAPE: Final = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
"""A NUL in a JSON string: databases and terminals choke on it, and no worker means it."""
_STARTED: Final = frozenset({"started", "running", "in_progress"})


class Event(msgspec.Struct, frozen=True, tag_field="subagents", rename="camel"):
    """An event of a worker; its names on the wire are those of the worker's tools."""


_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)]
_Percent: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=100)]
_Dollars: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class ResultEvent(Event, frozen=True, tag="result"):
    text: str
    is_error: bool = False
    error: str | None = None
    is_limit: object = None
    retry_after_ms: object = None


class ReportEvent(Event, frozen=True, tag="report"):
    """The fields of ``Report``; usage and progress, too, have those of the domain's value."""

    summary: str
    status: ReportStatus = ReportStatus.COMPLETE
    confidence: Confidence | None = None
    artifacts: tuple[ReportedArtifact, ...] = ()
    blockers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class UsageEvent(Event, frozen=True, tag="usage"):
    tokens_in: _Count | None = None
    tokens_out: _Count | None = None
    tokens_cache_read: _Count | None = None
    tokens_cache_write: _Count | None = None
    cost_usd: _Dollars | None = None


class ProgressEvent(Event, frozen=True, tag="progress"):
    phase: str
    percent_complete: _Percent | None = None


class ToolEvent(Event, frozen=True, tag="tool"):
    name: str
    id: object = None
    status: object = None
    input: object = None
    output: object = None
    exit_code: object = None
    is_error: object = None
    duration_ms: object = None

    @property
    def is_end(self) -> bool:
        return self.status not in _STARTED if isinstance(self.status, str) else True


class TextEvent(Event, frozen=True, tag="text"):
    text: str


class ThinkingEvent(Event, frozen=True, tag="thinking"):
    text: str


class ErrorEvent(Event, frozen=True, tag="error"):
    text: str
    api: object = None
    retry: object = None
    status: object = None
    retry_after_ms: object = None


class SystemEvent(Event, frozen=True, tag="system"):
    text: str
    waits_ms: object = None


class ContextEvent(Event, frozen=True, tag="context"):
    tokens: _Count
    window: object = None
    model: object = None


class SessionEvent(Event, frozen=True, tag="session"):
    session_id: Annotated[str, msgspec.Meta(min_length=1, max_length=SESSION_CHARS_MAX)]


AnyEvent: TypeAlias = (
    ResultEvent
    | ReportEvent
    | UsageEvent
    | ProgressEvent
    | ToolEvent
    | TextEvent
    | ThinkingEvent
    | ErrorEvent
    | SystemEvent
    | ContextEvent
    | SessionEvent
)
_DECODER: Final[msgspec.json.Decoder[AnyEvent]] = msgspec.json.Decoder(AnyEvent)


def event_of(line: bytes) -> AnyEvent | None:
    """The event that a line of standard output, without its newline, is; None = plain text."""
    if len(line) > LINE_BYTES_MAX or not line.lstrip().startswith(b"{"):
        return None
    try:
        return _DECODER.decode(without_nul(line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def without_nul(line: bytes) -> bytes:
    """JSON with the replacement character for each NUL in its strings."""
    return _NUL_ESCAPE.sub(rb"\1\\ufffd", line) if _NUL in line else line


def event_from(form: object) -> AnyEvent:
    """The same from decoded JSON with the key ``"subagents"``.

    Raises:
        msgspec.ValidationError: It is no event; the text says why.
    """
    event: AnyEvent = msgspec.convert(form, AnyEvent)
    return event


def signal_of(event: AnyEvent | None, *, key: str) -> Signal | None:
    """The signal in an event, if any.

    A tool that began is none: one use of a tool is one signal, its end. (A tool that never ends is
    in the transcript, and the worker that waits for it is stuck, which shows by itself.)
    """
    match event:
        case ResultEvent():
            return ResultSeen(
                key=key,
                text=event.text,
                is_error=event.is_error,
                error=event.error,
                is_limit=event.is_limit is True,
                retry_after_ms=as_count(event.retry_after_ms),
            )
        case SessionEvent():
            return SessionSeen(key=key, session_id=event.session_id)
        case ReportEvent():
            return ReportSeen(key=key, report=Report(**asdict(event)))
        case UsageEvent():
            return UsageSeen(key=key, usage=Usage(**asdict(event)))
        case ProgressEvent():
            return ProgressSeen(key=key, progress=Progress(**asdict(event)))
        case ToolEvent(is_end=True):
            return ToolSeen(key=key, name=event.name)
        case _:
            return None


def output_item_of(event: AnyEvent) -> OutputItem:
    """An event as output; without text where the journal has a line of it, or it is not for people.

    Such an item still shows the detectors that the worker is alive.
    """
    match event:
        case ResultEvent(is_error=True):
            return OutputItem(type=LineType.ERROR, text=shown(event.error or event.text))
        case ResultEvent() | TextEvent():
            return OutputItem(type=LineType.TEXT, text=shown(event.text))
        case ThinkingEvent():
            return OutputItem(type=LineType.THINKING, text=shown(event.text))
        case ErrorEvent():
            text = shown(event.text)
            return OutputItem(type=LineType.ERROR, text=text, api_error=_api_error(event, text))
        case SystemEvent():
            waits_ms = as_count(event.waits_ms)
            return replace(system_item(event.text), waits_ms=waits_ms)
        case ToolEvent():
            tool = tool_use(
                event.name,
                given=event.input,
                returned=event.output,
                call_id=event.id,
                is_end=event.is_end,
                exit_code=event.exit_code,
                is_error=event.is_error,
                duration_ms=event.duration_ms,
            )
            return tool_item(tool)
        case ContextEvent():
            return OutputItem(type=LineType.SYSTEM, context=_context(event))
        case ReportEvent() | UsageEvent() | ProgressEvent() | SessionEvent():
            return ALIVE


def _api_error(event: ErrorEvent, text: str) -> ApiError | None:
    if event.api is not True:
        return None
    retry = event.retry if isinstance(event.retry, (str, int)) else None
    return ApiError(
        message=text,
        retry=None if retry is None else str(retry)[:RETRY_CHARS_MAX],
        status=as_count(event.status, least=100),
        retry_after_ms=as_count(event.retry_after_ms),
    )


def _context(event: ContextEvent) -> ContextUse:
    return ContextUse(
        tokens=event.tokens,
        window=as_count(event.window, least=1),
        model=event.model if isinstance(event.model, str) else None,
    )
