"""``log`` as callers get it: what may be asked, and what comes back."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.api.answers.log_calls import events, log_of, play
from tests.api.home_daemon import CONFIG, Home, until
from tests.builders import NOW_MS, Life

from subagents.api.answers.log_pages import WAIT_SECONDS_MAX, Asked, query_for
from subagents.domain.run.worker_output import LineType
from subagents.domain.transcript.transcript_query import LOG_LINES, LogQuery
from subagents.errors import NotFound, UsageError


def query(**asked: Any) -> LogQuery:
    return query_for(Asked(**asked), Life.begin().start().run, now_ms=NOW_MS)


def texts(page: dict[str, Any]) -> list[str]:
    return [line["text"] for line in page["lines"]]


# -- what may be asked ----------------------------------------------------------------------------


@pytest.mark.requirement("log:window")
def test_without_an_offset_the_newest_lines_come_and_behind_a_cursor_the_oldest() -> None:
    assert query() == LogQuery(offset=None, limit=LOG_LINES)
    assert query(offset=100, limit=20) == LogQuery(offset=100, limit=20)
    assert query(tail=7) == LogQuery(offset=None, limit=7)
    assert query(after_seq=12) == LogQuery(offset=0, limit=LOG_LINES, after_seq=12)
    assert query(after_seq=12, tail=3) == LogQuery(offset=None, limit=3, after_seq=12)


@pytest.mark.requirement("log:tool-use")
def test_a_search_for_tool_use_alone_means_the_calls_of_tools() -> None:
    assert query(grep="tool_use", limit=10) == LogQuery(types=(LineType.TOOL,), limit=10)
    assert query(grep="tool_use|x").grep == "tool_use|x"
    assert query(grep="tool_use", type="text").grep == "tool_use"


@pytest.mark.requirement("log:refusals")
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"since": "soon"},
            "since must be today, yesterday, a duration such as 5m, 24h or",
        ),
        ({"since": "400d"}, "since must be at most 365d"),
        ({"since": "2026-13-40"}, "since must be today, yesterday, a duration"),
        ({"since": ""}, "since must be today, yesterday, a duration"),
        ({"type": "toool"}, 'not "toool": did you mean "tool"?'),
        ({"type": "tool,"}, "type must be"),
        ({"grep": ""}, "grep must have 1 to 1000 characters"),
        ({"grep": "x" * 1001}, "grep must have 1 to 1000 characters"),
        ({"tail": 1, "offset": 1}, "tail and offset exclude each other"),
        ({"tail": 1, "limit": 1}, "tail and limit exclude each other"),
        ({"wait_s": 5}, "waitSeconds needs afterSeq"),
        ({"summary": True, "grep": "x"}, "grep and summary exclude each other"),
        ({"summary": True, "limit": 5}, "limit and summary exclude each other"),
    ],
)
def test_what_is_wrong_is_refused_by_its_name(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as found:
        query(**asked)
    assert message in found.value.message
    field = str(found.value.details["field"])
    assert field in found.value.message


@pytest.mark.requirement("log:refusals")
def test_an_attempt_that_never_was_is_not_found() -> None:
    assert query(attempt=1).attempt == 1
    with pytest.raises(NotFound, match="has 1 attempts, no attempt 2"):
        query(attempt=2)


@pytest.mark.requirement("log:refusals")
@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ("limit=0", "limit"),
        ("limit=10001", "limit"),
        ("limit=-1", "limit"),
        ("limit=1_0", "limit"),
        ("offset=-1", "offset"),
        ("tail=10001", "tail"),
        ("attempt=0", "attempt"),
        ("afterSeq=x", "afterSeq"),
        ("afterSeq=0&waitSeconds=51", "waitSeconds"),
        ("summary=maybe", "summary"),
        ("since=soon", "since"),
        ("type=errors", "type"),
        ("stream=out", "stream"),
        ("grep=%5B", "grep"),
    ],
)
def test_a_call_with_a_wrong_parameter_names_it_and_reads_nothing(
    tmp_path: Path, asked: str, field: str
) -> None:
    async def scenario(home: Home) -> None:
        run = (await home.spawn("quick"))["runId"]
        status, answered = await home.call("GET", f"/v1/runs/{run}/log?{asked}")
        assert (status, answered["code"]) == (422, "invalid")
        assert answered["details"]["field"] == field
        assert field in answered["message"]

    play(tmp_path, scenario)


# -- lines ----------------------------------------------------------------------------------------


@pytest.mark.requirement("log:answer", "http:log:pages")
def test_the_answer_has_the_lines_of_all_sources_in_their_order(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        said = events(
            {"subagents": "text", "text": "let me see"},
            {"subagents": "thinking", "text": "hm"},
            {
                "subagents": "tool",
                "name": "Bash",
                "input": {"command": "git log"},
                "durationMs": 2100,
                "exitCode": 0,
            },
            {"subagents": "error", "text": "rate limited", "api": True, "retry": "2/5"},
        )
        run = (await home.spawn("shell", task=f"{said}\necho plain"))["runId"]
        await home.wait(run)
        page = await log_of(home, run)
        assert list(page) == [
            *("runId", "label", "totalLines", "returnedLines", "offset", "droppedLines"),
            *("lines", "hits", "nextSeq", "ended", "note"),
        ]
        assert [line["seq"] for line in page["lines"]] == [*range(1, page["totalLines"] + 1)]
        assert (page["returnedLines"], page["offset"]) == (page["totalLines"], 0)
        assert (page["nextSeq"], page["ended"]) == (page["totalLines"], True)
        times = [line["ts"] for line in page["lines"]]
        assert times == sorted(times)
        kinds = [line["type"] for line in page["lines"]]
        assert kinds[:2] == ["user", "system"]
        assert kinds[2:7] == ["text", "thinking", "tool", "error", "text"]
        assert texts(page)[4] == "✅ Bash (2.1s)\ngit log"
        assert texts(page)[-1].endswith("run ended: ok")

    play(tmp_path, scenario)


@pytest.mark.requirement("log:answer", "http:log:pages")
def test_filters_come_first_then_the_window(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        task = "for i in $(seq 0 99); do echo line $i; done; echo 'an error came up' >&2"
        run = (await home.spawn("shell", task=task))["runId"]
        await home.wait(run)
        whole = await log_of(home, run, limit=1000)
        assert len(texts(whole)) == 104
        newest = await log_of(home, run)
        assert texts(newest) == texts(whole)[-50:]
        assert newest["offset"] == 54
        window = await log_of(home, run, offset=100, limit=20)
        assert texts(window) == texts(whole)[100:]
        found = await log_of(home, run, grep="line .5$", limit=3)
        assert found["hits"] == []
        places = (await log_of(home, run, grep="e .5$", limit=2, hits=1))["hits"]
        assert places == [[[3, 7]], [[3, 7]]]
        assert texts(found) == ["line 75", "line 85", "line 95"]
        assert (found["totalLines"], found["offset"]) == (9, 6)
        assert texts(await log_of(home, run, type="error")) == ["an error came up"]
        assert texts(await log_of(home, run, grep="error|fail"))[-1] == "an error came up"
        assert texts(await log_of(home, run, since="5m", tail=104)) == texts(whole)
        assert texts(await log_of(home, run, since="2100-01-01")) == []
        assert texts(await log_of(home, run, offset=5000)) == []
        assert texts(await log_of(home, run, tail=2)) == texts(whole)[-2:]

    play(tmp_path, scenario)


@pytest.mark.requirement("log:cursor")
def test_pages_by_their_cursor_make_up_the_whole(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run = (await home.spawn("shell", task="seq 1 200"))["runId"]
        await home.wait(run)
        whole = texts(await log_of(home, run, limit=1000))
        found: list[str] = []
        after, ended = 0, False
        while not ended:
            page = await log_of(home, run, afterSeq=after, limit=30)
            assert page["returnedLines"] <= 30
            found += texts(page)
            after, ended = page["nextSeq"], page["ended"]
        assert found == whole
        first = await log_of(home, run, offset=0, limit=10)
        rest = await log_of(home, run, afterSeq=first["nextSeq"], limit=1000)
        assert texts(first) + texts(rest) == whole

    play(tmp_path, scenario)


@pytest.mark.requirement("log:long-poll")
def test_a_reader_behind_the_end_is_held_until_there_is_something_new(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        gate = tmp_path / "gate"
        task = f"echo one; until test -e {gate}; do sleep 0.05; done; echo two"
        run = (await home.spawn("shell", task=task))["runId"]
        async with asyncio.timeout(20):
            while "one" not in texts(page := await log_of(home, run)):  # noqa: ASYNC110  its daemon
                await asyncio.sleep(0.02)
        began = time.monotonic()
        empty = await log_of(home, run, afterSeq=page["nextSeq"], waitSeconds=1)
        assert (texts(empty), empty["ended"]) == ([], False)
        assert time.monotonic() - began >= 0.9
        held = asyncio.create_task(
            log_of(home, run, afterSeq=page["nextSeq"], grep="two", waitSeconds=30)
        )
        await until(lambda: bool(home.services.engine.recorder.readers))
        gate.touch()
        assert texts(await held) == ["two"]
        end = page["nextSeq"]
        while True:
            last = await log_of(home, run, afterSeq=end, waitSeconds=30)
            end = last["nextSeq"]
            if last["ended"]:
                break
        assert texts(last)[-1].endswith("run ended: ok")
        # A run that is over holds nobody: nobody would wait so long for the answer.
        assert texts(await log_of(home, run, afterSeq=end, waitSeconds=WAIT_SECONDS_MAX)) == []
        assert not home.services.engine.recorder.readers

    play(tmp_path, scenario)


@pytest.mark.requirement("log:attempt")
def test_the_lines_of_one_attempt_and_they_end_with_it(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        task = "test -e again && echo second || { touch again; echo first; exit 1; }"
        run = (await home.spawn("shell", task=task, retryCount=1, retryDelay=10))["runId"]
        await home.wait(run)
        first = await log_of(home, run, attempt=1, type="text")
        second = await log_of(home, run, attempt=2, type="text")
        assert (texts(first), texts(second)) == (["first"], ["second"])
        assert {line["attempt"] for line in (await log_of(home, run))["lines"]} == {1, 2}

    play(tmp_path, scenario)


@pytest.mark.requirement("log:own")
def test_only_the_own_tree_can_be_read(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        mine = (await home.spawn("hang"))["runId"]
        other = (await home.spawn("hang"))["runId"]
        await home.until_phase(mine, "running")
        status, answered = await home.call(
            "GET", f"/v1/runs/{other}/log", headers=home.worker(mine)
        )
        assert (status, answered["code"]) == (403, "forbidden")
        own = await home.ok("GET", f"/v1/runs/{mine}/log", headers=home.worker(mine))
        assert own["runId"] == mine

    play(tmp_path, scenario)


# -- attention ------------------------------------------------------------------------------------

IMPATIENT = """
[agents.moody]
runtime = "command"
command = ["sh", "-c", "{task}"]
alerts = { stuck_seconds = 1 }
"""


@pytest.mark.requirement("attention:concerns")
def test_attention_names_a_worker_that_is_stuck_or_fails_until_it_goes_on(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        gate = tmp_path / "gate"
        failing = {
            "subagents": "tool",
            "name": "Bash",
            "input": {"command": "make"},
            "exitCode": 2,
        }
        fine = {**failing, "exitCode": 0}
        task = "\n".join(
            (events(*[failing] * 3), f"until test -e {gate}; do sleep 0.05; done", events(fine))
        )
        run = (await home.spawn("moody", task=f"{task}\nsleep 30", label="job"))["runId"]

        async def kinds(wanted: set[str]) -> list[dict[str, Any]]:
            async with asyncio.timeout(30):
                while True:
                    items = (await home.ok("GET", "/v1/attention"))["items"]
                    if {each["kind"] for each in items} == wanted:
                        return list(items)
                    await asyncio.sleep(0.05)

        items = await kinds({"stuck", "failure_loop"})
        told = {each["kind"]: each["text"] for each in items}
        assert told["failure_loop"] == "3 Bash failures in a row"
        assert told["stuck"].startswith("no sign of life for ")
        assert {each["runId"] for each in items} == {run}
        gate.touch()
        # The tool succeeded; a second later it is silent again.
        await kinds({"stuck"})
        await home.ok("POST", f"/v1/runs/{run}/cancel", {})
        await home.wait(run)
        items = (await home.ok("GET", "/v1/attention"))["items"]
        assert [each["kind"] for each in items if each["kind"] in told] == []

    play(tmp_path, scenario, CONFIG + IMPATIENT)
