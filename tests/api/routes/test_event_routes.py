"""The event stream over HTTP: server-sent events, and the same as pages of JSON."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.api.home_daemon import DEADLINE_S, Document, Home, serving, until

from subagents.api.routes import event_routes as events
from subagents.domain.run.alert import Alert, AlertKind
from subagents.domain.run.events import Alerted
from subagents.domain.run.values import RunId
from subagents.domain.transcript.feed_entry import FeedDocument

JSON = {"Accept": "application/json"}
AGENT = {"X-Subagents-Session": "agent:other:main", "X-Subagents-Caller": "agent"}


class Block(NamedTuple):
    """One server-sent event as a browser reads it; data None = a block that tells nothing."""

    id: int | None
    event: str
    data: Any


class Source:
    """What ``EventSource`` of a browser does: reads blocks, remembers the last id."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.head = ""
        self.last_id: int | None = None
        self.comments: list[str] = []

    async def begin(self, path: str, headers: dict[str, str]) -> None:
        lines = [f"GET {path} HTTP/1.1", "Host: x", *(f"{k}: {v}" for k, v in headers.items())]
        self._writer.write("\r\n".join([*lines, "", ""]).encode())
        self.head = (await self._reader.readuntil(b"\r\n\r\n")).decode()

    async def chunk(self) -> bytes:
        """One chunk of the transfer coding, empty at the end of the stream."""
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        return (await self._reader.readexactly(size + 2))[:-2]

    async def blocks(self) -> AsyncIterator[Block]:
        text = b""
        while chunk := await self.chunk():
            text += chunk
            while b"\n\n" in text:
                raw, _, text = text.partition(b"\n\n")
                yield self._block(raw.decode())

    def _block(self, raw: str) -> Block:
        fields: dict[str, str] = {}
        for line in raw.split("\n"):
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
            else:
                self.comments.append(line)
        number = int(fields["id"]) if "id" in fields else None
        self.last_id = self.last_id if number is None else number
        data = json.loads(fields["data"]) if "data" in fields else None
        return Block(number, fields.get("event", ""), data)

    async def told(self, count: int) -> list[Block]:
        """The next so many blocks that tell something."""
        found = []
        async with asyncio.timeout(DEADLINE_S):
            async for block in self.blocks():
                if block.data is not None:
                    found.append(block)
                if len(found) == count:
                    break
        return found

    async def until_end(self) -> list[Block]:
        async with asyncio.timeout(DEADLINE_S):
            return [block async for block in self.blocks() if block.data is not None]


@contextlib.asynccontextmanager
async def source(
    home: Home, query: str = "", headers: dict[str, str] | None = None
) -> AsyncIterator[Source]:
    reader, writer = await asyncio.open_unix_connection(home.services.paths.socket)
    try:
        found = Source(reader, writer)
        await found.begin(f"/v1/events{query}", headers or {})
        yield found
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def ended(home: Home, agent: str = "quick", **spec: Any) -> str:
    run_id = str((await home.spawn(agent, **spec))["runId"])
    await home.until_phase(run_id, "completed")
    return run_id


async def page(home: Home, query: str = "?after=0", **headers: str) -> Document:
    return await home.ok("GET", f"/v1/events{query}", headers={**JSON, **headers})


