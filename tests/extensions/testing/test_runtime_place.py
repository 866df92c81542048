"""The runtimes' suite reads attempts as the supervisor does, and waits for nothing for ever."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from subagents.domain.run.run import Exit
from subagents.domain.run.signals import Exited, ResultSeen, SessionSeen, ToolSeen
from subagents.domain.run.worker_output import LineType, OutputBatch, OutputItem
from subagents.errors import RuntimeUnavailable
from subagents.extensions.testing import runtime_place
from subagents.extensions.testing.conformance import Broken
from subagents.extensions.testing.runtime_place import Seen, read, unavailable, until

END = Exited(key="exit", exit=Exit(code=0), drained=True)
SAID = OutputBatch(
    items=(
        OutputItem(type=LineType.SYSTEM, text="welcome"),
        OutputItem(type=LineType.TEXT, text="one"),
    ),
    positions={"out": 4},
)


class Tells:
    """A runtime that tells just this of every attempt."""

    def __init__(self, *told: object) -> None:
        self.told = told

    async def watch(self, *_: object, **__: object) -> AsyncIterator[tuple[object, int]]:
        for cursor, each in enumerate(self.told, 1):
            yield each, cursor


def seen(*told: object) -> Seen:
    runtime: Any = Tells(*told)
    ref: Any = None
    return asyncio.run(read(runtime, ref))


@pytest.mark.requirement("runtime:suite-can-fail")
def test_what_was_told_is_sorted_into_what_was_said_used_and_came_of_it() -> None:
    named = SessionSeen(key="s", session_id="abc")
    found = seen(named, SAID, ToolSeen(key="t", name="Bash"), ResultSeen(key="r", text="x"), END)

    assert (found.texts, found.words, found.tools) == (["one"], ["one"], ["Bash"])
    assert (found.session, found.result, found.terminal) == ("abc", "x", END)
    assert (found.cursor, found.positions, found.is_over) == (5, {"out": 4}, True)
    before = found.upto(1)
    assert (before.cursor, before.positions, before.result) == (1, {}, None)


@pytest.mark.requirement("runtime:suite-can-fail")
def test_an_attempt_that_ends_twice_or_never_breaks_its_promise() -> None:
    with pytest.raises(Broken, match="nothing comes after the terminal signal"):
        seen(END, SAID)
    with pytest.raises(Broken, match="watch ends after a terminal signal, not before"):
        seen(SAID)


@pytest.mark.requirement("runtime:suite-can-fail")
def test_a_worker_that_ends_without_waiting_is_named_at_once_with_what_it_said() -> None:
    with pytest.raises(Broken, match=r"found: \['one'\]"):
        asyncio.run(seen(SAID, END).waiting())


@pytest.mark.requirement("runtime:suite-can-fail")
def test_what_does_not_happen_is_named_when_the_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime_place, "BOUND_S", 0.0)

    with pytest.raises(Broken, match="not within 0 s: it is ready"):
        asyncio.run(until(lambda: False, "it is ready"))
    asyncio.run(until(lambda: True, "it is ready"))


@pytest.mark.requirement("runtime:suite-can-fail")
def test_only_a_refusal_is_what_cannot_be_done() -> None:
    async def refuses() -> None:
        raise RuntimeUnavailable("no such ability")

    async def does_it() -> None:
        return

    asyncio.run(unavailable("steering", refuses()))
    with pytest.raises(Broken, match="steering: RuntimeUnavailable was not raised"):
        asyncio.run(unavailable("steering", does_it()))
