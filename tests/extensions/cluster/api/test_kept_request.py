"""A request is read again from its beginning, by whoever answers it next."""

import asyncio
from collections.abc import Iterable

import pytest
from starlette.types import Message, Receive

from subagents.api.calls.call import BodyTooLarge
from subagents.extensions.cluster.api.kept_request import KeptRequest

GONE: Message = {"type": "http.disconnect"}


def coming(pieces: Iterable[bytes], *, is_whole: bool = True) -> Receive:
    """A client that sends these and goes."""
    left = list(pieces)

    async def receive() -> Message:
        if not left:
            return GONE
        piece = left.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(left) or not is_whole}

    return receive


async def read(receive: Receive) -> bytes | None:
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += bytes(message["body"])
        if not message["more_body"]:
            return body


@pytest.mark.requirement("cluster:kept-requests")
def test_each_reader_gets_all_of_it_wherever_the_one_before_stopped() -> None:
    async def scenario() -> None:
        kept = KeptRequest(coming([b"a", b"bc", b"", b"d"]))
        first = kept.reader()
        assert (await first())["body"] == b"a"
        assert await read(kept.reader()) == b"abcd"
        assert await kept.body() == b"abcd"
        assert await read(kept.reader()) == b"abcd"
        # Behind the body there is only that the client goes.
        assert [(await first())["body"] for _ in range(3)] == [b"bc", b"", b"d"]
        assert await first() == GONE
        await kept.left()

    asyncio.run(scenario())


@pytest.mark.requirement("cluster:kept-requests")
def test_a_request_whose_client_goes_in_the_middle_has_no_body() -> None:
    async def scenario() -> None:
        kept = KeptRequest(coming([b"a"], is_whole=False))
        assert await kept.body() is None
        assert await read(kept.reader()) is None

    asyncio.run(scenario())


@pytest.mark.requirement("cluster:kept-requests")
def test_more_than_is_kept_is_still_read_by_who_reads_it_first() -> None:
    async def scenario() -> None:
        kept = KeptRequest(coming([b"aa", b"bb", b"cc"]), bytes_max=3)
        assert await read(kept.reader()) == b"aabbcc"
        with pytest.raises(BodyTooLarge, match="at most 3 bytes"):
            await kept.body()

    asyncio.run(scenario())
