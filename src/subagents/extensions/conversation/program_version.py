"""Which version of an agent program is installed: what the program says of itself.

One that is too old is refused before it is started for a run, since its own message would help
little. What newer ones can do is in their help, so that no version has to be named for it.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from subagents import process_group
from subagents.config.programs.program_catalog import Installed
from subagents.errors import UsageError
from subagents.extensions.conversation.versions_seen import parts, versions_seen
from subagents.text import one_line

VERSION_S: Final = 20.0
"""How long ``--version`` or ``--help`` may take: OpenClaw takes six seconds on two slow cores."""
VERSION_CHARS_MAX: Final = 80
NUMBER: Final = re.compile(r"\d+(?:\.\d+)+")
_QUIET: Final = {
    "GEMINI_CLI_NO_RELAUNCH": "true",
    "DISABLE_AUTOUPDATER": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "NO_COLOR": "1",
}


def check_version(found: str, name: str, *, pattern: str, option: str) -> None:
    """Refuse a version that cannot work. Blocking: the program is asked once per state of its file.

    Args:
        found: The program.
        name: Its name in the table of versions seen.
        pattern: What the line that it prints has to match; its first group is the version. A
            wrapper that prints something else is let through.
        option: Where another program can be named.

    Raises:
        UsageError: It is too old; says how to get a newer one.
    """
    row = versions_seen()[name]
    version = re.match(pattern, _printed(found, "--version").strip())
    if version is not None and row.oldest is not None and parts(version[1]) < parts(row.oldest):
        raise UsageError(
            f"{found} is version {version[1]}; {row.oldest} or newer is needed, for "
            f"{row.why_oldest}: `{row.update}`, or name another one in {option}"
        )


def has_option(found: str, option: str) -> bool:
    """Whether the program's help names an option. Blocking: asked once per state of its file.

    A program that gives no help has none.
    """
    # As a word of its own: `--model` is not in `--model-dir`.
    return option in re.split(r"[^\w-]+", _printed(found, "--help"))


def _printed(found: str, option: str) -> str:
    stat = Path(found).stat()
    printed = _printed_by(found, option, stat.st_mtime_ns, stat.st_size)
    if not printed:
        _printed_by.cache_clear()  # it may be the machine that was too busy
    return printed


@lru_cache(maxsize=32)
def _printed_by(found: str, option: str, mtime_ns: int, size: int) -> str:
    # They name the state of the file: another version may be installed while the daemon runs.
    del mtime_ns, size
    return output_of((found, option))


def version_of(found: Installed, environ: Mapping[str, str]) -> str | None:
    """What the program says of its version, on one line; None = it does not say. Blocking."""
    # What runs the script of an npm package, node, has a version of its own.
    if found.package_version is not None:
        return found.package_version
    if found.place is None or not os.path.isabs(found.place):  # noqa: PTH117 - text of a program
        return None
    # A directory of its own: programs read, and make, files where they are started.
    with tempfile.TemporaryDirectory(prefix="subagents-version-") as empty:
        env = {n: v for n, v in environ.items() if not n.startswith("SUBAGENTS_")}
        printed = output_of((found.place, "--version"), env | _QUIET, empty)
    lines = [line.strip() for line in printed.splitlines() if NUMBER.search(line)]
    return one_line(lines[0], VERSION_CHARS_MAX) if lines else None


def output_of(
    argv: Sequence[str], env: Mapping[str, str] | None = None, cwd: str | None = None
) -> str:
    """What a program prints within ``VERSION_S``; empty = nothing, or it could not be started."""
    try:
        # Its children, too: some programs start themselves again.
        done = process_group.run(argv, timeout_s=VERSION_S, cwd=cwd, env=env, ends_children=True)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")
