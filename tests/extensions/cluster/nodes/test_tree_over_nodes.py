"""Agents of several vendors on several nodes, and what is done with them through any node.

Needs Codex: ``make test-real PROGRAMS=codex`` installs it.
"""

import json
import re
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import sync_playwright
from tests.e2e.live_home import until
from tests.e2e.program_setups import CLAUDE, ProgramSetup
from tests.e2e.runtime_cells import LOOP, RUN_S
from tests.e2e.scripted_model import Say, Use
from tests.extensions.cluster.nodes.agent_tree import AgentTree, agent_tree, held
from tests.extensions.cluster.postgres.postgres_server import running
from tests.real.codex_setup import CODEX
from tests.repository import a_repository
from tests.web.conftest import ARGUMENTS, WAIT_MS, Browsers
from tests.web.conftest import program as chromium

from subagents.domain.run.events import SteerSettled

NODES: Final = ("n1", "n2", "n3")
GONE_S: Final = 15.0
"""Of cancelled agents nothing is left after this; each node's part of it is grace and a little."""
NEAR_S: Final = 30.0
"""What is near at hand, on a machine that is busy: nothing waits for a lease or a poll to end."""
FINISH_S: Final = 60.0

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        (CLAUDE.missing() or CODEX.missing()) is not None,
        reason=str(CLAUDE.missing() or CODEX.missing()),
    ),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentTree]:
    with running() as server, agent_tree(server, tmp_path_factory.mktemp("tree")) as found:
        yield found


@pytest.mark.requirement("cluster:tree-of-vendors")
def test_each_agent_of_a_tree_works_on_its_node_and_each_result_arrives_once(
    tree: AgentTree,
) -> None:
    session, go = tree.session(), tree.work / "once"
    task = tree.plant("once", leaf=held(go))
    root = tree.spawn("n1", session, task, CLAUDE.name, place="n2")
    until(Path(f"{go}.begun").exists, what="the command works", within_s=RUN_S)
    codex, leaf = tree.labelled("once-codex"), tree.labelled("once-leaf")

    places = {root: "n2", codex: "n3", leaf: "n1"}
    for run_id, place in places.items():
        assert tree.at_work(run_id) == {place}
        assert tree.sockets_told(run_id) == {place}
    go.touch()
    found = tree.result("n3", session, root)

    assert found["outcome"]["status"] == "ok", found
    socket = tree.node("n1").home.paths.socket
    assert f"Claude Code heard: Codex heard: leaf: {socket}" in found["result"]
    for run_id, place in places.items():
        for door in NODES:
            shown = tree.show(door, run_id)
            assert [each["node"] for each in shown["attempts"]] == [place]
            assert shown["outcome"]["status"] == "ok"
        until(lambda run_id=run_id: tree.consumed(run_id), what="it is consumed")  # type: ignore[misc]
        assert tree.consumed(run_id) == 1
    for door in NODES:
        with tree.client(door, session) as client:
            assert client.get("/v1/inbox")["messages"] == []


def shown(what: str, door: str, seconds: list[float]) -> None:
    """For whoever watches: what was timed."""
    times = sorted(each * 1000 for each in seconds)
    sys.stdout.write(
        f"\n{what} through {door}: {len(times)} ×, p50 {statistics.median(times):.0f} ms,"
        f" max {times[-1]:.0f} ms\n"
    )


def busy(tree: AgentTree, setup: ProgramSetup, name: str, place: str) -> tuple[str, str, Path]:
    """A run whose agent waits in a command: its session, its id, and what lets it go on."""
    go = tree.work / name
    tree.model.scripts[name] = [
        setup.shell(f"echo $$ > {go}.begun; {LOOP.format(gate=go)}"),
        lambda seen: Say(f"heard {'turn-left' in seen.seen}"),
    ]
    session = tree.session()
    run_id = tree.spawn("n1", session, f"script:{name}", setup.name, place=place, label=name)
    until(Path(f"{go}.begun").exists, what=f"{name} works", within_s=RUN_S)
    return session, run_id, go


