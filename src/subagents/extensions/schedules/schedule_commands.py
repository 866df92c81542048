"""``schedule add list run-now remove``, and ``show pause resume`` of ``schedule:NAME``."""

import os
import re
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from subagents import extension
from subagents.api.wire.run_answers import PlannedBudget, RunPage
from subagents.api.wire.schedule_answers import (
    ScheduledRun,
    ScheduledTimeRow,
    SchedulePage,
    ScheduleRow,
    ScheduleStart,
)
from subagents.api.wire.wire_struct import read
from subagents.cli import output
from subagents.cli.connection import caller_cwd, config_environment, connect
from subagents.cli.flags import Json, Parameter, Yes, refusal, refuse_unused
from subagents.cli.runs.environment_flags import Env, EnvFile, environment
from subagents.cli.runs.spawn_flags import NO_FLAGS, Flags, Given, spec_of
from subagents.cli.runs.submission import DEFAULT_AGENT, in_file, in_flags
from subagents.cli.serving import unit_file
from subagents.cli.show import render
from subagents.client.client import Client, Document, Query, segment
from subagents.errors import EXIT_OK, Conflict, UsageError
from subagents.extensions.schedules.crontab import NOT_OURS, Entry, entries_of, when_and_task
from subagents.installation import NAME
from subagents.text import counted, duration, listed, milliseconds_of, money, upcoming

SYSTEMD: Final = Path("/run/systemd/system")
"""Is there where systemd runs, as sd_booted(3) asks."""
LOCALTIME: Final = Path("/etc/localtime")
ZONES: Final = "zoneinfo/"
_KIND: Final = re.compile("(posix|right)/")
"""Folders that hold all zones once more."""
ZONE_MAGIC: Final = b"TZif"
ZONE_BYTES_MAX: Final = 1 << 20
PLACE: Final = "/v1/schedules"
RUNS_ASKED: Final = 200
"""The newest runs of a schedule, whose states are shown with its times."""
CHECKS_NAMED: Final = 10

Schedule = Annotated[str, Parameter(help="Its name or id.", metavar="SCHEDULE")]
More = Annotated[str, Parameter(metavar="[SCHEDULE...]")]


