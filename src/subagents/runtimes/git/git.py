"""One way to call git: no prompt, no pager, no hook, no translated word, and always an end.

Blocking; for a thread. Paths come back as git gave them (``-z``): any byte may be in a name.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from subagents import process_group
from subagents.errors import RuntimeUnavailable

TIMEOUT_S: Final = 20.0
CHECKOUT_S: Final = 300.0
"""Of a large repository, on a slow disk."""
OUTPUT_BYTES_MAX: Final = 32 * 1024 * 1024
ERROR_CHARS_MAX: Final = 500
_PASSED: Final = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
_ALWAYS: Final = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "advice.detachedHead=false"),
    *("-c", "gc.auto=0"),
)
"""A repository's own hooks and monitors are its worker's business, not the daemon's."""
_IDENTITY: Final = {
    "GIT_AUTHOR_NAME": "subagents",
    "GIT_AUTHOR_EMAIL": "subagents@localhost",
    "GIT_COMMITTER_NAME": "subagents",
    "GIT_COMMITTER_EMAIL": "subagents@localhost",
}


class GitFailed(RuntimeUnavailable):
    """git refused, or did not answer in time; the message is its own."""


class NoGit(RuntimeUnavailable):
    """There is no git on the daemon's PATH."""


class Git:
    """git in one directory.

    Args:
        directory: Where it is called.
        environ: Of the daemon; what of it git needs is passed on.
        index: Another index file than the worktree's own.
    """

    def __init__(
        self, directory: str | Path, environ: Mapping[str, str], *, index: Path | None = None
    ) -> None:
        self._directory = str(directory)
        self._env = {name: environ[name] for name in _PASSED if name in environ} | {
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_PAGER": "cat",
            "GIT_LFS_SKIP_SMUDGE": environ.get("GIT_LFS_SKIP_SMUDGE", "0"),
            **_IDENTITY,
        }
        if index is not None:
            self._env["GIT_INDEX_FILE"] = str(index)

    def __call__(self, *arguments: str, timeout_s: float = TIMEOUT_S) -> str:
        """The answer, undecodable bytes kept as surrogates.

        Raises:
            GitFailed: Another exit status than 0, no answer in time, or far too long a one.
            NoGit: It is not installed.
        """
        argv = ("git", *_ALWAYS, *arguments)
        name = _name(arguments)
        try:
            # The whole group ends with it: git starts filters.
            done = process_group.run(argv, timeout_s=timeout_s, cwd=self._directory, env=self._env)
        except subprocess.TimeoutExpired as error:
            raise GitFailed(f"git {name} did not end within {timeout_s:.0f} s") from error
        except FileNotFoundError as error:
            if error.filename == self._directory or not Path(self._directory).is_dir():
                raise GitFailed(f"directory {self._directory} is gone") from error
            raise NoGit("there is no git on the PATH of the daemon") from error
        except OSError as error:
            raise GitFailed(f"git cannot be run: {error.strerror}") from error
        if done.returncode != 0:
            message = done.stderr.decode("utf-8", "replace").strip()[-ERROR_CHARS_MAX:]
            raise GitFailed(f"git {name}: {message or f'exit status {done.returncode}'}")
        if len(done.stdout) > OUTPUT_BYTES_MAX:
            raise GitFailed(f"git {name} answered more than {OUTPUT_BYTES_MAX} bytes")
        return os.fsdecode(done.stdout)

    def line(self, *arguments: str, timeout_s: float = TIMEOUT_S) -> str | None:
        """The answer on one line; None = git refused."""
        try:
            return self(*arguments, timeout_s=timeout_s).rstrip("\n")
        except GitFailed:
            return None


def fields(text: str) -> list[str]:
    """The parts of a ``-z`` answer."""
    return text.split("\0")[:-1] if text else []


def _name(arguments: Sequence[str]) -> str:
    return " ".join(each for each in arguments[:2] if not each.startswith("-"))
