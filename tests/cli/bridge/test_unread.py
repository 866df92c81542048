"""What of our output the other end has taken, for a real pipe and real sockets."""

import os
import socket
from pathlib import Path

import pytest

from subagents.cli.bridge.unread import unread_bytes


@pytest.mark.requirement("mcp:unread")
def test_a_pipe_says_how_much_of_it_nobody_read() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"x" * 100)
        assert unread_bytes(writing) == 100
        os.read(reading, 60)
        assert unread_bytes(writing) == 40
        os.read(reading, 60)
        assert unread_bytes(writing) == 0
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.requirement("mcp:unread")
def test_a_socket_says_whether_its_peer_took_everything() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.send(b"x" * 100)
        assert unread_bytes(ours.fileno()) > 0
        theirs.recv(100)
        assert unread_bytes(ours.fileno()) == 0


@pytest.mark.requirement("mcp:unread")
def test_where_nobody_counts_everything_is_taken_to_be_read(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.write(b"x")
        file.flush()
        assert unread_bytes(file.fileno()) == 0
