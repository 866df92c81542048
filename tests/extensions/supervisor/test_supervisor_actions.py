"""What a supervisor can have done: agents created, watched, spoken to, interrupted and ended."""

import json
import os
from pathlib import Path

import pytest
from tests.api.home_daemon import CONFIG, serving, until
from tests.extensions.supervisor.supervisor_clients import create, supervisor

SLOW = CONFIG + '\n[agents.slow]\nruntime = "scripted"\nscript = [{ hang = true }]\n'


@pytest.mark.requirement("supervisor:create")
async def test_an_agent_is_created_watched_and_its_log_and_status_read(tmp_path: Path) -> None:
    async with serving(tmp_path) as home, supervisor(home) as one:
        lines_of_json = [
            {"subagents": "tool", "name": "Bash", "input": {"command": "git log"},
             "output": "ok", "exitCode": 0, "durationMs": 2100},
            {"subagents": "text", "text": "Here are the last 3 commits:"},
        ]  # fmt: skip
        said = "; ".join(f"echo '{json.dumps(each)}'" for each in lines_of_json)
        found = await one.do(
            "create_agent",
            agentId="sentinella",
            agent="shell",
            message=f"{said}; sleep 0.2; echo done",
            cwd=home.cwd,
            tags=["x"],
        )
        assert (found["agentId"], found["agent"], found["status"]) == (
            "sentinella",
            "shell",
            "accepted",
        )
        busy = await one.do("status", agentId="sentinella")
        assert (busy["agentId"], busy["state"]) == ("sentinella", "active")
        listed = await one.do("status")
        assert [each["agentId"] for each in listed["agents"]] == ["sentinella"]
        end = await one.until_end("sentinella")
        assert end["runId"] == found["runId"]
        assert (end["status"], end["result"].splitlines()[-1]) == ("ok", "done")

        log = await one.do("get_log", agentId="sentinella", type="tool", limit=1)
        assert log["totalLines"] == log["returnedLines"] == 1
        assert log["lines"][0]["text"].startswith("✅ Bash (2.1s)")
        grep = await one.do("get_log", agentId="sentinella", grep="^Here are the last 3", offset=0)
        assert [each["type"] for each in grep["lines"]] == ["text"]
        recent = await one.do("get_log", agentId="sentinella", since=300_000)
        assert recent["totalLines"] >= 5
        assert (await one.do("get_log", agentId="sentinella", since=0))["totalLines"] == 0
        assert (await one.refused("get_log", agentId="sentinella", grep="["))[0] == "invalid"
        status = await one.do("status", agentId=found["runId"])
        assert status["state"] == "ok"
        assert status["toolsUsed"] is not None
        assert {"runtime", "sessionId", "costUsd", "lastActivity", "lastActivityAge"} <= set(status)


@pytest.mark.requirement("supervisor:create")
async def test_what_cannot_be_created_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    async with serving(tmp_path, SLOW) as home, supervisor(home) as one:
        base = {"agentId": "a", "agent": "slow", "task": "t", "cwd": home.cwd}
        for change, word in (
            ({"agentId": None}, "agentId"),
            ({"cwd": None}, "cwd is required"),
            ({"task": None}, "task"),
            ({"message": "m"}, "exclude each other"),
            ({"model": "x"}, "model"),
            ({"nonsense": 1}, "nonsense"),
            ({"subscribe": 1}, "subscribe must be"),
            ({"agent": "nobody"}, "nobody"),
        ):
            params = {k: v for k, v in {**base, **change}.items() if v is not None}
            _, message = await one.refused("create_agent", **params)
            assert word in message, message
        assert (await home.ok("GET", "/v1/runs"))["total"] == 0
        run_id = str((await one.do("create_agent", **base))["runId"])
        code, message = await one.refused("create_agent", **base)
        assert (code, run_id in message) == ("conflict", True)
        async with supervisor(home, "other") as two:
            await two.do("create_agent", **base)
        again = {**base, "agentId": "b", "idempotencyKey": "k"}
        first, second = [(await one.do("create_agent", **again))["runId"] for _ in range(2)]
        assert first == second


