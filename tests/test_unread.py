"""What was written and not yet read is known, so that nobody takes it for handed over."""

import os
import socket
import threading
from pathlib import Path

import pytest

from subagents.unread import is_heard, is_read_within, unread_at, unread_bytes


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


@pytest.mark.requirement("mcp:unread")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_over_tcp_what_lies_at_a_peer_on_this_machine_is_unread(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        socket.create_server((host, 0), family=family) as server,
        socket.create_connection(server.getsockname()[:2]) as theirs,
        server.accept()[0] as ours,
    ):
        ours.sendall(b"x" * 100)
        assert unread_at(ours) == 100
        theirs.recv(60)
        assert unread_at(ours) == 40
        theirs.recv(60)
        assert unread_at(ours) == 0
        ours.sendall(b"y")
        theirs.close()
        assert not is_heard(ours.fileno())


@pytest.mark.requirement("mcp:unread")
def test_a_pipe_is_waited_for_until_it_is_read_or_nobody_can() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"x" * 100)
        assert not is_read_within(writing, 0.01)
        reader = threading.Thread(target=os.read, args=(reading, 100))
        reader.start()
        assert is_read_within(writing, 20)
        reader.join()
    finally:
        os.close(reading)
    assert is_read_within(writing, 20)
    os.close(writing)


@pytest.mark.requirement("mcp:unread")
@pytest.mark.parametrize("is_pipe", [True, False])
def test_what_a_reader_that_is_gone_left_unread_is_not_read(*, is_pipe: bool) -> None:
    if is_pipe:
        reading, writing = os.pipe()
    else:
        reading, writing = (each.detach() for each in socket.socketpair())
    os.write(writing, b"x")
    os.close(reading)
    assert not is_read_within(writing, 20)
    os.close(writing)
