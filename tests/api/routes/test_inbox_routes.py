"""Messages between runs and their requesters over HTTP."""

import asyncio
import json

import pytest
from tests.api.home_daemon import Document, Home, segment, until

from subagents.domain.run.values import RunId
from subagents.errors import StoreUnavailable


@pytest.mark.requirement("http:spawn:receipt")
async def test_a_spawned_run_is_waited_for_and_its_result_acknowledged_once(home: Home) -> None:
    receipt = await home.spawn(label="first")
    assert receipt["status"] == "accepted"
    assert receipt["label"] == "first"
    assert receipt["cwd"] == home.cwd

    waited = await home.wait(receipt["runId"])
    (item,) = waited["completed"]
    assert (item["outcome"]["status"], item["result"]) == ("ok", "done")
    assert waited["messages"] == [item["messageId"]]

    body = {"messageIds": waited["messages"]}
    assert (await home.ok("POST", "/v1/inbox/ack", body))["consumed"] == 1
    assert (await home.ok("POST", "/v1/inbox/ack", body))["consumed"] == 0
    assert (await home.ok("POST", "/v1/inbox", {}))["messages"] == []
    (kept,) = (await home.ok("GET", "/v1/inbox?all=1"))["messages"]
    assert kept["id"] == item["messageId"]
    assert kept["consumedAt"] is not None


@pytest.mark.requirement("http:inbox:release")
async def test_what_a_reader_gives_back_is_offered_to_the_next_one_at_once(home: Home) -> None:
    one, other = {"x-subagents-reader": "one"}, {"x-subagents-reader": "other"}
    run_id = (await home.spawn(label="first"))["runId"]
    await home.until_phase(run_id, "completed")
    (offered,) = (await home.ok("POST", "/v1/inbox", {}, one))["messages"]
    assert (offered["label"], offered["status"], offered["headline"]) == ("first", "ok", "done")
    assert (await home.ok("POST", "/v1/inbox", {}, other))["messages"] == []
    body = {"messageIds": [], "release": [offered["id"]]}
    assert (await home.ok("POST", "/v1/inbox/ack", body, other))["consumed"] == 0
    assert (await home.ok("POST", "/v1/inbox", {}, other))["messages"] == []
    await home.ok("POST", "/v1/inbox/ack", body, one)
    (again,) = (await home.ok("POST", "/v1/inbox", {}, other))["messages"]
    assert again["id"] == offered["id"]


@pytest.mark.requirement("http:wait:timeout")
async def test_a_wait_that_times_out_is_no_error_and_unknown_runs_are_listed(home: Home) -> None:
    run_id = (await home.spawn("hang", label="h"))["runId"]
    body = {"runIds": [run_id, "nothing"], "timeoutSeconds": 0}
    waited = await home.ok("POST", "/v1/wait", body)
    assert waited["completed"] == []
    assert [each["label"] for each in waited["pending"]] == ["h"]
    assert waited["errors"] == [{"runId": "nothing", "error": 'no run "nothing"'}]
    body = {"runIds": ["nothing"], "timeoutSeconds": 600}
    assert (await home.ok("POST", "/v1/wait", body))["pending"] == []


@pytest.mark.requirement("http:wait:disconnect")
async def test_nothing_is_offered_to_a_waiter_that_hung_up(home: Home) -> None:
    run_id = (await home.spawn("hang"))["runId"]
    await home.until_phase(run_id, "running")
    await home.hang_up_while_waiting(run_id, "/v1/wait")

    await home.ok("POST", f"/v1/runs/{run_id}/cancel")
    assert (await home.wait(run_id))["messages"] == [f"{run_id}:announce"]


