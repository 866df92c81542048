"""Tools that look: lists, trees, logs, causes, results, agents; each bounded and to one's own."""

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.api.home_daemon import until
from tests.api.tools.tool_seats import CONFIG, LONG_CHARS, Seat, play

from subagents.api.tools import list_tools as look_tools
from subagents.api.tools import tool_wording as wording
from subagents.api.tools.tool import ANSWER_CHARS_MAX
from subagents.domain.run.run import Progress

ROW = {
    *("sessionKey", "runId", "label", "agentId", "runStatus", "pendingRequestCount"),
    *("blockedReason", "phase", "outcome", "latestProgress", "usage", "subtreeUsage"),
    *("startedAt", "endedAt"),
}
NODE = {
    *("sessionKey", "runId", "label", "runStatus", "pendingRequestCount", "phase"),
    *("verification", "completion", "latestProgress", "subtreeUsage", "budget", "children"),
}


def labels(document: Any) -> list[str]:
    return [each["label"] for each in document["sessions"]]


@pytest.mark.requirement("tools:list")
def test_the_list_has_the_documented_rows_newest_first_and_pages(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        for label in ("one", "two", "three"):
            await desk.spawn("quick", label=label)
        await desk.elsewhere("other").spawn("quick", label="theirs")
        first = await desk.ok("sessions_list", limit=2)
        rest = await desk.ok("sessions_list", limit=2, offset=first["nextOffset"])

        assert labels(first) == ["three", "two"]
        assert (first["total"], first["nextOffset"]) == (3, 2)
        assert labels(rest) == ["one"]
        assert rest["nextOffset"] is None
        assert all(set(each) == ROW for each in first["sessions"])
        assert labels(await desk.ok("subagents", action="list")) == ["three", "two", "one"]

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:list")
def test_each_filter_of_the_list_keeps_what_fits(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        await desk.spawn("quick", label="done", tags=["night"])
        await desk.until_phase(
            (await desk.ok("sessions_list"))["sessions"][0]["runId"], "completed"
        )
        await desk.spawn("hang", label="open", tags=["day", "né"])
        await desk.spawn("slow", label="bound", mode="session", thread=True)

        assert labels(await desk.ok("sessions_list", label="done")) == ["done"]
        assert labels(await desk.ok("sessions_list", agentId="hang")) == ["open"]
        assert labels(await desk.ok("sessions_list", phase="completed, waiting")) == ["done"]
        assert labels(await desk.ok("sessions_list", tag="né")) == ["open"]
        assert labels(await desk.ok("sessions_list", tag="night", agentId="hang")) == []
        assert labels(await desk.ok("sessions_list", kinds=["session"])) == ["bound"]
        assert len(labels(await desk.ok("sessions_list", activeMinutes=5))) == 3
        later = time.time_ns() // 1_000_000 + 10 * 60_000
        object.__setattr__(desk.home.services, "now_ms", lambda: later)
        assert "done" not in labels(await desk.ok("sessions_list", activeMinutes=5))
        paged = await desk.ok("sessions_list", kinds=["run", "session"], limit=1, offset=1)
        assert (len(labels(paged)), paged["total"], paged["nextOffset"]) == (1, 3, 2)

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:list")
def test_the_list_says_what_a_run_is_blocked_by_and_the_tree_only_that_it_is(
    tmp_path: Path,
) -> None:
    async def scenario(desk: Seat) -> None:
        boss = await desk.worker("boss", label="boss")
        engine = desk.home.services.engine
        await engine.ask(boss.run_id, "left or right?", timeout_s=60)
        await engine.progress(
            boss.run_id, Progress(phase="packing", percent_complete=40, updated_at_ms=1)
        )
        (row,) = (await desk.ok("sessions_list"))["sessions"]
        tree = await desk.call("sessions_tree")
        roots = tree.structured["roots"]

        assert isinstance(roots, list)
        (node,) = roots
        assert (row["runStatus"], row["pendingRequestCount"]) == ("blocked", 1)
        assert row["blockedReason"] == "left or right?"
        assert (node["runStatus"], node["pendingRequestCount"]) == ("blocked", 1)
        assert node["latestProgress"]["phase"] == "packing"
        assert "left or right?" not in msgspec.json.encode(tree.structured).decode()
        assert "left or right?" not in tree.text
        assert "blocked 40 % (packing) [1 open question]" in tree.text

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:tree")
def test_the_tree_shows_runs_below_runs_down_to_a_depth(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        await desk.spawn("quick", label="alone")
        boss = await desk.worker("boss", label="boss")
        await boss.spawn("hang", label="below")
        whole = await desk.call("sessions_tree")
        flat = await desk.ok("sessions_tree", depth=1)
        part = await desk.ok("sessions_tree", root="boss")
        own = await boss.ok("sessions_tree")

        roots = whole.structured["roots"]
        assert isinstance(roots, list)
        assert [each["label"] for each in roots] == ["alone", "boss"]
        assert all(set(each) == NODE for each in roots)
        assert [each["label"] for each in roots[1]["children"]] == ["below"]
        assert whole.text.splitlines()[2].startswith("  r-")
        assert (flat["roots"][1]["children"], flat["hidden"]) == ([], 1)
        assert [each["label"] for each in part["roots"]] == ["boss"]
        assert [each["label"] for each in own["roots"]] == ["below"]

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:tree")
def test_what_was_checked_and_what_the_worker_claims_shows_in_tree_and_wait(
    tmp_path: Path,
) -> None:
    async def scenario(desk: Seat) -> None:
        artifacts = [{"path": "out.json", "json": True, "minItems": 1}, {"path": "no.txt"}]
        contract = {"artifacts": artifacts, "requireCompletionReport": True}
        await desk.spawn("proud", label="proud", verification=contract)
        waited = await desk.call("sessions_wait", runIds=["proud"], timeoutSeconds=15)
        (node,) = (await desk.ok("sessions_tree"))["roots"]
        completed = waited.structured["completed"]

        assert isinstance(completed, list)
        assert node["verification"] == completed[0]["verification"]["status"] == "failed"
        assert node["completion"] == {"status": "complete", "confidence": "low"}
        checks = completed[0]["verification"]["checks"]
        # What failed comes first.
        assert [each["passed"] for each in checks] == [False, True, True]
        assert checks[0]["target"] == "no.txt"
        assert completed[0]["report"]["summary"] == "all ``` done"
        assert completed[0]["artifacts"][0] == {
            "path": "out.json",
            "description": None,
            "verified": True,
        }
        assert "````\nall ``` done\n\nr\n````" in waited.text
        assert "verified: 2/3 checks" in waited.text

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:tree")
def test_a_tree_of_too_many_runs_says_how_many_it_hides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_tools, "NODES_MAX", 3)

    async def scenario(desk: Seat) -> None:
        await desk.ok("sessions_spawn", agentId="hang", batch=[{"task": "x"}] * 7)
        answer = await desk.call("sessions_tree")

        assert answer.structured["hidden"] == 4
        assert "4 more runs: give root or a smaller depth" in answer.text

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:own-subtree")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sessions_tree", {"root": "{id}"}),
        ("sessions_history", {"sessionKey": "{id}"}),
        ("sessions_history", {"sessionKey": "{key}"}),
        ("sessions_send", {"sessionKey": "{key}", "message": "x"}),
        ("sessions_send", {"label": "theirs", "message": "x"}),
        ("respond_orchestrator_request", {"requestId": "{id}:q1", "response": "x"}),
        ("subagents", {"action": "answer", "target": "{id}:q1", "message": "x"}),
        *(
            ("subagents", {"action": action, "target": "{id}", "message": "x"})
            for action in ("status", "log", "steer", "kill", "pause", "resume", "why", "answer")
        ),
        ("subagents", {"action": "result", "target": "{id}"}),
    ],
)
def test_somebody_elses_run_is_refused_by_every_tool_and_the_refusal_kept(
    tmp_path: Path, name: str, arguments: dict[str, str]
) -> None:
    async def scenario(desk: Seat) -> None:
        other = desk.elsewhere("other")
        theirs = await other.worker("boss", label="theirs")
        await desk.home.services.engine.ask(theirs.run_id, "who?", timeout_s=60)
        given = {
            key: value.format(id=theirs.run_id, key=theirs.caller.session)
            for key, value in arguments.items()
        }
        sibling = await desk.worker("boss", label="mine")
        for seat in (desk, sibling):
            answer = await seat.refused(name, **given)

            assert answer.structured["status"] == "forbidden"
            assert answer.structured["details"] == {"guardrail": "ownership"}
            assert f"run {theirs.run_id} belongs to another session" in answer.text
        run = await desk.home.services.queries.run(theirs.run_id)
        assert run.control.cancel is None
        assert run.control.steers == ()
        assert len(run.pending_requests) == 1
        kept = await desk.home.services.refusals.recent()
        assert [(each.call, each.by) for each in kept] == [
            (name, desk.caller.session),
            (name, sibling.caller.session),
        ]

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:own-subtree")
def test_a_worker_reaches_what_is_below_it_and_not_itself_or_above(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        above = await desk.spawn("hang", label="sister")
        boss = await desk.worker("boss", label="boss")
        child = await boss.worker("hang", label="child")
        grandchildren = await desk.ok("subagents", action="status", target=child.run_id)

        assert (await boss.ok("subagents", action="status", target="child"))["label"] == "child"
        assert grandchildren["label"] == "child"
        await boss.refused("subagents", action="status", target=above)
        await boss.refused("subagents", action="kill", target="sister")
        self_steer = await boss.refused("sessions_send", sessionKey=boss.run_id, message="go")
        assert "a run cannot steer itself" in self_steer.text

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:selectors")
def test_a_run_is_found_by_id_label_prefix_last_and_the_session_of_any_attempt(
    tmp_path: Path,
) -> None:
    async def scenario(desk: Seat) -> None:
        run_id = await desk.spawn("bad", label="twice", retryCount=1, retryDelay=1)
        run = await desk.until_phase(run_id, "completed")
        await until(lambda: run.id not in desk.home.services.engine._parts.ledger.published)
        keys = [each.session.key for each in run.attempts]

        assert len(set(keys)) == 2
        for target in (run_id, "twice", run_id[:8], "last", *keys):
            found = await desk.ok("subagents", action="status", target=target)
            assert found["runId"] == run_id
        none = await desk.refused("subagents", action="status", target="agent:bad:subagent:0-0-0-0")
        assert none.structured["code"] == "not_found"

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:log")
def test_the_log_brings_the_newest_lines_or_what_is_asked_for_and_hides_secrets(
    tmp_path: Path,
) -> None:
    async def scenario(desk: Seat) -> None:
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
def test_a_page_of_long_lines_is_shorter_and_its_cursor_goes_on_behind_it(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
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
            page = await desk.ok(
                "subagents", action="log", target=run_id, afterSeq=after, type="text"
            )
            found += [line["text"].split()[0] for line in page["lines"]]
            after, ended = page["nextSeq"], page["ended"]
        assert found == [str(number) for number in range(1, 21)]

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:log")
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"tail": 1, "offset": 1}, "tail and offset exclude each other"),
        ({"attempt": 7}, "has 1 attempts, no attempt 7"),
        ({"type": "out"}, 'type must be "text"'),
        ({"limit": 10_001}, "limit must be 1 to 10000 for action=log"),
        ({"since": "noon"}, "since must be a duration"),
        ({"grep": "["}, "grep"),
        ({"stream": "out"}, 'unknown parameter "stream"'),
        ({"summary": True, "grep": "x"}, "grep and summary exclude each other"),
    ],
)
def test_a_log_that_cannot_be_is_refused_by_what_is_wrong(
    tmp_path: Path, asked: dict[str, Any], message: str
) -> None:
    async def scenario(desk: Seat) -> None:
        run_id = await desk.spawn("hang")
        await desk.until_phase(run_id, "running")
        refused = await desk.refused("subagents", action="log", target=run_id, **asked)
        assert message in refused.text

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:status", "status:fields")
def test_status_says_what_a_run_is_at_in_two_lines_and_as_data(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
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

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:result")
def test_the_whole_result_is_read_page_by_page_and_reading_it_consumes_the_news(
    tmp_path: Path,
) -> None:
    async def scenario(desk: Seat) -> None:
        run_id = await desk.spawn("long")
        open_run = await desk.spawn("hang")
        await desk.until_phase(run_id, "completed")
        first = await desk.call("subagents", action="result", target=run_id)
        rest = await desk.call(
            "subagents", action="result", target=run_id, offset=first.structured["nextOffset"]
        )

        texts = [str(each.structured["result"]) for each in (first, rest)]
        assert "".join(texts) == "é" * LONG_CHARS
        assert rest.structured["nextOffset"] is None
        assert "10000 more characters: offset=20000" in first.text
        assert len(first.text) <= ANSWER_CHARS_MAX
        assert first.offered == (f"{run_id}:announce",)
        assert await desk.acknowledge(first) == 1
        assert (await desk.call("subagents", action="inbox")).offered == ()
        early = await desk.refused("subagents", action="result", target=open_run)
        assert early.structured["code"] == "conflict"
        assert f"hint: sessions_wait runIds=[{open_run}]" in early.text

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:why")
def test_why_and_attention_tell_the_story_of_a_failure(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        run_id = await desk.spawn("bad", label="broken")
        await desk.until_phase(run_id, "completed")
        why = await desk.call("subagents", action="why", target=run_id)
        items = (await desk.ok("subagents", action="attention"))["items"]

        assert "attempt 1 exited with code 1" in why.text
        assert why.structured["why"] == "failed: exit code 1; the result waits in the inbox"
        assert [(each["kind"], each["runId"]) for each in items] == [("failed", run_id)]
        assert (await desk.elsewhere("o").ok("subagents", action="attention"))["items"] == []

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:agents")
def test_the_agents_one_may_spawn_are_listed_with_card_load_and_record(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        await desk.spawn("bad")
        await desk.ok("sessions_wait")
        await desk.spawn("leaf")
        await desk.spawn("leaf")
        ledger = desk.home.services.engine._parts.ledger
        await until(lambda: ledger.lanes.held(("narrow", 1)) == 1)
        found = {each["id"]: each for each in (await desk.ok("agents_list"))["agents"]}
        boss = await desk.worker("boss")

        assert set(found) == {
            "quick",
            "hang",
            "bad",
            "shell",
            "slow",
            "long",
            "boss",
            "leaf",
            "proud",
        }
        assert found["quick"]["tags"] == ["fast"]
        assert found["quick"]["typicalLatency"] == "1s"
        assert found["quick"]["record"] is None
        assert found["bad"]["record"]["outcomes"] == {"failure": 1}
        assert found["bad"]["record"]["success"]["n"] == 1
        assert found["bad"]["record"]["text"] == "0 of 1 runs ok (0–79 %), without a contract"
        # Without a capability card an agent appears all the same.
        assert found["leaf"]["description"] is None
        assert found["leaf"]["load"] == {
            "active": 1,
            "queued": 1,
            "lane": "narrow",
            "used": 1,
            "slots": 1,
        }
        assert "env" not in found["shell"]
        mine = [each["id"] for each in (await boss.ok("agents_list"))["agents"]]
        assert mine == ["boss", "hang", "quick"]
        assert (await desk.ok("sessions_list"))["total"] == 4

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:agents")
def test_a_hint_or_tags_rank_the_agents_with_reasons_and_start_none(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        hinted = await desk.call("agents_list", hint="review the tests of my code", limit=2)
        tagged = await desk.ok("agents_list", tags=["FAST"], costTier="cheap")

        agents = hinted.structured["agents"]
        assert isinstance(agents, list)
        assert hinted.structured["ranked"] is True
        assert agents[0]["id"] == "bad"
        assert len(agents) == 2
        assert "the hint names its tags: review" in agents[0]["reasons"]
        assert "the hint names its tags: review" in hinted.text
        assert "7 more: raise limit" in hinted.text
        assert tagged["agents"][0]["id"] == "quick"
        assert tagged["agents"][-1]["id"] == "bad"
        assert (await desk.ok("sessions_list"))["total"] == 0

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:agents")
def test_whoever_may_spawn_nobody_is_told_which_key_says_so(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        answer = await desk.call("agents_list")

        assert answer.structured["agents"] == []
        assert "agents.main.subagents.allow_agents" in answer.text
        assert answer.structured["hint"] == answer.text, "Claude Code shows the data alone"

    start = CONFIG.index("subagents.allow_agents")
    end = CONFIG.index("\n", start)
    play(tmp_path, scenario, CONFIG[:start] + "subagents.allow_agents = []" + CONFIG[end:])


@pytest.mark.requirement("tools:wait:bounded")
def test_a_page_of_the_longest_rows_stays_small_enough_for_a_context(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        batch = [{"task": "x", "label": f"{number:02}{'é' * 78}"} for number in range(60)]
        found = await desk.ok("sessions_spawn", agentId="boss", batch=batch)
        ids = [each["runId"] for each in found["receipts"]]
        for run_id in ids[:4]:
            await desk.until_phase(run_id, "running")
            await desk.home.services.engine.ask(run_id, "?" * 4000, timeout_s=60)
        answer = await desk.call("sessions_list", limit=200)

        assert len(answer.text) <= ANSWER_CHARS_MAX
        assert len(msgspec.json.encode(answer.structured)) <= ANSWER_CHARS_MAX
        rows = answer.structured["sessions"]
        assert isinstance(rows, list)
        reasons = [each["blockedReason"] for each in rows if each["blockedReason"]]
        assert len(reasons) == 4
        assert all(len(each) < wording.ENTRY_CHARS_MAX + 40 for each in reasons)

    play(tmp_path, scenario)
