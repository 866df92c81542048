"""Who is at the other end of a Unix socket, as the system knows it."""

import socket
import struct
import sys
from typing import Final

_PEER: Final = struct.Struct("3i")
"""``struct ucred``: pid, uid, gid."""


def peer_uid(connection: socket.socket) -> int | None:
    """The user at the other end, None where the system does not say."""
    return None if sys.platform != "linux" else _peer(connection)[1]


def peer_pid(connection: socket.socket) -> int | None:
    """The process that connected, None where the system does not say."""
    # 0: it lives in another pid namespace.
    return None if sys.platform != "linux" else _peer(connection)[0] or None


def _peer(connection: socket.socket) -> tuple[int, int, int]:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    pid, uid, gid = _PEER.unpack(raw)
    return int(pid), int(uid), int(gid)
