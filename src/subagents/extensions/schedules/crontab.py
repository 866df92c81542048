"""A crontab, line by line; see crontab(5)."""

import pwd
import re
import shutil
from collections.abc import Iterator
from typing import Final, NamedTuple

from subagents.errors import UsageError
from subagents.extensions.schedules.due_times import FIELDS, check_when

SETTING: Final = re.compile(r"""(\w+)[ \t]*=[ \t]*(?:"(.*)"|'(.*)'|(.*))""")
NOT_OURS: Final = {
    "HOME": "runs have that of your account",
    "LOGNAME": "runs have that of your account",
    "MAILTO": "a failed run is told by the channels in [notifications]",
    "SHELL": "its agent says what runs a task; `command` has bash",
}
"""What cron itself does with a setting, and a schedule does not; CRON_TZ is its zone."""
BEFORE: Final = re.compile(r"cd\s+\S+\s*(?:&&|;)\s*|\w+=\S*\s+")
"""What a command line begins with before it says what it is about."""
RUNNERS: Final = {
    *("chronic", "env", "exec", "ionice", "nice", "nohup", "setsid", "sudo", "time", "timeout"),
    *("bash", "dash", "sh", "zsh", "node", "perl", "php", "python", "python3", "ruby"),
}
"""Programs that start what the line is about."""
BUILTINS: Final = {"cd", "command"}
"""What the shell has by itself, of what lines of the system's crontabs begin with."""


class Entry(NamedTuple):
    """A line that starts something."""

    name: str
    """Its program or script, with a number where another line has that name."""
    when: str
    task: str = ""
    variables: tuple[str, ...] = ()
    """``NAME=VALUE`` of the lines above it."""
    zone: str | None = None
    """``CRON_TZ`` of the lines above it."""
    left_out: tuple[str, ...] = ()
    """Settings above it that hold for cron alone."""


def when_and_task(line: str) -> tuple[str, str]:
    """What one line says; the task is empty where it says only when."""
    count = 1 if line.lstrip().startswith("@") else FIELDS
    *when, task = [*line.split(None, count), ""][: count + 1]
    return (" ".join(when), task.strip().replace("\\%", "%")) if task else (line, "")


def entries_of(text: str) -> Iterator[Entry]:
    """All lines but comments; settings count for those below them.

    Raises:
        UsageError: Names the line and what it has that a schedule has not.
    """
    settings: dict[str, str] = {}
    taken: set[str] = set()
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if not line or line.startswith("#"):
            continue
        if setting := SETTING.fullmatch(line):
            name, *values = setting.groups()
            settings[name] = next((each for each in values if each is not None), "")
            continue
        when, task = when_and_task(line)
        if not task:
            raise UsageError(f"line {number} of the crontab has no command: {line}")
        if re.search(r"(?<!\\)%", line):
            raise UsageError(
                f"line {number} of the crontab: after its % cron has the input of the command",
                hint="write \\% where a % is meant, or feed the command by a pipe",
            )
        if _is_run_by(user := task.split()[0], task):
            raise UsageError(
                f"line {number} of the crontab names {user}, who runs it, as the system's crontab"
                " does; a schedule runs as you",
                hint=f"leave out {user}: {when} {task.removeprefix(user).strip()}",
            )
        try:
            check_when(when, settings.get("CRON_TZ", "UTC"))
        except UsageError as error:
            told = f"line {number} of the crontab: {error}"
            raise UsageError(told, hint=error.hint, details=error.details) from error
        name = _name_of(task, taken)
        taken.add(name)
        left_out = (*filter(NOT_OURS.__contains__, settings),)
        ours = {key: settings[key] for key in settings if key not in {"CRON_TZ", *left_out}}
        brought = (f"{key}={value}" for key, value in ours.items())
        yield Entry(name, when, task, (*brought,), settings.get("CRON_TZ"), left_out)


def _is_run_by(user: str, task: str) -> bool:
    """Whether a user stands before a program, and is none itself, as in /etc/crontab."""
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    program = [*task.split(), ""][1]
    return not shutil.which(user) and bool(program in BUILTINS or shutil.which(program))


def _name_of(task: str, taken: set[str]) -> str:
    told = task
    while before := BEFORE.match(told):
        told = told[before.end() :]
    words = [each.rpartition("/")[2] for each in told.split()] or ["job"]
    # `nice -n 10 backup` and `python3 /opt/job.py` are about what they start.
    about = words[0] if words[0] not in RUNNERS else next(filter(_is_name, words[1:]), words[0])
    found = re.search(r"\w[\w-]*", about)
    plain = found[0].lower() if found else "job"
    numbered = (f"{plain}-{count}" for count in range(2, len(taken) + 3))
    return next(each for each in (plain, *numbered) if each not in taken)


def _is_name(word: str) -> bool:
    return word not in RUNNERS and not re.match(r"-|\w+=|[\d.]+\w?$", word)
