"""How much of what we wrote the other end has not taken yet, as the system knows it.

Clients give their servers a pipe or a pair of sockets; both keep count. Where nobody counts (a
file, a terminal, another system) everything written is taken to be read.
"""

import fcntl
import os
import stat
import struct
import termios
from typing import Final

_NUMBER: Final = struct.Struct("i")


def unread_bytes(descriptor: int) -> int:
    """Bytes in the pipe or socket ``descriptor`` that its reader has not read; 0 = all, or unknown.

    Source: docs/decisions/0015.
    """
    try:
        kind = os.fstat(descriptor).st_mode
        # A pipe tells what is in it, a socket what the peer has not taken from it.
        asked = termios.FIONREAD if stat.S_ISFIFO(kind) else termios.TIOCOUTQ
        if not stat.S_ISFIFO(kind) and not stat.S_ISSOCK(kind):
            return 0
        found = fcntl.ioctl(descriptor, asked, bytes(_NUMBER.size))
    except OSError:
        return 0
    (count,) = _NUMBER.unpack(found)
    return int(count)
