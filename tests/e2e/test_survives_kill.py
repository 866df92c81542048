"""kill -9 of the daemon at every place of a run's life: nothing is lost, nothing happens twice."""

import os
import random
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.e2e.live_home import (
    BOUND_S,
    MARK_ATTEMPT,
    LiveHome,
    audit,
    lines,
    live_home,
    numbered,
    until,
)
from tests.live_processes import carrying, dead_children

from subagents.domain.run.events import AttemptStarted, VerificationFinished
from subagents.domain.run.run import Phase
from subagents.errors import Unavailable
from subagents.text import milliseconds_of

COMMANDS = """
[agents.defaults.subagents]
max_children_per_agent = 1000
max_concurrent = 64

[verification]
dangerously_allow_validation_commands = true
sandbox = false
"""


def assert_ended_once(home: LiveHome, run_id: str, result: str) -> None:
    item = home.finish(run_id)[0]
    assert item["outcome"]["status"] == "ok", item
    assert item["result"] == result
    until(lambda: home.row(run_id)["phase"] == "completed", what="cleanup")
    home.stop()
    found = audit(home, [run_id])
    assert found.consumed == {run_id: 1}
    assert home.marks_written() == [f"{run_id}#1"]


PARENT = """
import os, time
from subagents.client.client import Client
from subagents.errors import Unavailable

def post(path, body):
    due = time.monotonic() + 60
    while True:
        try:
            with Client(os.environ["SUBAGENTS_SOCKET"],
                        session=os.environ["SUBAGENTS_SESSION_KEY"], reader="parent") as client:
                return client.post(path, body)
        except Unavailable:
            if time.monotonic() > due:
                raise
            time.sleep(0.02)

runs = []
for n in range(3):
    task = f'echo "$SUBAGENTS_ATTEMPT" >> "$MARKS"; sleep 0.{n + 1}; echo child {n}'
    spec = {"task": task, "agentId": "sh", "idempotencyKey": f"child {n}"}
    runs.append(post("/v1/runs", {"spec": spec, "cwd": os.getcwd()})["runId"])
heard = {}
while len(heard) < 3:
    left = [run for run in runs if run not in heard]
    found = post("/v1/wait", {"runIds": left, "until": "any", "timeoutSeconds": 5})
    heard.update({item["runId"]: item["result"] for item in found["completed"]})
    post("/v1/inbox/ack", {"messageIds": found["messages"]})
print(" ".join(heard[run] for run in runs))
"""


