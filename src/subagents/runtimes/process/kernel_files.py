"""Reads what the kernel says in files (``/proc``, cgroups), many times a second."""

import errno
from typing import Final

_CANNOT_LOOK: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def read(path: str) -> bytes:
    """The file's bytes; empty when what it tells of is gone or not ours to read.

    Raises:
        OSError: We could not look (no descriptor or memory left), which says nothing about the
            process: taken for its end, it would make a healthy worker lost.
    """
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # hot: once per process
            return file.read()
    except OSError as error:
        if error.errno in _CANNOT_LOOK:
            raise
        return b""