@pytest.mark.requirement("events:sse")
async def test_a_browser_is_told_of_every_event_as_it_happens_and_can_come_back(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as home:
        async with source(home) as live:
            assert "200 OK" in live.head
            assert "text/event-stream" in live.head.lower()
            run_id = await ended(home)
            whole = (await page(home))["events"]
            blocks = await live.told(len(whole))
            last = live.last_id
        # A document says the phase of now, and the run was cleaned up in between.
        assert [without_phase(block.data) for block in blocks] == [
            without_phase(each) for each in whole
        ]
        assert {block.data["runId"] for block in blocks} == {run_id}
        assert [b.event for b in blocks if b.event != "run"] == ["completion"]
        assert last == whole[-1]["seq"]
        # It is not there while this happens, and misses nothing.
        other = await ended(home)
        async with source(home, "?after=0", {"Last-Event-ID": str(last)}) as again:
            missed = await again.told(1)
            assert missed[0].data["runId"] == other
            assert missed[0].data["seq"] == (last or 0) + 1


def without_phase(document: Document) -> Document:
    return {name: value for name, value in document.items() if name != "phase"}


@pytest.mark.requirement("events:sse")
async def test_only_the_last_document_of_a_number_names_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as home:
        await ended(home)
        count = len((await page(home))["events"])
        async with source(home, "?after=0") as live:
            blocks = await live.told(count)
        for one, other in pairwise(blocks):
            is_last = one.data["seq"] != other.data["seq"]
            assert one.id == (one.data["seq"] if is_last else None)
        assert sum(block.id is None for block in blocks) == 1


@pytest.mark.requirement("events:heartbeat")
async def test_a_quiet_stream_is_kept_alive_and_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert events.HEARTBEAT_S == 15.0
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.05)
    async with serving(tmp_path) as home:
        run_id = await ended(home)
        async with source(home, f"?run={run_id}") as live:
            await ended(home)
            newest = (await page(home, ""))["seq"]
            async with asyncio.timeout(DEADLINE_S):
                async for block in live.blocks():
                    assert block.data is None
                    if live.last_id == newest:
                        break
        # What was passed over need not be read again.
        assert ": still here" in live.comments


@pytest.mark.requirement("events:stop")
def test_streams_end_when_the_daemon_stops_and_do_not_hold_it_up(tmp_path: Path) -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        async with serving(tmp_path) as home, contextlib.AsyncExitStack() as stack:
            streams = [await stack.enter_async_context(source(home)) for _ in range(3)]
            polling = asyncio.create_task(home.call("GET", "/v1/events?wait=60", headers=JSON))
            await until(lambda: len(home.services.engine.feed._waiting) == 4)
            began = loop.time()
            home.services.stopping.set()
            assert [await one.until_end() for one in streams] == [[], [], []]
            status, document = await polling
            assert (status, document["code"]) == (503, "unavailable")
        return loop.time() - began

    assert asyncio.run(scenario()) < 4


@pytest.mark.requirement("events:client-gone")
async def test_nobody_waits_on_for_a_client_that_went_away(tmp_path: Path) -> None:
    async with serving(tmp_path) as home:
        waiting = home.services.engine.feed._waiting
        async with source(home):
            await until(lambda: len(waiting) == 1)
        await until(lambda: not waiting)


@pytest.mark.requirement("events:filters")
def test_filters_leave_only_what_was_asked_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home:
            first = await ended(home, label="one")
            second = await ended(home, label="two")

            async def shown(query: str) -> list[tuple[object, object]]:
                found = (await page(home, f"?after=0{query}"))["events"]
                return [(each["label"], each.get("event", "run")) for each in found]

            assert await shown("&level=alerts") == [("one", "completion"), ("two", "completion")]
            assert await shown("&types=completion&run=two") == [("two", "completion")]
            assert {label for label, _ in await shown(f"&tree={first}")} == {"one"}
            assert {name for _, name in await shown("&types=run")} == {"run"}
            assert {name for _, name in await shown("&types=run,completion")} == {
                "run",
                "completion",
            }
            assert {name for _, name in await shown("")} == {"run", "completion"}
            assert await shown("&types=stuck") == []
            assert second

    asyncio.run(scenario())


@pytest.mark.requirement("events:filters")
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?types=complete", 'types must be .* not "complete": did you mean "completion"'),
        ("?level=some", 'level must be "alerts" or "all", not "some"'),
        ("?types=run&level=all", "types and level exclude each other"),
        ("?after=x", "after must be a whole number"),
        ("?after=-1", "after must be a whole number"),
        ("?since=5", 'unknown query parameter "since"'),
        ("?wait=61", "wait must be a whole number from 0 to 60"),
        ("?run=nobody", 'no run "nobody"'),
    ],
)
async def test_what_cannot_be_followed_is_refused_by_name(
    tmp_path: Path, query: str, message: str
) -> None:
    async with serving(tmp_path) as home:
        status, document = await home.call("GET", f"/v1/events{query}", headers=JSON)
        assert status in {404, 422}
        with pytest.raises(AssertionError, match=message):
            raise AssertionError(document["message"])
        bad = {**JSON, "Last-Event-ID": "1e3"}
        status, document = await home.call("GET", "/v1/events", headers=bad)
        assert (status, document["message"][:13]) == (422, "Last-Event-ID")


