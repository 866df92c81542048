"""The daemon's calls against a real engine, over a real Unix socket, with the stdlib's client."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.api.home_daemon import Document, Home, segment, serving, until

Scenario = Callable[[Home], Awaitable[None]]


def play(tmp_path: Path, scenario: Scenario) -> None:
    async def whole() -> None:
        async with serving(tmp_path) as home:
            await scenario(home)

    asyncio.run(whole())


@pytest.mark.requirement("http:spawn:receipt")
def test_a_spawned_run_is_waited_for_and_its_result_acknowledged_once(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
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

    play(tmp_path, scenario)


@pytest.mark.requirement("http:runs:views")
def test_every_view_of_an_ended_run_agrees_on_what_happened(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = (await home.spawn("bad", label="a/b #1"))["runId"]
        await home.wait(run_id)
        await home.until_phase(run_id, "completed")
        base = f"/v1/runs/{segment('a/b #1')}"

        detail = await home.ok("GET", base)
        assert detail["runId"] == run_id
        assert detail["outcome"] == {
            "status": "error",
            "reason": "exit_code",
            "error": "exit code 1",
        }
        assert detail["attempts"][0]["exitCode"] == 1
        assert (await home.ok("GET", f"{base}/result"))["result"] == "half"
        assert (await home.ok("GET", f"{base}/tree"))["children"] == []
        why = await home.ok("GET", f"{base}/why")
        assert why["why"] == "failed: exit code 1; the result waits in the inbox"
        assert "attempt 1 exited with code 1" in [step["text"] for step in why["steps"]]
        assert why["deliveryTries"][0]["outcome"] == {"kind": "delivered", "path": "queued"}
        (root,) = (await home.ok("GET", "/v1/tree"))["roots"]
        assert root["runStatus"] == "error"
        (attention,) = (await home.ok("GET", "/v1/attention"))["items"]
        assert (attention["kind"], attention["text"]) == ("failed", "exit code 1")

    play(tmp_path, scenario)


@pytest.mark.requirement("http:timeline:paged")
def test_pages_of_the_timeline_put_together_are_the_whole_timeline(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = (await home.spawn())["runId"]
        await home.until_phase(run_id, "completed")
        whole = await home.ok("GET", f"/v1/runs/{run_id}/timeline")
        pages: list[Document] = []
        after: int | None = 0
        while after is not None:
            page = await home.ok("GET", f"/v1/runs/{run_id}/timeline?afterSeq={after}&limit=2")
            pages += page["events"]
            after = page["nextSeq"]

        assert whole["nextSeq"] is None
        assert pages == whole["events"]
        assert [event["seq"] for event in pages] == list(range(1, len(pages) + 1))
        assert [event["phase"] for event in pages][:3] == ["queued", "spawning", "running"]
        assert pages[-1]["phase"] == "completed"

    play(tmp_path, scenario)


@pytest.mark.requirement("http:list:filters")
def test_lists_are_filtered_paged_and_counted(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        for label in ("a", "b", "c"):
            await home.wait((await home.spawn(label=label))["runId"])
        hanging = (await home.spawn("hang", label="h"))["runId"]
        await home.until_phase(hanging, "running")

        page = await home.ok("GET", "/v1/runs?limit=2&offset=1")
        assert ([row["label"] for row in page["runs"]], page["total"]) == (["c", "b"], 4)
        running = await home.ok("GET", "/v1/runs?phase=running,waiting")
        assert [row["label"] for row in running["runs"]] == ["h"]
        assert (await home.ok("GET", "/v1/runs?agentId=quick&label=a"))["total"] == 1
        tree = await home.ok("GET", f"/v1/runs?tree={hanging}")
        assert [row["runId"] for row in tree["runs"]] == [hanging]
        assert (await home.ok("GET", "/v1/runs?requester=agent:main:other"))["total"] == 0

    play(tmp_path, scenario)


@pytest.mark.requirement("http:errors:one-document")
def test_every_refusal_is_one_problem_document_with_its_status(tmp_path: Path) -> None:
    spawn = {"spec": {"task": "x", "agentId": "quick"}, "cwd": str(tmp_path)}
    cases: list[tuple[str, str, object, int, str, str]] = [
        ("GET", "/nope", None, 404, "not_found", "no such path: /nope"),
        ("DELETE", "/v1/runs", None, 405, "invalid", "DELETE is not possible at /v1/runs"),
        ("GET", "/v1/runs/nothing", None, 404, "not_found", 'no run "nothing"'),
        ("GET", "/v1/runs/%FF", None, 422, "invalid", "the path must be valid UTF-8"),
        ("GET", "/v1/runs?lable=a", None, 422, "invalid", 'did you mean "label"?'),
        ("GET", "/v1/runs?limit=1_0", None, 422, "invalid", "limit must be a whole number"),
        ("GET", "/v1/runs?limit=1&limit=2", None, 422, "invalid", "limit is given twice"),
        ("GET", "/v1/runs?phase=runing", None, 422, "invalid", 'did you mean "running"?'),
        ("GET", "/v1/runs?archived=yes", None, 422, "invalid", "archived must be 1 or 0"),
        ("POST", "/v1/runs", b"{", 422, "invalid", "not JSON"),
        ("POST", "/v1/runs", b"x" * (5 << 20), 413, "invalid", "at most 4194304 bytes"),
        ("POST", "/v1/wait", b"x" * (2 << 20), 413, "invalid", "at most 1048576 bytes"),
        ("POST", "/v1/runs", {"spec": {"task": "x"}}, 422, "invalid", "cwd is required"),
        ("POST", "/v1/wait", {"until": "one"}, 422, "invalid", 'until must be "any" or "all"'),
        ("GET", "/v1/requests/r-nope:q1", None, 404, "not_found", "does not exist"),
        ("GET", "/v1/agents?cwd=a", None, 422, "invalid", "absolute"),
    ]

    async def scenario(home: Home) -> None:
        for method, path, body, status, code, message in cases:
            found, document = await home.call(method, path, body)
            assert (found, document["code"]) == (status, code), (path, document)
            assert message in document["message"]
            assert set(document) >= {"code", "message", "details", "retryable", "hint", "status"}
        status, document = await home.call(
            "GET", "/v1/runs", None, {"X-Subagents-Session": "nobody"}
        )
        assert (status, document["code"]) == (422, "invalid")
        assert (await home.ok("POST", "/v1/runs", spawn))["status"] == "accepted"

    play(tmp_path, scenario)


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


@pytest.mark.requirement("http:control:cancel")
def test_cancelling_ends_a_run_and_says_so_when_it_ended_before(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = (await home.spawn("hang"))["runId"]
        await home.until_phase(run_id, "running")
        first = await home.ok("POST", f"/v1/runs/{run_id}/cancel", {"reason": "enough"})
        assert first["status"] == "cancelling"
        (item,) = (await home.wait(run_id))["completed"]
        assert item["outcome"]["status"] == "cancelled"
        again = await home.ok("POST", f"/v1/runs/{run_id}/cancel")
        assert (again["status"], again["outcome"]["status"]) == ("already ended", "cancelled")
        status, _ = await home.call("POST", f"/v1/runs/{run_id}/pause")
        assert status == 409
        assert (await home.ok("POST", f"/v1/runs/{run_id}/retry"))["runId"] != run_id

    play(tmp_path, scenario)


@pytest.mark.requirement("http:control:pause")
def test_a_paused_run_waits_and_goes_on_when_resumed(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        first = (await home.spawn("hang"))["runId"]
        run_id = (await home.spawn(chainAfter=first))["runId"]
        paused = await home.ok("POST", f"/v1/runs/{run_id}/pause")
        assert paused["runStatus"] == "paused"
        why = await home.ok("GET", f"/v1/runs/{run_id}/why")
        assert why["why"].startswith("paused by agent:main:main; ")
        resumed = await home.ok("POST", f"/v1/runs/{run_id}/resume")
        assert resumed["runStatus"] == "waiting"
        steered = await home.ok("POST", f"/v1/runs/{first}/steer", {"message": "hurry"})
        assert steered["status"] == "steered"

    play(tmp_path, scenario)


@pytest.mark.requirement("http:wait:timeout")
def test_a_wait_that_times_out_is_no_error_and_unknown_runs_are_listed(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = (await home.spawn("hang", label="h"))["runId"]
        body = {"runIds": [run_id, "nothing"], "timeoutSeconds": 0}
        waited = await home.ok("POST", "/v1/wait", body)
        assert waited["completed"] == []
        assert [each["label"] for each in waited["pending"]] == ["h"]
        assert waited["errors"] == [{"runId": "nothing", "error": 'no run "nothing"'}]
        body = {"runIds": ["nothing"], "timeoutSeconds": 600}
        assert (await home.ok("POST", "/v1/wait", body))["pending"] == []

    play(tmp_path, scenario)


@pytest.mark.requirement("http:wait:disconnect")
def test_nothing_is_offered_to_a_waiter_that_hung_up(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = (await home.spawn("hang"))["runId"]
        await home.until_phase(run_id, "running")
        body = json.dumps({"runIds": [run_id], "timeoutSeconds": 600}).encode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gone:
            gone.connect(str(home.services.paths.socket))
            head = f"POST /v1/wait HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n"
            gone.sendall(f"{head}x-subagents-reader: gone\r\n\r\n".encode() + body)
            waiters = home.services.engine._parts.mailbox._waiters
            await until(lambda: run_id in waiters)
        await until(lambda: run_id not in waiters)

        await home.ok("POST", f"/v1/runs/{run_id}/cancel")
        assert (await home.wait(run_id))["messages"] == [f"{run_id}:announce"]

    play(tmp_path, scenario)


@pytest.mark.requirement("http:worker:verbs")
def test_a_worker_reports_asks_and_gets_its_answer(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
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
        again = await home.ok("POST", f"{request}/respond", {"response": "no"})
        assert (again["status"], again["answer"]) == ("already answered", "yes")
        found = await waiting
        assert (found["status"], found["answer"], found["by"]) == (
            "answered",
            "yes",
            "agent:main:main",
        )

    play(tmp_path, scenario)


@pytest.mark.requirement("http:worker:progress", "progress:log")
def test_progress_is_kept_in_a_log_that_can_be_read(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
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

    play(tmp_path, scenario)


@pytest.mark.requirement("http:worker:limits", "requests:limits-typed")
def test_a_limit_is_429_and_says_when_to_come_again(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
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

    play(tmp_path, scenario)


@pytest.mark.requirement("http:worker:notices", "notices:answered")
def test_a_notice_is_answered_by_its_id(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
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

    play(tmp_path, scenario)


@pytest.mark.requirement("http:ownership")
def test_a_worker_touches_only_its_own_subtree(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        other = (await home.spawn("hang", label="other"))["runId"]
        receipt = await home.spawn("hang", label="w")
        await home.until_phase(receipt["runId"], "running")
        me = home.worker(receipt["runId"])
        child = await home.spawn("quick", headers=me, label="child")

        for method, path, body in (
            ("GET", f"/v1/runs/{other}", None),
            ("POST", f"/v1/runs/{other}/cancel", {}),
            ("POST", f"/v1/runs/{other}/report", {"summary": "s"}),
            ("POST", "/v1/requests", {"runId": other, "question": "?"}),
            ("POST", "/v1/inbox/ack", {"messageIds": [f"{other}:announce"]}),
            ("POST", "/v1/shutdown", {}),
            ("POST", "/v1/sweep", {}),
        ):
            status, document = await home.call(method, path, body, me)
            assert (status, document["code"]) == (403, "forbidden"), path
        assert (await home.ok("GET", f"/v1/runs/{child['runId']}", None, me))["depth"] == 2
        mine = await home.ok("GET", "/v1/runs", None, me)
        assert [row["label"] for row in mine["runs"]] == ["child"]
        waited = await home.ok("POST", "/v1/wait", {"runIds": [other], "timeoutSeconds": 1}, me)
        assert "belongs to another session" in waited["errors"][0]["error"]
        assert (await home.ok("GET", f"/v1/runs/{other}/status"))["phase"] == "running"

    play(tmp_path, scenario)


@pytest.mark.requirement("http:daemon:views")
def test_the_daemon_says_what_it_is_and_hides_secrets(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        assert await home.ok("GET", "/healthz") == {"status": "ok"}
        assert (await home.ok("GET", "/readyz"))["degraded"] is None
        found = await home.ok("GET", "/v1/diagnostics")
        assert found["database"]["problems"] == []
        assert found["database"]["bytes"] > 0
        assert (await home.ok("GET", "/version"))["pid"] == found["daemonPid"]
        assert set(await home.ok("POST", "/v1/sweep")) == {
            "archived",
            "pruned",
            "redriven",
            "orphans",
        }
        config = await home.ok("GET", "/v1/config")
        shown = {each["key"]: each["value"] for each in config["values"]}
        assert shown["agents.shell.env.PLANTED"] == "(hidden)"
        assert shown["agents.defaults.subagents.max_concurrent"] == 4
        agents = await home.ok("GET", "/v1/agents", None, {"X-Subagents-Caller": "agent"})
        allowed = {each["id"]: each["allowed"] for each in agents["agents"]}
        assert (allowed["quick"], allowed["shell"]) == (True, False)

    play(tmp_path, scenario)
