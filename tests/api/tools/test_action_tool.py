"""The tool "subagents": one function for each action, and refusals that name what is wrong."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.api.tools.tool_callers import CONFIG, LONG_CHARS, ToolCaller, play

from subagents.api.tools import action_tool
from subagents.api.tools.tool import ANSWER_CHARS_MAX


@pytest.mark.requirement("tools:kill")
async def test_kill_ends_a_run_and_all_below_it_and_can_be_repeated(desk: ToolCaller) -> None:
    boss = await desk.worker("boss", label="boss")
    child = await boss.worker("hang", label="child")
    answer = await desk.call("subagents", action="kill", target="boss", message="enough")
    waited = await desk.ok("sessions_wait", runIds=["boss"], timeoutSeconds=15)
    again = await desk.ok("subagents", action="kill", target="boss")

    assert answer.structured["status"] == "cancelling"
    assert waited["completed"][0]["outcome"]["status"] == "cancelled"
    assert again["status"] == "already ended"
    run = await desk.home.services.engine.queries.run(child.run_id)
    assert run.outcome is not None
    assert run.outcome.status == "cancelled"
    boss_run = await desk.home.services.engine.queries.run(boss.run_id)
    cancel = boss_run.control.cancel
    assert cancel is not None
    assert (cancel.by, cancel.reason) == (
        desk.caller.session,
        "enough",
    )


@pytest.mark.requirement("tools:pause")
async def test_a_run_that_has_not_started_is_held_and_let_go(desk: ToolCaller) -> None:
    await desk.spawn("slow", label="first")
    run_id = await desk.spawn("quick", label="second", chainAfter="first")
    paused = await desk.ok("subagents", action="pause", target="second")
    await desk.until_phase(run_id, "queued")
    held = await desk.ok("subagents", action="status", target="second")
    resumed = await desk.ok("subagents", action="resume", target="second")
    waited = await desk.ok("sessions_wait", runIds=["second"], timeoutSeconds=15)

    assert paused["paused"] is True
    assert (held["runStatus"], held["paused"]) == ("paused", True)
    assert resumed["paused"] is False
    assert waited["completed"][0]["outcome"]["status"] == "ok"


@pytest.mark.requirement("tools:respond")
async def test_the_one_open_question_of_a_run_is_answered_by_naming_the_run(
    desk: ToolCaller,
) -> None:
    boss = await desk.worker("boss", label="boss")
    engine = desk.home.services.engine
    none = await desk.refused("subagents", action="answer", target="boss", message="x")
    first = await engine.questions.ask(boss.run_id, "one?", timeout_s=60)
    done = await desk.ok("subagents", action="answer", target="boss", message="yes")
    second = await engine.questions.ask(boss.run_id, "two?", timeout_s=60)
    third = await engine.questions.ask(boss.run_id, "three?", timeout_s=60)
    several = await desk.refused("subagents", action="answer", target="boss", message="x")
    named = await desk.ok("subagents", action="answer", target=third.id, message="y")

    assert "has no open question" in none.text
    assert (done["requestId"], done["status"]) == (first.id, "answered")
    assert f"has 2 open questions: {second.id}, {third.id}" in several.text
    assert named["requestId"] == third.id


@pytest.mark.requirement("tools:attention")
async def test_of_more_than_fits_that_needs_somebody_the_rest_is_counted(
    desk: ToolCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(action_tool, "ATTENTION_MAX", 1)
    boss = await desk.worker("boss", label="boss")
    for number in range(3):
        await desk.home.services.engine.questions.ask(boss.run_id, f"{number}?", timeout_s=60)
    answer = await desk.call("subagents", action="attention")
    found = dict[str, Any](answer.structured)

    assert (len(found["items"]), found["hidden"]) == (1, 2)
    assert "2 more, once these are settled" in answer.text


@pytest.mark.requirement("tools:refuses-bad-input")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "action is required"),
        ({"action": "stop"}, 'action must be "list" or "status"'),
        ({"action": "resum"}, 'did you mean "resume"?'),
        ({"action": "status"}, "target is required for action=status"),
        ({"action": "kill", "target": "x" * 301}, "target must be"),
        ({"action": "kill", "target": "live", "message": "x" * 4001}, "1 to 4000 characters"),
        ({"action": "answer", "target": "live"}, "message is required for action=answer"),
        ({"action": "log", "target": "live", "limit": 0}, "limit must be"),
        ({"action": "log", "target": "live", "offset": -1}, "offset must be"),
        ({"action": "log", "target": "live", "tail": 1e9}, "tail must be"),
        ({"action": "log", "target": "live", "pattern": "x"}, 'unknown parameter "pattern"'),
        ({"action": "status", "target": "lïve\0"}, "target must not contain a NUL byte"),
        ({"action": "status", "target": "\udfff"}, "target must be valid UTF-8"),
        ({"action": "resume", "target": "over"}, "is completed"),
        ({"action": "pause", "target": "over"}, "cannot be paused"),
    ],
)
@pytest.mark.configured(CONFIG)
async def test_an_action_that_makes_no_sense_is_refused_by_the_name_of_what_is_wrong(
    desk: ToolCaller, arguments: dict[str, Any], says: str
) -> None:
    await desk.worker("hang", label="live")
    over = await desk.spawn("quick", label="over")
    await desk.until_phase(over, "completed")

    assert says in (await desk.refused("subagents", **arguments)).text


@pytest.mark.requirement("tools:log")
def test_the_log_brings_the_newest_lines_or_what_is_asked_for_and_hides_secrets(
    tmp_path: Path,
) -> None:
    async def scenario(desk: ToolCaller) -> None:
        key = "sk-ant-api03-" + "a1B2" * 12
        script = f"seq 1 200; echo KEY={key}; echo 'oops: an error' >&2"
        run_id = await desk.spawn("shell", task=script)
        await desk.ok("sessions_wait", runIds=[run_id], timeoutSeconds=15)

        async def log(**asked: object) -> Any:
            return await desk.ok("subagents", action="log", target=run_id, **asked)

        newest = await desk.call("subagents", action="log", target=run_id)
        assert newest.text.startswith(f"{run_id}: lines 155 to 204 of 205 (seq ")
        assert " text: 200\n" in newest.text
        assert " text: 1\n" not in newest.text
        assert key not in newest.text + str(newest.structured)
        assert "KEY=[redacted]" in newest.text
        assert newest.text.count("```") == 2
        window = await log(offset=2, limit=3)
        assert [line["text"] for line in window["lines"]] == ["1", "2", "3"]
        more = await log(afterSeq=window["nextSeq"], limit=2)
        assert [line["text"] for line in more["lines"]] == ["4", "5"]
        assert [line["text"] for line in (await log(type="error"))["lines"]] == ["oops: an error"]
        assert (await log(grep="^1.$", limit=2))["totalLines"] == 10
        assert (await log(tail=2))["returnedLines"] == 2
        assert (await log(since="1h", limit=1))["totalLines"] == 205
        brief = await desk.call("subagents", action="log", target=run_id, summary=True)
        assert brief.structured["writtenBy"] == "digest"
        assert "errors:" in brief.text

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:log")
async def test_a_page_of_long_lines_is_shorter_and_its_cursor_goes_on_behind_it(
    desk: ToolCaller,
) -> None:
    script = "for n in $(seq 1 20); do echo $n $(printf %4000s | tr ' ' x); done"
    run_id = await desk.spawn("shell", task=script)
    await desk.ok("sessions_wait", runIds=[run_id], timeoutSeconds=15)
    newest = await desk.call("subagents", action="log", target=run_id)
    assert len(newest.text) < 30_000
    assert int(str(newest.structured["returnedLines"])) < 10
    assert newest.structured["ended"]
    found: list[str] = []
    after: object = 0
    ended = False
    while not ended:
        page = await desk.ok("subagents", action="log", target=run_id, afterSeq=after, type="text")
        found += [line["text"].split()[0] for line in page["lines"]]
        after, ended = page["nextSeq"], page["ended"]
    assert found == [str(number) for number in range(1, 21)]


@pytest.mark.requirement("tools:log")
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"tail": 1, "offset": 1}, "tail and offset exclude each other"),
        ({"attempt": 7}, "has 1 attempts, no attempt 7"),
        ({"type": "out"}, 'type must be "text"'),
        ({"limit": 10_001}, "limit must be 1 to 10000 for action=log"),
        ({"since": "noon"}, "since must be today, yesterday, a duration"),
        ({"grep": "["}, "grep"),
        ({"stream": "out"}, 'unknown parameter "stream"'),
        ({"summary": True, "grep": "x"}, "grep and summary exclude each other"),
    ],
)
async def test_a_log_that_cannot_be_is_refused_by_what_is_wrong(
    desk: ToolCaller, asked: dict[str, Any], message: str
) -> None:
    run_id = await desk.spawn("hang")
    await desk.until_phase(run_id, "running")
    refused = await desk.refused("subagents", action="log", target=run_id, **asked)
    assert message in refused.text


@pytest.mark.requirement("tools:status", "status:fields")
async def test_status_says_what_a_run_is_at_in_two_lines_and_as_data(desk: ToolCaller) -> None:
    usage = '{"subagents": "usage", "tokensIn": 4000, "tokensOut": 200}'
    said = '{"subagents": "progress", "phase": "half", "percentComplete": 50}'
    script = f"echo '{usage}'; echo '{said}'; sleep 30"
    run_id = await desk.spawn("shell", task=script, label="job")
    found: dict[str, Any] = {}
    async with asyncio.timeout(20):
        while not found.get("latestProgress") or not found.get("tokensIn"):
            answer = await desk.call("subagents", action="status", target="job")
            found = dict(answer.structured)
    first, second = answer.text.splitlines()[:2]
    assert first == f'{run_id} "job" shell running 50 % (half)'
    assert "tokens 4000 in, 200 out" in second
    assert "$" not in second
    assert "s at work" in second
    assert found["costUsd"] is None
    assert found["latestProgress"]["phase"] == "half"
    (node,) = (await desk.ok("sessions_tree"))["roots"]
    (row,) = (await desk.ok("sessions_list"))["sessions"]
    assert node["latestProgress"] == row["latestProgress"] == found["latestProgress"]
    await desk.ok("subagents", action="kill", target=run_id)


@pytest.mark.requirement("tools:result")
async def test_the_whole_result_is_read_page_by_page_and_reading_it_consumes_the_news(
    desk: ToolCaller,
) -> None:
    run_id = await desk.spawn("long")
    open_run = await desk.spawn("hang")
    await desk.until_phase(run_id, "completed")
    first = await desk.call("subagents", action="result", target=run_id)
    pages = [first]
    while (after := pages[-1].structured["nextOffset"]) is not None:
        pages.append(await desk.call("subagents", action="result", target=run_id, offset=after))

    texts = [str(each.structured["result"]) for each in pages]
    assert "".join(texts) == "é" * LONG_CHARS
    assert "40000 more bytes: offset=20000" in first.text
    assert len(first.text) <= ANSWER_CHARS_MAX
    assert first.offered == (f"{run_id}:announce",)
    assert await desk.acknowledge(first) == 1
    assert (await desk.call("subagents", action="inbox")).offered == ()
    early = await desk.refused("subagents", action="result", target=open_run)
    assert early.structured["code"] == "conflict"
    assert f"hint: sessions_wait runIds=[{open_run}]" in early.text


@pytest.mark.requirement("tools:why")
async def test_why_and_attention_tell_the_story_of_a_failure(desk: ToolCaller) -> None:
    run_id = await desk.spawn("bad", label="broken")
    await desk.until_phase(run_id, "completed")
    why = await desk.call("subagents", action="why", target=run_id)
    items = (await desk.ok("subagents", action="attention"))["items"]

    assert "attempt 1 exited with code 1" in why.text
    assert why.structured["why"] == "failed: exit code 1; the result waits in the inbox"
    assert [(each["kind"], each["runId"]) for each in items] == [("failed", run_id)]
    assert (await desk.elsewhere("o").ok("subagents", action="attention"))["items"] == []
