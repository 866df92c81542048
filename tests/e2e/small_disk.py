"""A file system of its own for a home, small enough to be filled in a moment."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MIB: Final = 1024 * 1024


class CannotMount(Exception):
    """No file system can be mounted here; the message says why."""


@contextlib.contextmanager
def small_disk(place: Path, mebibytes: int) -> Iterator[Path]:
    """Mount one at ``place``, which is made, for the length of the block.

    Raises:
        CannotMount: Only root may, for example.
    """
    place.mkdir(parents=True)
    options = ["-o", f"size={mebibytes}m", "tmpfs", str(place)]
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", *options], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        reason = mounted.stderr.strip()
        raise CannotMount(f"cannot mount a small file system here: {reason}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> Path:
    """Take every free byte of the file system; returns the file that has them."""
    filler = place / "filler"
    with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        for size in (MIB, 4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size) == size:
                    pass
    return filler