def add(
    name: Annotated[
        str,
        Parameter(
            help="What to call it; `-` alone: each line of the crontab on stdin becomes one.",
            metavar="NAME",
        ),
    ],
    when: Annotated[
        str,
        Parameter(
            help="Five fields of cron ('0 3 * * 1-5'), @hourly, @daily, @weekly, @monthly, or "
            "'every 15m'; without TASK also a line of a crontab.",
            metavar="WHEN",
        ),
    ] = "",
    /,
    *task: Annotated[
        str,
        Parameter(help="The task; after `--`, a command line.", metavar="TASK"),
    ],
    flags: Flags = NO_FLAGS,
    plan: Annotated[
        Path | None, Parameter(help="Start the runs of a plan file instead.", metavar="FILE")
    ] = None,
    zone: Annotated[
        str | None,
        Parameter(help="Time zone of WHEN, as Europe/Berlin. Default: this machine's."),
    ] = None,
    overlap: Annotated[
        Literal["skip", "queue", "cancel", "allow"],
        Parameter(
            help="While its earlier runs have not ended: leave that time out, start after them, "
            "cancel them first, or start beside them. Default: skip."
        ),
    ] = "skip",
    missed: Annotated[
        Literal["once", "skip"],
        Parameter(
            help="For times missed while the machine was off: start once (default), or not at all."
        ),
    ] = "once",
    replace: Annotated[bool, Parameter(help="Take the place of the schedule called NAME.")] = False,
    env: Env = (),
    env_file: EnvFile = (),
    json: Json = False,
) -> int:
    """Start a task, or a plan, at its times, until the schedule is removed.

    Takes the flags of `run`. Its runs have the tag `schedule:NAME`.

    For example:

        subagents schedule add nightly '0 3 * * *' 'make test' --retry 2 --verify report.xml

        subagents schedule add sync 'every 15m' --overlap queue -- rsync -a src/ backup/

        subagents schedule add weekly '@weekly' --plan audit.yaml --zone Europe/Berlin

        crontab -l | subagents schedule add -
    """
    is_crontab = name == "-" and not when and plan is None
    if is_crontab:
        entries = list(entries_of(sys.stdin.read()))
        for setting in dict.fromkeys(each for entry in entries for each in entry.left_out):
            output.note(f"warning: {setting} is left out: {NOT_OURS[setting]}")
        work: list[Document] = [{"specs": [spec_of((each.task,), flags)]} for each in entries]
    else:
        if not task and plan is None:
            if re.fullmatch(r"@\w+|every \S+|[\d*]\S*( \S+){4}", name):
                raise refusal("NAME", f"is missing: what is to be called that starts at {name!r}?")
            when, of_line = when_and_task(when)
            task = (of_line,) if of_line else ()
        entries = [Entry(name, when)]
        of_plan = None if plan is None else _plan(plan, name, task, flags)
        work = [of_plan or {"specs": [spec_of(task, flags)]}]
    bodies = [
        {
            "name": each.name,
            "when": each.when,
            "zone": zone or each.zone or local_zone(),
            "cwd": str(Path.home()) if is_crontab else caller_cwd(),  # where cron starts its work
            "overlap": overlap,
            "missed": missed,
            "replace": replace,
            "defaultAgent": DEFAULT_AGENT,
            **started,
            **_environment((*each.variables, *env), env_file),
        }
        for each, started in zip(entries, work, strict=True)
    ]
    if held := sorted(config_environment()):
        told = "holds for this shell, not for the schedule: its runs go by the configuration files"
        output.note(f"warning: {held[0]} {told}")
    with connect(starts=True) as client, in_flags() if plan is None else in_file(plan):
        known = {each.name for each in read(client.get(PLACE), SchedulePage).schedules}
        is_first = not (json or replace or known or unit_file().exists())
        if not replace and is_crontab and (there := {each.name for each in entries} & known):
            raise Conflict(
                f"nothing was added; names that are taken: {listed(sorted(there), CHECKS_NAMED)}",
                hint="--replace puts yours in their place; or add each with a name of your own",
            )
        for body in bodies:
            answer = client.post(PLACE, body, timeout_s=30)
            if json:
                output.document(answer)
                continue
            found = read(answer, ScheduleRow)
            output.line(found.schedule_id)
            output.warnings((found.name, each) for each in found.warnings)
            output.note(f"{found.name}: {_times(found)}; {_next(found, time.time() * 1000)}")
    if is_first:
        up = f"in your crontab: @reboot {shlex.quote(shutil.which(NAME) or NAME)} up"
        how = "subagents down --yes && subagents service install" if SYSTEMD.exists() else up
        output.note(f"  to start its work after a restart of this machine, too: {how}")
    return EXIT_OK


def _environment(env: Sequence[str], env_file: Sequence[str]) -> Document:
    brought = environment(env, env_file)
    return {"environment": brought} if brought.names else {}


def _plan(file: Path, name: str, task: Sequence[str], flags: Given) -> Document:
    if task or flags:
        raise UsageError(
            "--plan starts the runs of its file: give no task and no flags of a run besides",
            details={"field": "--plan"},
        )
    with in_file(file):
        found = next((dict(body) for _, body in extension.made("plan_files", file)), None)
    if found is None:
        raise UsageError("nothing here reads plan files", details={"field": "--plan"})
    plan_name = found.pop("name", name)
    return {**found, "planName": plan_name}


def local_zone(localtime: Path = LOCALTIME) -> str:
    """The time zone of whoever calls, as date(1) takes it from TZ, or else of this machine.

    Returns:
        An IANA name; or, where a file has it that stands below no such name, the file's own rule
        as POSIX writes it; ``UTC`` where nothing says one.

    Raises:
        UsageError: TZ names no zone.
    """
    named = os.environ.get("TZ")
    if named is None:
        return _zone_of_file(localtime) or "UTC"
    plain = named.removeprefix(":")
    if not plain.startswith("/"):
        return plain or "UTC"
    found = _zone_of_file(Path(plain))
    if found is None:
        raise UsageError(
            f"TZ={named} names no file with a time zone",
            hint="give --zone, such as Europe/Berlin",
            details={"field": "--zone"},
        )
    return found


def _zone_of_file(file: Path) -> str | None:
    """What it is called, as long as that is known here; else the rule with which it ends."""
    for path in (str(file), os.path.realpath(file)):
        name = _KIND.sub("", path.partition(ZONES)[2])
        if name and not set(name.split("/")) & {"", ".", ".."}:
            return name
    try:
        with file.open("rb") as opened:
            data = opened.read(ZONE_BYTES_MAX)
    except OSError:
        return None
    if not data.startswith(ZONE_MAGIC):
        return None
    return data.rstrip(b"\n").rpartition(b"\n")[2].decode("ascii", "ignore") or None


