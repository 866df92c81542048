"""Spawns over HTTP: refusals, repeated calls and plans."""

from pathlib import Path

import pytest
from tests.api.home_daemon import Home, play


@pytest.mark.requirement("http:spawn:refused")
async def test_a_refused_spawn_says_error_or_forbidden_and_stores_nothing(home: Home) -> None:
    agent = {"X-Subagents-Caller": "agent"}
    spec = {"task": "x", "agentId": "shell"}
    status, document = await home.call("POST", "/v1/runs", {"spec": spec, "cwd": home.cwd}, agent)
    assert (status, document["status"], document["code"]) == (403, "forbidden", "forbidden")
    assert document["error"] == document["message"]
    status, document = await home.call(
        "POST", "/v1/plans", {"specs": [{**spec, "dependsOn": ["zz"]}], "cwd": home.cwd}
    )
    assert (status, document["status"]) == (404, "error")
    assert "Dependency run not found: zz" in document["message"]
    override = {"spec": {"task": "x"}, "cwd": home.cwd, "overrides": {"a.b": 1}}
    status, document = await home.call("POST", "/v1/runs", override, agent)
    assert (status, document["details"]) == (403, {"guardrail": "config"})
    for part in ("shell", "given"):
        variables = {"spec": spec, "cwd": home.cwd, "environment": {part: {"PATH": "/evil"}}}
        status, document = await home.call("POST", "/v1/runs", variables, agent)
        assert (status, document["details"]) == (403, {"guardrail": "environment"})
    assert (await home.ok("GET", "/v1/runs?archived=1"))["total"] == 0


@pytest.mark.requirement("http:spawn:idempotency")
async def test_the_same_idempotency_key_gives_the_first_run_again(home: Home) -> None:
    body = {"spec": {"task": "x", "agentId": "quick"}, "cwd": home.cwd}
    headers = {"Idempotency-Key": "k1"}
    first = await home.ok("POST", "/v1/runs", body, headers)
    again = await home.ok("POST", "/v1/runs", body, headers)

    assert (first["repeated"], again["repeated"]) == (False, True)
    assert again["runId"] == first["runId"]


@pytest.mark.requirement("http:spawn:idempotency")
async def test_a_run_is_retried_once_for_each_idempotency_key(home: Home) -> None:
    body = {"spec": {"task": "x", "agentId": "quick"}, "cwd": home.cwd}
    headers = {"Idempotency-Key": "k1"}
    first = await home.ok("POST", "/v1/runs", body, headers)
    await home.wait(first["runId"])
    path = f"/v1/runs/{first['runId']}/retry"

    retried = [await home.ok("POST", path, {}, headers) for _ in range(2)]
    other = await home.ok("POST", path, {}, {"Idempotency-Key": "k2"})

    assert [each["repeated"] for each in (*retried, other)] == [False, True, False]
    assert retried[0]["runId"] == retried[1]["runId"]
    assert len({first["runId"], retried[0]["runId"], other["runId"]}) == 3


@pytest.mark.requirement("http:spawn:idempotency")
async def test_an_idempotency_key_of_another_body_is_a_conflict_that_names_its_run(
    home: Home,
) -> None:
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


@pytest.mark.requirement("http:plans:all-or-nothing")
async def test_a_plan_is_stored_whole_and_runs_in_the_order_of_its_labels(home: Home) -> None:
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


async def nothing_stored(home: Home) -> bool:
    found = await home.ok("GET", "/v1/runs?archived=1")
    return (found["total"], found["seq"]) == (0, 0)


@pytest.mark.requirement("http:dry-run:same-as-spawn")
@pytest.mark.parametrize(
    "spec",
    [
        {"task": "x", "agentId": "quick"},
        {"task": "x", "agentId": "auto"},
        {"task": "x", "agentId": "shell", "label": "l", "budget": {"maxTokens": 10}},
        {"task": "x", "agentId": "shell", "verification": {"artifacts": [{"path": "a.txt"}]}},
        {"task": "x", "agentId": "hang", "toolsDeny": ["web_search"], "runTimeoutSeconds": 9},
    ],
)
async def test_a_dry_run_says_what_the_spawn_then_comes_to_and_stores_nothing(
    home: Home, spec: dict[str, object]
) -> None:
    body = {"spec": spec, "cwd": home.cwd}
    status, found = await home.call("POST", "/v1/runs/dry-run", body)
    assert await nothing_stored(home)
    really, receipt = await home.call("POST", "/v1/runs", body)
    if really != 201:
        assert (status, found["message"]) == (really, receipt["message"])
        return
    assert status == 200
    (planned,) = found["runs"]
    assert {name: planned[name] for name in planned.keys() & receipt.keys()} == {
        **{name: receipt[name] for name in planned.keys() & receipt.keys()},
        "runId": None,
        "phase": "queued",
    }
    detail = await home.ok("GET", f"/v1/runs/{receipt['runId']}")
    assert planned["lane"]["name"] == detail["resolved"]["lane"]
    assert (planned["runTimeoutSeconds"] or 0) * 1000 == detail["resolved"]["timeoutMs"]


