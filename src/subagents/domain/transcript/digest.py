"""What a run did so far in at most 40 lines, made from its transcript without a model.

It reads lines as people do: the sign and the name on a tool's first line, below them what it was
asked. What a transcript does not say (a file written by a shell command) is not in here.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from subagents.domain.alerts.detectors import Watch
from subagents.domain.run.run import Run
from subagents.domain.run.spending import total_usage
from subagents.domain.run.usage import Usage
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import LineType
from subagents.domain.text.announcement import ending
from subagents.domain.transcript.transcript_query import Line
from subagents.text import age, duration, money, one_line

LINES_MAX: Final = 40
TEXT_CHARS_MAX: Final = 500
"""The most that is looked at of each line; the rest of it is not in a digest."""
ENTRY_CHARS_MAX: Final = 160
FILES_MAX: Final = 12
COMMANDS_MAX: Final = 10
ERRORS_MAX: Final = 5
MESSAGES_MAX: Final = 3
WORDS_MAX: Final = 3
TOOLS_MAX: Final = 8

_TOOL: Final = re.compile(
    r"(?P<sign>✅|❌)[ \t]*(?P<name>[^\n(]{1,80}?)[ \t]*(?:\((?P<about>[^\n()]{0,80})\))?[ \t]*"
    r"(?:\n(?P<asked>[^\n]*))?(?:\n|\Z)"
)
_EXIT: Final = re.compile(r"exit (-?\d{1,6})")
_SHELL: Final = re.compile(
    r"bash|shell|terminal|exec|command|(?:^|_)(?:sh|zsh|run)(?:_|$)", re.IGNORECASE
)
_WRITES: Final = re.compile(r"edit|write|patch|create_?file|replace", re.IGNORECASE)
_PLANS: Final = re.compile(r"todo|plan", re.IGNORECASE)


class ToolLine(NamedTuple):
    """What a line of type ``tool`` says."""

    name: str
    failed: bool
    exit_code: int | None
    asked: str
    """Its input on one line: a command, a path; empty when the line does not say."""

    @property
    def is_shell(self) -> bool:
        return _SHELL.search(self.name) is not None

    @property
    def writes(self) -> bool:
        """Whether its input names a file that it changes."""
        return _WRITES.search(self.name) is not None and _PLANS.search(self.name) is None


def tool_line(text: str) -> ToolLine | None:
    """Read ``❌ Bash (0.3s, exit 1)``, and the command on the next line; None = it has no sign, as
    the lines of our own tools."""
    found = _TOOL.match(text)
    if found is None:
        return None
    exit_code = _EXIT.search(found["about"] or "")
    asked = (found["asked"] or "").strip()
    # A line without an input goes on with the output, which begins with an arrow.
    return ToolLine(
        name=one_line(found["name"]),
        failed=found["sign"] == "❌",
        exit_code=None if exit_code is None else int(exit_code[1]),
        asked="" if asked.startswith("→") else asked,
    )


def shortened(lines: Iterable[Line]) -> list[Line]:
    """The lines with as much of their text as a digest looks at: ten thousand fit into memory."""
    return [
        line
        if len(line.text) <= TEXT_CHARS_MAX
        else replace(line, text=f"{line.text[:TEXT_CHARS_MAX]}…")
        for line in lines
    ]


def digest(
    run: Run,
    lines: Sequence[Line],
    *,
    words: Sequence[Line],
    watch: Watch,
    now_ms: int,
    left_out: int = 0,
) -> str:
    """The digest as text: at most ``LINES_MAX`` lines, of worker's words but a few short ones.

    Args:
        run: Whose.
        lines: Those of types tool, error, system and user, oldest first.
        words: The newest of type text, oldest first.
        watch: What the detectors know.
        now_ms: Now.
        left_out: How many older lines of those types were not looked at.
    """
    start_ms = run.times.started_at_ms or run.times.created_at_ms
    calls = [
        (line, call)
        for line in lines
        if line.type is LineType.TOOL and (call := tool_line(line.text)) is not None
    ]
    out = [_head(run, now_ms)]
    out.append(f"task: {_short(run.spec.task)}")
    if run.progress.latest is not None:
        percent = run.progress.latest.percent_complete
        share = "" if percent is None else f"{percent:g} % "
        out.append(f"progress: {share}{_short(run.progress.latest.phase)}")
    out += _tools([call for _, call in calls])
    out += _files(run, [call for _, call in calls])
    out += _commands(calls, start_ms)
    out += _some("errors", [n for n in lines if n.type is LineType.ERROR], ERRORS_MAX, start_ms)
    messages = [n for n in lines if n.type is LineType.USER][1:]  # the first is the task
    out += _some("messages to it", messages, MESSAGES_MAX, start_ms)
    out += _some("its last words", words, WORDS_MAX, start_ms, is_cut=True)
    if run.report is not None:
        out.append(f"its report: {run.report.status}: {_short(run.report.summary)}")
    for request in run.pending_requests:
        out.append(f"waits for an answer: {_short(request.question)} ({request.id})")
    out.append(_activity(watch, now_ms))
    out.append(f"cost: {cost(total_usage(run))}")
    if left_out:
        out.append(f"left out: {left_out:,} older lines")
    return "\n".join(_within(out))


def cost(usage: Usage) -> str:
    """Tokens, and dollars where they were reported: never a zero for what is unknown."""
    parts = [
        f"{count:,} tokens {way}"
        for count, way in ((usage.tokens_in, "in"), (usage.tokens_out, "out"))
        if count is not None
    ]
    if usage.tokens_cache_read:
        parts.insert(1, f"{usage.tokens_cache_read:,} of them cached")
    if usage.cost_usd is not None:
        parts.append(money(usage.cost_usd))
    return ", ".join(parts) or "unknown (its runtime reported no usage)"


def _head(run: Run, now_ms: int) -> str:
    start_ms = run.times.started_at_ms or run.times.created_at_ms
    took = duration((run.ended_at_ms or now_ms) - start_ms)
    state = str(run.phase) if run.outcome is None else ending(run.outcome)
    if run.verification.proves_nothing:
        state += " (vacuous: its contract was met before the work)"
    attempts = f", attempt {len(run.attempts)}" if len(run.attempts) > 1 else ""
    name = f'{run.id} "{_short(run.resolved.label)}" ({run.resolved.agent_id})'
    return f"{name}: {state}{attempts}, {took}"


def _tools(calls: Sequence[ToolLine]) -> list[str]:
    if not calls:
        return []
    counted = Counter(call.name for call in calls)
    failed = Counter(call.name for call in calls if call.failed)
    parts = [
        f"{name} {count}" + (f" ({failed[name]} failed)" if failed[name] else "")
        for name, count in counted.most_common(TOOLS_MAX)
    ]
    more = len(counted) - len(parts)
    others = f", {more} other tools" if more else ""
    return [f"tools: {len(calls)} calls: {', '.join(parts)}{others}"]


def _files(run: Run, calls: Sequence[ToolLine]) -> list[str]:
    touched = Counter(_short(call.asked) for call in calls if call.writes and call.asked)
    if run.report is not None:
        touched.update(_short(each.path) for each in run.report.artifacts)
    if not touched:
        return []
    parts = [
        path if count == 1 else f"{path} ×{count}" for path, count in touched.most_common(FILES_MAX)
    ]
    more = len(touched) - len(parts)
    others = f", {more} more" if more else ""
    return [f"files touched ({len(touched)}): {', '.join(parts)}{others}"]


def _commands(calls: Sequence[tuple[Line, ToolLine]], start_ms: int) -> list[str]:
    run_ones = [(line, call) for line, call in calls if call.is_shell]
    if not run_ones:
        return []
    failed = sum(call.failed for _, call in run_ones)
    shown = run_ones[-COMMANDS_MAX:]
    which = "" if len(shown) == len(run_ones) else f", the last {len(shown)}"
    out = [f"commands ({len(run_ones)}, {failed} failed{which}):"]
    for line, call in shown:
        if call.exit_code is not None:
            ended = f"exit {call.exit_code}"
        else:
            ended = "failed" if call.failed else "ok"
        out.append(f"  {_at(line, start_ms)} {ended}: {_short(call.asked or call.name)}")
    return out


def _some(
    name: str, lines: Sequence[Line], most: int, start_ms: int, *, is_cut: bool = False
) -> list[str]:
    if not lines:
        return []
    shown = lines[-most:]
    which = "" if len(shown) == len(lines) else f" ({len(lines)}, the last {len(shown)})"
    head = f"{name}:" if is_cut else f"{name}{which}:"
    return [head, *(f"  {_at(line, start_ms)} {_short(line.text)}" for line in shown)]


def _activity(watch: Watch, now_ms: int) -> str:
    if watch.last_at_ms is None:
        return "last activity: none was seen"
    what = _short(watch.last_activity) if watch.last_activity else "a sign of life"
    return f"last activity: {what}, {age(now_ms - watch.last_at_ms)}"


def _at(line: Line, start_ms: int) -> str:
    return f"+{duration(max(line.ts - start_ms, 0))}"


def _short(text: str) -> str:
    return one_line(text, ENTRY_CHARS_MAX)


def _within(lines: Sequence[str]) -> list[str]:
    """At most ``LINES_MAX``: what stands in the middle gives way, head and end stay."""
    if len(lines) <= LINES_MAX:
        return list(lines)
    # The head says what the run is, the end what it is at; lists of commands are what is long.
    kept = LINES_MAX - 1
    head, end = kept // 2, kept - kept // 2
    return [*lines[:head], f"… {len(lines) - kept} lines", *lines[-end:]]