@pytest.mark.requirement("events:visible")
def test_an_agent_hears_of_its_own_tree_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home:
            mine = await ended(home)
            parent = str((await home.spawn("hang"))["runId"])
            await home.until_phase(parent, "running")
            worker = home.worker(parent)
            child = str((await home.spawn("quick", headers=worker))["runId"])
            await home.until_phase(child, "completed")

            def runs(document: Document) -> set[str]:
                return {each["runId"] for each in document["events"]}

            assert runs(await page(home)) == {mine, parent, child}
            assert runs(await page(home, **worker)) == {parent, child}
            assert runs(await page(home, **AGENT)) == set()
            query = f"/v1/events?run={mine}"
            status, document = await home.call("GET", query, headers={**JSON, **worker})
            assert (status, document["code"]) == (403, "forbidden")
            async with source(home, "?after=0&types=completion", worker) as live:
                assert (await live.told(1))[0].data["runId"] == child

    asyncio.run(scenario())


@pytest.mark.requirement("events:pages")
async def test_a_long_poll_answers_with_the_first_news_and_says_where_to_go_on(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as home:
        empty = await page(home, "")
        assert empty == {"events": [], "seq": 0, "reset": False}
        polling = asyncio.create_task(page(home, "?after=0&wait=30"))
        await until(lambda: len(home.services.engine.feed._waiting) == 1)
        run_id = await ended(home)
        first = await polling
        assert first["events"][0]["type"] == "Spawned"
        seen = first["events"]
        while rest := (await page(home, f"?after={seen[-1]['seq']}"))["events"]:
            seen += rest
        assert [each["seq"] for each in seen if "event" not in each] == list(
            range(1, seen[-1]["seq"] + 1)
        )
        assert {each["runId"] for each in seen} == {run_id}


@pytest.mark.requirement("events:reset")
async def test_a_number_of_another_database_is_answered_with_a_reset(tmp_path: Path) -> None:
    async with serving(tmp_path) as home:
        await ended(home)
        newest = (await page(home, ""))["seq"]
        found = await page(home, "?after=999999")
        assert found == {"events": [], "seq": newest, "reset": True}
        async with source(home, "", {"Last-Event-ID": "999999"}) as live:
            (block,) = await live.told(1)
            assert (block.event, block.data) == ("reset", {"type": "reset", "seq": newest})
            assert live.last_id == newest


@pytest.mark.requirement("events:rows")
async def test_with_rows_each_change_comes_as_the_row_that_lists_show(tmp_path: Path) -> None:
    async with serving(tmp_path) as home:
        run_id = await ended(home)
        found = await page(home, "?after=0&rows=1&types=completion")
        listed = (await home.ok("GET", "/v1/runs"))["runs"]
        assert [each["type"] for each in found["events"]] == ["event", "row"]
        row = found["events"][1]["row"]
        assert [row] == listed
        async with source(home, "?after=0&rows=1&level=alerts") as live:
            blocks = await live.told(2)
            other = await ended(home)
            more = await live.told(2)
        assert [block.event for block in blocks] == ["completion", "row"]
        assert [block.id for block in blocks] == [None, None], "only behind the rows"
        assert {block.data["runId"] for block in more} == {other}
        assert run_id != other


def a_document(number: int, name: str = "run") -> FeedDocument:
    return FeedDocument(number=number, name=name, document={})


@pytest.mark.requirement("events:rows", "events:sse")
def test_no_number_is_named_before_everything_up_to_it_was_told() -> None:
    def ids(*found: FeedDocument, resume_at: int) -> list[bytes]:
        return re.findall(rb"^id: (\d+)$", events.frames(found, resume_at), re.MULTILINE)

    assert ids(a_document(1), a_document(2), a_document(2), resume_at=2) == [b"1", b"2"]
    assert ids(a_document(1), a_document(2), resume_at=1) == [b"1"]
    assert ids(a_document(1), a_document(2), a_document(2, "row"), resume_at=2) == [b"2"]
    assert events.frames([a_document(1, "row")], 7).endswith(b"\n\nid: 7\n\n")
    assert ids(resume_at=7) == [b"7"]


RAISES = """
[agents.hang]
runtime = "scripted"
script = [{ hang = true }]
alerts.tokens_per_hour = 130
alerts.off = ["git_commit"]
"""


async def raised(home: Home, run_id: str, kind: AlertKind, number: int) -> None:
    """As the detectors raise it: through the ledger, with fields of its own."""
    alert = Alert(kind=kind, text=f"{kind} {number}", key=f"{kind}{number}", fields={})
    ledger = home.services.engine.ledger
    await ledger.apply(RunId(run_id), Alerted(at_ms=home.services.now_ms() + number, alert=alert))


@pytest.mark.requirement("http:alerts")
async def test_past_alerts_say_whether_they_were_sent_held_back_or_switched_off_and_read(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, config=RAISES) as home:
        run, other = [(await home.spawn("hang"))["runId"] for _ in range(2)]
        for each in (run, other):
            await home.until_phase(each, "running")
        kinds = [AlertKind.TASK_MILESTONE] * 6 + [AlertKind.GIT_COMMIT, AlertKind.STUCK]
        for number, kind in enumerate(kinds):
            await raised(home, run, kind, number)
        await raised(home, other, AlertKind.STUCK, 9)
        first = await home.ok("GET", "/v1/alerts")
        assert [each["text"] for each in first["alerts"]] == [
            "stuck 9",
            "stuck 7",
            "git_commit 6",
            *(f"task_milestone {n}" for n in (5, 4, 3, 2, 1, 0)),
        ]
        assert first["nextCursor"] is None
        fates = {each["text"]: each["fate"] for each in first["alerts"]}
        assert (fates["stuck 7"], fates["git_commit 6"]) == ("sent", "off")
        assert (fates["task_milestone 0"], fates["task_milestone 5"]) == ("sent", "held")
        newest = first["alerts"][1]
        assert (newest["readAt"], newest["toldAt"] is None) == (None, False)
        assert newest["event"]["event"] == newest["kind"] == "stuck"
        assert "130 tokens" in first["alerts"][3]["why"]

        read = [each["messageId"] for each in first["alerts"] if each["messageId"]]
        await home.ok("POST", "/v1/inbox/ack", {"messageIds": read})
        again = await home.ok("GET", f"/v1/alerts?run={run}&kind=stuck,git_commit")
        assert [each["text"] for each in again["alerts"]] == ["stuck 7", "git_commit 6"]
        assert again["alerts"][0]["readAt"] is not None

        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            query = f"?limit=2&cursor={cursor}" if cursor else "?limit=2"
            found = await home.ok("GET", f"/v1/alerts{query}")
            seen += [each["text"] for each in found["alerts"]]
            cursor = found["nextCursor"]
        assert seen == [each["text"] for each in first["alerts"]]

        theirs = await home.ok("GET", "/v1/alerts", headers=AGENT)
        assert theirs["alerts"] == []
        for query in ("?kind=loud", "?cursor=x", "?limit=0"):
            status, refused = await home.call("GET", f"/v1/alerts{query}")
            assert (status, refused["details"]["field"]) == (422, query[1:].partition("=")[0])


@pytest.mark.requirement("http:alerts")
async def test_an_alert_behind_the_end_of_its_run_is_late(tmp_path: Path) -> None:
    async with serving(tmp_path) as home:
        run = await ended(home)
        await raised(home, run, AlertKind.BUILD_RESULT, 1)
        (late,) = (await home.ok("GET", "/v1/alerts"))["alerts"]
        assert (late["fate"], late["why"]) == ("late", "not sent: its run had ended")
