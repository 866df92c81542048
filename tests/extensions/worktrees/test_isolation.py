"""Runs in worktrees of a real repository, by a real daemon that is killed at bad moments."""

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.live_home import DEFAULTS, Document, LiveHome, live_home, until
from tests.repository import a_repository, branches, commit, git

from subagents.client.client import Client
from subagents.errors import UsageError

COMMIT = "git -c user.name=w -c user.email=w@localhost commit -qam"


def spawn(home: LiveHome, repository: Path, task: str, **spec: Any) -> Document:
    body = home.spawn_body(task, isolation="worktree", **spec)
    return home.post("/v1/runs", {**body, "cwd": str(repository)})


def left(home: LiveHome) -> list[str]:
    directory = home.paths.worktrees_dir
    return sorted(each.name for each in directory.iterdir()) if directory.exists() else []


@pytest.mark.requirement("isolation:receipt", "isolation:result", "isolation:announcement")
def test_a_run_works_apart_and_its_result_names_branch_path_and_changes(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        repository = a_repository(tmp_path / "repository")
        task = (
            "pwd; echo more >> a.txt; echo new > b.txt; rm ../tests/test_a.py; "
            f'{COMMIT} work; echo loose > "c d.txt"'
        )
        receipt = spawn(home, repository / "sub", task, label="Fix IT!")
        place = receipt["workspace"]
        short = receipt["runId"].removeprefix("r-")
        assert place["branch"] == f"subagents/fix-it-{short}"
        assert receipt["cwd"] == f"{place['path']}/sub"
        item = home.finish(receipt["runId"])[0]

        assert item["result"].strip() == receipt["cwd"]
        changes = item["workspace"]["changes"]
        assert item["workspace"]["kept"] is True
        assert changes["summary"] == "4 files changed, +3 -1, 2 commits; deleted: tests/test_a.py"
        assert changes["deleted"] == ["tests/test_a.py"]
        assert f"Worktree: {changes['summary']} (branch {place['branch']}" in item["announcement"]
        assert (repository / "tests" / "test_a.py").exists()
        assert git(repository, "status", "--porcelain") == ""
        shown = home.show(receipt["runId"])
        assert shown["workspace"] == item["workspace"]
        diff = home.get(f"/v1/runs/{receipt['runId']}/diff")
        assert all(f"+++ b/{name}" in diff["text"] for name in ("sub/a.txt", "sub/b.txt"))
        one = home.get(f"/v1/runs/{receipt['runId']}/diff?path=sub/c%20d.txt")
        assert ("+loose" in one["text"], "a.txt" in one["text"]) == (True, False)
        assert git(repository, "show", f"{place['branch']}:sub/a.txt").endswith("more")


@pytest.mark.requirement("isolation:configuration")
def test_what_follows_a_run_in_a_worktree_has_the_configuration_of_the_project(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        repository = a_repository(tmp_path / "repository")
        # Not in git, so not in any worktree.
        (repository / "subagents.toml").write_text(
            '[agents.own]\nruntime = "scripted"\nscript = [{ result = "said" }]\n'
        )
        first = spawn(home, repository, "by itself", agent="own")
        assert home.finish(first["runId"])[0]["result"] == "said"

        sent = home.post(f"/v1/runs/{first['runId']}/send", {"message": "and again"})
        assert home.finish(sent["runId"])[0]["outcome"]["status"] == "ok"
        again = home.post(f"/v1/runs/{first['runId']}/retry")
        assert home.finish(again["runId"])[0]["result"] == "said"


@pytest.mark.requirement("isolation:clean-removed")
def test_a_worktree_without_changes_is_gone_when_the_run_is_over(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        repository = a_repository(tmp_path / "repository")
        receipt = spawn(home, repository, "cat sub/a.txt")
        item = home.finish(receipt["runId"])[0]
        assert item["workspace"]["kept"] is False
        home.until_phase(receipt["runId"], "completed")
        assert (left(home), branches(repository)) == ([], ["main"])
        assert "Worktree:" not in item["announcement"]


@pytest.mark.requirement("isolation:contract", "isolation:out-of-scope")
def test_a_contract_is_checked_in_the_worktree_and_its_verdict_names_what_else_changed(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        repository = a_repository(tmp_path / "repository")
        contract = {
            "artifacts": [{"path": "out/report.json", "json": True}],
            "mustChange": ["sub/b"],
        }
        task = (
            "mkdir -p out sub/b; echo '{}' > out/report.json; rm tests/test_a.py;"
            " echo x | tee sub/a.txt > sub/b/c"
        )
        receipt = spawn(home, repository, task, verification=contract)
        item = home.finish(receipt["runId"])[0]
        verdict = item["verification"]
        assert (item["outcome"]["status"], verdict["status"]) == ("ok", "passed")
        assert verdict["changes"]["outOfScope"] == ["tests/test_a.py", "sub/a.txt"]
        assert verdict["changes"]["deleted"] == ["tests/test_a.py"]


@pytest.mark.requirement("isolation:artifact-keeps")
def test_a_worktree_stays_for_an_artifact_that_git_ignores(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        repository = a_repository(tmp_path / "repository")
        contract = {"artifacts": [{"path": "__pycache__/report.json"}]}
        task = "mkdir __pycache__; echo '{}' > __pycache__/report.json"
        receipt = spawn(home, repository, task, verification=contract)
        home.finish(receipt["runId"])
        home.until_phase(receipt["runId"], "completed")
        report = Path(receipt["cwd"]) / "__pycache__" / "report.json"
        assert report.exists()


@pytest.mark.requirement("isolation:retry", "salvage:timeout")
def test_a_retry_after_a_timeout_starts_from_the_same_base_and_keeps_the_work_before(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        repository = a_repository(tmp_path / "repository")
        contract = {"artifacts": [{"path": "report.json"}, {"path": "other.json"}]}
        task = "ls; echo $SUBAGENTS_ATTEMPT_NUMBER > report.json; sleep 1000"
        receipt = spawn(
            home,
            repository,
            task,
            verification=contract,
            runTimeoutSeconds=1,
            retryCount=1,
            retryDelay=10,
        )
        item = home.finish(receipt["runId"])[0]
        assert item["outcome"]["status"] == "timeout"
        assert item["result"].split() == ["sub", "tests"], "the second attempt began afresh"
        assert item["filesLeft"] == ["report.json"]
        assert "Files left: report.json" in item["announcement"]
        kept = item["workspace"]["changes"]["keptBranches"]
        assert kept == [f"{receipt['workspace']['branch']}-attempt-1"]
        assert git(repository, "show", f"{kept[0]}:report.json") == "1"
        assert (Path(receipt["cwd"]) / "report.json").read_text() == "2\n"


@pytest.mark.requirement("isolation:kill")
def test_a_killed_daemon_goes_on_with_the_run_in_its_worktree(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        repository = a_repository(tmp_path / "repository")
        go = tmp_path / "go"
        task = f"echo half > half.txt; until [ -e {go} ]; do sleep 0.05; done; echo all > all.txt"
        receipts = [spawn(home, repository, task, label=f"n{number}") for number in range(3)]
        for each in receipts:
            half = Path(each["cwd"]) / "half.txt"
            until(half.exists, what=str(half))
        home.restart_after_kill()
        go.touch()
        items = home.finish(*(each["runId"] for each in receipts))
        assert {item["outcome"]["status"] for item in items} == {"ok"}
        for item in items:
            paths = [each["path"] for each in item["workspace"]["changes"]["changed"]]
            assert paths == ["all.txt", "half.txt"]


@pytest.mark.requirement("isolation:kill:while-spawning")
def test_a_daemon_killed_while_it_makes_worktrees_makes_each_of_them_once(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        repository = a_repository(tmp_path / "repository")
        for number in range(200):
            (repository / f"file{number}.txt").write_text("x" * 1000)
        git(repository, "add", "--all")
        git(repository, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "many")
        body = home.spawn_body("echo $SUBAGENTS_ATTEMPT > who.txt", isolation="worktree")
        with Client(home.paths.socket) as client:
            found = [
                client.post("/v1/runs", {**body, "cwd": str(repository)})["runId"] for _ in range(6)
            ]
        home.restart_after_kill()
        run_ids = [str(each) for each in found]
        for run_id, item in zip(run_ids, home.finish(*run_ids), strict=True):
            assert item["outcome"]["status"] == "ok", item
            assert [each["path"] for each in item["workspace"]["changes"]["changed"]] == ["who.txt"]
            root = Path(item["workspace"]["path"])
            assert (root / "who.txt").read_text() == f"{run_id}#1\n"


@pytest.mark.requirement("isolation:refused")
def test_a_directory_without_a_repository_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        with pytest.raises(UsageError, match="is in no git repository") as refused:
            spawn(home, home.work, "true")
        assert refused.value.details["field"] == "isolation"
        assert home.get("/v1/runs")["runs"] == []


@pytest.mark.requirement("isolation:retry-by-hand")
def test_starting_again_by_hand_takes_the_directory_that_was_asked_for(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        repository = a_repository(tmp_path / "repository")
        receipt = spawn(home, repository / "sub", "exit 3")
        home.finish(receipt["runId"])
        again = home.post(f"/v1/runs/{receipt['runId']}/retry")
        assert again["workspace"]["origin"] == str(repository / "sub")
        assert again["workspace"]["path"] != receipt["workspace"]["path"]
        home.finish(again["runId"])


@pytest.mark.requirement("isolation:start-failed")
def test_a_worktree_that_cannot_be_made_fails_the_attempt_with_the_reason(tmp_path: Path) -> None:
    with live_home(tmp_path, config=DEFAULTS.replace("= 64", "= 1")) as home:
        repository = a_repository(tmp_path / "repository")
        go = tmp_path / "go"
        first = home.spawn(f"until [ -e {go} ]; do sleep 0.05; done")
        receipt = spawn(home, repository, "true")
        repository.rename(tmp_path / "moved")
        go.touch()
        item = home.finish(first, receipt["runId"])[1]
        assert item["outcome"]["reason"] == "start_failed"
        assert "is gone" in item["outcome"]["error"]


@pytest.mark.requirement("worktree:setup:run")
def test_a_worktree_is_set_up_before_its_first_worker_and_not_again_for_a_retry(
    tmp_path: Path,
) -> None:
    repository = a_repository(tmp_path / "repository")
    table = f"""[worktrees.x]
repository = "{repository}"
setup = "mkdir -p out; echo $SUBAGENTS_ATTEMPT_NUMBER >>out/ran; echo loud; [ ! -e refused ]"
"""
    with live_home(tmp_path, config=f"{DEFAULTS}\n{table}") as home:
        task = "cat ../out/ran; [ -e ../out/failed ] || { touch ../out/failed; exit 1; }"
        receipt = spawn(home, repository / "sub", task, label="one", retryCount=1, retryDelay=0)
        (item,) = home.finish(receipt["runId"])
        assert (item["outcome"]["status"], item["result"]) == ("ok", "1")
        assert "loud" in str(home.get(f"/v1/runs/{receipt['runId']}/log?limit=50"))

        (repository / "refused").touch()
        commit(repository, "refused")
        failing = spawn(home, repository, "touch started", label="two")
        (item,) = home.finish(failing["runId"])
        told = "the worktree's setup failed with exit code 1 (worktrees.x.setup)"
        assert told in item["outcome"]["error"]
        assert "started" not in str(item["workspace"])
