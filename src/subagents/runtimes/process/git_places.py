"""What git obeys in a directory where a worker may write: held in place while it works.

Whoever calls git in that directory later, a person or a prompt, runs what its configuration
names: hooks, a monitor of the file system, filters, another configuration. In a sandbox all of it
is mounted read-only, and what leads to it is a mount point of its own, which cannot be renamed,
removed or replaced. That needs something to mount on. So what is missing is made for as long as the
worker is there, with a content that means the same as its absence, and removed behind the last
worker in that directory (``PlaceHolders``).

Not held, since no mount can: a repository that the worker makes in a directory *below*, and what
the project itself has its tools run (docs/permissions.md, "What a later program obeys").
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from subagents.errors import UsageError

LINK_BYTES_MAX: Final = 8192
HELD: Final = "--ro-bind"
WRITABLE: Final = "--bind"
_PLACES: Final = "places.json"
_NOT_OURS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_LOCK: Final = threading.Lock()
"""The lock of the whole process: several runtimes have attempts in one directory."""
_OWN_WORK_TREE: Final = re.compile(rb"^\s*worktree\s*=", re.IGNORECASE | re.MULTILINE)

_REPOSITORY: Final[Mapping[str, str | None]] = {
    "config": "",
    "config.worktree": "",
    "commondir": ".\n",
    "hooks": None,
    "worktrees": None,
}
"""Files of a repository, and what stands for one that is not there; None = an empty directory."""
_NO_REPOSITORY: Final = (".git", "HEAD")
"""What keeps a directory from being a repository. Without the second it would itself be one, like a
bare repository. Git looks on above an empty directory ``.git``; it would refuse an empty file."""


class GitPlaces(NamedTuple):
    """Of one directory; absolute paths."""

    mounts: Mapping[str, str]
    """The option of bubblewrap for each, which binds it on itself; the outer ones come first."""
    missing: Mapping[str, str | None]
    """Which of them have to be made before: the text of a file, None = an empty directory."""


def git_places(work: str) -> GitPlaces:
    """What to hold where a worker may write in ``work`` and below. Blocking.

    Raises:
        UsageError: Something of it is a symbolic link, which nothing holds in place.
    """
    git = f"{work}/.git"
    _refuse_link(git)
    kind = _kind(git)
    if kind == stat.S_IFREG:  # of a worktree or a submodule
        return _led(git, work)
    if kind == stat.S_IFDIR and _is_repository(git):
        return _repository({git: WRITABLE}, git)
    if _is_repository(work):
        return _repository({}, work)
    places = [f"{work}/{name}" for name in _NO_REPOSITORY]
    for each in places:
        _refuse_link(each)
    missing = {each: None for each in places if _kind(each) is None}
    return GitPlaces(dict.fromkeys(places, HELD), missing)


class PlaceHolders:
    """What was made in order to be held, and for which attempts.

    Args:
        directory: Holds one directory for each that workers are in; made with the first of them.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def hold(self, work: str, attempt: str) -> Mapping[str, str]:
        """Make what is missing there; it stays until ``release``. Idempotent. Blocking.

        Returns:
            As ``GitPlaces.mounts``, of what is there.

        Raises:
            UsageError: As ``git_places``.
            OSError: It cannot be made.
        """
        with _LOCK:
            found = git_places(work)
            digest = hashlib.sha256(os.fsencode(os.path.realpath(work))).hexdigest()[:32]
            known = self._directory / digest
            record = known / _PLACES
            if found.missing or record.exists():
                known.mkdir(mode=0o700, parents=True, exist_ok=True)
                (known / attempt).touch()
                # Before they are: what is not on record would stay for ever.
                draft = known / f".{_PLACES}"
                draft.write_text(json.dumps({**_read(record), **found.missing}))
                draft.replace(record)
            made = {place: _make(place, text) for place, text in found.missing.items()}
            # What we may not make, a worker of ours may not either.
            return {place: how for place, how in found.mounts.items() if made.get(place, True)}

    @property
    def is_used(self) -> bool:
        """Whether there ever was anything to hold."""
        return os.path.exists(self._directory)  # noqa: PTH110  # hot: once per attempt

    def release(self, attempt: str) -> None:
        """Remove what was made where this was the last attempt. Idempotent. Blocking."""
        with _LOCK, contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self._directory):  # noqa: PTH208  # hot: once per attempt
                known = self._directory / name
                with contextlib.suppress(FileNotFoundError):
                    (known / attempt).unlink()
                    if {each.name for each in known.iterdir()} <= {_PLACES, f".{_PLACES}"}:
                        self._remove(known)

    def _remove(self, known: Path) -> None:
        for place, text in reversed(_read(known / _PLACES).items()):
            with contextlib.suppress(OSError):  # somebody has put something into it: it is theirs
                if text is None:
                    Path(place).rmdir()
                elif Path(place).read_text() == text:
                    Path(place).unlink()
        for each in known.iterdir():
            each.unlink()
        known.rmdir()