@pytest.mark.requirement("http:worker:verbs")
async def test_a_worker_reports_asks_and_gets_its_answer(home: Home) -> None:
    receipt = await home.spawn("hang", label="w")
    run_id = receipt["runId"]
    await home.until_phase(run_id, "running")
    me = home.worker(run_id)
    base = f"/v1/runs/{run_id}"
    await home.ok("POST", f"{base}/report", {"summary": "s", "confidence": "high"}, me)
    await home.ok("POST", f"{base}/progress", {"phase": "p", "percentComplete": 5}, me)
    soon = await home.ok("POST", f"{base}/progress", {"phase": "p"}, me)
    assert soon["status"] == "rate_limited"
    assert 1 <= soon["retryAfterSeconds"] <= 30
    await home.ok("POST", f"{base}/notify", {"message": "hi", "priority": "blocker"}, me)
    asked = await home.ok("POST", "/v1/requests", {"runId": run_id, "question": "q?"}, me)
    request = f"/v1/requests/{segment(asked['requestId'])}"
    assert (await home.ok("GET", request, None, me))["status"] == "pending"

    row = await home.ok("GET", f"{base}/status")
    assert (row["runStatus"], row["blockedReason"]) == ("blocked", "hi")
    assert row["pendingRequestCount"] == 2
    assert row["latestProgress"]["percentComplete"] == 5
    kinds = {item["kind"] for item in (await home.ok("GET", "/v1/attention"))["items"]}
    assert kinds == {"question", "blocker"}
    status, _ = await home.call("POST", f"{request}/respond", {"response": "me"}, me)
    assert status == 403

    waiting = asyncio.create_task(home.ok("GET", f"{request}?waitSeconds=15", None, me))
    first = await home.ok("POST", f"{request}/respond", {"response": "yes"})
    assert first["status"] == "answered"
    again = await home.ok("POST", f"{request}/respond", {"response": "yes"})
    assert (again["status"], again["answer"]) == ("already answered", "yes")
    status, late = await home.call("POST", f"{request}/respond", {"response": "no"})
    assert (status, late["code"]) == (409, "already_answered")
    details = late["details"]
    assert (details["by"], details["answer"]) == ("agent:main:main", "yes")
    assert details["answeredAt"] == first["answeredAt"]
    assert late["hint"] == f"tell its worker: subagents steer {run_id} TEXT"
    found = await waiting
    assert (found["status"], found["answer"], found["by"]) == (
        "answered",
        "yes",
        "agent:main:main",
    )

    asked = await home.ok("POST", "/v1/requests", {"runId": run_id, "question": "r?"}, me)
    await home.ok("POST", f"{base}/cancel")
    await home.until_phase(run_id, "completed")
    over = f"/v1/requests/{segment(asked['requestId'])}/respond"
    status, late = await home.call("POST", over, {"response": "yes"})
    assert status == 409
    assert "was withdrawn when its attempt ended" in late["message"]
    assert f"subagents retry {run_id}" in late["hint"]


@pytest.mark.requirement("http:worker:progress", "progress:log")
async def test_progress_is_kept_in_a_log_that_can_be_read(home: Home) -> None:
    run_id = (await home.spawn("hang", label="w"))["runId"]
    await home.until_phase(run_id, "running")
    me, path = home.worker(run_id), f"/v1/runs/{run_id}/progress"
    empty = await home.ok("GET", path)
    assert empty == {"runId": run_id, "latest": None, "updates": []}
    update = {"phase": "p", "level": "L2_detail", "metrics": {"files": 3, "where": "src"}}

    assert (await home.ok("POST", path, update, me))["status"] == "stored"

    found = await home.ok("GET", path)
    (line,) = found["updates"]
    assert line == {
        **update,
        "number": 1,
        "percentComplete": None,
        "updatedAt": line["updatedAt"],
    }
    assert found["latest"] == {
        "phase": "p",
        "percentComplete": None,
        "updatedAt": line["updatedAt"],
    }
    wrongs: tuple[Document, ...] = (
        *({"a": True}, {"a": None}, {"a": []}, {"": 1}, {"a" * 101: 1}),
    )
    for wrong in wrongs:
        status, _ = await home.call("POST", path, {"phase": "p", "metrics": wrong}, me)
        assert status == 422


@pytest.mark.requirement("http:worker:limits", "requests:limits-typed")
async def test_a_limit_is_429_and_says_when_to_come_again(home: Home) -> None:
    run_id = (await home.spawn("hang", label="w"))["runId"]
    await home.until_phase(run_id, "running")
    me = home.worker(run_id)
    for number in range(5):
        body = {"runId": run_id, "question": f"q{number}?"}
        asked = await home.ok("POST", "/v1/requests", body, me)
        path = f"/v1/requests/{segment(asked['requestId'])}/respond"
        await home.ok("POST", path, {"response": "yes"})

    body = {"runId": run_id, "question": "one more?"}
    status, refused = await home.call("POST", "/v1/requests", body, me)

    assert (status, refused["code"], refused["retryable"]) == (429, "rate_limited", True)
    assert refused["details"]["limit"] == "at most 5 questions per minute and run"
    assert 1 <= refused["details"]["retryAfterSeconds"] <= 60


