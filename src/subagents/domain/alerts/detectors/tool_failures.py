"""Tools that fail in a row, and what the model's provider refuses."""

import re
from typing import Final

from subagents.domain.alerts.detectors.alert_wording import FIELD_CHARS_MAX, QUOTE_CHARS_MAX, shown
from subagents.domain.alerts.detectors.detector_state import FailedCall, Watch, checksum
from subagents.domain.alerts.detectors.shell import steps_of
from subagents.domain.run.alert import Alert, AlertKind, AlertRules
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import ApiError, ToolUse
from subagents.text import cut

API_ERRORS_MAX: Final = 8
"""Different ones kept in mind until something succeeds."""
_RETRY_CHARS: Final = 20
_TOOL_CHARS: Final = 40
_LAST_CHARS: Final = 2_000
_ANSWERS_BY_CODE: Final = frozenset(
    {"grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "test", "[", "[[", "pgrep", "which"}
)
"""Exit code 1 of these means "no", not that something failed."""
_VARYING: Final = re.compile(r"\b(?![45]\d\d\b)\d++\b|\b(?=\w*\d)\w{8,}+", re.ASCII)
"""Waiting times and request ids; what is left of a message says which it is. Not status codes."""


def is_failure(tool: ToolUse) -> bool | None:
    """None = an answer like any other, neither a failure nor a success."""
    if not tool.is_error and not tool.exit_code:
        return False
    if tool.exit_code == 1 and tool.command is not None:
        steps = steps_of(tool.command)
        if steps and steps[-1].words[0] in _ANSWERS_BY_CODE:
            return None
    return True


def look_at_tool(
    watch: Watch, tool: ToolUse, *, key: str, at_ms: int, rules: AlertRules
) -> tuple[Watch, tuple[Alert, ...]]:
    """Count a tool that ended; reported once when so many failed, until one succeeds."""
    failed = is_failure(tool)
    if failed is None:
        return watch, ()
    if not failed:
        if not watch.failures and not watch.api_errors:
            return watch, ()
        return replace(watch, failures=0, failed_tool=None, api_errors=()), ()
    failures = watch.failures + 1
    name = shown(tool.name, _TOOL_CHARS)
    same = name if failures == 1 or watch.failed_tool == name else None
    asked = shown(tool.command or tool.path or tool.input, FIELD_CHARS_MAX)
    call = FailedCall(tool=name, asked=asked, error=_last_error(tool), at_ms=at_ms)
    watch = replace(watch, failures=failures, failed_tool=same, failed_call=call)
    if failures != rules.failures:
        return watch, ()  # not yet, or reported already: one loop is one alert
    what = "tool" if same is None else same
    times = "failure" if failures == 1 else "failures"
    alert = Alert(
        kind=AlertKind.FAILURE_LOOP,
        text=f"🔁 {failures} consecutive {what} {times} — possibly stuck",
        key=key,
        fields={"consecutiveFailures": failures, "lastTool": name, "lastError": call.error},
    )
    return watch, (alert,)


def look_at_api_error(
    watch: Watch, error: ApiError, *, key: str
) -> tuple[Watch, tuple[Alert, ...]]:
    """Reported once per message until something succeeds."""
    known = checksum(_VARYING.sub("#", error.message[: FIELD_CHARS_MAX * 4]).casefold())
    if known in watch.api_errors:
        return watch, ()
    kept = (*watch.api_errors, known)[-API_ERRORS_MAX:]
    message = shown(error.message, QUOTE_CHARS_MAX) or "no message"
    retry = None if error.retry is None else shown(error.retry, _RETRY_CHARS)
    tried = f" (retry {retry})" if retry else ""
    alert = Alert(
        kind=AlertKind.API_ERROR,
        text=f"❌ API error: {message}{tried}",
        key=key,
        fields={"message": shown(error.message, FIELD_CHARS_MAX), "retry": retry},
    )
    return replace(watch, api_errors=kept), (alert,)


def succeeded(watch: Watch) -> Watch:
    """The provider answered: the next refusal is news."""
    return replace(watch, api_errors=()) if watch.api_errors else watch


def _last_error(tool: ToolUse) -> str:
    lines = tool.output[-_LAST_CHARS:].rstrip().rpartition("\n")
    line = shown(lines[2])
    if tool.exit_code:
        code = f"exit code {tool.exit_code}"
        return cut(f"{code}: {line}", FIELD_CHARS_MAX) if line else code
    return line or "failed"