@pytest.mark.requirement("cluster:tree-of-vendors", "cluster:doors")
def test_a_question_is_answered_at_a_node_that_neither_decides_nor_works(tree: AgentTree) -> None:
    tree.model.scripts["asks"] = [
        Use("request_orchestrator", {"question": "Which colour?", "timeoutSeconds": 60}),
        lambda seen: Say(f"it is {'blue' if 'blue' in seen.results[-1] else seen.results[-1]}"),
    ]
    session = tree.session()
    run_id = tree.spawn("n1", session, "script:asks", CODEX.name, place="n3")

    def asked() -> str | None:
        requests: Any = tree.show("n2", run_id).get("requests") or []
        return next((each["requestId"] for each in requests if each["status"] == "pending"), None)

    request_id = until(asked, what="a question", within_s=RUN_S)
    rows: Any = tree.get("n2", "/v1/attention")
    assert request_id in json.dumps(rows)
    tree.post("n2", f"/v1/requests/{request_id}/respond", {"response": "blue"})
    assert "it is blue" in tree.result("n2", session, run_id)["result"]


@pytest.mark.requirement("cluster:tree-of-vendors", "cluster:doors")
@pytest.mark.parametrize("setup", [CLAUDE, CODEX], ids=lambda each: each.name)
def test_an_agent_is_steered_through_a_node_that_neither_decides_nor_works(
    tree: AgentTree, setup: ProgramSetup
) -> None:
    place, third = ("n2", "n3") if setup is CLAUDE else ("n3", "n2")
    session, run_id, go = busy(tree, setup, f"steer-{setup.name}", place)
    home = tree.node("n1").home
    times: dict[str, list[float]] = {"n1": [], third: []}
    for number, door in enumerate((third, "n1") * 3, start=1):
        begun = tree.steer(door, run_id, "please turn-left")
        until(
            lambda number=number: len(home.events(run_id, SteerSettled)) == number,  # type: ignore[misc]
            what="it settled",
        )
        times[door].append(time.monotonic() - begun)
    assert all(each.taken for each in home.events(run_id, SteerSettled))
    go.touch()
    assert "heard True" in tree.result(third, session, run_id)["result"]
    turns: Any = tree.show(third, run_id)["attempts"]
    assert [each["node"] for each in turns] == [place]
    for door, seconds in times.items():
        shown(f"{setup.name} at {place} steered", door, seconds)
        assert statistics.median(seconds) < NEAR_S


@pytest.mark.requirement("cluster:tree-of-vendors", "cluster:doors")
def test_a_cancel_of_the_root_ends_every_process_on_every_node(tree: AgentTree) -> None:
    session, go = tree.session(), tree.work / "never"
    root = tree.spawn("n1", session, tree.plant("ended", leaf=held(go)), CLAUDE.name, place="n2")
    until(Path(f"{go}.begun").exists, what="the command works", within_s=RUN_S)
    runs = (root, tree.labelled("ended-codex"), tree.labelled("ended-leaf"))
    assert [tree.at_work(each) for each in runs] == [{"n2"}, {"n3"}, {"n1"}]

    begun = time.monotonic()
    tree.post("n3", f"/v1/runs/{root}/cancel")
    until(
        lambda: not any(tree.processes(each) for each in runs),
        what="no process left",
        within_s=GONE_S,
    )
    shown("a tree cancelled", "n3", [time.monotonic() - begun])
    for run_id in runs:
        tree.until_phase("n2", run_id, "completed")
        for door in NODES:
            assert tree.show(door, run_id)["outcome"]["status"] == "cancelled"


@pytest.mark.requirement("cluster:tree-of-vendors", "cluster:doors")
def test_attach_talks_through_another_node_to_a_session_where_it_is(tree: AgentTree) -> None:
    tree.model.scripts["attach-again"] = [
        lambda seen: Say(f"remembers {'turn-left' in str(seen.messages)}")
    ]
    _, run_id, go = busy(tree, CLAUDE, "attach", "n2")
    with tree.node("n3").program("attach", run_id) as attached:
        assert attached.stdin is not None
        attached.stdin.write("please turn-left\n")
        attached.stdin.flush()
        home = tree.node("n1").home
        until(lambda: home.events(run_id, SteerSettled), what="the message is there")
        go.touch()
        out, err = attached.communicate(timeout=FINISH_S)
    assert (attached.returncode, "heard True" in out) == (0, True), (out, err)

    with tree.node("n3").program("attach", run_id) as attached:
        out, err = attached.communicate("script:attach-again\n", timeout=FINISH_S)
    assert (attached.returncode, "remembers True" in out) == (0, True), (out, err)
    again = tree.show("n3", run_id)["continuedBy"]
    turns: Any = tree.show("n3", str(again))["attempts"]
    assert [each["node"] for each in turns] == ["n2"]