@pytest.mark.requirement("http:dry-run:refused")
async def test_a_dry_run_refuses_what_the_spawn_refuses_and_names_each_step(home: Home) -> None:
    one = {"spec": {"task": "x", "agentId": "nobody"}, "cwd": home.cwd}
    for path in ("/v1/runs/dry-run", "/v1/runs"):
        status, document = await home.call("POST", path, one)
        assert (status, document["details"]["field"]) == (404, "agentId")
    specs = [
        {"task": "x", "agentId": "nobody"},
        {"task": "x", "agentId": "quick"},
        {"task": "x", "agentId": "quick", "cwd": "/nowhere"},
    ]
    plan = {"specs": specs, "cwd": home.cwd}
    for path in ("/v1/plans/dry-run", "/v1/plans"):
        status, document = await home.call("POST", path, plan)
        assert status == 404
        assert [(each["step"], each["field"]) for each in document["details"]["problems"]] == [
            (0, "specs[0].agentId"),
            (2, "specs[2].cwd"),
        ]
    wrong = {"specs": [{"task": ""}, {"task": "x", "retryCount": -1}], "cwd": home.cwd}
    status, document = await home.call("POST", "/v1/plans/dry-run", wrong)
    assert status == 422
    assert [each["field"] for each in document["details"]["problems"]] == [
        "specs[0].task",
        "specs[1].retryCount",
    ]
    agent = {"X-Subagents-Caller": "agent"}
    shell = {"spec": {"task": "x", "agentId": "shell"}, "cwd": home.cwd}
    assert (await home.call("POST", "/v1/runs/dry-run", shell, agent))[0] == 403
    assert await nothing_stored(home)


@pytest.mark.requirement("http:dry-run:plan")
async def test_a_dry_run_of_a_plan_says_who_waits_for_whom_where_and_what_it_may_use(
    home: Home,
) -> None:
    specs = [
        {"task": "a", "label": "a", "agentId": "hang"},
        {"task": "b", "label": "b", "agentId": "quick", "dependsOn": ["a"]},
        *({"task": f"c{n}", "label": f"c{n}", "agentId": "hang"} for n in range(5)),
    ]
    body = {
        "specs": specs,
        "cwd": home.cwd,
        "budget": {"maxCostUsd": 2.5},
        "environment": {"given": {"TOKEN": "secret-value"}},
    }
    found = await home.ok("POST", "/v1/plans/dry-run", body)
    first, second, *others = found["runs"]
    assert (first["startsAtOnce"], second["startsAtOnce"]) == (True, False)
    assert second["waitsFor"] == [{"runId": "", "label": "a"}]
    assert second["phase"] == "waiting"
    # Four slots: the first one has one of them.
    assert [each["startsAtOnce"] for each in others] == [True, True, True, False, False]
    assert [each["lane"]["ahead"] for each in others] == [1, 2, 3, 4, 5]
    assert (found["maxCostUsd"], found["maxTokens"]) == (2.5, None)
    assert first["environment"] == ["TOKEN"]
    assert "secret-value" not in str(found)
    assert await nothing_stored(home)


@pytest.mark.requirement("http:dry-run:budget")
def test_what_all_may_use_is_the_sum_of_their_budgets_and_unknown_without_one(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        def spec(**budget: float) -> dict[str, object]:
            return {"task": "x", "agentId": "quick", **({"budget": budget} if budget else {})}

        async def most(*specs: dict[str, object]) -> tuple[object, object]:
            body = {"specs": specs, "cwd": home.cwd}
            found = await home.ok("POST", "/v1/plans/dry-run", body)
            return found["maxTokens"], found["maxCostUsd"]

        assert await most(spec(maxTokens=10, maxCostUsd=0.5), spec(maxTokens=5)) == (15, None)
        assert await most(spec(), spec(maxTokens=5)) == (None, None)

    play(tmp_path, scenario)


@pytest.mark.requirement("http:dry-run:repeated")
async def test_a_dry_run_under_a_key_that_made_a_run_names_that_run(home: Home) -> None:
    body = {"spec": {"task": "x", "agentId": "quick"}, "cwd": home.cwd}
    headers = {"Idempotency-Key": "k1"}
    assert (await home.ok("POST", "/v1/runs/dry-run", body, headers))["runs"][0]["runId"] is None
    first = await home.ok("POST", "/v1/runs", body, headers)
    again = await home.ok("POST", "/v1/runs/dry-run", body, headers)
    assert again["runs"][0]["runId"] == first["runId"]
    assert not again["runs"][0]["startsAtOnce"]
    assert (await home.ok("GET", "/v1/runs?archived=1"))["total"] == 1


@pytest.mark.requirement("http:spawn:idempotency")
async def test_an_empty_idempotency_key_of_a_plan_is_refused_and_not_ignored(home: Home) -> None:
    specs = [{"task": "x", "agentId": "quick"}]
    body = {"specs": specs, "cwd": home.cwd, "idempotencyKey": ""}
    status, refused = await home.call("POST", "/v1/plans", body)

    assert (status, refused["details"]["field"]) == (422, "idempotencyKey")
