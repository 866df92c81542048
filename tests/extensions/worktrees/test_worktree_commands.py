"""``worktree``: what runs did apart is listed, compared, merged and removed."""

from pathlib import Path

import pytest
from tests.api.home_daemon import Home as Daemon
from tests.api.home_daemon import play
from tests.cli.cli_home import Home
from tests.e2e.live_home import until
from tests.repository import a_repository, branches

from subagents.api.wire.wire_struct import read
from subagents.extensions.worktrees.worktree_answers import WorktreePage, WorktreeRow

RUNS = 20
APART = ("--isolation", "worktree", "--label")


def listed(home: Home) -> list[WorktreeRow]:
    return read(home.ok("worktree", "list", "--json").json, WorktreePage).worktrees


@pytest.mark.requirement("cli:worktree", "worktree:twenty")
def test_the_work_of_twenty_runs_is_listed_compared_merged_and_pruned(home: Home) -> None:
    repository = a_repository(home.work)
    labels = [f"job-{number}" for number in range(RUNS)]
    for number, label in enumerate(labels):
        home.spawn(f"echo {number} > job{number}.txt", *APART, label, "--tag", "jobs")
    home.spawn("echo rival > job0.txt", *APART, "rival")
    home.spawn("true", *APART, "idle", "--tag", "jobs")
    home.ok("wait", *labels, "rival", "idle")

    # The one that nothing was done in goes a moment after its run.
    rows = until(
        lambda: rows if len(rows := listed(home)) == RUNS + 1 else None, what="idle's is removed"
    )
    assert [row.changed_files for row in rows] == [1] * (RUNS + 1)
    assert {row.state for row in rows} == {"unmerged"}
    assert all(row.created_at and row.bytes for row in rows)
    assert len(home.ok("worktree", "list").out.splitlines()) == RUNS + 2
    assert "+3\n" in home.ok("worktree", "diff", "job-3").out
    assert "removed" not in home.ok("worktree", "prune").out

    merged = home.ok("worktree", "merge", "tag:jobs")
    assert merged.out.count("merged into main") == RUNS
    assert "has no worktree on this machine, or it is gone" in merged.err
    assert home.cli("worktree", "merge", "idle").code == 3
    assert [(repository / f"job{n}.txt").read_text() for n in range(RUNS)] == [
        f"{n}\n" for n in range(RUNS)
    ]
    refused = home.cli("worktree", "merge", "rival")
    assert (refused.code, refused.out) == (1, "job0.txt\n")
    assert "nothing was changed" in refused.err

    assert home.ok("worktree", "prune", "--dry-run").out.count("would remove") == RUNS
    pruned = home.ok("worktree", "prune").out.splitlines()
    assert [line.split()[0] for line in pruned] == ["removed"] * RUNS + ["kept"]
    (left,) = listed(home)
    assert branches(repository) == ["main", left.branch]
    assert Path(left.path).is_dir()


@pytest.mark.requirement("cli:worktree", "worktree:open")
def test_the_worktree_of_a_run_at_work_is_neither_merged_nor_removed(home: Home) -> None:
    a_repository(home.work)
    run_id = home.spawn("exec tail -f /dev/null", *APART, "open")
    (row,) = until(lambda: listed(home), what="a worktree")
    assert (row.state, row.kept_because) == ("open", "its run is not over")
    assert "kept" in home.ok("worktree", "prune").out
    refused = home.cli("worktree", "merge", "open")
    assert (refused.code, "not over" in refused.err) == (1, True)
    home.ok("cancel", run_id, "--yes")


@pytest.mark.requirement("worktree:operators-only")
def test_agents_neither_list_nor_merge_nor_prune(tmp_path: Path) -> None:
    async def scenario(home: Daemon) -> None:
        run_id = str((await home.spawn("hang"))["runId"])
        await home.until_phase(run_id, "running")
        for method, path in (
            ("GET", "/v1/worktrees"),
            ("POST", "/v1/worktrees/prune"),
            ("POST", f"/v1/runs/{run_id}/merge"),
        ):
            status, refused = await home.call(method, path, None, home.worker(run_id))
            assert (status, refused["code"]) == (403, "forbidden")

    play(tmp_path, scenario)


@pytest.mark.requirement("http:diff")
def test_a_run_without_a_worktree_has_no_diff(tmp_path: Path) -> None:
    async def scenario(home: Daemon) -> None:
        run_id = (await home.spawn())["runId"]

        status, refused = await home.call("GET", f"/v1/runs/{run_id}/diff")

        assert (status, refused["code"]) == (404, "not_found")

    play(tmp_path, scenario)
