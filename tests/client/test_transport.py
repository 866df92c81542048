"""The transport alone: answers in pieces, of known length or chunked, and who went away when."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.client.peer import http, peer

from subagents.client.transport import (
    BODY_BYTES_MAX,
    Answer,
    AsyncConnection,
    Connection,
    Gone,
    NotHttp,
    request,
)

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
ASKED = request("GET", "/x", {}, None)


def bytewise(raw: bytes) -> Iterator[bytes]:
    return (raw[at : at + 1] for at in range(len(raw)))


@pytest.mark.requirement("client:speaks")
@pytest.mark.parametrize("raw", [CHUNKED, http("abcde")], ids=["chunked", "length"])
def test_an_answer_may_come_byte_by_byte(raw: bytes) -> None:
    answer = Answer()
    for each in bytewise(raw):
        assert not answer.is_complete
        answer.feed(each)
    assert answer.is_complete
    assert answer.keeps_alive
    assert answer.take().strip(b'"') == b"abcde"
    assert answer.take() == b""


@pytest.mark.requirement("client:speaks")
def test_parts_are_given_before_the_answer_is_complete(tmp_path: Path) -> None:
    with peer(tmp_path, lambda _: CHUNKED[:-5]) as found:
        connection = Connection(found.path)
        assert connection.send(ASKED, timeout_s=10).status == 200
        assert b"abc" in next(connection.parts())
        assert not connection.is_reusable
        connection.close()


@pytest.mark.requirement("client:unreachable")
def test_whether_a_request_was_sent_is_told(tmp_path: Path) -> None:
    with pytest.raises(Gone) as never, closing(Connection(tmp_path / "none")) as connection:
        connection.exchange(ASKED, timeout_s=1)
    assert not never.value.was_sent
    with (
        peer(tmp_path, lambda _: b"") as found,
        pytest.raises(Gone) as perhaps,
        closing(Connection(found.path)) as connection,
    ):
        connection.exchange(ASKED, timeout_s=10)
    assert perhaps.value.was_sent


@pytest.mark.requirement("client:unreachable")
def test_an_answer_larger_than_any_of_the_daemons_is_refused_while_it_comes(
    tmp_path: Path,
) -> None:
    chunk = b"800000\r\n" + b"x" * 0x800000 + b"\r\n"
    whole = CHUNKED[: CHUNKED.index(b"3\r\n")] + chunk * (BODY_BYTES_MAX // 0x800000 + 1)

    async def ask() -> None:
        await (await AsyncConnection.open(found.path)).exchange(ASKED, timeout_s=30)

    with peer(tmp_path, lambda _: whole) as found:
        with pytest.raises(NotHttp), closing(Connection(found.path)) as connection:
            connection.exchange(ASKED, timeout_s=30)
        with pytest.raises(NotHttp):
            asyncio.run(ask())


@pytest.mark.requirement("client:unreachable")
def test_a_reason_given_before_the_request_was_read_is_heard(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()

    def refuse() -> None:
        connection, _ = listener.accept()
        connection.sendall(http({"code": "usage"}, status=413))
        connection.close()

    thread = threading.Thread(target=refuse)
    thread.start()
    sent = request("POST", "/x", {}, b"x" * 8 * 1024 * 1024)
    with closing(Connection(tmp_path / "s")) as connection:
        answer, _ = connection.exchange(sent, timeout_s=10)
    thread.join()
    listener.close()
    assert answer.status == 413


@pytest.mark.requirement("client:connections")
def test_closing_wakes_the_thread_that_reads(tmp_path: Path) -> None:
    asked, silent = threading.Event(), threading.Event()

    def reply(_: bytes) -> bytes:
        asked.set()
        silent.wait(10)
        return b""

    def read() -> None:
        with pytest.raises(Gone):
            connection.exchange(ASKED, timeout_s=30)

    with peer(tmp_path, reply) as found:
        connection = Connection(found.path)
        thread = threading.Thread(target=read)
        thread.start()
        assert asked.wait(10)
        connection.close()
        thread.join(10)
        assert not thread.is_alive()
        silent.set()
