"""TCP ports for servers that have to know theirs before they listen."""

import fcntl
import functools
import itertools
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FIRST: Final = 10_000
"""All of them are below those that any usual system gives to outgoing connections."""
SHARES: Final = 60
SHARE: Final = 100


def free_port(host: str = "127.0.0.1") -> int:
    """One that nobody listens on now, and that no test gets that runs beside this one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = _share(os.getpid())
    while True:
        port = next(ports)
        with socket.socket(family) as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
        return port


@functools.cache
def _share(pid: int) -> Iterator[int]:
    """The ports that are this process's until it ends, in turn."""
    for share in random.SystemRandom().sample(range(SHARES), SHARES):
        lock = Path(tempfile.gettempdir(), f"subagents-test-ports-{os.getuid()}-{share}")
        held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            continue
        first = FIRST + share * SHARE
        return itertools.cycle(range(first, first + SHARE))
    raise AssertionError(f"process {pid}: {SHARES} others have the ports")
