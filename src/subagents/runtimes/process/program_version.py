"""What a program of this machine is, asked before it is started for a run.

One that is too old is refused: what it would say itself helps nobody. Of what newer ones can do the
program's own help tells, so that no version is named for it.
"""

import re
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Final

from subagents import process_group
from subagents.config.programs.versions_seen import parts, versions_seen
from subagents.errors import UsageError

VERSION_BOUND_S: Final = 20.0
"""How long ``--version`` or ``--help`` may take."""


def check_version(found: str, name: str, *, pattern: str, option: str) -> None:
    """Refuse a version that cannot work. Blocking: the program is asked once per state of its file.

    Args:
        found: The program.
        name: In the table of versions seen.
        pattern: Of the whole line that it prints; its first group is the version. A wrapper that
            prints something else is let through.
        option: Where another program can be named.

    Raises:
        UsageError: It is too old; says how to get a newer one.
    """
    row = versions_seen()[name]
    stat = Path(found).stat()
    version = _version_of(found, pattern, stat.st_mtime_ns, stat.st_size)
    if version is not None and row.oldest is not None and parts(version) < parts(row.oldest):
        raise UsageError(
            f"{found} is version {version}; {row.oldest} or newer is needed, for {row.why_oldest}: "
            f"`{row.update}`, or name another one in {option}"
        )


@lru_cache(maxsize=16)
def _version_of(found: str, pattern: str, mtime_ns: int, size: int) -> str | None:
    """The version that the program prints; None = none that can be read.

    ``mtime_ns`` and ``size`` name the state of the file.
    """
    del mtime_ns, size
    match = re.match(pattern, _said(found, "--version").strip())
    return None if match is None else match[1]


def has_option(found: str, option: str) -> bool:
    """Whether the program's help names an option. Blocking: asked once per state of its file.

    A program that gives no help has none.
    """
    stat = Path(found).stat()
    # As a word of its own: `--model` is not in `--model-dir`.
    return option in re.split(r"[^\w-]+", _help_of(found, stat.st_mtime_ns, stat.st_size))


@lru_cache(maxsize=16)
def _help_of(found: str, mtime_ns: int, size: int) -> str:
    del mtime_ns, size
    return _said(found, "--help")


def _said(found: str, option: str) -> str:
    try:
        done = process_group.run([found, option], timeout_s=VERSION_BOUND_S)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")
