"""Which files of configuration there are, and which of them count.

A file of configuration names programs that run as us. So it counts only where no other user can
have written it: it and its directories belong to us or to root, and no other user may write them
(as git's ``safe.directory`` and OpenSSH's ``StrictModes``). A file of somebody else's that the user
trusts with exactly its bytes counts, too; who decides that is ``layers``.
"""

import os
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from subagents.config.paths import CONFIG_FILE_NAME
from subagents.errors import ConfigError

OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
ROOT_UID: Final = 0


class Found(NamedTuple):
    """A file of configuration, and why it does not count."""

    file: Path
    problem: str | None = None
    """None = it counts."""
    mend: str = ""
    """The command that makes it count, for whoever owns what is wrong."""

    @property
    def ignored(self) -> str:
        """One line for people: the file, what is wrong, and both ways out."""
        return (
            f"{self.file} is ignored: {self.problem}. To use it, read it first, then: {self.mend};"
            f" or, exactly as it is now: subagents config --trust {self.file}"
        )


def find_files(
    cwd: Path | None, user_file: Path, home: str | None
) -> tuple[Found | None, tuple[Found, ...]]:
    """The user file, None when it is not there, and the project files.

    Args:
        cwd: The search for a project file goes from here up to the first directory that is the
            root of a repository (has a ``.git``) or ``home``; without either, to the top.
        user_file: Need not exist.
        home: The user's home directory; None = unknown.

    Returns:
        Of project files the nearest that counts comes last; those before it are nearer and do not.

    Raises:
        ConfigError: A directory on the way cannot be looked into.
    """
    user: Found | None = None
    if _exists(str(user_file)):
        directory = os.path.dirname(user_file)  # noqa: PTH120
        is_below = home is not None and directory.startswith(home.rstrip("/") + "/")
        user = _judged(str(user_file), home if home is not None and is_below else directory)
    projects = () if cwd is None else tuple(_project_files(cwd, home))
    if user is not None and projects and user.file.resolve() == projects[-1].file.resolve():
        projects = projects[:-1]
    return user, projects


def _project_files(cwd: Path, home: str | None) -> Iterator[Found]:
    # Text instead of Path: this walk is most of the cost of a cached answer.
    directory = os.path.abspath(cwd)  # noqa: PTH100
    files: list[str] = []
    while True:
        file = os.path.join(directory, CONFIG_FILE_NAME)  # noqa: PTH118
        if _exists(file):
            files.append(file)
        parent = os.path.dirname(directory)  # noqa: PTH120
        if directory in {parent, home} or os.path.lexists(f"{directory}/.git"):
            break
        directory = parent
    for file in files:
        found = _judged(file, directory)
        yield found
        if found.problem is None:
            return


def _exists(file: str) -> bool:
    """Whether anything has that name, a dangling link too: reading it then says what is wrong."""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise ConfigError(
            f"cannot look for {file}: {error.strerror}",
            hint="make the directory accessible, or start from another one",
        ) from error
    return True


def identity(file: str) -> object:
    """A value that is another one once the content of a file has changed."""
    try:
        now = os.stat(file)  # noqa: PTH116
    except OSError:
        # Whatever is wrong, reading it says it.
        return file, None
    return file, now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino


# -- who could have written it --------------------------------------------------------------------


def _judged(file: str, top: str) -> Found:
    problem, mend = _problem(file, top) or (None, "")
    return Found(Path(file), problem, mend)


def _problem(file: str, top: str) -> tuple[str, str] | None:
    """What is wrong with a file, or with a directory from its own up to ``top``."""
    try:
        link = os.lstat(file)
        if stat.S_ISLNK(link.st_mode):
            if not _is_ours(link):
                return f"the link belongs to uid {link.st_uid}", f"chown -h {os.getuid()} {file}"
            target = os.path.realpath(file)
            found = _wrong("it", target, os.stat(target))  # noqa: PTH116
            found = found or _problem_above(target, os.path.dirname(target))  # noqa: PTH120
        else:
            found = _wrong("it", file, link)
        return found or _problem_above(file, top)
    except OSError:
        return None  # a dangling link, or a file that went away: reading it says so


def _problem_above(file: str, top: str) -> tuple[str, str] | None:
    directory = file
    while directory not in (top, "/"):
        directory = os.path.dirname(directory)  # noqa: PTH120
        found = os.stat(directory)  # noqa: PTH116
        # In a sticky directory, such as /tmp, only its owner can rename or remove a file.
        is_sticky = bool(found.st_mode & stat.S_ISVTX) and _is_ours(found)
        wrong = None if is_sticky else _wrong(f"its directory {directory}", directory, found)
        if wrong is not None:
            return wrong
    return None


def _wrong(what: str, path: str, found: os.stat_result) -> tuple[str, str] | None:
    if not _is_ours(found):
        problem = f"{what} belongs to uid {found.st_uid}, not to you (uid {os.getuid()})"
        return problem, f"chown {os.getuid()} {path}"
    writers = found.st_mode & OTHERS_WRITE
    if writers & stat.S_IWGRP and _is_private_group(found.st_gid):
        writers &= ~stat.S_IWGRP
    if writers:
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        return f"others can write {what} (mode {mode})", f"chmod go-w {path}"
    return None


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid in (os.getuid(), ROOT_UID)


@lru_cache(maxsize=64)
def _is_private_group(gid: int) -> bool:
    """Whether the group is ours alone; with such groups many systems have the umask 002."""
    import grp  # noqa: PLC0415  the account databases are seldom needed
    import pwd  # noqa: PLC0415

    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    is_own = gid == user.pw_gid and group.gr_name == user.pw_name
    return is_own and set(group.gr_mem) <= {user.pw_name}
