"""Taking an answer so that being killed in the middle loses nothing that was handed over.

Between reading bytes and keeping them a process can die, and then nobody has them although they
were read. A real reader lives with that; one that judges others must not. So here bytes are kept
first and read then: a socket is looked into without taking (``MSG_PEEK``), and what is in a pipe is
moved into a file by the system (``splice``).
"""

import json
import os
import select
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

BOUND_S: Final = 40.0
PEEK_BYTES: Final = 1 << 20
SPLICE_BYTES: Final = 1 << 16

Document = dict[str, Any]


class Broken(Exception):
    """The other end went away before all of it had come."""


def peeked(
    line: socket.socket, is_whole: Callable[[bytes], bool], *, within_s: float = BOUND_S
) -> bytes:
    """What waits in a socket once it is whole; it stays there, unread.

    Raises:
        Broken: The connection ended before, or nothing whole came in time.
    """
    due, before = time.monotonic() + within_s, b""
    watch = select.poll()
    watch.register(line, select.POLLIN)
    while time.monotonic() < due:
        watch.poll(200)
        try:
            data = line.recv(PEEK_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            continue
        except OSError as error:
            raise Broken(str(error)) from error
        if is_whole(data):
            return data
        if data == before:
            # What is peeked at keeps poll() awake.
            if is_over(line):
                raise Broken("the end came first")
            time.sleep(0.005)
        before = data
    raise Broken(f"nothing whole within {within_s} s")


def is_over(line: socket.socket) -> bool:
    """Whether the other end said that nothing more will come."""
    watch = select.poll()
    watch.register(line, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
    return bool(watch.poll(0))


def drain(line: socket.socket, count: int) -> None:
    """Read what was peeked at.

    Raises:
        Broken: It is gone.
    """
    while count:
        try:
            got = len(line.recv(count))
        except OSError as error:
            raise Broken(str(error)) from error
        if not got:
            raise Broken("the end came first")
        count -= got


def splice(pipe: int, file: Path, *, within_s: float = BOUND_S) -> None:
    """Move all that comes out of a pipe into a file, until its end or the time is up."""
    due = time.monotonic() + within_s
    watch = select.poll()
    watch.register(pipe, select.POLLIN)
    with file.open("wb") as made:
        while time.monotonic() < due:
            if watch.poll(200) and not os.splice(pipe, made.fileno(), SPLICE_BYTES):
                return


# -- HTTP -----------------------------------------------------------------------------------------


def request(path: str, document: object, headers: dict[str, str]) -> bytes:
    """A POST of ``document``, or a GET when there is none."""
    body = b"" if document is None else json.dumps(document).encode()
    head = {
        "Host": "127.0.0.1",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    method = "GET" if document is None else "POST"
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def is_document(data: bytes) -> bool:
    """Whether the JSON document of a good answer has come."""
    return document_in(data) is not None


def document_in(data: bytes) -> Document | None:
    """It, be it the body, its first chunk or an event.

    Raises:
        Broken: It is an answer of another kind.
    """
    _, found, rest = data.partition(b"\r\n\r\n")
    if found and b" 200 " not in data.partition(b"\r\n")[0]:
        raise Broken(data.decode(errors="replace"))
    start = rest.find(b"{")
    if not found or start < 0:
        return None
    try:
        document, _ = json.JSONDecoder().raw_decode(rest[start:].decode())
    except (UnicodeDecodeError, json.JSONDecodeError):
        return None
    return document if isinstance(document, dict) else None
