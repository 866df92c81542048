"""Nothing that was told to end goes on: signals ignored, sessions changed, children of children."""

import sys
import time
from pathlib import Path

import pytest
from tests.e2e.live_home import MARK_ATTEMPT, LiveHome, live_home, until

from subagents.runtimes.process.processes import look, scan
from subagents.text import milliseconds_of

GRACE_S = 0.5

STUBBORN = (
    "trap '' TERM INT HUP;"
    " setsid sh -c \"trap '' TERM INT HUP; while :; do sleep 0.1; done\" &"
    ' echo partial; echo up >> "$MARKS"; while :; do sleep 0.1; done'
)

NEST = """
import os, sys, time
from subagents.client.client import Client

depth = int(sys.argv[1])
with open(os.environ["MARKS"], "a") as marks:
    marks.write(os.environ["SUBAGENTS_RUN_ID"] + "\\n")
if depth:
    with Client(os.environ["SUBAGENTS_SOCKET"], session=os.environ["SUBAGENTS_SESSION_KEY"]) as c:
        for _ in range(int(sys.argv[2])):
            task = f"exec {sys.executable} {__file__} {depth - 1} {sys.argv[2]}"
            c.post("/v1/runs", {"spec": {"task": task, "agentId": "sh"}, "cwd": os.getcwd()})
while not os.path.exists("go"):
    time.sleep(0.05)
print("nested", depth)
"""


def nest(home: LiveHome, depth: int, width: int = 1) -> str:
    """A worker whose workers have workers: ``width`` each, ``depth`` levels below the first."""
    script = home.work / "nest.py"
    script.write_text(NEST)
    return home.spawn(f"exec {sys.executable} {script} {depth} {width}")


def deadline_of(home: LiveHome, run_id: str) -> int:
    """In ms since the epoch; a worker can be at work just before its start is on record."""
    return until(
        lambda: milliseconds_of(home.show(run_id)["deadlineAt"]) or 0, what="the deadline's time"
    )


def all_gone(home: LiveHome) -> None:
    """Return once no process of the test is alive; by themselves they would go on for ever."""
    until(lambda: not home.marked(), what="no process left")


@pytest.mark.requirement("e2e:stop:cancel")
def test_cancel_ends_a_worker_that_ignores_signals_and_its_child_in_another_session(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path, grace_s=GRACE_S) as home:
        run_id = home.spawn(STUBBORN)
        until(home.marks_written, what="the worker at work")
        sessions = {each.session for each in scan() if each.pid in home.of_run(run_id)}
        assert len(sessions) == 2

        home.post(f"/v1/runs/{run_id}/cancel", {})
        all_gone(home)
        item = home.finish(run_id)[0]
        assert item["outcome"]["status"] == "cancelled"
        assert item["result"] == "partial"
        again = home.post(f"/v1/runs/{run_id}/cancel", {})
        assert again["status"] == "already ended"


DAEMONIZES = "(env -i setsid sh -c 'echo $$ >> orphans; exec sleep 602' &); exec sleep 600"


@pytest.mark.requirement("e2e:stop:cancel")
def test_cancelled_workers_that_daemonize_leave_no_process(tmp_path: Path) -> None:
    with live_home(tmp_path, grace_s=GRACE_S) as home:
        orphans = home.work / "orphans"
        run_ids = [home.spawn(DAEMONIZES) for _ in range(20)]
        until(
            lambda: orphans.exists() and len(orphans.read_text().split()) == len(run_ids),
            what="every orphan",
        )
        # Whoever takes over finds them as well.
        home.restart_after_kill()
        for run_id in run_ids:
            home.post(f"/v1/runs/{run_id}/cancel", {})
        home.finish(*run_ids)
        pids = [int(pid) for pid in orphans.read_text().split()]
        until(lambda: not any(map(look, pids)), what="the end of all orphans")


@pytest.mark.requirement("e2e:stop:timeout", "field:timeouts-ignored")
def test_the_deadline_ends_a_worker_that_ignores_signals_and_keeps_its_partial_output(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path, grace_s=GRACE_S) as home:
        run_id = home.spawn(STUBBORN, runTimeoutSeconds=2)
        until(home.marks_written, what="the worker at work")
        deadline_ms = deadline_of(home, run_id)

        all_gone(home)
        assert time.time() * 1000 >= deadline_ms
        item = home.finish(run_id)[0]
        assert item["outcome"]["status"] == "timeout"
        assert item["result"] == "partial"


@pytest.mark.requirement("e2e:stop:deadline-while-down")
def test_a_deadline_that_passed_while_no_daemon_was_there_is_enforced_at_the_start(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path, grace_s=GRACE_S) as home:
        run_id = home.spawn(STUBBORN, runTimeoutSeconds=2)
        until(home.marks_written, what="the worker at work")
        deadline_ms = deadline_of(home, run_id)
        home.kill()
        until(lambda: time.time() * 1000 > deadline_ms, what="the deadline")
        assert home.of_run(run_id)
        home.start()

        all_gone(home)
        assert home.finish(run_id)[0]["outcome"]["status"] == "timeout"


@pytest.mark.requirement("e2e:stop:leftovers")
def test_children_that_a_worker_left_behind_end_with_its_attempt(tmp_path: Path) -> None:
    with live_home(tmp_path, grace_s=GRACE_S) as home:
        run_id = home.spawn("setsid sh -c 'while :; do sleep 0.1; done' & echo done")
        item = home.finish(run_id)[0]
        assert (item["outcome"]["status"], item["result"]) == ("ok", "done")
        all_gone(home)


