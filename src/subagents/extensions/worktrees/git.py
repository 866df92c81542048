"""One way to call git: no prompt, no pager, no hook, no translated word, and always an end.

Nothing runs that a repository names itself, whoever may have written that: its hooks, its monitor,
and every command in its own configuration are off. What the user's own configuration names stays.

Blocking; for a thread. Paths come back as git gave them (``-z``): any byte may be in a name.
"""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from subagents import process_group
from subagents.errors import LACKS, RuntimeUnavailable

TIMEOUT_S: Final = 20.0
CHECKOUT_S: Final = 300.0
"""The longest checkout: a large repository on a slow disk."""
OUTPUT_BYTES_MAX: Final = 32 * 1024 * 1024
ERROR_CHARS_MAX: Final = 500
_PASSED: Final = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
_ALWAYS: Final = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "advice.detachedHead=false"),
    *("-c", "gc.auto=0"),
    *("-c", "submodule.recurse=false"),
    *("-c", "protocol.ext.allow=never"),
)
"""A repository's own hooks and monitors are its worker's business, not the daemon's."""
NO_SUBMODULES: Final = "--ignore-submodules=dirty"
"""The option with which ``diff`` and ``status`` start no git in the repositories below, which would
obey their configuration. Not by ``-c``: ``.gitmodules`` would count more."""
COMMANDS: Final = re.compile(
    r"""
    filter\..*\.(clean|smudge|process) | diff\.external | diff\..*\.(command|textconv)
    | merge\..*\.driver | submodule\..*\.update
    | core\.(askpass|editor|gitproxy|pager|sshcommand|alternaterefscommand)
    | sequence\.editor | gpg\.(.*\.)?program | credential\.(.*\.)?helper
    | remote\..*\.(uploadpack|receivepack|vcs)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""Keys whose values git runs, as ``git help config`` (2.39) lists them, but for commands that are
never called here."""
_OWN_SCOPES: Final = frozenset({"local", "worktree"})
_IDENTITY: Final = {
    "GIT_AUTHOR_NAME": "subagents",
    "GIT_AUTHOR_EMAIL": "subagents@localhost",
    "GIT_COMMITTER_NAME": "subagents",
    "GIT_COMMITTER_EMAIL": "subagents@localhost",
}


class GitFailed(RuntimeUnavailable):
    """git refused, or did not answer in time; the message is its own."""

    status: int | None = None
    """The exit code of git; None = it was not started, or was stopped."""
    answer: str = ""
    """What it printed all the same."""


class NoGit(RuntimeUnavailable):
    """There is no git on the daemon's PATH."""


class Checkout(NamedTuple):
    """Where git has what belongs to a worktree, whatever is written in the worktree itself."""

    git_dir: str
    """Its index and its HEAD."""
    common_dir: str
    """The repository's own directory: objects, branches, configuration."""


class Git:
    """git in one directory.

    Args:
        directory: Where it is called.
        environ: The daemon's environment; what of it git needs is passed on.
        index: Another index file than the worktree's own.
        checkout: Whose root the directory is; None = git finds out what it is in.
        is_users: Its commits are the user's, as their configuration says, and not ours.
    """

    def __init__(
        self,
        directory: str | Path,
        environ: Mapping[str, str],
        *,
        index: Path | None = None,
        checkout: Checkout | None = None,
        is_users: bool = False,
    ) -> None:
        self._directory = str(directory)
        self._overriding: dict[str, str] | None = None
        self._env = {name: environ[name] for name in _PASSED if name in environ} | {
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_PAGER": "cat",
            "GIT_LFS_SKIP_SMUDGE": environ.get("GIT_LFS_SKIP_SMUDGE", "0"),
            **({} if is_users else _IDENTITY),
        }
        if index is not None:
            self._env["GIT_INDEX_FILE"] = str(index)
        if checkout is not None:
            self._env["GIT_DIR"] = checkout.git_dir
            self._env["GIT_COMMON_DIR"] = checkout.common_dir
            self._env["GIT_WORK_TREE"] = self._directory

    def __call__(self, *arguments: str, timeout_s: float = TIMEOUT_S) -> str:
        """The answer, undecodable bytes kept as surrogates.

        Raises:
            GitFailed: Another exit status than 0, no answer in time, or far too long a one.
            NoGit: It is not installed.
        """
        name = " ".join(each for each in arguments[:2] if not each.startswith("-"))
        if self._overriding is None:
            self._overriding = _overriding(self._commands(name, timeout_s))
        return self._run(arguments, name, timeout_s, self._env | self._overriding)

    def commands(self) -> tuple[str, ...]:
        """The keys of the repository's own configuration that name commands; none of them is run.

        Raises:
            GitFailed: As a call does.
            NoGit: As a call does.
        """
        return self._commands("config", TIMEOUT_S)

    def _commands(self, name: str, timeout_s: float) -> tuple[str, ...]:
        listing = ("config", "--list", "--show-scope", "--name-only", "-z")
        parts = fields(self._run(listing, name, timeout_s, self._env))
        rows = zip(parts[::2], parts[1::2], strict=False)
        found = {key for scope, key in rows if scope in _OWN_SCOPES and COMMANDS.fullmatch(key)}
        return tuple(sorted(found))

    def _run(
        self, arguments: Sequence[str], name: str, timeout_s: float, env: Mapping[str, str]
    ) -> str:
        argv = ("git", *_ALWAYS, *arguments)
        try:
            # The whole group ends with it: git starts filters.
            done = process_group.run(argv, timeout_s=timeout_s, cwd=self._directory, env=env)
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
            failed = GitFailed(f"git {name}: {message or f'exit status {done.returncode}'}")
            failed.status, failed.answer = done.returncode, os.fsdecode(done.stdout)
            # It has an error of the system in words, which those of C are.
            raise failed from next(
                (OSError(n, "") for n in LACKS if os.strerror(n) in message), None
            )
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


def _overriding(keys: Sequence[str]) -> dict[str, str]:
    """Variables that empty these keys; a ``-c`` could not name one with a ``=`` in it."""
    values = [(key, "") for key in keys]
    for key in keys:
        section, _, rest = key.partition(".")
        if section.lower() == "filter":
            # Without its commands a required one would refuse every file.
            values.append((f"{section}.{rest.rpartition('.')[0]}.required", "false"))
    named = {"GIT_CONFIG_COUNT": str(len(values))}
    for number, (key, value) in enumerate(values):
        named |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return named
