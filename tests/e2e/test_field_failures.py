"""Failures that users of similar systems met (issue numbers are theirs), on a real daemon."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.e2e.live_home import (
    DEFAULTS,
    MARK_ATTEMPT,
    UNTIL_GO,
    LiveHome,
    audit,
    fold,
    lines,
    live_home,
    numbered,
    until,
)

from subagents.domain.run.events import (
    AttemptStarted,
    RequestAnswered,
    SlotGranted,
    TimerFired,
)
from subagents.domain.run.values import replace
from subagents.errors import AlreadyAnswered, UsageError
from subagents.ports import Batch, JournalEntry
from subagents.runtimes.process.processes import scan
from subagents.store.sqlite.sqlite_store import SqliteStore

MIB = 1024 * 1024
WAIT_S = 50
"""How long a worker's call for its answer is held."""
ASKS = """
import os, sys, time
from subagents.client.client import Client
from subagents.errors import Unavailable

run_id = os.environ["SUBAGENTS_RUN_ID"]
socket, session = os.environ["SUBAGENTS_SOCKET"], os.environ["SUBAGENTS_SESSION_KEY"]

def call(method, *arguments, **options):
    due = time.monotonic() + 30
    while True:
        try:
            with Client(socket, session=session) as client:
                return getattr(client, method)(*arguments, **options)
        except Unavailable:
            if time.monotonic() > due:
                raise
            time.sleep(0.02)

heard, wait_s = [], int(sys.argv[2])
for number in range(int(sys.argv[1])):
    asked = call("post", "/v1/requests", {"runId": run_id, "question": f"colour {number}?"})
    while True:
        path = f"/v1/requests/{asked['requestId']}"
        found = call("get", path, {"waitSeconds": wait_s}, timeout_s=wait_s)
        if found["status"] != "pending":
            break
    heard.append(found["answer"])
    with open(os.environ["MARKS"], "a") as marks:
        marks.write(f"{time.time()}\\n")
print(" ".join(heard))
"""


def asking(home: LiveHome, questions: int) -> str:
    script = home.work / "asks.py"
    script.write_text(ASKS)
    return home.spawn(f"exec {sys.executable} {script} {questions} {WAIT_S}")


def question_of(home: LiveHome, run_id: str, number: int = 1) -> str:
    def look() -> str | None:
        pending = [q for q in home.show(run_id)["requests"] if q["status"] == "pending"]
        return pending[0]["requestId"] if pending else None

    request_id = until(look, what=f"question {number} of {run_id}")
    assert request_id == f"{run_id}:q{number}"
    return request_id


