"""A line between two programs that can be cut: to PostgreSQL (a socket), or to a node (TCP).

Cut is as by a switch that lost its mind: connections stay open, and nothing arrives.
"""

import contextlib
import select
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

BYTES: Final = 1 << 20
LOOK_S: Final = 0.1
Address: TypeAlias = "Path | tuple[str, int]"
"""Of a Unix socket, or host and port."""


class CuttableLine:
    """Carries what arrives at ``near`` to ``far`` and back, until it is closed.

    Args:
        near: Where it listens; port 0 = one that is free.
        far: Where it leads to.
    """

    def __init__(self, near: Address, far: Address) -> None:
        self._far = far
        self._listener = _socket(near)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(_bound(near))
        if isinstance(near, Path):
            near.chmod(0o777)  # the server runs as another user than the tests may
        self._listener.listen(128)
        self.is_cut_for: Callable[[int | None], bool] = lambda _: False
        """Whether nothing passes for whoever has this port at the near end (None: no TCP)."""
        self._is_open = True
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def cut(self) -> None:
        """Nothing passes any more, of what is open and of what is opened."""
        self.is_cut_for = lambda _: True

    def mend(self) -> None:
        """What was sent meanwhile arrives now."""
        self.is_cut_for = lambda _: False

    def lead_to(self, far: Address) -> None:
        """What is opened from now on leads there."""
        self._far = far

    def close(self) -> None:
        self._is_open = False
        self._listener.shutdown(socket.SHUT_RDWR)  # closing alone ends no accept
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while self._is_open:
                near, who = self._listener.accept()
                port = who[1] if isinstance(who, tuple) else None
                threading.Thread(target=self._carry, args=(near, port), daemon=True).start()

    def _carry(self, near: socket.socket, port: int | None) -> None:
        far = _socket(self._far)
        with near, far, contextlib.suppress(OSError):
            while self.is_cut_for(port):
                if not self._is_open or select.select([], [], [near], LOOK_S)[2]:
                    return
            far.connect(_bound(self._far))
            while self._is_open:
                for ready in select.select([near, far], [], [], LOOK_S)[0]:
                    while self.is_cut_for(port):
                        if not self._is_open:
                            return
                        select.select([], [], [], LOOK_S)
                    data = ready.recv(BYTES)
                    if not data:
                        return
                    (far if ready is near else near).sendall(data)


def _socket(address: Address) -> socket.socket:
    return socket.socket(socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET)


def _bound(address: Address) -> "str | tuple[str, int]":
    return str(address) if isinstance(address, Path) else address


def is_of(pid: int, port: int) -> bool:
    """Whether this end of a TCP connection of this machine is a process's."""
    inode = _inode_of(port)
    if inode is None:
        return False
    with contextlib.suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if each.readlink().name == f"socket:[{inode}]":
                    return True
    return False


def _inode_of(port: int) -> str | None:
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rpartition(":")[2], 16) == port:
            return fields[9]
    return None
