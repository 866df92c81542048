"""Spawns over HTTP: refusals, repeated calls and plans."""

from pathlib import Path

import pytest
from tests.api.home_daemon import Home, play


@pytest.mark.requirement("http:spawn:refused")
def test_a_refused_spawn_says_error_or_forbidden_and_stores_nothing(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        agent = {"X-Subagents-Caller": "agent"}
        spec = {"task": "x", "agentId": "shell"}
        status, document = await home.call(
            "POST", "/v1/runs", {"spec": spec, "cwd": home.cwd}, agent
        )
        assert (status, document["status"], document["code"]) == (403, "forbidden", "forbidden")
        assert document["error"] == document["message"]
        status, document = await home.call(
            "POST", "/v1/plans", {"specs": [{**spec, "dependsOn": ["zz"]}], "cwd": home.cwd}
        )
        assert (status, document["status"]) == (422, "error")
        assert "Dependency run not found: zz" in document["message"]
        override = {"spec": {"task": "x"}, "cwd": home.cwd, "overrides": {"a.b": 1}}
        status, document = await home.call("POST", "/v1/runs", override, agent)
        assert (status, document["details"]) == (403, {"guardrail": "config"})
        for part in ("shell", "given"):
            variables = {"spec": spec, "cwd": home.cwd, "environment": {part: {"PATH": "/evil"}}}
            status, document = await home.call("POST", "/v1/runs", variables, agent)
            assert (status, document["details"]) == (403, {"guardrail": "environment"})
        assert (await home.ok("GET", "/v1/runs?archived=1"))["total"] == 0

    play(tmp_path, scenario)


@pytest.mark.requirement("http:spawn:idempotency")
def test_the_same_idempotency_key_gives_the_first_run_again(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        body = {"spec": {"task": "x", "agentId": "quick"}, "cwd": home.cwd}
        headers = {"Idempotency-Key": "k1"}
        first = await home.ok("POST", "/v1/runs", body, headers)
        again = await home.ok("POST", "/v1/runs", body, headers)

        assert (first["repeated"], again["repeated"]) == (False, True)
        assert again["runId"] == first["runId"]

    play(tmp_path, scenario)


@pytest.mark.requirement("http:spawn:idempotency")
def test_an_idempotency_key_of_another_body_is_a_conflict_that_names_its_run(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        headers = {"Idempotency-Key": "k1"}
        body = {"spec": {"task": "x", "agentId": "quick"}, "cwd": home.cwd}
        first = await home.ok("POST", "/v1/runs", body, headers)
        spec = {"task": "y", "agentId": "quick"}
        other = {"spec": spec, "cwd": home.cwd}
        status, document = await home.call("POST", "/v1/runs", other, headers)
        assert (status, document["code"]) == (409, "idempotency_conflict")
        assert document["details"] == {"runId": first["runId"], "differs": ["task"]}

        plan = {"specs": [{**spec, "idempotencyKey": "k1"}], "cwd": home.cwd}
        status, document = await home.call("POST", "/v1/plans", plan)
        assert (status, document["code"]) == (409, "idempotency_conflict")
        assert (await home.ok("GET", "/v1/runs?archived=1"))["total"] == 1

    play(tmp_path, scenario)


@pytest.mark.requirement("http:plans:all-or-nothing")
def test_a_plan_is_stored_whole_and_runs_in_the_order_of_its_labels(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        specs = [
            {"task": "b", "label": "b", "agentId": "quick", "chainAfter": "a"},
            {"task": "a", "label": "a", "agentId": "quick"},
        ]
        plan = await home.ok("POST", "/v1/plans", {"specs": specs, "cwd": home.cwd})
        ids = [receipt["runId"] for receipt in plan["receipts"]]
        waited = await home.wait(*ids)
        ended = {item["label"]: item for item in waited["completed"]}
        assert set(ended) == {"a", "b"}
        detail = await home.ok("GET", f"/v1/runs/{ids[0]}")
        assert [each["label"] for each in detail["dependencies"]] == ["a"]

        circle = [{**specs[0]}, {**specs[1], "chainAfter": "b"}]
        status, document = await home.call("POST", "/v1/plans", {"specs": circle, "cwd": home.cwd})
        assert status == 422
        assert document["message"].startswith("Circular dependency:")
        assert (await home.ok("GET", "/v1/runs"))["total"] == 2

    play(tmp_path, scenario)
