"""Where the state of one user lives, and who may read it.

Every process of one home must come to the same socket, whatever its environment: see
`config.socket_path`, which commands ask that need no more than it.

Only the standard library is imported here, and platformdirs only where it is asked: on systems
whose directories are not those of the XDG specification.
"""

import hashlib
import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from subagents.config.socket_path import SUPERVISOR_SOCKET_NAME, socket_in, xdg_base
from subagents.errors import ConfigError, UsageError

CONFIG_FILE_NAME: Final = "subagents.toml"
PRIVATE: Final = 0o700
SLUG_CHARS_MAX: Final = 40
_NO_SLUG: Final = re.compile(r"[^a-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """The files and directories of one home, all absolute; nothing exists until `ensure`."""

    config_file: Path
    """The user's `subagents.toml`; it need not exist."""
    state_dir: Path
    cache_dir: Path
    runtime_dir: Path
    socket: Path
    """The daemon's socket, at most `SOCKET_BYTES_MAX` bytes long."""

    @property
    def supervisor_socket(self) -> Path:
        """Where programs that watch over runs connect; next to ``socket``, as well guarded."""
        return self.socket.with_name(SUPERVISOR_SOCKET_NAME)

    @property
    def database(self) -> Path:
        return self.state_dir / "subagents.db"

    @property
    def attempts_dir(self) -> Path:
        return self.state_dir / "attempts"

    @property
    def progress_dir(self) -> Path:
        """The updates of each run, as long as the run is kept."""
        return self.state_dir / "progress"

    @property
    def results_dir(self) -> Path:
        """Results that are too long for the database, as long as their runs are kept."""
        return self.state_dir / "results"

    @property
    def environments_dir(self) -> Path:
        """The variables that callers brought for their runs, as long as these are kept."""
        return self.state_dir / "environments"

    @property
    def transcripts_dir(self) -> Path:
        """The transcript of each run, as long as the run is kept."""
        return self.state_dir / "transcripts"

    @property
    def belongings(self) -> tuple[Path, ...]:
        """Directories with an entry for each run that the database holds."""
        return self.attempts_dir, self.progress_dir, self.results_dir, self.transcripts_dir

    @property
    def worktrees_dir(self) -> Path:
        """The worktrees of runs that have their own."""
        return self.state_dir / "worktrees"

    @property
    def log_file(self) -> Path:
        return self.state_dir / "daemon.log"

    @property
    def trusted_file(self) -> Path:
        """Path → SHA-256 of every project file that the user trusts as it was."""
        return self.state_dir / "trusted-projects.json"

    @property
    def last_good_config_file(self) -> Path:
        """What the user's file said when it was last right."""
        return self.state_dir / "last-good-config.toml"

    @property
    def lock_file(self) -> Path:
        """Held by the one daemon of this home, which says in it who it is: `daemon_record`."""
        return self.state_dir / "subagents.lock"

    @classmethod
    def resolve(cls, environ: Mapping[str, str], *, platform: str = sys.platform) -> "Paths":
        """Find the directories; touches nothing.

        Args:
            environ: `SUBAGENTS_HOME` (absolute, relative or with `~`; empty = unset) holds
                everything when set. Else `XDG_STATE_HOME`, `XDG_CONFIG_HOME` and `XDG_CACHE_HOME`
                count where they are absolute, and `HOME`, or the user's entry in the list of users
                where that is empty or relative. Systems other than Linux have directories of their
                own, for which the process's own environment is asked.
            platform: As `sys.platform`.

        Raises:
            UsageError: Windows.
            ConfigError: SUBAGENTS_HOME is `~name/…` of a user there is not, or this user has no
                home directory.
        """
        if platform == "win32":
            raise UsageError(
                "subagents does not run on Windows: workers need POSIX processes and signals",
                hint="run it inside WSL 2",
            )
        if home := environ.get("SUBAGENTS_HOME", ""):
            root = _absolute(home, environ)
            config, state, cache = root / "config", root / "state", root / "cache"
            runtime = root / "run"
        else:
            is_linux = platform == "linux"
            config, state, cache = _xdg_directories(environ) if is_linux else _system_directories()
            # Not where the system has such: those vanish with the last login (`socket_path`).
            runtime = state / "run"
        return cls(
            config_file=config / CONFIG_FILE_NAME,
            state_dir=state,
            cache_dir=cache,
            runtime_dir=runtime,
            socket=Path(socket_in(str(runtime))),
        )

    def require_ours(self) -> None:
        """Refuse the home of somebody else, as `sudo` and `su` may have it; creates nothing.

        Raises:
            ConfigError: Its state directory belongs to another user, or may not be looked at.
        """
        try:
            user = self.state_dir.stat().st_uid
        except FileNotFoundError:
            return
        except OSError as error:
            raise ConfigError(
                f"cannot look into {self.state_dir}: {error.strerror}",
                hint="set SUBAGENTS_HOME to a directory you can write to",
            ) from error
        if user != os.getuid():
            raise _of_another(self.state_dir, user)

    def ensure(self) -> None:
        """Create the state, attempts, cache, runtime and socket directories, mode 0700. Idempotent.

        A directory of ours that others may enter is closed to them.

        Raises:
            ConfigError: A directory cannot be created, is no directory, or belongs to another
                user. Those before it may have been created.
        """
        for directory in (self.state_dir, self.attempts_dir, self.cache_dir, self.runtime_dir):
            _make_private(directory)
        if self.socket.parent != self.runtime_dir:
            _make_private(self.socket.parent, in_shared_place=True)


def _xdg_directories(environ: Mapping[str, str]) -> tuple[Path, Path, Path]:
    """The directories of configuration, state and cache."""
    bases = (
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_STATE_HOME", ".local/state"),
        ("XDG_CACHE_HOME", ".cache"),
    )
    config, state, cache = (
        Path(xdg_base(environ, name) or f"{_user_directory(environ)}/{usual}", "subagents")
        for name, usual in bases
    )
    return config, state, cache


def _user_directory(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    if home.startswith("/"):
        return home
    import pwd  # noqa: PLC0415  nearly everybody has a HOME

    try:
        found = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        found = ""
    if not found.startswith("/"):
        raise ConfigError(
            f"HOME names no directory, and the system knows none of user {os.getuid()}",
            hint="set HOME, or SUBAGENTS_HOME, to a directory you can write to",
        )
    return found


def _system_directories() -> tuple[Path, Path, Path]:
    """The same on systems with other conventions than the XDG specification."""
    import platformdirs  # noqa: PLC0415  20 ms

    return (
        platformdirs.user_config_path("subagents", appauthor=False),
        platformdirs.user_state_path("subagents", appauthor=False),
        platformdirs.user_cache_path("subagents", appauthor=False),
    )


def _absolute(home: str, environ: Mapping[str, str]) -> Path:
    if home == "~" or home.startswith("~/"):
        home = f"{_user_directory(environ)}{home[1:]}"
    try:
        return Path(home).expanduser().absolute()
    except RuntimeError as error:
        raise ConfigError(
            f"SUBAGENTS_HOME={home}: no such user to expand ~ for",
            hint="set SUBAGENTS_HOME to an absolute path",
        ) from error


def _make_private(directory: Path, *, in_shared_place: bool = False) -> None:
    try:
        missing = [parent for parent in directory.parents if not parent.exists()]
        for each in (*reversed(missing), directory):
            each.mkdir(mode=PRIVATE, exist_ok=True)
        # In /tmp anybody may have put a link or a directory in the way first.
        found = directory.lstat() if in_shared_place else directory.stat()
    except FileExistsError as error:
        raise ConfigError(
            f"{directory} is in the way: it is not a directory",
            hint="move it, or set SUBAGENTS_HOME to another directory",
        ) from error
    except OSError as error:
        raise ConfigError(
            f"cannot create {directory}: {error.strerror}",
            hint="set SUBAGENTS_HOME to a directory you can write to",
        ) from error
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigError(
            f"{directory} is in the way: it is a link, not a directory",
            hint="remove it, or set SUBAGENTS_HOME to a shorter path",
        )
    if found.st_uid != os.getuid():
        raise _of_another(directory, found.st_uid)
    if stat.S_IMODE(found.st_mode) & 0o077:
        directory.chmod(PRIVATE)


def _of_another(directory: Path, user: int) -> ConfigError:
    return ConfigError(
        f"{directory} belongs to another user (uid {user}, not {os.getuid()})",
        hint="run this as that user, or set SUBAGENTS_HOME to a directory of your own",
    )


def session_name(project_dir: Path | str) -> str:
    """The session of whoever calls from a project directory, the same after every restart.

    Args:
        project_dir: A relative one is meant from the working directory. It need not exist.

    Returns:
        ``<slug of its name>-<8 hex digits of its real path>``: a restarted client finds its inbox,
        and two checkouts of one name are two sessions.
    """
    real = os.path.realpath(project_dir)
    slug = _NO_SLUG.sub("-", Path(real).name.lower()).strip("-")[:SLUG_CHARS_MAX] or "project"
    return f"{slug}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:8]}"