@pytest.mark.requirement("http:worker:notices", "notices:answered")
async def test_a_notice_is_answered_by_its_id(home: Home) -> None:
    run_id = (await home.spawn("hang", label="w"))["runId"]
    await home.until_phase(run_id, "running")
    me, base = home.worker(run_id), f"/v1/runs/{run_id}"
    await home.ok("POST", f"{base}/notify", {"message": "stuck", "priority": "blocker"}, me)
    (item,) = (await home.ok("GET", "/v1/attention"))["items"]
    assert (item["kind"], item["requestId"]) == ("blocker", f"{run_id}:n1")
    path = f"/v1/requests/{segment(item['requestId'])}"

    said = await home.ok("POST", f"{path}/respond", {"response": "go on"})

    assert (said["status"], said["priority"], said["deadlineAt"]) == (
        "answered",
        "blocker",
        None,
    )
    row = await home.ok("GET", f"{base}/status")
    assert (row["runStatus"], row["pendingRequestCount"]) == ("running", 0)
    assert (await home.ok("GET", "/v1/attention"))["items"] == []


FAILED = {
    "subagents": "tool",
    "name": "Bash",
    "input": {"command": "cat b"},
    "exitCode": 1,
    "isError": True,
    "output": "no such file",
}
FAILS = f"printf '%s\\n' '{json.dumps(FAILED)}'; sleep 60"


@pytest.mark.requirement("wire:evidence")
async def test_a_question_without_options_brings_the_tool_that_failed_last(home: Home) -> None:
    run = (await home.spawn("shell", task=FAILS))["runId"]
    await home.until_phase(run, "running")

    recorder, run_id = home.services.engine.queries._recorder, RunId(run)
    await until(lambda: recorder.known_watch(run_id).failed_call is not None)
    for question, options in (("which?", ["a", "b"]), ("what now?", [])):
        body = {"runId": run, "question": question, "options": options}
        await home.ok("POST", "/v1/requests", body)
    found = await home.ok("GET", "/v1/attention")
    asked = {each["question"]: each for each in found["requests"]}
    evidence = asked["what now?"]["evidence"]
    assert asked["which?"]["evidence"] is None
    assert evidence.pop("failedAt") is not None
    assert evidence == {
        "tool": "Bash",
        "asked": "cat b",
        "error": "exit code 1: no such file",
    }


@pytest.mark.requirement("requests:once")
async def test_another_decision_in_the_same_words_is_not_the_same_answer(home: Home) -> None:
    run_id = str((await home.spawn("hang"))["runId"])
    await home.until_phase(run_id, "running")
    asked = {"runId": run_id, "question": "deploy?"}
    made = await home.ok("POST", "/v1/requests", asked, home.worker(run_id))
    path = f"/v1/requests/{segment(made['requestId'])}/respond"
    answers = [{"response": "", "decision": each} for each in ("approve", "approve", "deny")]
    found = [await home.call("POST", path, each) for each in answers]

    assert [status for status, _ in found] == [200, 200, 409]
    assert found[2][1]["details"]["decision"] == "approve"


@pytest.mark.requirement("http:worker:verbs")
@pytest.mark.parametrize("what", ["requests", "notify", "progress"])
async def test_what_a_worker_is_refused_was_not_said(
    home: Home, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    async def fail(*_: object) -> None:
        raise StoreUnavailable("the disk is full")

    run_id = str((await home.spawn("hang"))["runId"])
    await home.until_phase(run_id, "running")
    monkeypatch.setattr(home.services.engine.reports, "tool_used", fail)
    bodies: dict[str, dict[str, object]] = {
        "requests": {"runId": run_id, "question": "sure?"},
        "notify": {"message": "sure?", "priority": "question"},
        "progress": {"phase": "half"},
    }
    place = "" if what == "requests" else f"/runs/{run_id}"
    status, _ = await home.call("POST", f"/v1{place}/{what}", bodies[what], home.worker(run_id))
    run = await home.services.engine.queries.run(RunId(run_id))

    assert status == 503
    assert (run.pending_requests, run.progress.latest) == ((), None)
