"""Several browsers that ask for the same list at once."""

import asyncio
from typing import Any, Final

import pytest
from starlette.types import Message, Receive, Scope, Send

from subagents.api.calls.auth import CONNECTION, Connection
from subagents.api.calls.login import Login, Role
from subagents.extensions.web.shared_answers import SharedAnswers

LONG_S: Final = 3_600.0


class Lists:
    """Answers with the number of the answer, once it may."""

    def __init__(self) -> None:
        self.number = 0
        self.begun: asyncio.Queue[int] = asyncio.Queue()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.number += 1
        number = self.number
        self.begun.put_nowait(number)
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"%d" % number})


async def asked(
    app: SharedAnswers, who: str = "a", *, role: Role = Role.OPERATOR, **other: Any
) -> bytes:
    login = Login(id=who, digest="", role=role, port=1, created_ms=0, used_ms=0, browser="")
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/v1/runs",
        "query_string": b"limit=75",
        "headers": [],
        "state": {CONNECTION: Connection("127.0.0.1:1", login=login)},
        **other,
    }
    got: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        got.append(message)

    await app(scope, receive, send)
    answer: bytes = got[1]["body"]
    return answer


@pytest.mark.requirement("web:shared-answers")
async def test_browsers_that_ask_together_get_one_answer_and_who_comes_later_a_newer_one() -> None:
    lists = Lists()
    app = SharedAnswers(lists, 0)

    lists.may_answer.clear()
    first = [asyncio.ensure_future(asked(app, who)) for who in "abc"]
    await lists.begun.get()
    later = asyncio.ensure_future(asked(app, "d"))
    await lists.begun.get()
    lists.may_answer.set()

    assert [await each for each in (*first, later)] == [b"1", b"1", b"1", b"2"]


@pytest.mark.requirement("web:shared-answers")
async def test_a_browser_that_nobody_else_is_beside_waits_for_nobody() -> None:
    app = SharedAnswers(Lists(), LONG_S)

    assert [await asked(app), await asked(app)] == [b"1", b"2"]


@pytest.mark.requirement("web:shared-answers")
async def test_who_may_see_less_asks_something_else_or_writes_shares_nothing() -> None:
    lists = Lists()
    app = SharedAnswers(lists, 0)
    others: list[dict[str, Any]] = [
        {"role": Role.VIEWER},
        {"query_string": b"limit=30"},
        {"path": "/v1/attention"},
        {"headers": [(b"accept-encoding", b"gzip")]},
        {"method": "POST"},
        {"path": "/v1/runs/r-1"},
    ]

    answers = await asyncio.gather(asked(app), *(asked(app, "b", **each) for each in others))

    assert len({*answers}) == len(answers) == 1 + len(others)


@pytest.mark.requirement("web:shared-answers")
async def test_a_browser_that_goes_away_takes_the_answer_from_no_other() -> None:
    lists = Lists()
    app = SharedAnswers(lists, 0)
    lists.may_answer.clear()
    gone, stays = (asyncio.ensure_future(asked(app, who)) for who in "ab")
    await lists.begun.get()

    gone.cancel()
    await asyncio.wait({gone})
    lists.may_answer.set()

    assert gone.cancelled()
    assert await stays == b"1"
