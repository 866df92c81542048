"""Commands that act on runs."""

import pytest
from tests.cli.cli_home import Home, gate, until


@pytest.mark.requirement("cli:selectors")
def test_several_runs_are_cancelled_by_phase_only_when_that_was_said(home: Home) -> None:
    home.ok("up")
    runs = {home.spawn("sleep 60") for _ in range(2)}
    until(lambda: all(home.field(run, "phase") == "running" for run in runs), "both run")
    refused = home.cli("cancel", "phase:running")
    assert refused.code == 2
    assert "Cancel 2 runs?" in refused.err
    done = home.ok("cancel", "phase:running", "--yes", "--json")
    assert {each["runId"] for each in done.rows("runs")} == runs


@pytest.mark.requirement("queue:prioritize")
def test_the_queue_goes_by_the_priority_that_a_run_was_given_last(shared: Home) -> None:
    run = shared.spawn("sleep 60", "--label", "later")
    done = shared.ok("prioritize", "later", "-5")
    assert done.out.startswith(f"{run}  later  ")
    assert done.out.endswith("  priority -5\n")
    assert "priority -5 given by" in shared.ok("why", run).out
    shared.ok("cancel", run)
    assert shared.cli("prioritize", run, "1000001").code == 2


@pytest.mark.requirement("pause:freezes", "cli:pause")
def test_a_paused_command_is_shown_as_paused_and_goes_on_after_resume(shared: Home) -> None:
    run = shared.spawn("while [ ! -e goes-on ]; do sleep 0.05; done; echo went on")
    until(lambda: shared.field(run, "phase") == "running", "it is at work")
    assert shared.ok("pause", run).out.endswith("  paused\n")
    (row,) = [line for line in shared.ok("list").out.splitlines() if run in line]
    assert row.split()[1] == "waiting"
    assert "  paused" in row
    (shared.work / "goes-on").touch()
    assert shared.ok("resume", run).out.endswith("  running\n")
    assert shared.ok("wait", run).out == "went on\n"


@pytest.mark.requirement("cli:selectors", "cli:pause")
def test_a_run_that_has_ended_does_not_keep_the_others_of_a_selector_from_it(shared: Home) -> None:
    over = shared.spawn("true", "--tag", "mixed")
    shared.ok("wait", over)
    ids = [shared.spawn(gate("never"), "--tag", "mixed") for _ in range(2)]
    until(lambda: all(shared.field(each, "phase") == "running" for each in ids), "both run")
    paused = shared.ok("pause", "tag:mixed")
    resumed = shared.ok("resume", "tag:mixed", "--json")

    assert {line.split()[0] for line in paused.out.splitlines()} == set(ids)
    assert f"1 run left out, such as: run {over} is completed" in paused.err
    assert {each["runId"] for each in resumed.rows("runs")} == set(ids)
    shared.ok("cancel", *ids)
    assert shared.cli("pause", over).code == shared.cli("resume", "tag:mixed").code == 1


@pytest.mark.requirement("contract:old-files", "retry:by-hand")
def test_what_the_failed_run_left_behind_is_no_news_to_who_starts_it_again(shared: Home) -> None:
    task = "[ -e again.txt ] && echo two > again.txt || { echo one > again.txt; exit 1; }"
    assert shared.cli("run", task, "--label", "again", "--verify", "again.txt").code == 5
    assert "is there already" not in shared.ok("retry", "again").err
    assert shared.cli("wait", "again").code == 0
