"""Schedules over HTTP: added, looked at, started by hand and removed by operators alone."""

from pathlib import Path
from typing import Any

import pytest
from tests.api.calls.test_services import play_off_the_loop
from tests.api.home_daemon import Home


def body(home: Home, **rest: Any) -> dict[str, Any]:
    spec = {"task": "true", "agentId": "shell"}
    return {"name": "nightly", "when": "0 3 * * *", "specs": [spec], "cwd": home.cwd, **rest}


@pytest.mark.requirement("schedule:add", "schedule:run-now", "schedule:found")
async def test_a_schedule_is_added_found_started_by_hand_and_removed(daemon: Home) -> None:
    made = await daemon.ok("POST", "/v1/schedules", body(daemon, zone="Europe/Berlin"))
    assert made["scheduleId"].startswith("s-")
    assert made["words"] == "At 03:00 every day"
    assert made["nextAt"].endswith(":00:00.000Z")
    assert (made["overlap"], made["missed"], made["steps"]) == ("skip", "once", None)
    page = await daemon.ok("GET", "/v1/runs")
    assert page["scheduled"] == [{"name": "nightly", "nextAt": made["nextAt"]}]
    (diagnosed,) = (await daemon.ok("GET", "/v1/diagnostics"))["schedules"]
    assert (diagnosed["name"], diagnosed["nextAt"]) == ("nightly", made["nextAt"])

    started = await daemon.ok("POST", "/v1/schedules/nightly/run")
    await daemon.wait(*started["runIds"])
    found = await daemon.ok("GET", f"/v1/schedules/{made['scheduleId']}")
    (time,) = found["times"]
    assert (time["decision"], time["byHand"]) == ("started", True)
    assert time["runIds"] == started["runIds"]
    runs = await daemon.ok("GET", f"/v1/runs?tag={found['tag']}")
    assert [row["runId"] for row in runs["runs"]] == started["runIds"]
    why = await daemon.ok("GET", f"/v1/runs/{started['runIds'][0]}/why")
    assert 'for schedule "nightly", by hand' in str(why)

    gone = await daemon.ok("DELETE", "/v1/schedules/nightly")
    assert gone["scheduleId"] == made["scheduleId"]
    assert (await daemon.call("GET", "/v1/schedules/nightly"))[0] == 404
    assert (await daemon.ok("GET", "/v1/schedules"))["schedules"] == []


@pytest.mark.requirement("schedule:plan")
async def test_several_runs_are_a_plan_each_time(daemon: Home) -> None:
    specs = [{"task": "true", "agentId": "shell", "label": each} for each in "ab"]
    status, refused = await daemon.call("POST", "/v1/schedules", body(daemon, specs=specs))
    assert (status, refused["details"]["field"]) == (422, "planName")
    wanted = body(daemon, specs=specs, planName="checks", budget={"maxTokens": 9})
    made = await daemon.ok("POST", "/v1/schedules", wanted)
    assert (made["steps"], made["task"]) == (2, "checks")
    started = await daemon.ok("POST", "/v1/schedules/nightly/run")
    plan = await daemon.ok("GET", f"/v1/plans/{started['planId']}")
    assert [row["runId"] for row in plan["runs"]] == started["runIds"]


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
async def test_a_refusal_names_its_field(daemon: Home, wrong: dict[str, Any], field: str) -> None:
    status, refused = await daemon.call("POST", "/v1/schedules", body(daemon, **wrong))
    assert status == 422
    assert refused["details"]["field"] == field
    assert (await daemon.ok("GET", "/v1/schedules"))["schedules"] == []


@pytest.mark.requirement("schedule:operators")
async def test_an_agent_may_not_use_schedules(daemon: Home) -> None:
    run = (await daemon.spawn(agentId="hang"))["runId"]
    await daemon.until_phase(run, "running")
    me = daemon.worker(run)
    for method, path in (
        ("POST", "/v1/schedules"),
        ("GET", "/v1/schedules"),
        ("POST", "/v1/schedules/nightly/run"),
        ("DELETE", "/v1/schedules/nightly"),
    ):
        sent = body(daemon) if path == "/v1/schedules" and method == "POST" else None
        status, refused = await daemon.call(method, path, sent, me)
        assert status == 403
        assert "subagents schedule add" in refused["hint"]
    assert (await daemon.ok("GET", "/v1/runs", None, me))["scheduled"] == []


@pytest.mark.requirement("config:off-the-loop")
@pytest.mark.parametrize("is_operator", [True, False], ids=["operator", "agent"])
def test_a_projects_file_is_read_off_the_loop_for_a_schedule(
    tmp_path: Path, *, is_operator: bool
) -> None:
    body = {"name": "n", "when": "@daily", "specs": [{"task": "x", "agentId": "quick"}]}
    play_off_the_loop(tmp_path, "POST", "/v1/schedules", body, is_operator=is_operator)
