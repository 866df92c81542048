"""Schedules over HTTP: added, looked at, started by hand and removed by operators alone."""

from pathlib import Path
from typing import Any

import pytest
from tests.api.calls.test_services import play_off_the_loop
from tests.api.home_daemon import Home, play


def body(home: Home, **rest: Any) -> dict[str, Any]:
    spec = {"task": "true", "agentId": "shell"}
    return {"name": "nightly", "when": "0 3 * * *", "specs": [spec], "cwd": home.cwd, **rest}


@pytest.mark.requirement("schedule:add", "schedule:run-now", "schedule:found")
def test_a_schedule_is_added_found_started_by_hand_and_removed(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        made = await home.ok("POST", "/v1/schedules", body(home, zone="Europe/Berlin"))
        assert made["scheduleId"].startswith("s-")
        assert made["words"] == "At 03:00 every day"
        assert made["nextAt"].endswith(":00:00.000Z")
        assert (made["overlap"], made["missed"], made["steps"]) == ("skip", "once", None)
        page = await home.ok("GET", "/v1/runs")
        assert page["scheduled"] == [{"name": "nightly", "nextAt": made["nextAt"]}]
        (diagnosed,) = (await home.ok("GET", "/v1/diagnostics"))["schedules"]
        assert (diagnosed["name"], diagnosed["nextAt"]) == ("nightly", made["nextAt"])

        started = await home.ok("POST", "/v1/schedules/nightly/run")
        await home.wait(*started["runIds"])
        found = await home.ok("GET", f"/v1/schedules/{made['scheduleId']}")
        (time,) = found["times"]
        assert (time["decision"], time["byHand"]) == ("started", True)
        assert time["runIds"] == started["runIds"]
        runs = await home.ok("GET", f"/v1/runs?tag={found['tag']}")
        assert [row["runId"] for row in runs["runs"]] == started["runIds"]
        why = await home.ok("GET", f"/v1/runs/{started['runIds'][0]}/why")
        assert 'for schedule "nightly", by hand' in str(why)

        gone = await home.ok("DELETE", "/v1/schedules/nightly")
        assert gone["scheduleId"] == made["scheduleId"]
        assert (await home.call("GET", "/v1/schedules/nightly"))[0] == 404
        assert (await home.ok("GET", "/v1/schedules"))["schedules"] == []

    play(tmp_path, scenario)


@pytest.mark.requirement("schedule:plan")
def test_several_runs_are_a_plan_each_time(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        specs = [{"task": "true", "agentId": "shell", "label": each} for each in "ab"]
        status, refused = await home.call("POST", "/v1/schedules", body(home, specs=specs))
        assert (status, refused["details"]["field"]) == (422, "planName")
        wanted = body(home, specs=specs, planName="checks", budget={"maxTokens": 9})
        made = await home.ok("POST", "/v1/schedules", wanted)
        assert (made["steps"], made["task"]) == (2, "checks")
        started = await home.ok("POST", "/v1/schedules/nightly/run")
        plan = await home.ok("GET", f"/v1/plans/{started['planId']}")
        assert [row["runId"] for row in plan["runs"]] == started["runIds"]

    play(tmp_path, scenario)


@pytest.mark.requirement("schedule:add")
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"when": "soon"}, "when"),
        ({"zone": "Mars"}, "zone"),
        ({"overlap": "never"}, "overlap"),
        ({"missed": "twice"}, "missed"),
        ({"name": ""}, "name"),
        ({"budget": {"maxTokens": 1}}, "budget"),
        ({"cwd": None}, "cwd"),
        ({"specs": []}, "specs"),
        ({"every": "1h"}, "every"),
        ({"stepEnvironments": [{}, {}]}, "stepEnvironments"),
    ],
)
def test_a_refusal_names_its_field(tmp_path: Path, wrong: dict[str, Any], field: str) -> None:
    async def scenario(home: Home) -> None:
        status, refused = await home.call("POST", "/v1/schedules", body(home, **wrong))
        assert status == 422
        assert refused["details"]["field"] == field
        assert (await home.ok("GET", "/v1/schedules"))["schedules"] == []

    play(tmp_path, scenario)


@pytest.mark.requirement("schedule:operators")
def test_an_agent_may_not_use_schedules(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run = (await home.spawn(agentId="hang"))["runId"]
        await home.until_phase(run, "running")
        me = home.worker(run)
        for method, path in (
            ("POST", "/v1/schedules"),
            ("GET", "/v1/schedules"),
            ("POST", "/v1/schedules/nightly/run"),
            ("DELETE", "/v1/schedules/nightly"),
        ):
            sent = body(home) if path == "/v1/schedules" and method == "POST" else None
            status, refused = await home.call(method, path, sent, me)
            assert status == 403
            assert "subagents schedule add" in refused["hint"]
        assert (await home.ok("GET", "/v1/runs", None, me))["scheduled"] == []

    play(tmp_path, scenario)


@pytest.mark.requirement("config:off-the-loop")
@pytest.mark.parametrize("is_operator", [True, False], ids=["operator", "agent"])
def test_a_projects_file_is_read_off_the_loop_for_a_schedule(
    tmp_path: Path, *, is_operator: bool
) -> None:
    body = {"name": "n", "when": "@daily", "specs": [{"task": "x", "agentId": "quick"}]}
    play_off_the_loop(tmp_path, "POST", "/v1/schedules", body, is_operator=is_operator)