def list_(*, json: Json = False) -> int:
    """List schedules: when they are due next, and what became of the last time.

    For example:

        subagents schedule list

        subagents schedule list --json
    """
    with connect() as client:
        answer = client.get(PLACE)
        found = read(answer, SchedulePage).schedules
        states = {} if json else {each.tag: _states(client, each) for each in found}
    if json:
        output.document(answer)
        return EXIT_OK
    if not found:
        output.note("No schedules. Add one: subagents schedule add NAME WHEN TASK")
        return EXIT_OK
    now_ms = time.time() * 1000
    output.table(
        ["schedule", "state", "when", "next", "last", "task"],
        [
            [
                each.name,
                _state(each),
                each.when,
                _next(each, now_ms),
                _last(each, states[each.tag], now_ms),
                each.task,
            ]
            for each in found
        ],
        styles={1: 1},
        cut=(3, 4, 5, 2),
        why=(3, 4),
    )
    return EXIT_OK


def _state(found: ScheduleRow) -> str:
    if found.paused_at is not None:
        return "paused"
    if found.running:
        return "running"
    return "error" if found.times and found.times[0].decision == "refused" else "waiting"


def _times(found: ScheduleRow) -> str:
    return f"{found.words} ({found.zone})" if found.words != found.when else found.when


def _next(found: ScheduleRow, now_ms: float) -> str:
    due_ms = milliseconds_of(found.next_at)
    if due_ms is None:
        return "paused" if found.paused_at is not None else "never"
    return upcoming(due_ms, now_ms)


def _last(found: ScheduleRow, states: Mapping[str, str], now_ms: float) -> str:
    if not found.times:
        return "-"
    newest = found.times[0]
    return f"{_came_to(newest, states)} {_ago(newest, now_ms)}"


def _states(client: Client, found: ScheduleRow) -> Mapping[str, str]:
    """The states of its newest runs, by their ids."""
    query: Query = {"tag": found.tag, "limit": RUNS_ASKED, "archived": 1}
    page = read(client.get("/v1/runs", query), RunPage)
    return {row.run_id: render.word(row.shown_state) for row in page.runs}


def _came_to(row: ScheduledTimeRow, states: Mapping[str, str]) -> str:
    """``failed``, or ``2 ok, 1 failed``; of what started nothing, what was decided."""
    counts = Counter(states[run_id] for run_id in row.run_ids if run_id in states)
    if len(row.run_ids) == 1 and counts:
        return next(iter(counts))
    return ", ".join(f"{count} {word}" for word, count in counts.items()) or row.decision


def _ago(row: ScheduledTimeRow, now_ms: float) -> str:
    at_ms = milliseconds_of(row.decided_at)
    length_ms = 0 if at_ms is None else max(round(now_ms - at_ms), 0)
    return "-" if at_ms is None else f"{duration(length_ms).split()[0]} ago"


def show(schedule: str, *, verbose: bool = False, json: bool = False) -> int:
    """Show a schedule, and what became of its newest times."""
    refuse_unused("is about one run", verbose=verbose)
    with connect() as client:
        answer = client.get(f"{PLACE}/{segment(schedule)}")
        found = read(answer, ScheduleRow)
        states = {} if json else _states(client, found)
    if json:
        output.document(answer)
    else:
        _print(found, states)
    return EXIT_OK


def _work(run: ScheduledRun) -> list[tuple[str, str]]:
    """What holds for a run each time, with the name of each."""
    targets = [f"{each.type.replace('_', ' ')} {each.target}" for each in run.checks]
    contract = listed(targets, CHECKS_NAMED) or "none"
    if run.checks and run.retry_until_verified:
        contract += f"; a failed check is tried again up to {run.retry_until_verified} times"
    if run.checks and run.on_failure != "fail":
        contract += f"; on failure {run.on_failure.replace('_', ' ')}"
    elif run.checks and run.attempts_max > 1 and not run.retry_until_verified:
        contract += "; a failed check is not tried again"
    budget = "none" if run.budget is None else _budget(run.budget)
    retries = run.attempts_max - 1 - run.retry_until_verified
    return [("contract", contract), ("retries", str(retries or "none")), ("budget", budget)]


