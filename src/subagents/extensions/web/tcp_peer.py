"""Which user the other end of a loopback connection belongs to.

A Unix socket's other end is asked for directly (``SO_PEERCRED``); of TCP the kernel keeps the owner
of each socket, and both ends of a loopback connection are sockets of this machine. See proc(5),
``/proc/net/tcp``.
"""

import ipaddress
import sys
from pathlib import Path
from typing import Final

from subagents.ports import OffLoop

PEER: Final = "tcp_peer"
"""The name in a request's state of the ``TcpPeer`` of its connection."""
TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOCAL, _REMOTE, _UID = 1, 2, 7
"""Columns."""


class TcpPeer:
    """The other end of one connection.

    Args:
        client: Its address and port.
        server: Ours.
    """

    def __init__(self, client: tuple[str, int], server: tuple[str, int]) -> None:
        self._client = client
        self._server = server
        self._owner: int | None = None

    async def owner(self, off_loop: OffLoop) -> int | None:
        """Its user id, looked up once; None where nobody knows: it is gone, or far away."""
        if self._owner is None:
            self._owner = await off_loop(lambda: owner_of(self._client, self._server))
        return self._owner


def owner_of(
    client: tuple[str, int], server: tuple[str, int], tables: tuple[Path, ...] = TABLES
) -> int | None:
    """The user of the socket that is bound to ``client`` and connected to ``server``; blocking.

    Root's own where the system keeps no such table (macOS): there, nothing is known of anybody.
    """
    if not sys.platform.startswith("linux"):
        return 0
    wanted = {(_shown(*client, is_v6=v6), _shown(*server, is_v6=v6)) for v6 in (False, True)}
    for table in tables:
        try:
            lines = table.read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if (columns[_LOCAL], columns[_REMOTE]) in wanted:
                return int(columns[_UID])
    return None


def _shown(host: str, port: int, *, is_v6: bool) -> str:
    """An address as the kernel prints it: words of four bytes in the order of this machine."""
    address = ipaddress.ip_address(host)
    packed = address.packed
    if is_v6 and address.version == 4:
        packed = ipaddress.IPv6Address(f"::ffff:{host}").packed
    words = [packed[at : at + 4] for at in range(0, len(packed), 4)]
    text = "".join(f"{int.from_bytes(each, sys.byteorder):08X}" for each in words)
    return f"{text}:{port:04X}"
