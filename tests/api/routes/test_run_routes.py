"""Runs over HTTP: lists, views of one run, and what callers do to it."""

from pathlib import Path

import pytest
from tests.api.home_daemon import Document, Home, play, segment

from subagents.client.client import AsyncClient
from subagents.domain.run.values import RunId
from subagents.engine.runs import queries
from subagents.errors import UsageError


@pytest.mark.requirement("http:runs:views")
async def test_every_view_of_an_ended_run_agrees_on_what_happened(home: Home) -> None:
    run_id = (await home.spawn("bad", label="a/b #1"))["runId"]
    await home.wait(run_id)
    await home.until_phase(run_id, "completed")
    base = f"/v1/runs/{segment('a/b #1')}"

    detail = await home.ok("GET", base)
    assert detail["runId"] == run_id
    assert detail["outcome"] == {
        "status": "error",
        "reason": "exit_code",
        "error": "exit code 1",
    }
    assert detail["attempts"][0]["exitCode"] == 1
    assert (await home.ok("GET", f"{base}/result"))["result"] == "half"
    assert (await home.ok("GET", f"{base}/tree"))["children"] == []
    why = await home.ok("GET", f"{base}/why")
    assert why["why"] == "failed: exit code 1; the result waits in the inbox"
    assert (why["runId"], why["label"]) == (detail["runId"], detail["label"])
    assert "attempt 1 exited with code 1" in [step["text"] for step in why["steps"]]
    assert why["deliveryTries"][0]["outcome"] == {"kind": "delivered", "path": "queued"}
    (root,) = (await home.ok("GET", "/v1/tree"))["roots"]
    assert root["runStatus"] == "error"
    (attention,) = (await home.ok("GET", "/v1/attention"))["items"]
    assert (attention["kind"], attention["text"]) == ("failed", "exit code 1")


@pytest.mark.requirement("http:timeline:paged")
async def test_pages_of_the_timeline_put_together_are_the_whole_timeline(home: Home) -> None:
    run_id = (await home.spawn())["runId"]
    await home.until_phase(run_id, "completed")
    whole = await home.ok("GET", f"/v1/runs/{run_id}/timeline")
    pages: list[Document] = []
    after: int | None = 0
    while after is not None:
        page = await home.ok("GET", f"/v1/runs/{run_id}/timeline?afterSeq={after}&limit=2")
        pages += page["events"]
        after = page["nextSeq"]

    assert whole["nextSeq"] is None
    assert pages == whole["events"]
    assert [event["seq"] for event in pages] == list(range(1, len(pages) + 1))
    assert [event["phase"] for event in pages][:3] == ["queued", "spawning", "running"]
    assert pages[-1]["phase"] == "completed"


@pytest.mark.requirement("http:list:filters")
async def test_lists_are_filtered_paged_and_counted(home: Home) -> None:
    for label in ("a", "b", "c"):
        await home.wait((await home.spawn(label=label))["runId"])
    hanging = (await home.spawn("hang", label="h"))["runId"]
    await home.until_phase(hanging, "running")

    page = await home.ok("GET", "/v1/runs?limit=2&offset=1")
    assert ([row["label"] for row in page["runs"]], page["total"]) == (["c", "b"], 4)
    running = await home.ok("GET", "/v1/runs?phase=running,waiting")
    assert [row["label"] for row in running["runs"]] == ["h"]
    assert (await home.ok("GET", "/v1/runs?agentId=quick&label=a"))["total"] == 1
    tree = await home.ok("GET", f"/v1/runs?tree={hanging}")
    assert [row["runId"] for row in tree["runs"]] == [hanging]
    assert (await home.ok("GET", "/v1/runs?requester=agent:main:other"))["total"] == 0