def _budget(found: PlannedBudget) -> str:
    total, seconds = found.max_total_tokens, found.max_seconds
    parts = [
        *([] if found.max_tokens is None else [f"{found.max_tokens:,} tokens"]),
        *([] if total is None else [f"{total:,} total tokens"]),
        *([] if found.max_cost_usd is None else [money(found.max_cost_usd)]),
        *([] if found.max_runs is None else [counted(found.max_runs, "run")]),
        *([] if seconds is None else [duration(round(seconds * 1000))]),
    ]
    return ", ".join(parts) or "none"


def _print(found: ScheduleRow, states: Mapping[str, str]) -> None:
    now_ms, state = time.time() * 1000, _state(found)
    output.styled_line(f" {found.name} ({found.schedule_id}): {state}", render.icon(state), state)
    steps = "" if found.steps is None else f" ({counted(found.steps, 'step')})"
    for name, text in (
        ("when", _times(found)),
        ("next", f"{found.next_at or ''}  {_next(found, now_ms)}".strip()),
        ("task", f"{found.task}{steps}"),
        ("agent", found.agent_id or "as configured"),
        *(_work(found.runs[0]) if found.steps is None and found.runs else ()),
        *(() if found.budget is None else [("budget", _budget(found.budget))]),
        ("in", found.cwd),
        ("overlap", found.overlap),
        ("missed", found.missed),
        ("its runs", f"subagents list --tag {found.tag}"),
    ):
        output.hanging(f"  {name:<9}", text)
    if found.steps is not None:
        output.line()
        output.table(
            ["step", *(name for name, _ in _work(ScheduledRun()))],
            [
                [each.label or str(place), *(text for _, text in _work(each))]
                for place, each in enumerate(found.runs, 1)
            ],
            cut=(1, 0),
        )
    if found.times:
        output.line()
        output.table(
            ["due", "came to", "ago", "runs", "why"],
            [
                [
                    each.due_at or "-",
                    _came_to(each, states) + (" (by hand)" if each.by_hand else ""),
                    _ago(each, now_ms),
                    _started(each),
                    each.text,
                ]
                for each in found.times
            ],
            cut=(4, 3),
            why=(1, 4),
        )


def _started(row: ScheduledTimeRow) -> str:
    more = f" and {len(row.run_ids) - 1} more" if len(row.run_ids) > 1 else ""
    return f"{row.run_ids[0]}{more}" if row.run_ids else "-"


def run_now(schedule: Schedule, /, *, json: Json = False) -> int:
    """Start the work of a schedule now, besides its times, and print the ids of its runs.

    For example:

        subagents schedule run-now nightly

        subagents wait $(subagents schedule run-now nightly)
    """
    with connect(starts=True) as client:
        answer = client.post(f"{PLACE}/{segment(schedule)}/run", timeout_s=30)
    if json:
        output.document(answer)
        return EXIT_OK
    found = read(answer, ScheduleStart)
    for run_id in found.run_ids:
        output.line(run_id)
    return EXIT_OK


def pause(*schedules: str, json: bool = False) -> int:
    """Let a schedule start nothing until it is resumed; its runs go on."""
    return _posted(schedules, "pause", json=json)


def resume(*schedules: str, json: bool = False) -> int:
    """Let a paused schedule go on; what was due meanwhile is left out."""
    return _posted(schedules, "resume", json=json)


def _posted(schedules: Sequence[str], call: str, *, json: bool) -> int:
    with connect(starts=True) as client:
        for each in schedules:
            answer = client.post(f"{PLACE}/{segment(each)}/{call}")
            if json:
                output.document(answer)
            else:
                found = read(answer, ScheduleRow)
                output.note(f"{found.name}: {_next(found, time.time() * 1000)}")
    return EXIT_OK


def remove(schedule: Schedule, /, *more: More, yes: Yes = False, json: Json = False) -> int:
    """Remove schedules; runs that they started go on.

    For example:

        subagents schedule remove nightly

        subagents schedule remove nightly sync --yes
    """
    with connect(starts=True) as client:
        named = [client.get(f"{PLACE}/{segment(each)}") for each in (schedule, *more)]
        for found in (read(each, ScheduleRow) for each in named):
            if not output.is_confirmed(f"Remove schedule {found.name} ({_times(found)})?", yes=yes):
                output.note(f"{found.name} stays.")
                continue
            answer = client.delete(f"{PLACE}/{segment(found.schedule_id)}")
            if json:
                output.document(answer)
            else:
                output.note(f"{found.name} was removed.")
    return EXIT_OK