def _repository(mounts: dict[str, str], repository: str) -> GitPlaces:
    config = f"{repository}/config"
    _refuse_link(config)
    with contextlib.suppress(OSError):
        # With a file `commondir` git would not read that key.
        if mounts and _OWN_WORK_TREE.search(Path(config).read_bytes()):
            return GitPlaces({**mounts, repository: HELD}, {})
    missing: dict[str, str | None] = {}
    for name, text in _REPOSITORY.items():
        place = f"{repository}/{name}"
        _refuse_link(place)
        mounts[place] = HELD
        if _kind(place) is None:
            missing[place] = text
    return GitPlaces(mounts, missing)


def _led(link: str, work: str) -> GitPlaces:
    """Of a file, and of the repository that it leads to, when the worker could write in it."""
    # gitrepository-layout(5): it says `gitdir: PATH`, and a relative one is from where it lies.
    with open(link, "rb") as file:  # noqa: PTH123
        text = os.fsdecode(file.read(LINK_BYTES_MAX)).rstrip("\n")
    where = Path(os.path.normpath(os.path.join(work, text.removeprefix("gitdir: "))))  # noqa: PTH118
    if not (where.is_relative_to(work) and _is_repository(str(where))):
        return GitPlaces({link: HELD}, {})
    within = [str(each) for each in (where, *where.parents) if Path(work) in each.parents]
    for each in within:
        _refuse_link(each)
    return _repository({link: HELD, **dict.fromkeys(reversed(within), WRITABLE)}, str(where))


def _is_repository(directory: str) -> bool:
    """Whether git takes it for one, or nearly: a worker could add what is missing."""
    return _kind(f"{directory}/HEAD") == stat.S_IFREG and (
        _kind(f"{directory}/objects") is not None or _kind(f"{directory}/commondir") is not None
    )


def _kind(place: str) -> int | None:
    """None = there is no such thing."""
    try:
        return stat.S_IFMT(os.lstat(place).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _refuse_link(place: str) -> None:
    if _kind(place) == stat.S_IFLNK:
        raise UsageError(
            f'access "write" cannot be kept here: {place} is a symbolic link, which the worker '
            "could replace by what a later git would run",
            hint="put what it leads to in its place (for hooks: git config core.hooksPath DIR), "
            'work in a worktree (--isolation worktree), or give access "full"',
        )


def _make(place: str, text: str | None) -> bool:
    """Make it; returns whether our rights allow that."""
    try:
        if text is None:
            os.mkdir(place)  # noqa: PTH102
        else:
            with open(place, "x", encoding="ascii") as file:  # noqa: PTH123
                file.write(text)
    except FileExistsError:
        return True
    except OSError as error:
        if error.errno in _NOT_OURS:
            return False
        raise
    return True


def _read(record: Path) -> dict[str, str | None]:
    with contextlib.suppress(FileNotFoundError, ValueError):  # a power cut may leave it empty
        return dict(json.loads(record.read_bytes()))
    return {}
