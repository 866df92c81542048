"""Plans over HTTP: found by id, prefix and name, counted, cancelled and retried."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.api.home_daemon import Home, play

from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId
from subagents.ports import RunFilter


async def spawned(home: Home, name: str, *specs: dict[str, Any], **rest: Any) -> dict[str, Any]:
    body = {"specs": list(specs), "name": name, "cwd": home.cwd, **rest}
    return await home.ok("POST", "/v1/plans", body)


def step(label: str, task: str = "true", *after: str, agent: str = "shell") -> dict[str, Any]:
    return {"task": task, "label": label, "agentId": agent, "dependsOn": list(after)}


async def ended(home: Home, plan_id: str) -> dict[str, Any]:
    found = await home.ok("GET", f"/v1/plans/{plan_id}")
    await home.wait(*(row["runId"] for row in found["runs"]))
    return await home.ok("GET", f"/v1/plans/{plan_id}")


@pytest.mark.requirement("plan:found")
async def test_a_plan_is_found_by_its_id_a_prefix_its_name_and_as_the_last(daemon: Home) -> None:
    first = await spawned(daemon, "nightly", step("a"), step("b"))
    second = await spawned(daemon, "nightly", step("c"))
    other = await spawned(daemon, "weekly", step("d"))
    alone = (await daemon.spawn(label="alone"))["runId"]

    assert first["planId"] == first["receipts"][0]["runId"]
    found = {
        "nightly": second,
        first["planId"]: first,
        first["planId"][2:9]: first,
        "last": other,
    }
    for selector, plan in found.items():
        shown = await daemon.ok("GET", f"/v1/plans/{selector}")
        assert shown["planId"] == plan["planId"]
    page = await daemon.ok("GET", "/v1/plans")
    assert [each["name"] for each in page["plans"]] == ["weekly", "nightly", "nightly"]
    assert (page["total"], page["plans"][2]["steps"]) == (3, 2)
    assert (await daemon.ok("GET", "/v1/plans?limit=1&offset=1"))["plans"][0]["steps"] == 1
    assert (await daemon.ok("GET", "/v1/plans?directory=/nowhere"))["total"] == 0
    steps = await daemon.ok("GET", f"/v1/runs?plan={first['planId']}")
    assert {row["label"] for row in steps["runs"]} == {"a", "b"}
    for selector in ("monthly", alone):
        status, refused = await daemon.call("GET", f"/v1/plans/{selector}")
        assert status == 404
        assert f'no plan "{selector}"' in refused["message"]


@pytest.mark.requirement("plan:found")
async def test_the_last_plan_is_never_another_sessions_and_names_mean_ones_own_first(
    daemon: Home,
) -> None:
    web = {"x-subagents-session": "agent:main:web"}
    mine = await spawned(daemon, "nightly", step("a"))
    body = {"specs": [step("b")], "name": "nightly", "cwd": daemon.cwd}
    theirs = await daemon.ok("POST", "/v1/plans", body, web)
    desk = {"x-subagents-session": "agent:main:desk"}

    for selector in ("last", "nightly"):
        for plan, headers in ((mine, None), (theirs, web)):
            found = await daemon.ok("GET", f"/v1/plans/{selector}", None, headers)
            assert found["planId"] == plan["planId"]
    assert (await daemon.call("POST", "/v1/plans/last/cancel", None, desk))[0] == 404
    assert (await daemon.call("GET", "/v1/runs?plan=last", None, desk))[0] == 404
    newest = await daemon.ok("GET", "/v1/plans/nightly", None, desk)
    assert newest["planId"] == theirs["planId"]


@pytest.mark.requirement("plan:retry")
async def test_what_failed_is_started_again_with_what_waited_for_it_and_nothing_else(
    daemon: Home, tmp_path: Path
) -> None:
    mark = tmp_path / "mended"
    plan = await spawned(
        daemon,
        "release",
        step("good", "echo good"),
        step("breaks", f"test -e {mark}", "good"),
        step("after", "echo after", "breaks"),
    )
    plan_id = plan["planId"]
    status, refused = await daemon.call("POST", f"/v1/plans/{plan_id}/retry")
    assert status == 409
    assert "have not ended" in refused["message"]
    before = await ended(daemon, plan_id)
    assert (before["status"], before["states"]) == ("failed", {"ok": 1, "error": 2})

    mark.touch()
    again = await daemon.ok("POST", f"/v1/plans/{plan_id}/retry")
    assert [each["label"] for each in again["receipts"]] == ["breaks", "after"]
    after = await ended(daemon, plan_id)

    assert (after["status"], after["steps"], after["retried"]) == ("ok", 3, 2)
    assert [row["label"] for row in after["runs"]] == ["good", "breaks", "after"]
    assert after["runs"][0]["runId"] == before["runs"][0]["runId"]
    detail = await daemon.ok("GET", f"/v1/runs/{after['runs'][2]['runId']}")
    assert [each["runId"] for each in detail["dependencies"]] == [after["runs"][1]["runId"]]
    status, refused = await daemon.call("POST", f"/v1/plans/{plan_id}/retry")
    assert (status, "nothing to retry" in refused["message"]) == (409, True)
    assert (await daemon.ok("GET", "/v1/plans"))["total"] == 1


@pytest.mark.requirement("plan:retry")
async def test_a_step_that_was_retried_alone_is_what_the_others_wait_for(
    daemon: Home, tmp_path: Path
) -> None:
    mark = tmp_path / "mended"
    breaks, after = step("breaks", f"test -e {mark}"), step("after", "true", "breaks")
    plan_id = (await spawned(daemon, "p", breaks, after))["planId"]
    first = (await ended(daemon, plan_id))["runs"][0]["runId"]
    mark.touch()
    alone = await daemon.ok("POST", f"/v1/runs/{first}/retry")
    await daemon.wait(alone["runId"])

    again = await daemon.ok("POST", f"/v1/plans/{plan_id}/retry")

    assert [each["label"] for each in again["receipts"]] == ["after"]
    found = await ended(daemon, plan_id)
    assert (found["status"], found["states"]) == ("ok", {"ok": 2})
    assert found["runs"][0]["runId"] == alone["runId"]


@pytest.mark.requirement("plan:cancel")
async def test_cancelling_a_plan_ends_every_step_that_has_not_ended(daemon: Home) -> None:
    specs = (step("done", agent="quick"), step("hangs", agent="hang"), step("x", "x", "hangs"))
    plan_id = (await spawned(daemon, "p", *specs))["planId"]
    done = (await daemon.ok("GET", f"/v1/plans/{plan_id}"))["runs"][0]["runId"]
    await daemon.wait(done)
    assert (await daemon.ok("GET", f"/v1/plans/{plan_id}"))["status"] == "running"

    await daemon.ok("POST", f"/v1/plans/{plan_id}/cancel", {"reason": "enough"})

    found = await ended(daemon, plan_id)
    assert found["status"] == "failed"
    assert [row["outcome"]["status"] for row in found["runs"]][:2] == ["ok", "cancelled"]
    assert found["states"]["ok"] == 1


@pytest.mark.requirement("plan:once")
async def test_a_plan_with_a_key_is_spawned_once(daemon: Home) -> None:
    specs = (step("a", agent="quick"), step("b", agent="quick"))
    first = await spawned(daemon, "p", *specs, idempotencyKey="k")
    again = await spawned(daemon, "p", *specs, idempotencyKey="k")

    assert again["planId"] == first["planId"]
    assert [each["repeated"] for each in again["receipts"]] == [True, True]
    assert (await daemon.ok("GET", "/v1/plans"))["total"] == 1
    body = {"specs": [step("a", "other")], "name": "p", "cwd": daemon.cwd, "idempotencyKey": "k"}
    status, refused = await daemon.call("POST", "/v1/plans", body)
    assert (status, refused["code"]) == (409, "idempotency_conflict")


@pytest.mark.requirement("plan:environment")
async def test_variables_for_steps_come_for_each_of_them_or_for_none(daemon: Home) -> None:
    body = {"specs": [step("a"), step("b")], "cwd": daemon.cwd}
    wrongs: list[list[dict[str, str]]] = [[{}], [{}, {"A=B": "x"}]]
    for wrong in wrongs:
        status, _ = await daemon.call("POST", "/v1/plans", {**body, "stepEnvironments": wrong})
        assert status == 422
    agent = {"X-Subagents-Caller": "agent"}
    own = {**body, "stepEnvironments": [{}, {"PATH": "/evil"}]}
    status, refused = await daemon.call("POST", "/v1/plans", own, agent)
    assert (status, refused["details"]) == (403, {"guardrail": "environment"})
    assert (await daemon.ok("GET", "/v1/runs?archived=1"))["total"] == 0


@pytest.mark.requirement("plan:budget", "plan:jobs")
async def test_steps_that_are_retried_keep_the_budget_and_the_bound_of_their_plan(
    daemon: Home,
) -> None:
    fails = [step(label, "exit 1") for label in "abc"]
    plan = await spawned(daemon, "p", *fails, budget={"maxTokens": 500}, jobs=1)
    plan_id = plan["planId"]
    await ended(daemon, plan_id)
    again = await daemon.ok("POST", f"/v1/plans/{plan_id}/retry")

    ids = [RunId(receipt["runId"]) for receipt in again["receipts"]]
    runs = [await daemon.services.engine.queries.run(run_id) for run_id in ids]
    assert [run.resolved.step and run.resolved.step.jobs for run in runs] == [1, 1, 1]
    shown = await daemon.ok("GET", f"/v1/runs/{ids[0]}")
    assert shown["resolved"]["plan"] == {"id": plan_id, "budget": {"maxTokens": 500}}


@pytest.mark.requirement("plan:found")
async def test_an_agent_sees_and_retries_its_own_plans_only(daemon: Home) -> None:
    plan = await spawned(daemon, "p", step("a", agent="quick"))
    worker = (await daemon.spawn("hang", label="h"))["runId"]
    await daemon.until_phase(worker, "running")
    agent = daemon.worker(worker)

    assert (await daemon.ok("GET", "/v1/plans", None, agent))["total"] == 0
    for path in ("", "/retry", "/cancel"):
        method = "POST" if path else "GET"
        status, _ = await daemon.call(method, f"/v1/plans/{plan['planId']}{path}", None, agent)
        assert status == 404


@pytest.mark.requirement("plan:list-cost")
def test_a_list_of_plans_asks_for_the_steps_of_all_of_them_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(home: Home) -> None:
        for number in range(7):
            await spawned(home, f"p{number}", step("a"), step("b"))
        store = home.services.engine.queries._store
        original, calls = store.runs, 0

        def counting(where: RunFilter) -> Sequence[Run]:
            nonlocal calls
            calls += 1
            return original(where)

        monkeypatch.setattr(store, "runs", counting)
        page = await home.ok("GET", "/v1/plans")
        assert [each["steps"] for each in page["plans"]] == [2] * 7
        assert calls == 2, "one for the plans, one for their steps"

    play(tmp_path, scenario)


@pytest.mark.requirement("http:list:sort")
async def test_plans_are_not_listed_by_when_their_runs_ended(daemon: Home) -> None:
    status, refused = await daemon.call("GET", "/v1/plans?sort=ended")
    assert (status, refused["details"]["field"]) == (422, "sort")


@pytest.mark.requirement("why:names-labels")
async def test_why_names_the_run_that_failed_before_it_by_its_label(daemon: Home) -> None:
    specs: list[dict[str, Any]] = [
        {"task": "x", "label": "build", "agentId": "bad"},
        {"task": "x", "label": "ship", "agentId": "quick", "dependsOn": ["build"]},
    ]
    plan = await spawned(daemon, "release", *specs)
    build, ship = (each["runId"] for each in plan["receipts"])
    await daemon.wait(build, ship)
    detail = await daemon.ok("GET", f"/v1/runs/{ship}")
    assert 'Dependency run "build" error' in detail["why"]
    assert build not in detail["why"]
    found = await daemon.ok("GET", "/v1/attention")
    (item,) = [each for each in found["items"] if each["runId"] == ship]
    assert 'Dependency run "build" error' in item["text"]
    assert build in detail["outcome"]["error"], "what is stored stays as it was written"
