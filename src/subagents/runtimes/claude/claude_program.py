"""Where Claude Code is on this machine, and whether it is new enough."""

import os
import re
import shutil
import subprocess
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from subagents.errors import UsageError
from subagents.runtimes.claude.claude_options import NAME, Options
from subagents.runtimes.process.environment import program

PROGRAM: Final = "claude"
OLDEST: Final = (2, 1, 248)
"""The first version that takes a message word for word (``client_composed``): in an older one a
task could pull in files by naming them, and run commands of the program's own."""
LOOK_S: Final = 20.0

_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)[^\n]*\(Claude Code\)")


def bundled() -> Path | None:
    """Claude Code as it came with ``claude-agent-sdk``, which is not imported; None = not here."""
    try:
        spec = find_spec("claude_agent_sdk")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    found = Path(spec.origin).parent / "_bundled" / PROGRAM
    return found if os.access(found, os.X_OK) else None


def located(options: Options, *, cwd: str, path: str) -> str:
    """The program's path. Blocking.

    Raises:
        UsageError: It is nowhere, or too old; says how to get it.
    """
    found = _found(options, cwd=cwd, path=path)
    stat = Path(found).stat()
    version = version_of(found, stat.st_mtime_ns, stat.st_size)
    if version is not None and version < OLDEST:
        shown, oldest = (".".join(map(str, each)) for each in (version, OLDEST))
        raise UsageError(
            f"{found} is Claude Code {shown}; the runtime {NAME} needs {oldest} or newer: "
            "`claude update`, or name another one in runtime_options.program"
        )
    return found


@lru_cache(maxsize=16)
def version_of(found: str, mtime_ns: int, size: int) -> tuple[int, ...] | None:
    """What the program says of itself; None = nothing that can be read (a wrapper, perhaps).

    Asked once for each state of the file: ``mtime_ns`` and ``size`` name it.
    """
    del mtime_ns, size
    try:
        answer = subprocess.run(
            [found, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LOOK_S,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.match(answer.strip())
    return None if match is None else tuple(map(int, match.groups()))


def _found(options: Options, *, cwd: str, path: str) -> str:
    if options.program is not None:
        name = str(Path(options.program).expanduser())
        return program(name, cwd=cwd, path=path, key="runtime_options.program")
    if shutil.which(PROGRAM, path=path) is not None:
        return program(PROGRAM, cwd=cwd, path=path, key="runtime_options.program")
    found = bundled()
    if found is None:
        raise UsageError(
            f"Claude Code is not installed: no `{PROGRAM}` on the worker's PATH ({path}), and no "
            "package claude-agent-sdk beside subagents; install one of them, or name the program "
            "in runtime_options.program"
        )
    return str(found)