LINES: Final = 60
TELLING: Final = (
    f"i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo line $i $(date +%s%N); sleep 0.1; done"
)
LINE: Final = re.compile(r"line (\d+) (\d+)$")


@pytest.mark.requirement("cluster:tree-of-vendors", "cluster:doors")
def test_log_follows_at_another_node_to_the_end_and_is_hardly_later_than_at_the_owner(
    tree: AgentTree,
) -> None:
    session = tree.session()
    run_id = tree.spawn("n1", session, TELLING, "sh", place="n2")
    tree.until_phase("n1", run_id, "running")
    lags: dict[str, list[float]] = {door: [] for door in NODES}
    last: dict[str, str] = {}

    def follow(door: str) -> None:
        with tree.node(door).program("log", run_id, "-f", "--after-seq", "0") as program:
            assert program.stdout is not None
            for line in program.stdout:
                if (said := LINE.search(line)) is not None:
                    lags[door].append(time.time() - int(said[2]) / 1e9)
                    last[door] = said[1]
            assert program.wait(FINISH_S) == 0

    followers = [threading.Thread(target=follow, args=(door,)) for door in NODES]
    for each in followers:
        each.start()
    for each in followers:
        each.join(FINISH_S)
    assert last == dict.fromkeys(NODES, str(LINES))
    for door, seconds in lags.items():
        assert len(seconds) == LINES
        # Those that were there before the follower say nothing of its lag.
        shown("log -f of a command at n2", door, seconds[LINES // 2 :])
        assert statistics.median(seconds[LINES // 2 :]) < NEAR_S


@pytest.mark.requirement("cluster:run-files", "cluster:doors")
def test_what_a_run_changed_in_its_worktree_is_shown_at_any_node(
    tree: AgentTree, tmp_path: Path
) -> None:
    repository, session, go = a_repository(tmp_path / "repository"), tree.session(), tmp_path / "go"
    task = f"echo more >> sub/a.txt; touch {go}.begun; {LOOP.format(gate=go)}"
    body = {"spec": {"task": task, "agentId": "sh", "isolation": "worktree"}}
    with tree.client("n2", session) as client:
        run_id = str(client.post("/v1/runs", {**body, "cwd": str(repository)})["runId"])
    until(Path(f"{go}.begun").exists, what="it works", within_s=RUN_S)
    for is_over in (False, True):
        if is_over:
            go.touch()
            tree.result("n2", session, run_id)
        for door in NODES:
            assert "+more" in str(tree.get(door, f"/v1/runs/{run_id}/diff")["text"])


@pytest.mark.requirement("cluster:tree-of-vendors", "page:opens")
def test_the_page_at_another_node_shows_a_tree_as_it_works(tree: AgentTree, tmp_path: Path) -> None:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium here")
    session, go = tree.session(), tree.work / "paged"
    root = tree.spawn(
        "n1", session, tree.plant("paged", leaf=held(go)), CLAUDE.name, place="n2", label="paged"
    )
    until(Path(f"{go}.begun").exists, what="the command works", within_s=RUN_S)
    with sync_playwright() as playwright, ExitStack() as stack:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        stack.callback(browser.close)
        tabs = {
            door: Browsers(browser, tree.node(door).home, stack).at_the_page() for door in NODES
        }
        for door, tab in tabs.items():
            tab.goto(f"{tab.url.partition('/ui')[0].rstrip('/')}/ui/runs/{root}")
            tab.get_by_text("paged-codex").first.wait_for(timeout=WAIT_MS)
            tab.screenshot(path=tmp_path / f"{door}-open.png", full_page=True)
        go.touch()
        tree.result("n3", session, root)
        for door, tab in tabs.items():
            # It is not loaded anew: what follows comes with the stream.
            tab.get_by_text("Claude Code heard: Codex heard").first.wait_for(timeout=WAIT_MS)
            tab.get_by_role("link", name="as a tree").click()
            tab.get_by_text("paged-leaf").first.wait_for(timeout=WAIT_MS)
            tab.screenshot(path=tmp_path / f"{door}-over.png", full_page=True)
