"""Files that are whole or not there, also after a loss of power, and open to their owner alone."""

import os
from pathlib import Path


def private(path: str, flags: int) -> int:
    """For ``open``: a new file is for its owner alone, whatever the umask."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def replace_file(file: Path, content: bytes) -> None:
    """Give a file this content: killed at any time, it has the old one or the new one.

    Raises:
        OSError: It cannot be written, and is as before.
    """
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    with open(draft, "wb", opener=private) as opened:
        opened.write(content)
        opened.flush()
        # Before the rename: a file system may keep that and lose what was written before it.
        os.fsync(opened.fileno())
    draft.replace(file)


def write_all(file: int, data: bytes) -> None:
    """Write all of it: one call may take only a part, on a disk that is nearly full for example."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def sync(path: Path) -> None:
    """Return once a file's content, or the names in a directory, outlive a loss of power."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
