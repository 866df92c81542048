"""Which version of an agent program is installed: what it says of itself."""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Final

from subagents.config.programs.program_catalog import Installed
from subagents.process_group import run
from subagents.text import one_line

VERSION_S: Final = 15.0
"""OpenClaw takes six seconds on two slow cores."""
VERSION_CHARS_MAX: Final = 80
NUMBER: Final = re.compile(r"\d+(?:\.\d+)+")


def version_of(found: Installed, environ: Mapping[str, str]) -> str | None:
    """What the program says of its version, on one line; None = it does not say. Blocking.

    Of a program of an npm package the package says it: what runs its script has another version.
    """
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


_QUIET: Final = {
    "GEMINI_CLI_NO_RELAUNCH": "true",
    "DISABLE_AUTOUPDATER": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "NO_COLOR": "1",
}


def output_of(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> str:
    """What a program prints within ``VERSION_S``; empty = nothing, or it could not be started."""
    try:
        # Its children, too: some programs start themselves again.
        done = run(argv, timeout_s=VERSION_S, cwd=cwd, env=env, ends_children=True)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")