@pytest.mark.requirement("http:list:search")
def test_runs_and_trees_are_found_by_directory_tag_outcome_time_and_text(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        ended = (await home.spawn(label="old", tags=["nightly", "ui"]))["runId"]
        await home.wait(ended)
        there = tmp_path / "there" / "deeper"
        there.mkdir(parents=True)
        other = (await home.spawn("hang", label="Front Page", cwd=str(there)))["runId"]

        async def found(query: str) -> list[str]:
            listed = await home.ok("GET", f"/v1/runs?{query}")
            forest = await home.ok("GET", f"/v1/tree?{query}")
            assert listed["total"] == len(listed["runs"]) == len(forest["roots"])
            return [row["label"] for row in listed["runs"]]

        assert await found(f"directory={there.parent}") == ["Front Page"]
        assert await found("directory=/nowhere") == []
        assert await found("tag=nightly") == ["old"]
        assert await found("tag=ui,nightly") == ["old"]
        assert await found("tag=ui,daily") == []
        assert await found("outcome=ok,error") == ["old"]
        assert await found("q=front") == ["Front Page"]
        assert await found("since=1h") == ["Front Page", "old"]
        assert await found("until=1h") == []
        assert await found(f"agentId=hang&directory={there}&phase=queued,spawning,running") == [
            "Front Page"
        ]
        assert other
        for query, field in (
            ("directory=there", "directory"),
            ("outcome=good", "outcome"),
            ("since=soon", "since"),
            (f"q={'x' * 1_001}", "q"),
        ):
            status, refused = await home.call("GET", f"/v1/runs?{query}")
            assert (status, refused["details"]["field"]) == (422, field)

    play(tmp_path, scenario)


@pytest.mark.requirement("http:list:search")
async def test_a_persons_tree_has_the_runs_of_every_session_and_an_agents_its_own(
    home: Home,
) -> None:
    web = {"x-subagents-session": "agent:main:web"}
    body = {"spec": {"task": "x", "agentId": "quick", "label": "web"}, "cwd": home.cwd}
    await home.ok("POST", "/v1/runs", body, web)
    await home.spawn(label="mine")

    forest = await home.ok("GET", "/v1/tree")
    assert [root["label"] for root in forest["roots"]] == ["web", "mine"]
    theirs = await home.ok("GET", "/v1/tree?requester=agent:main:web")
    assert [root["label"] for root in theirs["roots"]] == ["web"]


@pytest.mark.requirement("http:list:bounded")
def test_what_nobody_would_page_through_is_not_counted_and_the_answer_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "COUNTED_MAX", 3)

    async def scenario(home: Home) -> None:
        runs = [(await home.spawn(label=f"n{n}"))["runId"] for n in range(10)]
        await home.wait(*runs)
        for run_id in runs[:5]:
            await home.until_phase(run_id, "completed")
            await home.services.engine.control.archive(RunId(run_id))

        async def counts(query: str) -> tuple[object, ...]:
            page = await home.ok("GET", f"/v1/runs?{query}")
            names = ("total", "totalIsBound", "hidden", "hiddenIsBound")
            return tuple(page.get(name) for name in names)

        assert await counts("limit=2") == (3, True, 3, True)
        assert await counts("limit=4") == (4, True, 3, True), "up to the end of the page"
        assert await counts("limit=5") == (5, False, 3, True)
        assert await counts("limit=3&offset=3") == (5, False, 3, True)
        assert await counts("limit=3&offset=9") == (5, False, 3, True), "behind the last one"
        assert await counts("limit=2&label=n0&archived=1") == (1, False, 0, False)
        forest = await home.ok("GET", "/v1/tree?archived=1")
        assert (len(forest["roots"]), forest["truncated"]) == (10, None)
        forest = await home.ok("GET", "/v1/tree?limit=2")
        assert forest["truncated"] == {"shown": 2, "total": 3, "totalIsBound": True}

    play(tmp_path, scenario)


@pytest.mark.requirement("http:list:pages")
@pytest.mark.parametrize("sort", ["newest", "oldest"])
async def test_pages_by_cursor_show_every_run_once_while_others_come(home: Home, sort: str) -> None:
    labels = [f"n{n}" for n in range(7)]
    for label in labels:
        await home.spawn(label=label)
    page = await home.ok("GET", f"/v1/runs?limit=3&sort={sort}")
    assert page["truncated"] == {"shown": 3, "total": 7, "totalIsBound": False}
    await home.spawn(label="late")

    seen = [row["label"] for row in page["runs"]]
    while page["nextCursor"] is not None:
        cursor = page["nextCursor"]
        page = await home.ok("GET", f"/v1/runs?limit=3&sort={sort}&cursor={cursor}")
        seen += [row["label"] for row in page["runs"]]

    wanted = labels[::-1] if sort == "newest" else [*labels, "late"]
    assert seen == wanted
    whole = await home.ok("GET", "/v1/runs")
    assert (whole["truncated"], whole["nextCursor"]) == (None, None)
    for query, field in (("cursor=3", "cursor"), ("cursor=1.r-1&offset=2", "offset")):
        status, refused = await home.call("GET", f"/v1/runs?{query}")
        assert (status, refused["details"]["field"]) == (422, field)


