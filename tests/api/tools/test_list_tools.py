"""Tools that look: lists and trees, each bounded and to one's own runs."""

import time
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from tests.api.home_daemon import until
from tests.api.tools.tool_callers import ToolCaller, play

from subagents.api.tools import list_tools as look_tools
from subagents.api.tools import tool_wording
from subagents.domain.run.run import Progress
from subagents.engine.runs import queries

ROW = {
    *("sessionKey", "runId", "label", "agentId", "runStatus", "pendingRequestCount"),
    *("blockedReason", "phase", "outcome", "latestProgress", "usage", "subtreeUsage"),
    *("startedAt", "endedAt"),
}
NODE = {
    *("sessionKey", "runId", "label", "runStatus", "pendingRequestCount", "phase"),
    *("verification", "claim", "latestProgress", "subtreeUsage", "budget", "children"),
}


def labels(document: Any) -> list[str]:
    return [each["label"] for each in document["sessions"]]


@pytest.mark.requirement("tools:list")
def test_a_list_that_was_not_counted_to_its_end_says_so_and_has_a_next_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "COUNTED_MAX", 2)
    monkeypatch.setattr(look_tools, "ROOTS_MAX", 1)

    async def scenario(desk: ToolCaller) -> None:
        for number in range(4):
            await desk.spawn("quick", label=f"n{number}")
        page = await desk.ok("sessions_list", limit=1)
        last = await desk.ok("sessions_list", limit=1, offset=3)
        tree = await desk.ok("sessions_tree")

        assert (page["total"], page["totalIsBound"], page["nextOffset"]) == (2, True, 1)
        assert (last["total"], last.get("totalIsBound"), last["nextOffset"]) == (4, None, None)
        assert (tree["olderRoots"], tree["olderRootsIsBound"]) == (1, True)

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:list")
async def test_the_list_has_the_documented_rows_newest_first_and_pages(desk: ToolCaller) -> None:
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


@pytest.mark.requirement("tools:list")
async def test_each_filter_of_the_list_keeps_what_fits(desk: ToolCaller) -> None:
    await desk.spawn("quick", label="done", tags=["night"])
    await desk.until_phase((await desk.ok("sessions_list"))["sessions"][0]["runId"], "completed")
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


@pytest.mark.requirement("tools:list")
async def test_the_list_says_what_a_run_is_blocked_by_and_the_tree_only_that_it_is(
    desk: ToolCaller,
) -> None:
    boss = await desk.worker("boss", label="boss")
    engine = desk.home.services.engine
    await engine.questions.ask(boss.run_id, "left or right?", timeout_s=60)
    await engine.reports.progress(
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


@pytest.mark.requirement("tools:tree")
async def test_the_tree_shows_runs_below_runs_down_to_a_depth(desk: ToolCaller) -> None:
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


@pytest.mark.requirement("tools:tree")
async def test_what_was_checked_and_what_the_worker_claims_shows_in_tree_and_wait(
    desk: ToolCaller,
) -> None:
    artifacts = [{"path": "out.json", "json": True, "minItems": 1}, {"path": "no.txt"}]
    contract = {"artifacts": artifacts, "requireCompletionReport": True}
    await desk.spawn("proud", label="proud", verification=contract)
    waited = await desk.call("sessions_wait", runIds=["proud"], timeoutSeconds=15)
    (node,) = (await desk.ok("sessions_tree"))["roots"]
    completed = waited.structured["completed"]

    assert isinstance(completed, list)
    assert node["verification"] == completed[0]["verification"]["status"] == "failed"
    claim = node["claim"]
    assert (claim["status"], claim["confidence"]) == ("complete", "low")
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


@pytest.mark.requirement("tools:list", "tools:tree")
async def test_what_one_answer_does_not_bear_is_on_the_next_page_and_counted_in_a_tree(
    desk: ToolCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_wording, "ANSWER_BYTES_MAX", 1_000)
    await desk.ok("sessions_spawn", agentId="hang", batch=[{"task": "x"}] * 7)
    pages: list[list[Any]] = []
    offset: int | None = 0
    while offset is not None:
        answer = await desk.call("sessions_list", limit=200, offset=offset)
        pages.append(answer.structured["sessions"])  # type: ignore[arg-type]  # a list
        offset = answer.structured["nextOffset"]  # type: ignore[assignment]  # a number or None
        assert len(msgspec.json.encode(pages[-1])) < 1_010
    tree = await desk.call("sessions_tree")
    roots, hidden = tree.structured["roots"], tree.structured["hidden"]

    assert len({each["runId"] for page in pages for each in page}) == sum(map(len, pages)) == 7
    assert len(pages) > 2
    assert isinstance(roots, list)
    assert (len(roots) + cast("int", hidden), len(roots) < 5) == (7, True)
    assert f"{hidden} more runs: give root or a smaller depth" in tree.text


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
async def test_somebody_elses_run_is_refused_by_every_tool_and_the_refusal_kept(
    desk: ToolCaller, name: str, arguments: dict[str, str]
) -> None:
    other = desk.elsewhere("other")
    theirs = await other.worker("boss", label="theirs")
    await desk.home.services.engine.questions.ask(theirs.run_id, "who?", timeout_s=60)
    given = {
        key: value.format(id=theirs.run_id, key=theirs.caller.session)
        for key, value in arguments.items()
    }
    sibling = await desk.worker("boss", label="mine")
    for tool_caller in (desk, sibling):
        answer = await tool_caller.refused(name, **given)

        assert answer.structured["status"] == "forbidden"
        assert answer.structured["details"] == {"guardrail": "ownership"}
        assert f"run {theirs.run_id} belongs to another session" in answer.text
    run = await desk.home.services.engine.queries.run(theirs.run_id)
    assert run.control.cancel is None
    assert run.control.steers == ()
    assert len(run.pending_requests) == 1
    kept = await desk.home.services.refusals.recent()
    assert [(each.call, each.by) for each in kept] == [
        (name, desk.caller.session),
        (name, sibling.caller.session),
    ]


@pytest.mark.requirement("tools:own-subtree")
async def test_a_worker_reaches_what_is_below_it_and_not_itself_or_above(desk: ToolCaller) -> None:
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


@pytest.mark.requirement("tools:selectors")
async def test_a_run_is_found_by_id_label_prefix_last_and_the_session_of_any_attempt(
    desk: ToolCaller,
) -> None:
    run_id = await desk.spawn("bad", label="twice", retryCount=1, retryDelay=1)
    run = await desk.until_phase(run_id, "completed")
    await until(lambda: run.id not in desk.home.services.engine.ledger.published)
    keys = [each.session.key for each in run.attempts]

    assert len(set(keys)) == 2
    for target in (run_id, "twice", run_id[:8], "last", *keys):
        found = await desk.ok("subagents", action="status", target=target)
        assert found["runId"] == run_id
    none = await desk.refused("subagents", action="status", target="agent:bad:subagent:0-0-0-0")
    assert none.structured["code"] == "not_found"
