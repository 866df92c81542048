"""What is in the files of a home, also while its daemon works."""

import contextlib
import stat
from collections.abc import Iterator
from pathlib import Path


def contents(directory: Path) -> Iterator[tuple[Path, bytes]]:
    """Every regular file below the directory; one that goes meanwhile is left out."""
    for file in directory.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISREG(file.lstat().st_mode):
                yield file, file.read_bytes()