@pytest.mark.requirement("e2e:kill:running")
def test_a_worker_goes_on_with_the_same_pid_and_no_gap_when_its_daemon_is_killed(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        wait = "until [ -e {} ]; do sleep 0.02; done"
        write = "seq -f 'line %g' {} {}"
        steps = (write.format(0, 19), wait.format("more"), write.format(20, 39))
        end = (wait.format("go"), write.format(40, 59))
        run_id = home.spawn("; ".join((MARK_ATTEMPT, *steps, *end)))
        pid = home.worker_pid(run_id)
        until(lambda: "line 19" in home.output(run_id), what="some output")
        home.kill()
        (home.work / "more").touch()
        out = home.attempt_file(run_id, "out")
        until(lambda: "line 39" in out.read_text(), what="what it writes to nobody")
        home.start()

        assert home.row(run_id)["phase"] == "running"
        assert home.worker_pid(run_id) == pid
        os.kill(pid, 0)
        (home.work / "go").touch()
        assert_ended_once(home, run_id, numbered(60))
        assert len(home.events(run_id, AttemptStarted)) == 1


@pytest.mark.requirement("daemon:anew")
def test_at_a_hangup_the_daemon_begins_anew_in_its_process_and_its_worker_goes_on(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn("until [ -e end ]; do sleep 0.02; done; echo done")
        daemon, worker = home.pid, home.worker_pid(run_id)

        os.kill(daemon, signal.SIGHUP)
        until(lambda: home.log().count("listening on") == 2, what="the daemon, once more")
        assert (home.get("/version")["pid"], home.worker_pid(run_id)) == (daemon, worker)
        assert dead_children(daemon) == []
        (home.work / "end").touch()
        assert home.finish(run_id)[0]["result"] == "done"


@pytest.mark.requirement("e2e:kill:ended-meanwhile")
def test_a_worker_that_ended_while_no_daemon_was_there_is_settled_from_its_files(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn(lines(20))
        home.worker_pid(run_id)
        home.kill()
        until(lambda: home.attempt_file(run_id, "exit").exists(), what="the exit on record")
        until(lambda: not home.marked(), what="the end of all processes")
        home.start()

        assert_ended_once(home, run_id, numbered(20))


@pytest.mark.requirement("results:whole")
@pytest.mark.parametrize("is_killed_before", [True, False], ids=["before-its-end", "after-its-end"])
def test_a_long_result_is_whole_whenever_the_daemon_is_killed(
    tmp_path: Path, *, is_killed_before: bool
) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn("until [ -e go ]; do sleep 0.05; done; seq 200000")
        home.worker_pid(run_id)
        if is_killed_before:
            home.kill()
        (home.work / "go").touch()
        until(lambda: home.attempt_file(run_id, "exit").exists(), what="the exit on record")
        if not is_killed_before:
            home.kill()
        home.start()

        item = home.finish(run_id)[0]
        with home.client() as client:
            text = client.get_bytes(f"/v1/runs/{run_id}/result/text").decode()

        assert text.split("\n") == [str(number) for number in range(1, 200_001)]
        assert (item["truncated"], item["keptBytes"], item["resultBytes"]) == (
            True,
            len(text),
            len(text),
        )
        assert len(item["result"]) <= 32_768


@pytest.mark.requirement("e2e:kill:exit-code")
def test_a_failure_while_no_daemon_was_there_is_told_with_its_exit_code(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn("sleep 0.3; echo half; echo broken >&2; exit 7")
        home.worker_pid(run_id)
        home.kill()
        until(lambda: home.attempt_file(run_id, "exit").exists(), what="the exit on record")
        home.start()

        item = home.finish(run_id)[0]
        assert item["outcome"]["status"] == "error"
        assert "exit code 7" in item["outcome"]["error"]
        assert "broken" in item["outcome"]["error"]
        assert item["result"] == "half"


@pytest.mark.requirement("e2e:kill:verifying")
def test_verification_that_was_killed_is_done_again_and_the_worker_is_not(tmp_path: Path) -> None:
    with live_home(tmp_path, config=COMMANDS) as home:
        check = f'echo check >> "{home.root}/checks"; sleep 0.6; test -s made'
        run_id = home.spawn(
            f"{MARK_ATTEMPT}; echo made > made; echo line 0", verification={"commands": [check]}
        )
        home.until_phase(run_id, "verifying")
        checks = home.root / "checks"
        until(checks.exists, what="the check under way")
        home.restart_after_kill()

        assert_ended_once(home, run_id, "line 0")
        verdicts = home.events(run_id, VerificationFinished)
        assert [str(each.verification.verdict) for each in verdicts] == ["passed"]
        assert len(checks.read_text().split()) == 2


@pytest.mark.requirement("e2e:kill:checks-end")
def test_a_check_that_outlived_its_daemon_is_ended_before_it_is_run_again(tmp_path: Path) -> None:
    """Two of the same command at once could each spoil what the other looks at."""
    check = "echo $$ >> checks; while [ ! -e go ]; do sleep 0.02; done"
    with live_home(tmp_path, config=COMMANDS) as home:
        run_id = home.spawn("echo made", verification={"commands": [check]})
        pids = home.work / "checks"
        until(lambda: pids.exists() and pids.read_text().split(), what="the check runs")
        first = int(pids.read_text().split()[0])
        home.kill()
        assert first in carrying("SUBAGENTS_RUN_ID", run_id)
        home.start()
        until(lambda: len(pids.read_text().split()) == 2, what="the check runs again")

        assert first not in carrying("SUBAGENTS_RUN_ID", run_id)

        (home.work / "go").touch()
        assert home.finish(run_id)[0]["outcome"]["status"] == "ok"


@pytest.mark.requirement("e2e:kill:retry-wait")
def test_a_due_retry_survives_and_is_exactly_one_more_attempt(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        task = f'{MARK_ATTEMPT}; [ "$SUBAGENTS_ATTEMPT_NUMBER" = 2 ] && echo again || exit 3'
        run_id = home.spawn(task, retryCount=3, retryDelay=5000, retryBackoff="fixed")
        home.until_phase(run_id, "retry_wait")
        due = home.show(run_id)["retryDueAt"]
        home.restart_after_kill()

        assert home.show(run_id)["retryDueAt"] == due
        item = home.finish(run_id)[0]
        assert item["outcome"]["status"] == "ok"
        assert item["result"] == "again"
        assert home.marks_written() == [f"{run_id}#1", f"{run_id}#2"]
        attempts = home.show(run_id)["attempts"]
        assert [each["retryOf"] for each in attempts] == [None, f"{run_id}#1"]
        home.stop()
        assert audit(home).consumed == {run_id: 1}


@pytest.mark.requirement("e2e:kill:overdue-retry")
def test_a_retry_that_came_due_while_no_daemon_was_there_starts_at_once(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        task = f'{MARK_ATTEMPT}; [ "$SUBAGENTS_ATTEMPT_NUMBER" = 2 ] && echo again || exit 3'
        run_id = home.spawn(task, retryCount=1, retryDelay=1500)
        home.until_phase(run_id, "retry_wait")
        due = home.show(run_id)["retryDueAt"]
        home.kill()
        due_ms = milliseconds_of(due) or 0
        until(lambda: time.time() * 1000 > due_ms, what="the due time")
        home.start()

        assert home.finish(run_id)[0]["result"] == "again"
        assert home.marks_written() == [f"{run_id}#1", f"{run_id}#2"]


@pytest.mark.requirement("e2e:kill:delivery")
@pytest.mark.parametrize("seed", range(6))
def test_killed_between_result_and_delivery_the_announcement_comes_once(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311  # places of a kill, no secret
    with live_home(tmp_path) as home:
        run_id = home.spawn(f"{MARK_ATTEMPT}; sleep 0.2; echo line 0")
        until(
            lambda: home.read("SELECT 1 FROM inbox WHERE run_id = ?", (run_id,)),
            what="the outcome on disk",
            pause_s=0.0005,
        )
        time.sleep(chance.uniform(0, 0.01))
        home.restart_after_kill()

        assert_ended_once(home, run_id, "line 0")


@pytest.mark.requirement("e2e:kill:offered")
def test_what_was_offered_but_not_acknowledged_is_offered_again_after_a_kill(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn("echo line 0")
        offered = home.wait(run_id)["messages"]
        assert offered == [f"{run_id}:announce"]
        home.restart_after_kill()

        assert home.wait(run_id)["messages"] == offered
        assert home.post("/v1/inbox/ack", {"messageIds": offered}) == {"consumed": 1}
        home.restart_after_kill()
        assert home.wait(run_id)["messages"] == []
        assert home.post("/v1/inbox/ack", {"messageIds": offered}) == {"consumed": 0}
        assert home.post("/v1/inbox", {})["messages"] == []


@pytest.mark.requirement("e2e:kill:start")
@pytest.mark.parametrize("seed", range(6))
def test_killed_right_after_the_receipt_the_run_is_started_exactly_once(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311  # places of a kill, no secret
    with live_home(tmp_path) as home:
        run_ids = [home.spawn(f"{MARK_ATTEMPT}; sleep 0.3; echo line 0") for _ in range(3)]
        time.sleep(chance.uniform(0, 0.015))
        home.restart_after_kill()

        items = home.finish(*run_ids)
        assert [item["result"] for item in items] == ["line 0"] * 3
        assert sorted(home.marks_written()) == sorted(f"{run_id}#1" for run_id in run_ids)
        home.stop()
        found = audit(home, run_ids)
        assert set(found.consumed.values()) == {1}
        assert {run.phase for run in found.runs.values()} <= {
            Phase.COMPLETED,
            Phase.CLEANUP_PENDING,
        }


@pytest.mark.requirement("e2e:kill:cancel")
def test_a_cancel_that_was_acknowledged_holds_after_a_kill(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn(f"{MARK_ATTEMPT}; trap '' TERM; while :; do sleep 0.05; done")
        home.worker_pid(run_id)
        until(home.marks_written, what="the worker at work")
        home.post(f"/v1/runs/{run_id}/cancel", {"reason": "enough"})
        home.restart_after_kill()

        item = home.finish(run_id)[0]
        assert item["outcome"]["status"] == "cancelled"
        until(lambda: not home.of_run(run_id), what="no process left")


@pytest.mark.requirement("e2e:kill:queued")
def test_runs_that_were_queued_or_waiting_go_on_after_a_kill(tmp_path: Path) -> None:
    config = "[agents.defaults.subagents]\nmax_concurrent = 1\nmax_children_per_agent = 50\n"
    with live_home(tmp_path, config=config) as home:
        first = home.spawn(lines(30, held_at=25), label="first")
        queued = home.spawn(f"{MARK_ATTEMPT}; echo queued", label="queued")
        waiting = home.spawn(
            f"{MARK_ATTEMPT}; cat",
            label="waiting",
            chainAfter="queued",
            includeDependencyResult=True,
        )
        assert home.row(queued)["phase"] == "queued"
        assert home.row(waiting)["phase"] == "waiting"
        home.restart_after_kill()
        (home.work / "go").touch()

        results = [item["result"] for item in home.finish(first, queued, waiting)]
        assert results[:2] == [numbered(30), "queued"]
        assert "queued" in results[2]
        assert home.marks_written() == [f"{first}#1", f"{queued}#1", f"{waiting}#1"]


@pytest.mark.requirement("e2e:kill:waiter")
def test_a_caller_whose_wait_was_cut_by_the_kill_can_wait_again_and_gets_the_result(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn(lines(20, held_at=15))
        home.restart_after_kill()
        answered = home.wait(run_id, timeout_s=0)
        assert [each["runId"] for each in answered["pending"]] == [run_id]
        (home.work / "go").touch()
        assert_ended_once(home, run_id, numbered(20))


@pytest.mark.requirement("e2e:stop-daemon:waiter")
def test_an_orderly_stop_ends_waiting_calls_with_a_reason_and_leaves_the_worker_at_work(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home, ThreadPoolExecutor(1) as pool:
        run_id = home.spawn(lines(60, held_at=50))
        pid = home.worker_pid(run_id)
        waiting = pool.submit(home.wait, run_id, timeout_s=2 * BOUND_S)
        until(lambda: "line 5" in home.output(run_id), what="some output")
        home.stop()
        with pytest.raises(Unavailable):
            waiting.result(BOUND_S)
        assert pid in home.of_run(run_id)
        (home.work / "go").touch()
        home.start()
        assert_ended_once(home, run_id, numbered(60))


@pytest.mark.requirement("e2e:kill:lost")
@pytest.mark.parametrize(("retries", "status"), [(0, "lost"), (1, "ok")])
def test_a_worker_killed_with_its_wrapper_is_lost_and_retried_only_if_it_was_asked_for(
    tmp_path: Path, retries: int, status: str
) -> None:
    with live_home(tmp_path) as home:
        task = f'{MARK_ATTEMPT}; [ "$SUBAGENTS_ATTEMPT_NUMBER" = 2 ] || sleep 60; echo second'
        run_id = home.spawn(task, retryCount=retries, retryDelay=0)
        until(home.marks_written, what="the worker at work")
        home.kill()
        home.kill_run(run_id)
        home.start()

        item = home.finish(run_id)[0]
        assert item["outcome"]["status"] == status
        attempts = home.show(run_id)["attempts"]
        assert [each["outcome"]["status"] for each in attempts] == ["lost", "ok"][: 1 + retries]
        assert home.marks_written() == [f"{run_id}#{n}" for n in range(1, retries + 2)]


@pytest.mark.requirement("e2e:kill:nested")
@pytest.mark.parametrize("seed", range(3))
def test_parent_and_children_come_to_one_result_whatever_is_killed_between_them(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311  # places of a kill, no secret
    with live_home(tmp_path) as home:
        script = home.work / "parent.py"
        script.write_text(PARENT)
        run_id = home.spawn(f"{MARK_ATTEMPT}; exec {sys.executable} {script}")
        for _ in range(4):
            time.sleep(chance.uniform(0.02, 0.3))
            home.restart_after_kill()

        item = home.finish(run_id, timeout_s=60)[0]
        assert item["outcome"]["status"] == "ok", item
        assert item["result"] == "child 0 child 1 child 2"
        assert len(home.stored()) == 4
        marks = home.marks_written()
        assert sorted(marks) == sorted(f"{each}#1" for each in home.stored())
        until(lambda: not home.effects_left(), what="all effects done")
        home.stop()
        assert set(audit(home).consumed.values()) == {1}
