"""Where the state of one user lives, and who may read it.

Every process of one home must come to the same socket, whatever its environment: MCP clients
start `subagents mcp` with a handful of variables, and harnesses set TMPDIR per session. So the
socket never depends on TMPDIR, and without a runtime directory of the system it lies in the
state directory.

Only the standard library is imported here, and platformdirs only when it is asked; commands that
need no more than the socket ask `config.socket_path`.
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

from subagents.config.socket_path import SUPERVISOR_SOCKET_NAME, socket_in, system_runtime_dir
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
    """At most `SOCKET_BYTES_MAX` bytes long."""

    @property
    def supervisor_socket(self) -> Path:
        """Where programs that watch over runs connect; beside ``socket``, as well guarded."""
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
        """Of runs that work in a worktree of their own."""
        return self.state_dir / "worktrees"

    @property
    def cluster_dir(self) -> Path:
        """What a home of a cluster has from it: a certificate, whom it believes, the secret."""
        return self.state_dir / "cluster"

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
        """Held by the one daemon of this home."""
        return self.state_dir / "subagents.lock"

    @classmethod
    def resolve(cls, environ: Mapping[str, str], *, platform: str = sys.platform) -> "Paths":
        """Find the directories; touches nothing.

        Args:
            environ: `SUBAGENTS_HOME` (absolute, relative or with `~`; empty = unset) holds
                everything when set. Else `XDG_RUNTIME_DIR` is read from here, and the other
                directories come from platformdirs, which reads the process's own environment.
            platform: As `sys.platform`.

        Raises:
            UsageError: Windows.
            ConfigError: SUBAGENTS_HOME is `~name/…` of a user there is not.
        """
        if platform == "win32":
            raise UsageError(
                "subagents does not run on Windows: workers need POSIX processes and signals",
                hint="run it inside WSL 2",
            )
        home = environ.get("SUBAGENTS_HOME", "")
        if home:
            root = _absolute(home)
            return cls._below(
                config_dir=root / "config",
                state_dir=root / "state",
                cache_dir=root / "cache",
                runtime_dir=root / "run",
            )
        import platformdirs  # noqa: PLC0415  20 ms that a set SUBAGENTS_HOME saves

        state_dir = platformdirs.user_state_path("subagents", appauthor=False)
        runtime_dir = system_runtime_dir(environ, str(state_dir))
        return cls._below(
            config_dir=platformdirs.user_config_path("subagents", appauthor=False),
            state_dir=state_dir,
            cache_dir=platformdirs.user_cache_path("subagents", appauthor=False),
            runtime_dir=state_dir / "run" if runtime_dir is None else Path(runtime_dir),
        )

    @classmethod
    def _below(
        cls, *, config_dir: Path, state_dir: Path, cache_dir: Path, runtime_dir: Path
    ) -> "Paths":
        return cls(
            config_file=config_dir / CONFIG_FILE_NAME,
            state_dir=state_dir,
            cache_dir=cache_dir,
            runtime_dir=runtime_dir,
            socket=Path(socket_in(str(runtime_dir))),
        )

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


def _absolute(home: str) -> Path:
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
        raise ConfigError(
            f"{directory} belongs to another user (uid {found.st_uid}, not {os.getuid()})",
            hint="set SUBAGENTS_HOME to a directory of your own",
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        directory.chmod(PRIVATE)


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