@pytest.mark.requirement("e2e:stop:clean-environment")
def test_a_child_that_was_given_a_clean_environment_ends_with_its_worker(tmp_path: Path) -> None:
    with live_home(tmp_path, grace_s=GRACE_S) as home:
        hidden = home.work / "hidden"
        run_id = home.spawn(
            f"trap '' TERM; env -i sh -c 'echo $$ > {hidden}; while :; do sleep 0.1; done' &"
            " while :; do sleep 0.1; done"
        )
        until(lambda: hidden.exists() and hidden.read_text().strip(), what="its pid")
        pid = int(hidden.read_text())

        def is_gone() -> bool:
            return pid not in {each.pid for each in scan()}

        assert not is_gone()
        home.post(f"/v1/runs/{run_id}/cancel", {})
        until(is_gone, what="the child gone")


@pytest.mark.requirement("e2e:stop:cascade", "field:claude-code-82104")
def test_claude_code_82104_cancel_of_a_parent_ends_all_its_descendants_processes(
    tmp_path: Path,
) -> None:
    config = (
        "[agents.defaults.subagents]\n"
        "max_spawn_depth = 3\nmax_children_per_agent = 5\nmax_concurrent = 20\n"
    )
    with live_home(tmp_path, config=config, grace_s=GRACE_S) as home:
        run_id = nest(home, 2, width=2)
        until(lambda: len(set(home.marks_written())) == 7, what="1 + 2 + 4 runs at work")
        assert len(home.marked()) >= 7

        home.post(f"/v1/runs/{run_id}/cancel", {"reason": "enough"})
        all_gone(home)
        runs = home.stored()
        assert len(runs) == 7
        until(
            lambda: (
                {str(r.outcome and r.outcome.status) for r in home.stored().values()}
                == {"cancelled"}
            ),
            what="seven cancelled runs",
        )


@pytest.mark.requirement("e2e:stop:queued", "field:cannot-stop")
def test_cancel_of_a_queued_run_means_that_it_never_starts(tmp_path: Path) -> None:
    config = "[agents.defaults.subagents]\nmax_concurrent = 1\n"
    with live_home(tmp_path, config=config, grace_s=GRACE_S) as home:
        first = home.spawn("until [ -e go ]; do sleep 0.05; done")
        queued = home.spawn(MARK_ATTEMPT)
        last = home.spawn(MARK_ATTEMPT)
        home.post(f"/v1/runs/{queued}/cancel", {})
        assert home.finish(queued)[0]["outcome"]["status"] == "cancelled"
        (home.work / "go").touch()
        home.finish(first, last)
        assert home.marks_written() == [f"{last}#1"]


@pytest.mark.requirement("e2e:nested:waits", "field:lane-deadlock")
def test_with_one_slot_a_parent_that_waits_for_its_child_gets_its_result(tmp_path: Path) -> None:
    config = "[agents.defaults.subagents]\nmax_concurrent = 1\nmax_spawn_depth = 2\n"
    with live_home(tmp_path, config=config, grace_s=GRACE_S) as home:
        script = home.work / "parent.py"
        script.write_text(
            "import os\n"
            "from subagents.client.client import Client\n"
            "key = os.environ['SUBAGENTS_SESSION_KEY']\n"
            "with Client(os.environ['SUBAGENTS_SOCKET'], session=key) as c:\n"
            "    spec = {'task': 'echo from the child', 'agentId': 'sh'}\n"
            "    run = c.post('/v1/runs', {'spec': spec, 'cwd': os.getcwd()})\n"
            "    body = {'runIds': [run['runId']], 'until': 'all', 'timeoutSeconds': 20}\n"
            "    found = c.post('/v1/wait', body)\n"
            "    c.post('/v1/inbox/ack', {'messageIds': found['messages']})\n"
            "    print('heard', found['completed'][0]['result'])\n"
        )
        run_id = home.spawn(f"exec {sys.executable} {script}")
        assert home.finish(run_id)[0]["result"] == "heard from the child"


@pytest.mark.requirement("e2e:nested:appended")
def test_a_parent_that_ends_first_announces_after_its_children_with_their_results(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path, grace_s=GRACE_S) as home:
        run_id = nest(home, 1)
        until(lambda: len(set(home.marks_written())) == 2, what="parent and child at work")
        assert home.wait(run_id, timeout_s=0)["pending"]
        (home.work / "go").touch()
        result = home.finish(run_id)[0]["result"]
        assert result.startswith("nested 1")
        assert "nested 0" in result
        assert home.post("/v1/inbox", {})["messages"] == []


@pytest.mark.requirement("e2e:nested:leaves")
def test_a_leaf_that_spawns_is_refused_and_the_key_to_change_is_named(tmp_path: Path) -> None:
    config = "[agents.defaults.subagents]\nmax_spawn_depth = 1\n"
    with live_home(tmp_path, config=config, grace_s=GRACE_S) as home:
        run_id = nest(home, 1)
        item = home.finish(run_id)[0]
        assert item["outcome"]["status"] == "error"
        assert "agents.defaults.subagents.max_spawn_depth" in item["outcome"]["error"]
        assert len(home.stored()) == 1
