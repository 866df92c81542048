"""Which files the worker's tools may touch: those below its working directory, and no others."""

import os
from pathlib import Path


class ToolRefused(Exception):
    """A tool call is refused; the text goes to the model and names the way out."""


class PathBounds:
    """The working directory.

    Args:
        cwd: Exists; links in its own path are followed.
    """

    def __init__(self, cwd: str) -> None:
        self.root = Path(os.path.realpath(cwd))

    def inside(self, path: str) -> Path:
        """The real path that ``path`` names, relative to the working directory.

        Links are followed before it is looked at: one that leads out is out.

        Raises:
            Refused: It is outside, or no path.
        """
        if "\0" in path:
            raise ToolRefused("path: a path holds no NUL character")
        found = Path(os.path.realpath(self.root / path))
        if found != self.root and self.root not in found.parents:
            raise ToolRefused(f"path: {path} is outside of the working directory {self.root}")
        return found

    def existing(self, path: str) -> Path:
        """The same of something that is there.

        Raises:
            Refused: It is outside, or not there.
        """
        found = self.inside(path)
        if not found.exists():
            raise ToolRefused(f"path: there is no {path}")
        return found

    def holds(self, path: Path) -> bool:
        """Whether what is really at ``path`` lies inside."""
        real = Path(os.path.realpath(path))
        return real == self.root or self.root in real.parents

    def shown(self, path: Path) -> str:
        """``path`` as the model names it."""
        return str(path.relative_to(self.root)) or "."
