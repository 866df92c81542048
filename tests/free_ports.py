"""TCP ports for servers that have to know theirs before they listen."""

import secrets
import socket
from typing import Final

FIRST: Final = 15_000
LAST: Final = 32_000
"""Below those that a system gives to outgoing connections: nobody else gets one by chance."""


def free_port(host: str = "127.0.0.1") -> int:
    """One that nobody listens on now, drawn at random: tests beside this one draw others."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        port = FIRST + secrets.randbelow(LAST - FIRST)
        with socket.socket(family) as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
        return port