@pytest.mark.requirement("field:claude-agent-sdk-python-882")
def test_claude_agent_sdk_882_nobody_is_told_of_the_end_while_the_worker_still_works(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        early = json.dumps({"subagents": "result", "text": "done early"})
        report = json.dumps({"subagents": "report", "summary": "done"})
        run_id = home.spawn(
            f"echo '{early}'; echo '{report}'; sleep 1.5; echo late > made",
            verification={"artifacts": [{"path": "made"}]},
        )
        until(lambda: "report" in home.output(run_id), what="the early claim")
        assert home.wait(run_id, timeout_s=1)["completed"] == []
        assert home.post("/v1/inbox", {})["messages"] == []

        item = home.finish(run_id)[0]
        assert (home.work / "made").exists()
        assert item["result"] == "done early"
        assert item["verification"]["status"] == "passed"


@pytest.mark.requirement("field:pi-subagents-849")
def test_pi_subagents_849_a_contract_that_checks_nothing_is_refused_before_any_work(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        without_json = {"artifacts": [{"path": "x", "minItems": 1}]}
        contracts: list[dict[str, object]] = [{}, {"artifacts": []}, {**without_json}]
        for contract in contracts:
            with pytest.raises(UsageError):
                home.spawn(MARK_ATTEMPT, verification=contract)
        assert home.stored() == {}
        assert home.marks_written() == []


@pytest.mark.requirement("field:ai-employee-695")
def test_ai_employee_695_a_worker_whose_wrapper_shell_died_is_followed_and_not_run_again(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn(lines(3000), retryCount=3, retryDelay=0)
        worker = home.worker_pid(run_id)
        shim = next(each.parent for each in scan() if each.pid == worker)
        home.kill()
        os.kill(shim, signal.SIGKILL)
        home.start()

        assert home.row(run_id)["phase"] == "running"
        assert len(home.events(run_id, SlotGranted)) == 1
        assert worker in home.of_run(run_id)
        home.post(f"/v1/runs/{run_id}/cancel", {})
        home.finish(run_id)
        # The shell is gone; a `sleep` it had just forked may have its last milliseconds.
        until(lambda: not home.of_run(run_id), what="no process left")
        assert home.marks_written() == [f"{run_id}#1"]


@pytest.mark.requirement("field:ai-employee-695")
def test_ai_employee_695_the_end_of_a_worker_without_its_wrapper_is_not_called_a_success(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn(lines(20))
        worker = home.worker_pid(run_id)
        os.kill(next(each.parent for each in scan() if each.pid == worker), signal.SIGKILL)

        item = home.finish(run_id)[0]
        assert item["outcome"]["status"] == "lost"
        assert item["result"] == numbered(20)


@pytest.mark.requirement("field:ai-employee-695")
def test_ai_employee_695_a_stranger_with_the_pid_of_a_dead_worker_is_neither_adopted_nor_killed(
    tmp_path: Path,
) -> None:
    # Before the daemon: one that starts within 10 ms of the worker has the same start time.
    with (
        subprocess.Popen(["sleep", "600"], start_new_session=True) as stranger,
        live_home(tmp_path) as home,
    ):
        try:
            run_id = home.spawn(f"{MARK_ATTEMPT}; {UNTIL_GO}")
            worker = home.worker_pid(run_id)
            until(home.marks_written, what="the worker at work")
            home.kill()
            home.kill_run(run_id)
            for name in ("pid", "claim"):
                file = home.attempt_file(run_id, name)
                words = [line.split() for line in file.read_text().splitlines()]
                for record in words:
                    if record[0] in {"shim", "worker"}:
                        record[1] = str(stranger.pid)
                file.write_text("".join(" ".join(record) + "\n" for record in words))
            assert str(worker) not in home.attempt_file(run_id, "pid").read_text().split()
            home.start()

            item = home.finish(run_id)[0]
            assert item["outcome"]["status"] == "lost"
            assert stranger.poll() is None
            assert home.marks_written() == [f"{run_id}#1"]
        finally:
            stranger.kill()
            stranger.wait(20)


@pytest.mark.requirement("field:multica-1326")
def test_multica_1326_after_a_restart_each_of_25_open_runs_is_accounted_for(
    tmp_path: Path,
) -> None:
    config = "[agents.defaults.subagents]\nmax_children_per_agent = 50\nmax_concurrent = 10\n"
    with live_home(tmp_path, config=config) as home:
        live = [home.spawn(f"{MARK_ATTEMPT}; {UNTIL_GO}") for _ in range(10)]
        queued = [home.spawn(f"{MARK_ATTEMPT}; {UNTIL_GO}") for _ in range(10)]
        waiting = [home.spawn(MARK_ATTEMPT, chainAfter=run_id) for run_id in queued[:5]]
        until(lambda: len(home.marks_written()) == 10, what="ten at work")
        dead = live[:3]
        home.kill()
        for run_id in dead:
            home.kill_run(run_id)
        home.start()

        def settled() -> bool:
            found = {run_id: home.row(run_id)["phase"] for run_id in (*live, *queued, *waiting)}
            lost = all(home.row(run_id)["runStatus"] == "lost" for run_id in dead)
            running = all(found[run_id] == "running" for run_id in (*live[3:], *queued[:3]))
            held = all(found[run_id] == "queued" for run_id in queued[3:])
            return lost and running and held and {found[r] for r in waiting} == {"waiting"}

        until(settled, what="a state for every run")
        for run_id in (*live, *queued, *waiting):
            assert home.get(f"/v1/runs/{run_id}/why")["why"]
        (home.work / "go").touch()
        outcomes = [i["outcome"]["status"] for i in home.finish(*live, *queued, *waiting)]
        assert outcomes == ["lost"] * 3 + ["ok"] * 22
        assert sorted(home.marks_written()) == sorted(
            f"{run_id}#1" for run_id in (*live, *queued, *waiting)
        )


@pytest.mark.requirement("field:bernstein-2798")
def test_bernstein_2798_stop_and_start_again_changes_no_run_and_forgets_none(
    tmp_path: Path,
) -> None:
    config = "[agents.defaults.subagents]\nmax_children_per_agent = 50\nmax_concurrent = 1\n"
    with live_home(tmp_path, config=config) as home:
        done = home.spawn("echo done")
        home.finish(done)
        until(lambda: home.row(done)["phase"] == "completed", what="cleanup")
        running = home.spawn(UNTIL_GO, label="running")
        home.until_phase(running, "running")
        queued = home.spawn("echo queued")
        waiting = home.spawn("echo waiting", chainAfter="running")
        paused = home.spawn("echo paused")
        home.post(f"/v1/runs/{paused}/pause", {})
        home.stop()
        before = home.stored()
        for run_id, run in before.items():
            assert fold(home.journal(run_id)) == run
        home.start()

        taken_over = replace(before[running], seq=before[running].seq + 1)
        until(lambda: home.stored()[running] != before[running], what="the take-over on record")
        assert home.stored() == {**before, running: taken_over}
        phases = {row["runId"]: row["phase"] for row in home.get("/v1/runs")["runs"]}
        assert phases == {
            done: "completed",
            running: "running",
            queued: "queued",
            waiting: "waiting",
            paused: "queued",
        }
        (home.work / "go").touch()
        home.finish(running, queued, waiting)
        home.post(f"/v1/runs/{paused}/resume", {})
        assert home.finish(paused)[0]["result"] == "paused"
        home.stop()
        audit(home)


@pytest.mark.requirement("field:sculptor-141")
def test_sculptor_141_an_answer_given_right_before_a_crash_reaches_the_worker_once(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = asking(home, 1)
        request_id = question_of(home, run_id)
        worker = home.worker_pid(run_id)
        # Stopped, so that the answer cannot have reached it before the crash.
        os.kill(worker, signal.SIGSTOP)
        answered = home.post(f"/v1/requests/{request_id}/respond", {"response": "blue"})
        assert answered["status"] == "answered"
        home.kill()
        os.kill(worker, signal.SIGCONT)
        home.start()

        with pytest.raises(AlreadyAnswered):
            home.post(f"/v1/requests/{request_id}/respond", {"response": "red"})
        assert home.finish(run_id)[0]["result"] == "blue"
        assert len(home.events(run_id, RequestAnswered)) == 1
        unread = "SELECT count(*) FROM inbox WHERE consumed_at_ms IS NULL"
        assert home.read(unread) == [(0,)]


@pytest.mark.requirement("field:sculptor-141")
def test_sculptor_141_a_question_asked_before_a_crash_can_be_answered_after_it(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = asking(home, 1)
        request_id = question_of(home, run_id)
        home.restart_after_kill()

        waiting = home.get("/v1/attention")["items"]
        assert [(i["kind"], i["requestId"]) for i in waiting] == [("question", request_id)]
        home.post(f"/v1/requests/{request_id}/respond", {"response": "green"})
        assert home.finish(run_id)[0]["result"] == "green"
        assert home.get("/v1/attention")["items"] == []


@pytest.mark.requirement("field:openswarm-434")
def test_openswarm_434_an_answer_ends_the_wait_of_its_worker(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = asking(home, 5)
        given: list[float] = []
        for number in range(1, 6):
            request_id = question_of(home, run_id, number)
            given.append(time.time())
            home.post(f"/v1/requests/{request_id}/respond", {"response": str(number)})
        assert home.finish(run_id)[0]["result"] == "1 2 3 4 5"
        heard = map(float, home.marks_written())
        took = sorted(at - asked for at, asked in zip(heard, given, strict=True))
        assert took[-1] < WAIT_S - 10, took


@pytest.mark.requirement("field:temporalio-sdk-python-1890")
def test_temporalio_1890_a_run_with_ten_thousand_events_goes_on_and_reads_in_pages(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn(f"{MARK_ATTEMPT}; {UNTIL_GO}; echo end")
        until(home.marks_written, what="the worker at work")
        home.until_phase(run_id, "running")
        home.stop()
        run = home.stored()[run_id]
        more = 10_000
        grown = replace(run, seq=run.seq + more)
        tick = TimerFired(at_ms=run.times.phase_since_ms)
        ticks = [
            JournalEntry(run_id=run.id, seq=run.seq + n, at_ms=tick.at_ms, event=tick)
            for n in range(1, more + 1)
        ]
        store = SqliteStore(home.paths.database)
        store.open("test")
        store.commit(Batch(runs={run.id: grown}, journal=ticks))
        store.close()
        home.start()
        before = _resident_bytes(home.pid)

        seen, after, pages = 0, 0, 0
        while True:
            page = home.get(f"/v1/runs/{run_id}/timeline", afterSeq=after, limit=500)
            seen, pages = seen + len(page["events"]), pages + 1
            assert len(page["events"]) <= 500
            if page["nextSeq"] is None:
                break
            assert page["nextSeq"] > after
            after = page["nextSeq"]
        assert seen == grown.seq + 1  # that it was taken over is on record too
        assert pages >= 20
        assert len(json.dumps(home.get(f"/v1/runs/{run_id}/why"))) < MIB
        assert _resident_bytes(home.pid) - before < 40 * MIB
        (home.work / "go").touch()
        assert home.finish(run_id)[0]["result"] == "end"
        home.stop()
        audit(home)


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.requirement("field:truncated-result")
def test_a_long_result_is_stored_whole_and_cut_only_where_it_is_shown(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn("i=0; while [ $i -lt 2000 ]; do echo number $i; i=$((i+1)); done")
        whole = "\n".join(f"number {n}" for n in range(2000))
        assert 8_018 < len(whole) < 32 * 1024
        item = home.finish(run_id)[0]
        assert item["result"] == whole
        assert home.get(f"/v1/runs/{run_id}/result")["result"] == whole
        assert len(item["announcement"]) < 9_000
        assert f"more characters: subagents result {run_id}" in item["announcement"]


@pytest.mark.requirement("field:dead-letter-inbox")
def test_a_wait_that_outlives_two_daemons_gets_its_result_without_a_new_spawn(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn(f"{MARK_ATTEMPT}; {UNTIL_GO}; echo kept")
        for _ in range(3):
            home.restart_after_kill()
            assert home.wait(run_id, timeout_s=0.1)["pending"]
        (home.work / "go").touch()
        assert home.finish(run_id)[0]["result"] == "kept"
        assert len(home.events(run_id, AttemptStarted)) == 1


@pytest.mark.requirement("field:success-shaped-text")
def test_a_worker_that_claims_success_and_exits_with_an_error_has_failed(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        claim = json.dumps({"subagents": "report", "summary": "all good", "status": "complete"})
        result = json.dumps({"subagents": "result", "text": "SUCCESS"})
        run_id = home.spawn(f"echo '{claim}'; echo '{result}'; exit 1")
        item = home.finish(run_id)[0]
        assert item["outcome"]["status"] == "error"
        assert item["result"] == "SUCCESS"
        assert "completed successfully" not in item["announcement"]


@pytest.mark.requirement("field:lost-on-cleanup")
def test_deleting_a_runs_session_deletes_no_result_and_no_journal(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn("echo SAID AND DONE | tr A-Z a-z >&2; echo kept", cleanup="delete")
        home.finish(run_id)
        until(lambda: home.row(run_id)["phase"] == "completed", what="cleanup")
        assert not home.attempt_file(run_id, "exit").exists()
        assert "said and done" not in json.dumps(home.get(f"/v1/runs/{run_id}/log"))
        kept = [file.read_text() for file in home.paths.state_dir.rglob("*.jsonl")]
        assert not [text for text in kept if "said and done" in text]
        assert home.get(f"/v1/runs/{run_id}/result")["result"] == "kept"
        assert home.get(f"/v1/runs/{run_id}/timeline")["events"]
        home.restart_after_kill()
        assert home.get(f"/v1/runs/{run_id}/result")["result"] == "kept"
        assert home.get(f"/v1/runs/{run_id}")["task"] == "(deleted)"
        log = home.get(f"/v1/runs/{run_id}/log")
        assert (log["lines"], "was deleted" in log["note"]) == ([], True)
        home.stop()
        audit(home)
        files = [file for file in home.paths.state_dir.rglob("*") if file.is_file()]
        assert files
        assert not [file for file in files if b"SAID AND DONE" in file.read_bytes()]


@pytest.mark.requirement("field:zombies", "e2e:lease:suspended")
def test_a_daemon_suspended_for_longer_than_its_lease_loses_no_worker(tmp_path: Path) -> None:
    with live_home(tmp_path, config=f"{DEFAULTS}\n[daemon]\nlease_seconds = 0.3\n") as home:
        run_id = home.spawn(lines(80, held_at=70))
        pid = home.worker_pid(run_id)
        home.until_phase(run_id, "running")
        os.kill(home.pid, signal.SIGSTOP)
        try:
            until(lambda: "line 60" in home.output(run_id), what="more output")
        finally:
            os.kill(home.pid, signal.SIGCONT)
        assert home.row(run_id)["phase"] == "running"
        assert home.worker_pid(run_id) == pid
        (home.work / "go").touch()
        item = home.finish(run_id)[0]
        assert (item["outcome"]["status"], item["result"]) == ("ok", numbered(80))
        assert home.marks_written() == [f"{run_id}#1"]


@pytest.mark.requirement("field:zombies", "e2e:attempt-directory-deleted")
def test_a_worker_whose_files_were_deleted_comes_to_an_end_on_record(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn(f"{MARK_ATTEMPT}; {UNTIL_GO}")
        until(home.marks_written, what="the worker at work")
        home.until_phase(run_id, "running")
        shutil.rmtree(home.paths.attempts_dir / run_id)
        (home.work / "go").touch()
        assert home.finish(run_id)[0]["outcome"]["status"] == "lost"
        until(lambda: not home.marked(), what="no process left")
