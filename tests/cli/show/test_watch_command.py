"""``subagents list --watch``: who needs somebody, who failed, who works, until all are over."""

import json
import os
import signal

import pytest
from tests.cli.cli_home import Home, until
from tests.cli.terminal import terminal

from subagents.api.wire.message_answers import Progress
from subagents.api.wire.run_answers import Outcome, RunStatus
from subagents.api.wire.usage_answers import Usage
from subagents.cli.show.watch_frame import Frame, group_of, place
from subagents.text import iso


def a_row(run_id: str, **changes: object) -> RunStatus:
    given = {"phase": "running", "label": run_id, "agent_id": "worker", "created_at": iso(1)}
    return RunStatus(run_id=run_id, **{**given, **changes})  # type: ignore[arg-type]  # the test says which


ASKS = a_row("asks", pending_request_count=1, blocked_reason="drop the column?", created_at=iso(9))
FAILED = a_row("failed", outcome=Outcome(status="error", error="exit code 2"))
WORKS = a_row("works", last_activity="editing a.py", last_activity_age_ms=4_000)
WAITS = a_row("waits", phase="queued", why="no slot")
DONE = a_row("done", outcome=Outcome(status="ok"))


# -- the frame ------------------------------------------------------------------------------------


@pytest.mark.requirement("watch:order")
def test_who_needs_somebody_stands_first_then_what_failed() -> None:
    rows = [DONE, WAITS, WORKS, FAILED, ASKS]
    assert [row.run_id for row in sorted(rows, key=place)] == [
        *("asks", "failed", "works", "waits", "done"),
    ]
    assert Frame(rows, []).summary == "1 needs you · 1 at work · 1 waiting · 1 failed · 1 done"
    assert group_of(a_row("x", outcome=Outcome(status="cancelled"))) == 4
    assert group_of(a_row("x", outcome=Outcome(status="lost"))) == 1


@pytest.mark.requirement("watch:order")
def test_rows_of_a_group_stay_in_the_order_of_their_spawn() -> None:
    rows = [a_row(name, created_at=iso(at)) for name, at in (("c", 3), ("a", 1), ("b", 2))]
    assert [row.run_id for row in Frame(rows, []).shown] == ["a", "b", "c"]


@pytest.mark.requirement("watch:rows")
def test_a_row_tells_what_it_does_what_it_used_and_its_last_sign_of_life() -> None:
    row = a_row(
        "works",
        started_at=iso(0),
        usage=Usage(tokens=71_000, tokens_in=970_000, tokens_cache_read=900_000),
        cost_usd=0.22,
        children_active=2,
        children_total=5,
        last_activity="reading b.py",
        last_activity_age_ms=2_000,
        latest_progress=Progress(phase="summing up", percent_complete=40),
    )
    frame = Frame([row], [])
    assert frame.cells(row, 12_000) == [
        *("▶", "works", "worker", "working", "12s", "71k", "$0.22", "3/5", "2s"),
        "40% summing up · reading b.py",
    ]
    assert frame.cells(ASKS, 0)[-1] == "asks: drop the column?"
    assert frame.cells(FAILED, 0)[-1] == "exit code 2"
    assert frame.cells(WAITS, 0)[-1] == "no slot"
    assert frame.cells(WORKS, 0)[5:7] == ["-", "-"]


@pytest.mark.requirement("watch:rows")
def test_a_child_stands_behind_the_name_of_its_parent_and_empty_columns_are_left_out() -> None:
    parent, child = a_row("top"), a_row("child", requester_run="top")
    frame = Frame([parent, child], [])
    assert frame.name(child) == "top/child"
    cells = [frame.cells(row, 0) for row in (parent, child)]
    assert [frame.columns(cells)[-1], 7 in frame.columns(cells)] == [9, False]


@pytest.mark.requirement("watch:rows")
def test_what_is_folded_still_counts() -> None:
    frame = Frame([FAILED], [DONE, WORKS])
    assert frame.fold == "… 2 more: subagents list"
    assert frame.summary == "1 at work · 1 failed · 1 done"
    assert not frame.is_over
    assert Frame([FAILED], [DONE]).is_over


# -- the command ----------------------------------------------------------------------------------


@pytest.mark.requirement("watch:ends")
def test_it_ends_by_itself_when_all_are_over_also_over_a_kill_of_the_daemon(shared: Home) -> None:
    run = shared.spawn("until test -e go; do sleep 0.05; done; exit 2", "--label", "first")
    watching = shared.start("list", "--watch", "--interval", "200ms")
    try:
        assert watching.stdout is not None
        assert " ▶  first  command  working" in watching.stdout.readline()
        later = shared.spawn("echo later", "--label", "second")
        shared.kill_daemon()
        (shared.work / "go").touch()
        out, err = watching.communicate(timeout=60)
    finally:
        watching.kill()
        watching.communicate()
    assert watching.returncode == 0, err
    assert "✖  first  command  failed" in out
    assert "exit code 2" in out
    assert "✔  second  command  ok" in out
    shared.cli("wait", run, later)


@pytest.mark.requirement("watch:ends", "cli:exit-codes")
def test_ctrl_c_ends_it_with_130(shared: Home) -> None:
    run = shared.spawn("sleep 60")
    watching = shared.start("list", "--watch", run)
    try:
        assert watching.stdout is not None
        assert "working" in watching.stdout.readline()
        os.kill(watching.pid, signal.SIGINT)
        watching.communicate(timeout=90)
    finally:
        watching.kill()
        watching.communicate()
    assert watching.returncode == 130
    shared.ok("cancel", run)


@pytest.mark.requirement("watch:once")
def test_once_is_a_table_and_as_json_a_document(shared: Home) -> None:
    run = shared.spawn("sleep 60", "--label", "steady")
    until(lambda: shared.field(run, "phase") == "running", "it runs")
    shown = shared.ok("list", "--watch", run, "--once").out
    assert "RUN" in shown.splitlines()[0]
    assert "steady" in shown.splitlines()[1]
    (row,) = shared.ok("list", "--watch", "--once", "--json").rows("runs")
    assert (row["runId"], row["state"]) == (run, "running")
    shared.ok("cancel", run)
    shared.cli("wait", run)
    done = shared.cli("list", "--watch", "tree:steady", "--json")
    (last,) = [json.loads(line) for line in done.out.splitlines()]
    assert [each["state"] for each in last["runs"]] == ["cancelled"]


@pytest.mark.requirement("watch:once")
def test_nothing_at_work_is_no_error_and_mistakes_are_named(shared: Home) -> None:
    until(lambda: not shared.ok("list", "--watch", "--once", "--json").rows("runs"), "all is over")
    assert "No active runs" in shared.ok("list", "--watch").err
    refused = shared.cli("list", "--watch", "--interval", "10ms")
    assert refused.code == 2
    assert "--interval must be 200ms or more" in refused.err
    assert shared.cli("list", "--watch", "nobody").code == 3


@pytest.mark.requirement("watch:terminal")
def test_on_a_terminal_it_is_never_higher_than_the_screen(shared: Home) -> None:
    runs = [shared.spawn("sleep 60", "--label", f"many{n}") for n in range(12)]
    until(lambda: shared.field(runs[3], "phase") == "running", "some run")
    with terminal(
        shared, "list", "--watch", "--interval", "200ms", env={"LINES": "10"}
    ) as watching:
        watching.until("more: subagents list")
        frame = watching.shown.split("\x1b[1A")[-1]
        assert "6 more: subagents list" in frame
        assert frame.count("many") == 6
        shared.ok("cancel", *runs, "--yes")
        assert watching.code() == 0
        assert "cancelled" in watching.shown
