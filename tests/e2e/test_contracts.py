"""Contracts of real workers, checked by a real daemon."""

import hashlib
import json
from pathlib import Path

import pytest
from tests.bubblewrap import needs_bubblewrap
from tests.e2e.live_home import DEFAULTS, MARK_ATTEMPT, LiveHome, audit, live_home, until

from subagents.client.client import Client
from subagents.domain.run.events import Dismissed, VerificationFinished
from subagents.errors import Conflict, ContractError, UsageError

COMMANDS = (
    f"{DEFAULTS}\n[verification]\ndangerously_allow_validation_commands = true\nsandbox = false\n"
)
ITEMS = {"artifacts": [{"path": "out.json", "json": True, "minItems": 2, "requiredKeys": ["id"]}]}
GOOD = """echo '[{"id": 1}, {"id": 2}]' > out.json"""
BAD = """echo '[{"id": 1}]' > out.json"""


@pytest.mark.requirement("e2e:contract:passes")
def test_a_valid_file_passes_its_contract(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        item = home.finish(home.spawn(f"{GOOD}; echo made", verification=ITEMS))[0]
        assert (item["outcome"]["status"], item["result"]) == ("ok", "made")
        assert item["verification"]["status"] == "passed"
        assert {"path": "out.json", "verified": True}.items() <= item["artifacts"][0].items()
        assert "verified" in item["announcement"]


@pytest.mark.requirement("e2e:contract:fails")
@pytest.mark.parametrize("on_failure", ["fail", "escalate"])
def test_an_invalid_file_fails_the_run_and_escalation_reaches_inbox_and_operator(
    tmp_path: Path, on_failure: str
) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn(f"{BAD}; echo made", verification={**ITEMS, "onFailure": on_failure})
        answered = home.wait(run_id)
        item = answered["completed"][0]
        assert item["outcome"]["status"] == "error"
        assert item["outcome"]["reason"] == "verification_failed"
        assert item["verification"]["status"] == "failed"
        assert "out.json" in item["announcement"]
        assert "completed successfully" not in item["announcement"]
        kinds = [each["kind"] for each in home.get("/v1/inbox", all=1)["messages"]]
        attention = [each["kind"] for each in home.get("/v1/attention")["items"]]
        is_escalated = on_failure == "escalate"
        assert kinds.count("announcement") == 1
        assert ("blocker" in kinds) is is_escalated
        assert ("blocker" in attention) is is_escalated


@pytest.mark.requirement("attention:escalation-stays", "attention:commands")
def test_an_escalation_stays_until_its_run_was_started_again_however_often_it_is_read(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        run_id = home.spawn(f"{BAD}; echo made", verification={**ITEMS, "onFailure": "escalate"})
        home.finish(run_id)
        read = [each["id"] for each in home.get("/v1/inbox", all=1)["messages"]]
        home.post("/v1/inbox/ack", {"messageIds": read})

        (item,) = home.get("/v1/attention")["items"]
        assert (item["kind"], item["runId"]) == ("blocker", run_id)
        assert item["commands"] == [
            f"subagents {verb} {run_id}" for verb in ("why", "retry", "inbox --dismiss")
        ]

        again = home.post(f"/v1/runs/{run_id}/retry")["runId"]
        home.finish(again)
        assert run_id not in [each["runId"] for each in home.get("/v1/attention")["items"]]


@pytest.mark.requirement("attention:dismissed")
def test_an_escalation_that_was_dismissed_is_gone_and_on_record(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        bad = {**ITEMS, "onFailure": "escalate"}
        run_id = home.spawn(f"{BAD}; echo made", verification=bad, cleanup="delete")
        other = home.spawn("sleep 600")
        home.finish(run_id)
        until(lambda: home.row(run_id)["phase"] == "completed", what="cleanup")

        (item,) = [each for each in home.get("/v1/attention")["items"] if each["kind"] == "blocker"]
        commands = [f"subagents {verb} {run_id}" for verb in ("why", "inbox --dismiss")]
        assert item["commands"] == commands
        for _ in range(2):
            assert home.post(f"/v1/runs/{run_id}/dismiss")["runId"] == run_id
        assert run_id not in [each["runId"] for each in home.get("/v1/attention")["items"]]
        assert len(home.events(run_id, Dismissed)) == 1
        with pytest.raises(Conflict, match="nothing to dismiss"):
            home.post(f"/v1/runs/{other}/dismiss")


@pytest.mark.requirement("e2e:contract:retry-once")
def test_a_failed_contract_is_tried_once_more_with_the_reason_in_the_prompt(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        task = (
            f'{MARK_ATTEMPT}; cat "$SUBAGENTS_PROMPT_FILE";'
            f' if [ "$SUBAGENTS_ATTEMPT_NUMBER" = 2 ]; then {GOOD}; else {BAD}; fi'
        )
        run_id = home.spawn(task, verification={**ITEMS, "onFailure": "retry_once"})
        item = home.finish(run_id)[0]
        assert item["outcome"]["status"] == "ok"
        assert item["verification"]["status"] == "passed"
        assert item["result"].startswith("[RETRY — Previous attempt failed verification]")
        assert "out.json" in item["result"]
        assert home.marks_written() == [f"{run_id}#1", f"{run_id}#2"]


@pytest.mark.requirement("e2e:contract:retry-once-only")
def test_a_second_failed_contract_is_final_also_when_the_daemon_was_killed_in_between(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        task = (
            f"{MARK_ATTEMPT}; {BAD}; until [ -e go$SUBAGENTS_ATTEMPT_NUMBER ]; do sleep 0.02; done"
        )
        run_id = home.spawn(task, verification={**ITEMS, "onFailure": "retry_once"})
        for number in (1, 2):
            until(lambda n=number: len(home.marks_written()) == n, what=f"attempt {number}")  # type: ignore[misc]  # the default binds this number
            home.kill()
            (home.work / f"go{number}").touch()
            home.start()
        item = home.finish(run_id)[0]
        assert item["outcome"]["reason"] == "verification_failed"
        assert home.marks_written() == [f"{run_id}#1", f"{run_id}#2"]
        until(lambda: not home.effects_left(), what="all effects done")
        home.stop()
        found = audit(home, [run_id])
        assert found.runs[run_id].verification.retried_at_ms is not None
        assert len(home.events(run_id, VerificationFinished)) == 2


@pytest.mark.requirement("e2e:contract:timeout")
def test_a_check_that_takes_too_long_ends_as_its_contract_says_and_leaves_no_process(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path, config=COMMANDS) as home:
        contract = {"commands": ["sleep 600"], "verificationTimeoutMs": 400}
        run_id = home.spawn("echo made", verification=contract)
        item = home.finish(run_id)[0]
        assert item["outcome"]["status"] == "error"
        assert item["verification"]["status"] in {"failed", "skipped"}
        until(lambda: not home.marked(), what="no process left")


@pytest.mark.requirement("e2e:contract:no-hang")
def test_files_that_could_hang_a_reader_are_failed_checks(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        made = {
            "fifo": "mkfifo out.json",
            "directory": "mkdir out.json",
            "link": "ln -s /etc/passwd out.json",
            "device": "ln -s /dev/zero out.json",
        }
        for kind, task in made.items():
            place = home.work / kind
            place.mkdir()
            item = home.finish(home.spawn(task, cwd=str(place), verification=ITEMS))[0]
            assert item["outcome"]["reason"] == "verification_failed", (kind, item)
            check = item["verification"]["checks"][0]
            assert not check["passed"]
            assert check["reason"]


@pytest.mark.requirement("contract:agents-stay-inside", "verification:no-values")
def test_an_agent_that_may_spawn_learns_nothing_of_files_elsewhere(tmp_path: Path) -> None:
    """It tries absolute paths, ``cwd``, links of its worker, patterns, ``..`` and a swapped cwd."""
    private = tmp_path / "private"
    private.mkdir()
    (private / "creds.json").write_text('{"token": "hunter2hunter2"}')
    digest = hashlib.sha256((private / "creds.json").read_bytes()).hexdigest()
    read = {"json": True, "schema": {"additionalProperties": {"type": "number"}}, "fresh": False}
    hashed = {"sha256": "0" * 64, "fresh": False}
    with live_home(tmp_path) as home:
        sub = home.work / "sub"
        sub.mkdir()
        swap = f"rmdir {sub}; ln -s {private} {sub}"
        (home.work / "link").symlink_to(private)
        spawns: list[tuple[str, Path, dict[str, object]]] = [
            ("true", home.work, {"artifacts": [{"path": str(private / "creds.json"), **read}]}),
            ("true", private, {"artifacts": [{"path": "creds.json", **read}]}),
            ("true", home.work / "link", {"artifacts": [{"path": "creds.json", **hashed}]}),
            ("true", private, {"mustNotChange": ["**"]}),
            ("exit 1", home.work, {"artifacts": [{"path": "../private/creds.json", **hashed}]}),
            ("true", home.work, {"artifacts": [{"path": "link/creds.json", **read}]}),
            ("true", home.work, {"artifacts": [{"path": "link/*", **hashed, "minFiles": 9}]}),
            (f"ln -s {private} made", home.work, {"mustChange": ["made/**"]}),
            (swap, sub, {"artifacts": [{"path": "creds.json", **hashed}]}),
        ]
        agent = Client(home.paths.socket, headers={"x-subagents-caller": "agent"})
        told = []
        with agent:
            for task, cwd, contract in spawns:
                body = home.spawn_body(task, cwd=str(cwd), verification=contract)
                try:
                    receipt = agent.post("/v1/runs", body)
                except ContractError as refused:
                    told.append(str(refused))
                    continue
                home.finish(str(receipt["runId"]))
                told += [
                    json.dumps(agent.get(f"/v1/runs/{receipt['runId']}{what}"))
                    for what in ("", "/result", "/log")
                ]
        assert sum("verification needs a cwd below" in each for each in told) == 3
        for each in told:
            assert "hunter2" not in each
            assert digest[:12] not in each
            assert "creds.json added" not in each
            assert '"../private/creds.json"]' not in each


@pytest.mark.requirement("e2e:contract:vacuous")
def test_a_contract_that_was_met_before_any_work_is_called_vacuous(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        (home.work / "out.json").write_text('[{"id": 1}, {"id": 2}]')
        contract = {**ITEMS, "fresh": False}
        receipt = home.post("/v1/runs", home.spawn_body("true", verification=contract))
        assert "vacuous" in receipt["warnings"][0]
        item = home.finish(receipt["runId"])[0]
        assert item["verification"]["vacuous"] is True
        assert item["artifacts"][0]["verified"] is False
        assert home.show(receipt["runId"])["vacuous"] is True
        assert home.get(f"/v1/runs/{receipt['runId']}/tree")["vacuous"] is True


@pytest.mark.requirement("e2e:contract:fresh")
def test_a_worker_that_does_nothing_over_old_files_is_not_done(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        (home.work / "out.json").write_text('[{"id": 1}, {"id": 2}]')
        receipt = home.post("/v1/runs", home.spawn_body("echo done", verification=ITEMS))
        assert "out.json is there already" in receipt["warnings"][0]
        item = home.finish(receipt["runId"])[0]
        assert item["outcome"]["reason"] == "verification_failed"
        reason = item["verification"]["checks"][0]["reason"]
        assert reason.startswith("File out.json was there before the run and did not change")


@pytest.mark.requirement("e2e:contract:fresh-kill")
def test_what_was_there_before_the_work_is_known_after_a_kill(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        (home.work / "old.json").write_text("[]")
        gate = "until [ -e go ]; do sleep 0.02; done"
        old = {"artifacts": [{"path": "old.json"}]}
        idle = home.spawn(f"{MARK_ATTEMPT}; {gate}; touch old.json", verification=old)
        new = {"artifacts": [{"path": "new.json"}]}
        busy = home.spawn(f"echo '[]' > new.json; {MARK_ATTEMPT}; {gate}", verification=new)
        until(lambda: len(home.marks_written()) == 2, what="both at work")
        home.kill()
        (home.work / "go").touch()
        home.start()
        ended = {item["runId"]: item for item in home.finish(idle, busy)}
        assert ended[busy]["verification"]["status"] == "passed"
        reason = ended[idle]["verification"]["checks"][0]["reason"]
        assert "was there before the run and did not change (written again" in reason


@pytest.mark.requirement("e2e:contract:cancel")
def test_cancel_of_a_run_that_is_being_verified_ends_its_checks_too(tmp_path: Path) -> None:
    with live_home(tmp_path, config=COMMANDS) as home:
        pids = home.root / "pids"
        contract = {
            "commands": [f"echo $$ > {pids}; exec sleep 30"],
            "verificationTimeoutMs": 60_000,
        }
        run_id = home.spawn("echo made", verification=contract)
        until(lambda: pids.exists() and pids.read_text().strip(), what="the check under way")
        pid = int(pids.read_text())
        assert Path(f"/proc/{pid}").exists()
        home.post(f"/v1/runs/{run_id}/cancel", {})

        assert home.finish(run_id)[0]["outcome"]["status"] == "cancelled"
        until(lambda: not Path(f"/proc/{pid}").exists(), what="the check gone", within_s=10)
        home.until_phase(run_id, "completed", within_s=10)
        home.stop()
        audit(home, [run_id])


CRITIC = """
[agents.critic]
runtime = "command"
stdin = "task"
command = ["/bin/sh", "-c", "cat > asked; until [ -e decided ]; do sleep 0.02; done; cat decided"]

[agents.scribbler]
runtime = "command"
command = ["/bin/sh", "-c", "echo mine > out.json; echo '{\\"verdict\\": \\"pass\\"}'"]
"""
JUDGED = {**ITEMS, "judge": {"agentId": "critic", "criteria": "is it good", "access": "full"}}


def begin_judging(home: LiveHome, **contract: object) -> tuple[str, str]:
    """The judged run and its judge, which waits for a file before it decides."""
    run_id = home.spawn(f"{GOOD}; echo made", verification={**JUDGED, **contract})
    asked = home.work / "asked"
    until(lambda: asked.exists() and asked.read_text(), what="the judge is asked")
    (child,) = home.show(run_id)["children"]
    return run_id, child["runId"]


@pytest.mark.requirement("judge:crash", "judge:verdict")
def test_a_judge_at_work_outlives_the_daemon_and_decides(tmp_path: Path) -> None:
    with live_home(tmp_path, config=f"{DEFAULTS}{CRITIC}") as home:
        run_id, judge_id = begin_judging(home)
        pid = home.worker_pid(judge_id)
        assert "is it good" in (home.work / "asked").read_text()
        assert judge_id in home.row(run_id)["why"]

        home.kill()
        home.start()
        assert home.worker_pid(judge_id) == pid
        (home.work / "decided").write_text('I looked.\n{"verdict": "pass", "reasons": ["good"]}\n')
        item = home.finish(run_id)[0]

        assert item["outcome"]["status"] == "ok"
        *_, check = item["verification"]["checks"]
        assert (check["type"], check["target"], check["passed"]) == (
            "judge",
            "judge (agent critic)",
            True,
        )
        assert check["evidence"] == f"pass: good\njudged by run {judge_id}"
        assert len(home.events(run_id, VerificationFinished)) == 1
        until(lambda: not home.effects_left(), what="all effects done")
        assert [m["runId"] for m in home.get("/v1/inbox", all=1)["messages"]] == [run_id]
        home.stop()
        audit(home, [run_id, judge_id])


@pytest.mark.requirement("judge:verdict")
def test_what_a_judge_says_against_the_work_is_told_to_the_worker(tmp_path: Path) -> None:
    with live_home(tmp_path, config=f"{DEFAULTS}{CRITIC}") as home:
        (home.work / "decided").write_text('{"verdict": "fail", "reasons": ["no title"]}')
        wanted = {**JUDGED, "onFailure": "retry_once"}
        task = f'cat "$SUBAGENTS_PROMPT_FILE"; {GOOD}'
        run_id = home.spawn(task, verification=wanted)
        item = home.finish(run_id)[0]

        assert item["outcome"]["reason"] == "verification_failed"
        assert "Failure reason: judge (agent critic): fail: no title\n" in item["result"]
        judges = [home.show(each["runId"]) for each in home.show(run_id)["children"]]
        assert [each["outcome"]["status"] for each in judges] == ["ok", "ok"]
        assert len(home.get("/v1/inbox", all=1)["messages"]) == 1


@pytest.mark.requirement("judge:cancel")
def test_cancelling_a_run_ends_the_process_of_its_judge(tmp_path: Path) -> None:
    with live_home(tmp_path, config=f"{DEFAULTS}{CRITIC}") as home:
        run_id, judge_id = begin_judging(home)

        home.post(f"/v1/runs/{run_id}/cancel")
        item = home.finish(run_id)[0]

        assert item["outcome"]["status"] == "cancelled"
        until(lambda: not home.of_run(judge_id), what="the judge gone", within_s=10)
        home.until_phase(judge_id, "completed", within_s=10)


@needs_bubblewrap
@pytest.mark.requirement("judge:access")
def test_a_judge_cannot_mend_what_it_judges(tmp_path: Path) -> None:
    with live_home(tmp_path, config=f"{DEFAULTS}{CRITIC}") as home:
        judge = {"agentId": "scribbler", "criteria": "is it good"}
        item = home.finish(home.spawn(GOOD, verification={**ITEMS, "judge": judge}))[0]

        assert item["outcome"]["status"] == "ok"
        assert "mine" not in (home.work / "out.json").read_text()


@pytest.mark.requirement("judge:refused")
def test_a_judge_with_a_judge_is_refused_by_its_name(tmp_path: Path) -> None:
    with live_home(tmp_path, config=f"{DEFAULTS}{CRITIC}") as home:
        twice = {"judge": {"agentId": "critic", "criteria": "is the judge good"}}
        judge = {"agentId": "critic", "criteria": "is it good", "verification": twice}

        with pytest.raises(UsageError, match=r"verification\.judge\.verification\.judge"):
            home.spawn(GOOD, verification={"judge": judge})
