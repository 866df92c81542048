"""Runs in a sandbox of bubblewrap, by a real daemon that is killed, and with real children."""

import contextlib
from pathlib import Path

import pytest
from tests.bubblewrap import needs_bubblewrap
from tests.e2e.live_home import LiveHome, live_home, until
from tests.e2e.test_command_workers import ME, blocked

from subagents.errors import Forbidden, UsageError

pytestmark = needs_bubblewrap
BOXED = """
[agents.defaults.subagents]
max_spawn_depth = 3

[agents.boxed]
runtime = "command"
command = ["sh", "-c", "{task}"]
isolation = "sandbox"
network = "host"
"""


def boxed(home: LiveHome, task: str, **spec: object) -> str:
    return home.spawn(task, agent="sh", isolation="sandbox", **spec)


@pytest.mark.requirement("sandbox:e2e:view", "sandbox:receipt")
def test_it_reads_no_key_writes_nowhere_else_has_no_network_and_its_receipt_says_so(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        (home.root / ".ssh").mkdir()
        (home.root / ".ssh" / "id").write_text("private key")
        (home.work / "in").write_text("given")
        task = (
            "cat in ~/.ssh/id; echo; echo x > out; echo x > ../beside; echo x > /usr/beside || "
            "echo refused; tail -n +3 /proc/net/dev | cut -d: -f1; cat $SUBAGENTS_TASK_FILE | wc -c"
        )
        receipt = home.post("/v1/runs", home.spawn_body(task, isolation="sandbox"))
        assert receipt["access"]["sees"] == str(home.work)
        assert "alone (sandbox); no network; kept by bubblewrap" in receipt["access"]["text"]

        item = home.finish(receipt["runId"])[0]
        assert item["result"].split() == ["given", "refused", "lo", str(len(task))]
        assert (home.work / "out").read_text() == "x\n"
        assert not (home.root / "beside").exists()
        history = home.get(f"/v1/runs/{receipt['runId']}/why")
        assert "(sandbox)" in str(history)


@pytest.mark.requirement("sandbox:kill")
def test_a_killed_daemons_successor_goes_on_with_its_output_and_its_question(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = boxed(
            home, f"{ME}echo before; answer=$(me ask 'which?' --option next); echo \"$answer!\""
        )
        assert blocked(home, run_id)["blockedReason"] == "which?"
        before = home.of_run(run_id)
        home.restart_after_kill()
        until(lambda: home.row(run_id)["phase"] == "running", what="adopted again")
        assert set(before) <= set(home.of_run(run_id))
        home.post(f"/v1/requests/{run_id}:q1/respond", {"response": "next"})

        item = home.finish(run_id)[0]
        assert (item["outcome"]["status"], item["result"]) == ("ok", "before\nnext!")
        assert home.row(run_id)["attempt"] == 1


@pytest.mark.requirement("sandbox:cancel")
def test_a_cancel_ends_everything_inside_also_what_left_its_session(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        task = "trap '' TERM; (setsid sleep 1000 &) ; sleep 1000 & wait; sleep 1000"
        run_id = boxed(home, task)
        until(lambda: len(asleep(home)) == 2, what="both sleep inside")
        inside = asleep(home)
        home.post(f"/v1/runs/{run_id}/cancel", {})

        assert home.finish(run_id)[0]["outcome"]["status"] == "cancelled"
        until(lambda: not home.of_run(run_id), what="nothing of the run is alive")
        assert [pid for pid in inside if Path(f"/proc/{pid}").exists()] == []


def asleep(home: LiveHome) -> list[int]:
    """The processes of the home's runs that are ``sleep`` by now."""
    found = []
    for pid in home.marked():
        with contextlib.suppress(FileNotFoundError):
            if Path(f"/proc/{pid}/exe").readlink().name == "sleep":
                found.append(pid)
    return found


@pytest.mark.requirement("sandbox:inherited")
def test_what_it_spawns_is_shut_in_with_it_and_sees_no_more(tmp_path: Path) -> None:
    with live_home(tmp_path, config=BOXED) as home:
        (home.root / ".ssh").mkdir()
        (home.root / ".ssh" / "id").write_text("private key")
        inner = "cat ~/.ssh/id; tail -n +3 /proc/net/dev | cut -d: -f1; echo done"
        run_id = boxed(
            home,
            f"{ME}child=$(me spawn --agent sh '{inner}'); me wait $child > /dev/null; "
            "me result $child; me spawn --agent sh --cwd / true 2>&1; "
            "me spawn --agent boxed --network host true 2>&1",
        )
        item = home.finish(run_id)[0]
        assert "private key" not in item["result"]
        assert item["result"].split()[:2] == ["lo", "done"], item["result"]
        assert "not seen by its requester" in item["result"]
        assert 'network "host" is more than its requester may give' in item["result"]


@pytest.mark.requirement("sandbox:refused")
def test_what_cannot_be_shut_in_is_refused_at_the_spawn_with_the_way_out(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        with pytest.raises(UsageError, match="would show"):
            home.post(
                "/v1/runs", {**home.spawn_body("true", isolation="sandbox"), "cwd": str(home.root)}
            )
        home.paths.config_file.write_text(
            home.paths.config_file.read_text() + '\n[agents.program]\nruntime = "claude-code"\n'
        )
        with pytest.raises(Forbidden, match="cannot work in one"):
            home.spawn("x", agent="program", isolation="sandbox")
        assert home.get("/v1/runs")["runs"] == []


@pytest.mark.requirement("sandbox:refused")
def test_without_bubblewrap_the_spawn_is_refused_and_says_what_to_install(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "true"):
        (programs / name).symlink_to(f"/bin/{name}")
    with live_home(tmp_path, env={"PATH": str(programs)}) as home:
        with pytest.raises(Forbidden, match="--isolation sandbox") as refused:
            boxed(home, "true")
        assert "apt install bubblewrap" in (refused.value.hint or "")
