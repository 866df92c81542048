"""`[worktrees.<name>]` of `subagents.toml`: what worktrees get besides the commit."""

import os
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from subagents.config.settings import Section

_LIMITED: Final = """\
cd {root} || exit
[ ! -e {done} ] || exit 0
limit=$(command -v timeout) && limit="$limit -k 5 {seconds:g}"
$limit /bin/sh -c {command}
status=$?
case $status in
    0) : >{done} ;;
    124) echo "subagents: the worktree's setup took longer than {seconds:g} s ({key})" >&2 ;;
    *) echo "subagents: the worktree's setup failed with exit code $status ({key})" >&2 ;;
esac
exit $status
"""
"""Runs before a worker, in its environment; whoever follows finds the file that says it is done."""


class RepositorySettings(Section, frozen=True):
    """`[worktrees.<name>]`: read at each spawn; the user's own file only."""

    TABLE: ClassVar = "worktrees"

    repository: Annotated[
        str,
        Meta(
            min_length=1,
            description="The checkout that this is for, or a directory above several; `~` is your "
            "home. Of several tables the one that names the nearest directory counts.",
        ),
    ]
    setup: Annotated[
        str,
        Meta(
            max_length=4_000,
            description="A shell command for each new worktree, at its root, before its first "
            "worker and in that worker's environment, but outside its sandbox: `npm ci`.",
        ),
    ] = ""
    setup_seconds: Annotated[
        float,
        Meta(ge=1, le=86_400, description="The longest that `setup` may take; then the run fails."),
    ] = 600
    base: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            pattern=r"^[^-\s]\S*$",
            extra={"words": "a branch, tag or commit"},
            description="Where worktrees begin: a branch, such as `origin/main`, tag or commit.",
        ),
    ] = "HEAD"
    link: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[^/.]\S*$|^\.[^./]\S*$")], ...],
        Meta(
            max_length=100,
            description="Directories of the checkout that git ignores, such as `node_modules`: a "
            "worktree gets one of the same name, in which each entry is a link.",
        ),
    ] = ()

    def script(self, root: Path, done: Path, name: str) -> str:
        """What a shell runs before a worker; empty where there is nothing to do.

        Args:
            root: The worktree.
            done: A file that is made once ``setup`` has succeeded.
            name: Of this table.
        """
        if not self.setup:
            return ""
        return _LIMITED.format(
            root=quote(str(root)),
            done=quote(str(done)),
            seconds=self.setup_seconds,
            command=quote(self.setup),
            key=f"worktrees.{name}.setup",
        )


NOTHING: Final = RepositorySettings(repository="/")


def settings_of(
    tables: Mapping[str, RepositorySettings], root: str
) -> tuple[str, RepositorySettings]:
    """The table that names the nearest directory to ``root`` or above it, and its name."""
    found = [
        (len(path.parts), name, table)
        for name, table in tables.items()
        if Path(root).is_relative_to(path := _real(table.repository))
    ]
    _, name, table = max(found, key=lambda each: each[0], default=(0, "", NOTHING))
    return name, table


def _real(path: str) -> Path:
    return Path(os.path.realpath(Path(path).expanduser()))
