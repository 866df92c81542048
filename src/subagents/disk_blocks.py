"""Blocks of a file apart from its bytes: given back inside of it, or taken before they are needed.

``fallocate`` is Linux's (ext4, xfs, btrfs, tmpfs, …); where it is not, nothing is done.
"""

import contextlib
import ctypes
import errno
import os
from functools import cache
from typing import Final

BLOCK_BYTES: Final = 4096
_KEEP_SIZE: Final = 0x01
_PUNCH_HOLE: Final = 0x02
_UNSUPPORTED: Final = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


def punch(path: str, *, until: int) -> None:
    """Free the whole blocks before the offset, where the file system can. Blocking, idempotent.

    Raises:
        OSError: They could not be freed.
    """
    size = until // BLOCK_BYTES * BLOCK_BYTES
    if size > 0:
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_WRONLY)
            try:
                _fallocated(descriptor, _PUNCH_HOLE, 0, size)
            finally:
                os.close(descriptor)


def hold(descriptor: int, offset: int, size: int) -> bool:
    """Take the blocks of this part of a file, also behind its end; its size stays. Blocking.

    Returns:
        Whether they are taken; False = the file system cannot.

    Raises:
        OSError: There is no room.
    """
    return _fallocated(descriptor, 0, offset, size)


def _fallocated(descriptor: int, mode: int, offset: int, size: int) -> bool:
    fallocate = _fallocate()
    if fallocate is None:
        return False
    if fallocate(descriptor, mode | _KEEP_SIZE, offset, size) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number))


@cache
def _fallocate() -> "ctypes._NamedFuncPointer | None":
    libc = ctypes.CDLL(None, use_errno=True)
    for name in ("fallocate64", "fallocate"):
        function = getattr(libc, name, None)
        if function is not None:
            offset = ctypes.c_int64 if name == "fallocate64" else ctypes.c_long
            function.argtypes = (ctypes.c_int, ctypes.c_int, offset, offset)
            function.restype = ctypes.c_int
            return function  # type: ignore[no-any-return]  # whatever the library has
    return None
