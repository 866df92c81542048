"""The fold: the stream goes to the detectors, what they know stays in the ``Watch``.

Plain text says nothing to them and is most of what comes, so a batch is searched for the pieces
that do first. The order of what happens to a piece is fixed, and no step looks at where a batch
ends: however the stream is cut, the same alerts come under the same keys.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, assert_never

from subagents.domain.alerts.detectors import context_use as context
from subagents.domain.alerts.detectors import plan_progress as plans
from subagents.domain.alerts.detectors import tool_failures as failures
from subagents.domain.alerts.detectors.activity import activity_of, briefly
from subagents.domain.alerts.detectors.alert_wording import TEXT_CHARS_MAX, shown
from subagents.domain.alerts.detectors.detector_state import OpenTool, Pending, Watch
from subagents.domain.alerts.detectors.findings import (
    BuildResult,
    Commits,
    FindingsOf,
    alert_of_commits,
    gathered,
    tell_build,
)
from subagents.domain.run.alert import Alert, AlertKind, AlertRules
from subagents.domain.run.values import replace
from subagents.domain.run.worker_output import OutputItem, ToolUse
from subagents.text import counted, cut

SPAWN_BATCH_MS: Final = 2_000
OPEN_MAX: Final = 32
OPEN_COMMAND_CHARS: Final = 2_000
ID_CHARS: Final = 200
TEAM_CHARS: Final = 60
_SECOND_MS: Final = 1_000
_MINUTE_S: Final = 60
_HOUR_MIN: Final = 60


class _Given(NamedTuple):
    """What every look at a piece needs."""

    at_ms: int
    rules: AlertRules
    findings_of: FindingsOf


def begin(watch: Watch, *, attempt: int, at_ms: int) -> Watch:
    """A new attempt (or turn) started: what was open before is gone, silence begins again.

    Commits and sub-agents that are not reported yet stay: they happened.
    """
    if watch.attempt == attempt:
        return replace(watch, open=(), is_silence_told=False, last_at_ms=at_ms)
    # Plan, failures and thresholds are not taken over: they were those of another conversation.
    return Watch(
        attempt=attempt,
        tools_used=watch.tools_used,
        last_activity=watch.last_activity,
        last_at_ms=at_ms,
        commits=watch.commits,
        spawned=None if watch.spawned is None else replace(watch.spawned, last=-1),
    )


def observe(
    watch: Watch,
    items: Sequence[OutputItem],
    *,
    at_ms: int,
    rules: AlertRules,
    findings_of: FindingsOf,
) -> tuple[Watch, tuple[Alert, ...]]:
    """Look at pieces that came together, in their order, recorded ``at_ms``."""
    if not items:
        return watch, ()
    alerts: list[Alert] = []
    given = _Given(at_ms, rules, findings_of)
    for number, each in enumerate(items, watch.pieces + 1):
        if each.tool is None and each.api_error is None and each.context is None:
            continue
        watch = _leave_spawning(watch, each, number, alerts)
        watch = _look(watch, each, number, alerts, given)
    pieces = watch.pieces + len(items)
    if watch.spawned is not None and watch.spawned.last < pieces:
        watch = _tell_spawned(watch, alerts)
    activity = activity_of(items)
    return replace(
        watch,
        pieces=pieces,
        last_at_ms=at_ms if watch.last_at_ms is None else max(at_ms, watch.last_at_ms),
        last_activity=watch.last_activity if activity is None else activity,
        is_silence_told=False,
    ), tuple(alerts)


def elapsed(watch: Watch, *, now_ms: int, rules: AlertRules) -> tuple[Watch, tuple[Alert, ...]]:
    """What time alone says: silence, and batches that are due."""
    alerts: list[Alert] = []
    if watch.spawned is not None and now_ms >= watch.spawned.since_ms + SPAWN_BATCH_MS:
        watch = _tell_spawned(watch, alerts)
    if watch.commits is not None and now_ms >= watch.commits.since_ms + rules.commit_batch_ms:
        watch = _tell_commits(watch, alerts)
    silent_at = _silent_at_ms(watch, rules)
    if silent_at is not None and now_ms >= silent_at:
        alerts.append(_stuck(watch, now_ms))
        watch = replace(watch, is_silence_told=True)
    return watch, tuple(alerts)


def ended(watch: Watch) -> tuple[Watch, tuple[Alert, ...]]:
    """The attempt is over: what was gathered is reported now; silence is no news any more."""
    alerts: list[Alert] = []
    if watch.spawned is not None:
        watch = _tell_spawned(watch, alerts)
    if watch.commits is not None:
        watch = _tell_commits(watch, alerts)
    return watch, tuple(alerts)


def is_gathering(watch: Watch) -> bool:
    """Whether something waits to become one alert with what may follow."""
    return watch.commits is not None or watch.spawned is not None


def next_due_ms(watch: Watch, rules: AlertRules) -> int | None:
    """When ``elapsed`` will next have something to say, if the worker does nothing before."""
    due = [
        None if watch.spawned is None else watch.spawned.since_ms + SPAWN_BATCH_MS,
        None if watch.commits is None else watch.commits.since_ms + rules.commit_batch_ms,
        _silent_at_ms(watch, rules),
    ]
    return min((each for each in due if each is not None), default=None)


# -- pieces ----------------------------------------------------------------------------------


def _look(watch: Watch, item: OutputItem, number: int, alerts: list[Alert], given: _Given) -> Watch:
    if item.api_error is not None:
        key = _key(AlertKind.API_ERROR, watch, number)
        watch, news = failures.look_at_api_error(watch, item.api_error, key=key)
        alerts += news
    if item.context is not None:
        watch, news = context.look(failures.succeeded(watch), item.context, given.rules)
        alerts += news
    if item.tool is not None:
        watch = _look_at_tool(watch, item.tool, number, alerts, given)
    return watch


def _look_at_tool(
    watch: Watch, tool: ToolUse, number: int, alerts: list[Alert], given: _Given
) -> Watch:
    if tool.plan is not None and not tool.is_error:
        key = _key(AlertKind.TASK_MILESTONE, watch, number)
        watch, news = plans.look(watch, tool.plan, key=key)
        alerts += news
    opened = _opened(watch, tool)
    # Counted at its begin where the stream shows one, and at its end where it shows only that.
    if tool.agents > 0 and (opened is None or not opened.agents):
        watch = _spawn(watch, tool, number, at_ms=given.at_ms)
    if not tool.is_end:
        return _open(watch, tool)
    watch = replace(
        watch,
        tools_used=watch.tools_used + 1,
        open=tuple(each for each in watch.open if each is not opened),
    )
    if opened is not None and tool.command is None and opened.command is not None:
        tool = replace(tool, command=opened.command)
    return _look_at_end(watch, tool, number, alerts, given)


def _look_at_end(
    watch: Watch, tool: ToolUse, number: int, alerts: list[Alert], given: _Given
) -> Watch:
    at_ms, rules, findings_of = given
    for found in findings_of(tool):
        match found:
            case Commits(messages):
                before = watch.commits
                # Its time may have passed without a look in between: then it is not joined.
                if before is not None and at_ms >= before.since_ms + rules.commit_batch_ms:
                    watch = _tell_commits(watch, alerts)
                key = _key(AlertKind.GIT_COMMIT, watch, number)
                pending = gathered(watch.commits, messages, key=key, at_ms=at_ms, number=number)
                watch = replace(watch, commits=pending)
            case BuildResult():
                key = _key(AlertKind.BUILD_RESULT, watch, number)
                watch, news = tell_build(watch, found, key=key)
                alerts += news
            case _:
                assert_never(found)
    key = _key(AlertKind.FAILURE_LOOP, watch, number)
    watch, news = failures.look_at_tool(watch, tool, key=key, at_ms=at_ms, rules=rules)
    alerts += news
    return watch


def _opened(watch: Watch, tool: ToolUse) -> OpenTool | None:
    """What was kept of its begin: of calls without an id the oldest of the name."""
    known_by = _id(tool)
    return next((each for each in watch.open if each.id == known_by), None)


def _open(watch: Watch, tool: ToolUse) -> Watch:
    command = None if tool.command is None else tool.command[:OPEN_COMMAND_CHARS]
    opened = OpenTool(id=_id(tool), command=command, agents=tool.agents)
    return replace(watch, open=(*watch.open, opened)[-OPEN_MAX:])


def _id(tool: ToolUse) -> str:
    return (tool.call_id or f"name:{tool.name}")[:ID_CHARS]


# -- sub-agents ------------------------------------------------------------------------------


def _spawn(watch: Watch, tool: ToolUse, number: int, *, at_ms: int) -> Watch:
    team = () if not tool.team else (shown(tool.team, TEAM_CHARS),)
    before = watch.spawned
    if before is None:
        key = _key(AlertKind.SUBAGENT_SPAWN, watch, number)
        now = Pending(key=key, since_ms=at_ms, last=number, count=tool.agents, words=team)
    else:
        now = replace(
            before, last=number, count=before.count + tool.agents, words=before.words or team
        )
    return replace(watch, spawned=now)


def _leave_spawning(watch: Watch, item: OutputItem, number: int, alerts: list[Alert]) -> Watch:
    """Parallel calls come one behind the other, with nothing but counts between them."""
    spawned = watch.spawned
    if spawned is None:
        return watch
    is_count = item.tool is None and item.api_error is None and not item.text
    is_next = spawned.last == number - 1
    if is_next and is_count:
        return replace(watch, spawned=replace(spawned, last=number))
    if is_next and item.tool is not None and item.tool.agents and _opened(watch, item.tool) is None:
        return watch
    return _tell_spawned(watch, alerts)


def _tell_spawned(watch: Watch, alerts: list[Alert]) -> Watch:
    spawned = watch.spawned
    if spawned is not None:
        team = spawned.words[0] if spawned.words else None
        named = f" (team: {team})" if team else ""
        text = f"🔄 Spawned {counted(spawned.count, 'sub-agent')}{named}"
        fields = {"count": spawned.count, "teamName": team}
        alerts.append(_alert(AlertKind.SUBAGENT_SPAWN, text, spawned.key, **fields))
    return replace(watch, spawned=None)


def _tell_commits(watch: Watch, alerts: list[Alert]) -> Watch:
    if watch.commits is not None:
        alerts.append(alert_of_commits(watch.commits))
    return replace(watch, commits=None)


# -- silence ---------------------------------------------------------------------------------


def _silent_at_ms(watch: Watch, rules: AlertRules) -> int | None:
    if watch.last_at_ms is None or watch.is_silence_told:
        return None
    return watch.last_at_ms + (rules.stuck_tool_ms if watch.open else rules.stuck_ms)


def _stuck(watch: Watch, now_ms: int) -> Alert:
    silent_ms = 0 if watch.last_at_ms is None else now_ms - watch.last_at_ms
    activity = watch.last_activity
    last = "" if activity is None else f" (last: {briefly(activity)})"
    return _alert(
        AlertKind.STUCK,
        f"⚠️ No progress for {_long(silent_ms)}{last}",
        _key(AlertKind.STUCK, watch, watch.pieces),
        silentMs=silent_ms,
        lastActivity=activity,
    )


def _long(duration_ms: int) -> str:
    seconds = duration_ms // _SECOND_MS
    if seconds < 2 * _MINUTE_S and seconds % _MINUTE_S:
        return counted(seconds, "second")
    minutes = seconds // _MINUTE_S
    if minutes < 2 * _HOUR_MIN:
        return counted(minutes, "minute")
    return counted(minutes // _HOUR_MIN, "hour")


def _key(kind: AlertKind, watch: Watch, number: int) -> str:
    return f"{kind}:{watch.attempt}.{number}"


def _alert(kind: AlertKind, text: str, key: str, **fields: str | float | bool | None) -> Alert:
    return Alert(kind=kind, text=cut(text, TEXT_CHARS_MAX), key=key, fields=fields)