@pytest.mark.requirement("supervisor:talk")
def test_messages_go_to_live_attempts_and_to_nobody_else(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, SLOW) as home, supervisor(home) as one:
            await create(one, home, "talker", "slow")
            run_id = await create(one, home, "deaf", "shell", task="sleep 60")
            for name in ("talker", "deaf"):
                await home.until_phase(name, "running")
            sent = await one.do("send_message", agentId="talker", text="be brief")
            assert sent["status"] == "steered"
            code, message = await one.refused("send_to_cc", agentId="talker", message="again")
            assert (code, "one message per 2 seconds" in message) == ("rate_limited", True)
            assert (await one.refused("send_message", agentId="deaf", text="x"))[0] == "conflict"
            code, message = await one.refused("send_to_cc", agentId="deaf", text="x")
            assert (code, 'runtime "command"' in message, '"steer"' in message) == (
                "conflict",
                True,
                True,
            )
            code, message = await one.refused("cancel_turn", agentId="deaf")
            assert code == "conflict"
            assert message == (
                'runtime "command" cannot interrupt a turn: it lacks the ability "interrupt"'
            )
            assert (await one.refused("send_message", agentId="deaf"))[0] == "invalid"
            await create(one, home, "late", "quick")
            await one.until_end("late")
            for action in ("cancel_turn", "send_to_cc"):
                text = {"text": "x"} if action == "send_to_cc" else {}
                code, message = await one.refused(action, agentId="late", **text)
                assert (code, message[:22]) == ("conflict", 'agent "late" has ended')
            await home.ok("POST", f"/v1/runs/{run_id}/cancel", {})
            await one.until_end("deaf")
            code, message = await one.refused("send_message", agentId="deaf", text="x")
            assert (code, message[:22]) == ("conflict", 'agent "deaf" has ended')


@pytest.mark.requirement("supervisor:cancel-turn")
async def test_a_turn_is_cancelled_and_the_agent_goes_on_with_the_next_message(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, SLOW) as home, supervisor(home) as one:
        first = await create(one, home, "talker", "hang")
        await home.until_phase("talker", "running")
        ended = await one.do("cancel_turn", agentId="talker", reason="not that")
        await home.until_phase(first, "completed")
        found = await home.ok("GET", f"/v1/runs/{first}")
        sent = await one.do("send_message", agentId="talker", text="this instead")
        await home.until_phase(sent["runId"], "completed")
        after = await home.ok("GET", f"/v1/runs/{sent['runId']}")

        assert ended == {"agentId": "talker", "runId": first, "status": "interrupting"}
        assert found["outcome"]["reason"] == "interrupted"
        assert (sent["agentId"], sent["status"]) == ("talker", "accepted")
        assert (after["continues"], after["result"]) == (first, "this instead")


@pytest.mark.requirement("supervisor:end")
async def test_killing_ends_the_workers_processes_and_destroying_puts_it_away(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as home, supervisor(home) as one:
        pid_file = tmp_path / "pid"
        task = f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; sleep 60"
        run_id = await create(one, home, "doomed", "shell", task=task)
        await until(pid_file.exists)
        killed = await one.do("kill_cc", agentId="doomed", reason="enough")
        assert killed["status"] == "cancelling"
        assert (await one.until_end("doomed"))["status"] == "cancelled"
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), 0)
        again = await one.do("kill_cc", agentId="doomed")
        assert again["status"] == "already ended"
        await home.until_phase(run_id, "completed")
        gone = await one.do("destroy_agent", agentId="doomed")
        assert gone["status"] == "archived"
        shown = await home.ok("GET", f"/v1/runs/{run_id}")
        assert shown["archivedAt"] is not None
        assert shown["announcementConsumedAt"] is not None
        assert (await home.ok("GET", "/v1/runs"))["total"] == 0
        assert (await one.do("destroy_agent", agentId=run_id))["status"] == "archived"
        other = await create(one, home, "busy", "shell", task="sleep 60")
        ended = await one.do("destroy_agent", agentId="busy")
        assert (ended["runId"], ended["status"]) == (other, "cancelling")
        assert await one.do("unsubscribe", agentId="busy") == {"unsubscribed": 0}
