"""The environment of workers: an allow list, what the agent's section sets, and what we add."""

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from subagents.errors import UsageError
from subagents.ports import Launch

PASSED: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM",
    "COLORTERM", "TMPDIR", "XDG_*", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
"""Variables that are always let through: who and where the user is, how to show and verify things.

Not among them, because they give access or may hold a password: SSH_AUTH_SOCK, the proxy
variables, and every API key. ``pass_env`` names what an agent needs of those; a runtime adds what
its program cannot log in without.
"""

OURS: Final = "SUBAGENTS_"
PATHS_MAX: Final = 256
"""How many PATHs are remembered with what is on them: callers may bring their own."""
TASK_VARIABLE_BYTES_MAX: Final = 100 * 1024
RETRY_REASON_BYTES_MAX: Final = 4 * 1024
ARGUMENT_BYTES_MAX: Final = 128 * 1024 - 1
"""Linux takes no longer single argument (MAX_ARG_STRLEN, with its NUL)."""


def passed_variables(daemon: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The daemon's variables with these names, or prefixes ``NAME_*``; ours never."""
    is_passed = _pattern(tuple(names)).fullmatch
    return {
        name: value
        for name, value in daemon.items()
        if is_passed(name) and not name.startswith(OURS)
    }


def attempt_variables(launch: Launch, directory: Path) -> dict[str, str]:
    """The variables by which a worker knows its attempt; see docs/howto/workers.md."""
    found = {
        "PWD": launch.cwd,
        "SUBAGENTS_RUN_ID": launch.run_id,
        "SUBAGENTS_ATTEMPT_NUMBER": str(launch.number),
        "SUBAGENTS_SESSION_KEY": launch.session_key,
        "SUBAGENTS_AGENT_ID": launch.agent_id,
        "SUBAGENTS_TASK_FILE": str(directory / "task"),
        "SUBAGENTS_PROMPT_FILE": str(directory / "prompt"),
    }
    if len(as_bytes(launch.task)) <= TASK_VARIABLE_BYTES_MAX and "\0" not in launch.task:
        found["SUBAGENTS_TASK"] = launch.task
    if launch.retry_reason:
        reason = as_bytes(launch.retry_reason.replace("\0", ""))[:RETRY_REASON_BYTES_MAX]
        found["SUBAGENTS_RETRY_REASON"] = reason.decode("utf-8", "ignore")
    return found


def program(name: str, *, cwd: str, path: str, key: str) -> str:
    """The absolute path of a program: a name on ``path``, or a path relative to ``cwd``.

    Raises:
        UsageError: There is none, or it cannot be executed; ``key`` is the setting that names it.
    """
    if "/" in name:
        found = Path(cwd, name)
        if not found.is_file():
            raise UsageError(f"`{key}`: there is no program {found}")
        if not os.access(found, os.X_OK):
            raise UsageError(f"`{key}`: {found} is not executable; chmod +x it")
        return str(found)
    on_path = shutil.which(name, path=path)
    if on_path is None:
        raise UsageError(
            f"`{key}`: no program {name!r} on the worker's PATH ({path}); "
            "install it, give its full path, or set PATH in `env`"
        )
    return str(Path(cwd, on_path))


def is_on_path(name: str, path: str) -> bool:
    """Whether a program is found on a PATH, before its directory is put at the end of that.

    Remembered, since a look takes a call for each directory. One that is gone is noticed; one that
    came later is not, and need not be: it is found before what stands at the end.
    """
    found = _on_path(name, path)
    if found is None or os.access(found, os.X_OK):
        return found is not None
    _on_path.cache_clear()
    return _on_path(name, path) is not None


@lru_cache(maxsize=PATHS_MAX)
def _on_path(name: str, path: str) -> str | None:
    return shutil.which(name, path=path)


def check_environment(env: Mapping[str, str]) -> None:
    """Refuse variables that no process can be given.

    Raises:
        UsageError: Names the variable.
    """
    for name, value in env.items():
        size = len(as_bytes(name)) + 1 + len(as_bytes(value))
        if "\0" in value or size > ARGUMENT_BYTES_MAX:
            raise UsageError(f"environment variable {name} is too long or holds a NUL character")


def as_bytes(text: str) -> bytes:
    """For the system: paths and variables may hold undecodable bytes, kept as surrogates."""
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


@lru_cache(maxsize=256)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Of the names that are let through, besides ``PASSED``."""
    allowed = (*PASSED, *names)
    texts = [re.escape(each.removesuffix("*")) + ".*" * each.endswith("*") for each in allowed]
    return re.compile("|".join(texts), re.DOTALL)