@pytest.mark.requirement("http:list:snapshot")
async def test_the_events_behind_the_number_of_a_list_bring_all_that_it_does_not_show(
    home: Home,
) -> None:
    before = await home.ok("GET", "/v1/runs")
    run_id = (await home.spawn("hang"))["runId"]
    await home.until_phase(run_id, "running")
    listed = await home.ok("GET", "/v1/runs")
    store_number = await home.services.engine.feed.newest()
    json = {"accept": "application/json"}
    since = await home.ok("GET", f"/v1/events?after={before['seq']}", headers=json)
    after = await home.ok("GET", f"/v1/events?after={listed['seq']}", headers=json)

    assert before["seq"] == 0
    assert {each["runId"] for each in since["events"]} == {run_id}
    assert listed["seq"] == store_number == since["seq"]
    assert after["events"] == []
    assert listed["nowAt"].endswith("Z")


@pytest.mark.requirement("http:list:search")
def test_runs_are_found_by_id_and_parent_and_roots_alone(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        parent = (await home.spawn("hang", label="parent"))["runId"]
        await home.until_phase(parent, "running")
        child = (await home.spawn(label="child", headers=home.worker(parent)))["runId"]

        async def found(query: str) -> list[str]:
            return [row["label"] for row in (await home.ok("GET", f"/v1/runs?{query}"))["runs"]]

        assert await found(f"q={child[:8]}") == ["child"]
        assert await found("model=small") == []
        assert await found(f"parent={parent}") == ["child"]
        assert await found("roots=1") == ["parent"]

    play(tmp_path, scenario)


@pytest.mark.requirement("http:list:hidden")
async def test_what_lists_and_trees_leave_out_as_archived_is_counted(home: Home) -> None:
    old, new = [(await home.spawn(label=label))["runId"] for label in ("old", "new")]
    await home.wait(old, new)
    await home.until_phase(old, "completed")
    await home.services.engine.control.archive(RunId(old))

    for path, name in (("/v1/runs?", "runs"), ("/v1/tree?", "roots")):
        seen = await home.ok("GET", path)
        assert ([row["label"] for row in seen[name]], seen["hidden"]) == (["new"], 1)
        whole = await home.ok("GET", f"{path}archived=1")
        assert {row["label"] for row in whole[name]} == {"old", "new"}
        assert whole["hidden"] == 0
    assert (await home.ok("GET", "/v1/runs?label=new"))["hidden"] == 0
    below = await home.ok("GET", f"/v1/runs?tree={old}")
    assert (below["runs"], below["total"], below["hidden"]) == ([], 0, 1)


@pytest.mark.requirement("http:control:cancel")
async def test_cancelling_ends_a_run_and_says_so_when_it_ended_before(home: Home) -> None:
    run_id = (await home.spawn("hang"))["runId"]
    await home.until_phase(run_id, "running")
    first = await home.ok("POST", f"/v1/runs/{run_id}/cancel", {"reason": "enough"})
    assert first["status"] == "cancelling"
    (item,) = (await home.wait(run_id))["completed"]
    assert item["outcome"]["status"] == "cancelled"
    again = await home.ok("POST", f"/v1/runs/{run_id}/cancel")
    assert (again["status"], again["outcome"]["status"]) == ("already ended", "cancelled")
    status, _ = await home.call("POST", f"/v1/runs/{run_id}/pause")
    assert status == 409
    assert (await home.ok("POST", f"/v1/runs/{run_id}/retry"))["runId"] != run_id


@pytest.mark.requirement("http:control:pause")
async def test_a_paused_run_waits_and_goes_on_when_resumed(home: Home) -> None:
    first = (await home.spawn("hang"))["runId"]
    run_id = (await home.spawn(chainAfter=first))["runId"]
    paused = await home.ok("POST", f"/v1/runs/{run_id}/pause")
    assert paused["runStatus"] == "paused"
    why = await home.ok("GET", f"/v1/runs/{run_id}/why")
    assert why["why"].startswith("paused by main; ")
    resumed = await home.ok("POST", f"/v1/runs/{run_id}/resume")
    assert resumed["runStatus"] == "waiting"
    steered = await home.ok("POST", f"/v1/runs/{first}/steer", {"message": "hurry"})
    assert steered["status"] == "steered"


@pytest.mark.requirement("results:whole")
async def test_a_result_is_read_whole_or_by_ranges_of_its_bytes(home: Home) -> None:
    run_id = (await home.spawn("bad"))["runId"]
    await home.until_phase(run_id, "completed")
    path = f"/v1/runs/{run_id}/result/text"
    async with AsyncClient(home.services.paths.socket) as client:
        assert await client.get_bytes(path) == b"half"
        assert await client.get_bytes(path, {"offset": 1, "limit": 2}) == b"al"
        assert await client.get_bytes(path, {"offset": 4}) == b""
        with pytest.raises(UsageError, match="limit"):
            await client.get_bytes(path, {"limit": 0})


@pytest.mark.requirement("cancel:planned")
async def test_a_cancel_with_a_grace_period_shows_in_the_row_and_is_taken_back(home: Home) -> None:
    run_id = (await home.spawn("hang", label="one"))["runId"]
    await home.until_phase(run_id, "running")

    planned = await home.ok("POST", "/v1/runs/one/cancel", {"after": "10m"})
    (row,) = (await home.ok("GET", "/v1/runs"))["runs"]
    back = await home.ok("DELETE", "/v1/runs/one/cancel")
    (after,) = (await home.ok("GET", "/v1/runs"))["runs"]

    assert (planned["status"], back["status"]) == ("planned", "not cancelled")
    assert row["cancelAt"] is not None
    assert "main cancels it in" in row["why"]
    assert (after["cancelAt"], after["phase"]) == (None, "running")
    status, refused = await home.call("POST", "/v1/runs/one/cancel", {"after": "31d"})
    assert (status, refused["details"]["field"]) == (422, "after")
    await home.ok("POST", "/v1/runs/one/cancel")
    await home.wait(run_id)
    assert (await home.call("DELETE", "/v1/runs/one/cancel"))[0] == 409


@pytest.mark.requirement("http:list:sort")
async def test_a_list_is_paged_by_when_its_runs_ended_and_leaves_out_what_has_not(
    home: Home,
) -> None:
    made = [(await home.spawn("quick", label=f"l{n}"))["runId"] for n in range(5)]
    await home.wait(*made)
    await home.spawn("hang", label="open")
    whole = await home.ok("GET", "/v1/runs?sort=ended")
    ends = [each["endedAt"] for each in whole["runs"]]
    assert (ends, whole["total"]) == (sorted(ends, reverse=True), 5)
    seen: list[str] = []
    cursor, sort = "", "ended_oldest"
    while True:
        query = f"?sort={sort}&limit=2" + (f"&cursor={cursor}" if cursor else "")
        page = await home.ok("GET", f"/v1/runs{query}")
        seen += [each["runId"] for each in page["runs"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == [each["runId"] for each in whole["runs"]][::-1]
    status, refused = await home.call("GET", "/v1/tree?sort=ended")
    assert (status, refused["details"]["field"]) == (422, "sort")


@pytest.mark.requirement("http:list:sort")
def test_the_costliest_come_first_of_all_that_fit_and_what_is_not_known_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "COUNTED_MAX", 5)
    used = [(5, 0.25), (300, 0.5), None, (20, 4.0), (0, 0.0)]

    async def scenario(home: Home) -> None:
        made = [(await home.spawn("shell", task="true", label="too-old"))["runId"]]
        for label, spent in enumerate(used):
            tokens, usd = spent or (0, 0)
            line = f'{{"subagents":"usage","tokensIn":{tokens},"tokensOut":0,"costUsd":{usd}}}'
            task = "true" if spent is None else f"echo '{line}'"
            made.append((await home.spawn("shell", task=task, label=str(label)))["runId"])
        await home.wait(*made)

        async def labels(query: str) -> list[str]:
            page = await home.ok("GET", f"/v1/runs?{query}")
            assert (page["total"], page["totalIsBound"], page["nextCursor"]) == (5, True, None)
            return [row["label"] for row in page["runs"]]

        assert await labels("sort=cost") == ["3", "1", "0", "4", "2"]
        assert await labels("sort=tokens&limit=2&offset=1") == ["3", "0"]
        rows = (await home.ok("GET", "/v1/runs?sort=took"))["runs"]
        took = [row["tookMs"] for row in rows]
        assert (took, len(took)) == (sorted(took, reverse=True), 5)
        status, refused = await home.call("GET", "/v1/runs?sort=cost&cursor=1.r-1")
        assert (status, refused["details"]["field"]) == (422, "cursor")

    play(tmp_path, scenario)


@pytest.mark.requirement("http:list:folded")
async def test_a_plan_is_folded_to_its_first_step_with_counts_of_the_others(
    home: Home, tmp_path: Path
) -> None:
    specs = [{"task": "t", "agentId": agent} for agent in ("quick", "bad", "quick", "hang")]
    body = {"specs": specs, "name": "p", "cwd": str(tmp_path)}
    plan = await home.ok("POST", "/v1/plans", body)
    ids = [each["runId"] for each in plan["receipts"]]
    alone = (await home.spawn())["runId"]
    await home.wait(*ids[:3], alone)
    await home.until_phase(ids[3], "running")
    rows = (await home.ok("GET", "/v1/runs?roots=1&folded=1"))["runs"]

    assert [row["runId"] for row in rows] == [alone, plan["planId"]]
    states = {"error": 1, "ok": 1, "running": 1}
    assert rows[1]["below"] == {"runs": 3, "states": states, "isBound": False}
    assert rows[0]["below"] is None
