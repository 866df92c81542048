"""How much of what was written its reader has not read yet.

A reader that is killed takes with it what lies unread in its pipe or socket. The kernel counts
that; where it does not (a file, a terminal, another system) everything is taken to be read.
"""

import contextlib
import fcntl
import os
import select
import socket
import stat
import struct
import sys
import termios
import time
from typing import Final, Protocol

_NUMBER: Final = struct.Struct("i")
_TABLES: Final = {socket.AF_INET: "/proc/net/tcp", socket.AF_INET6: "/proc/net/tcp6"}
_PAUSE_S: Final = 0.001
_PAUSE_S_MAX: Final = 0.05


class Socket(Protocol):
    """A socket, or what asyncio shows of one."""

    @property
    def family(self) -> int: ...
    def fileno(self) -> int: ...
    def getsockname(self) -> object: ...
    def getpeername(self) -> object: ...


def unread_bytes(descriptor: int) -> int:
    """Bytes in a pipe or local socket that its reader has not read; 0 = all, or unknown."""
    try:
        kind = os.fstat(descriptor).st_mode
        # For a pipe what is in it; for a socket, what its peer has not taken from it.
        asked = termios.FIONREAD if stat.S_ISFIFO(kind) else termios.TIOCOUTQ
        if not stat.S_ISFIFO(kind) and not stat.S_ISSOCK(kind):
            return 0
        found = fcntl.ioctl(descriptor, asked, bytes(_NUMBER.size))
    except OSError:
        return 0
    (count,) = _NUMBER.unpack(found)
    return int(count)


def unread_at(connection: Socket) -> int:
    """The same for a connection, also over TCP from this machine to itself.

    There our own end is empty as soon as the system has taken the bytes for the peer, which may
    not have: the system's table says what waits for it.
    """
    try:
        ours = unread_bytes(connection.fileno())
        if ours or connection.family not in _TABLES:
            return ours
        from pathlib import Path  # noqa: PLC0415  pipes and local sockets need none

        ends = _hex(connection.getpeername()), _hex(connection.getsockname())
        table = Path(_TABLES[socket.AddressFamily(connection.family)]).read_text(encoding="ascii")
    except (OSError, ValueError):
        return 0
    # The row of the other end: what has arrived there and its program has not read. The fifth
    # column is `tx_queue:rx_queue`, in hexadecimal (proc_pid_net(5)).
    for line in table.splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if (local, remote) == ends:
            return int(queues.partition(":")[2], 16)
    return 0


def is_read_within(descriptor: int, seconds: float) -> bool:
    """Whether all that was written is read by then; no longer waited for once nobody can read it.

    Args:
        descriptor: Of the writing end.
        seconds: At most so long.
    """
    due, pause_s = time.monotonic() + seconds, _PAUSE_S
    while unread_bytes(descriptor):
        if time.monotonic() >= due or not is_heard(descriptor):
            return False
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_S_MAX)
    # What lay in a socket is gone with its reader; a pipe keeps it, so there nothing lay.
    return _is_pipe(descriptor) or is_heard(descriptor)


def is_heard(descriptor: int) -> bool:
    """Whether somebody still has the other end open."""
    with contextlib.suppress(OSError):
        watch = select.poll()
        watch.register(descriptor, 0)
        return not any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))
    return True


def _is_pipe(descriptor: int) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    return False


def _hex(address: object) -> str:
    """An end of a connection as the table spells it: each word in the machine's order.

    Raises:
        OSError: It is none of TCP.
    """
    if not isinstance(address, tuple):
        raise OSError(address)
    host, port = str(address[0]).partition("%")[0], int(address[1])
    packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    spelled = "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
    return f"{spelled}:{port:04X}"
