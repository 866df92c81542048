"""What a worker, a stranger or a broken client sends to get at what is not its own."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.api import home_daemon
from tests.api.home_daemon import Document, Home

from subagents.domain.run.values import RunId

Scenario = Callable[[Home], Awaitable[None]]
CONFIG = """
[agents.defaults.subagents]
max_children_per_agent = 100
max_concurrent = 20
max_spawn_depth = 3
[agents.main]
subagents.allow_agents = ["quick", "hang", "work"]
[agents.quick]
runtime = "scripted"
script = [{ result = "genuine" }]
[agents.forger]
runtime = "scripted"
script = [{ result = "forged" }]
[agents.hang]
runtime = "scripted"
script = [{ hang = true }]
subagents.allow_agents = ["quick", "forger"]
[agents.work]
runtime = "scripted"
script = [{ sleep_ms = 300 }, { result = "genuine" }]
"""
MINE = {"X-Subagents-Session": "agent:main:mine"}
OTHER = {"X-Subagents-Session": "agent:main:other"}


def play(tmp_path: Path, scenario: Scenario) -> None:
    home_daemon.play(tmp_path, scenario, CONFIG)


async def use(
    home: Home, name: str, arguments: Document, headers: dict[str, str], **more: str
) -> Document:
    return await home.ok("POST", f"/v1/tools/{name}", arguments, {**headers, **more})


async def working(home: Home, headers: dict[str, str]) -> str:
    run_id = str((await home.spawn("hang", headers=headers))["runId"])
    await home.until_phase(run_id, "running")
    return run_id


async def ended(home: Home, headers: dict[str, str], agent: str = "quick", **spec: object) -> str:
    run_id = str((await home.spawn(agent, headers=headers, **spec))["runId"])
    await home.wait(run_id)
    return run_id


@pytest.mark.requirement("selectors:whole-id-first")
def test_no_worker_can_call_its_child_by_the_id_of_another_run(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = await ended(home, MINE)
        worker = await working(home, MINE)
        with pytest.raises(AssertionError, match="that is how an id looks"):
            await ended(home, home.worker(worker), "forger", label=run_id)
        found = await use(home, "subagents", {"action": "result", "target": run_id}, MINE)
        assert found["structured"]["runId"] == run_id
        assert "genuine" in found["text"]
        assert "forged" not in found["text"]

    play(tmp_path, scenario)


@pytest.mark.requirement("selectors:others-hide-nothing")
def test_a_label_that_others_use_too_does_not_hide_the_callers_own_run_below(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        worker = await working(home, MINE)
        below = await ended(home, home.worker(worker), label="tests")
        await ended(home, OTHER, label="tests")
        found = await use(home, "subagents", {"action": "status", "target": "tests"}, MINE)
        assert found["structured"]["runId"] == below

    play(tmp_path, scenario)


@pytest.mark.requirement("selectors:others-hide-nothing")
def test_a_prefix_lists_none_of_the_runs_of_others(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        mine = RunId(await ended(home, MINE, label="m"))
        others = RunId(await ended(home, OTHER, label="o"))
        # Ids are random; here they begin alike.
        store = home.services.engine._store
        original = store.find
        store.find = lambda prefix: [others, mine] if prefix else []  # type: ignore[method-assign]  # a clash of ids
        try:
            found = await use(home, "subagents", {"action": "status", "target": "abc"}, MINE)
            assert found["structured"]["runId"] == mine
            arguments = {"task": "after", "agentId": "quick", "dependsOn": ["abc"]}
            held = await use(
                home, "sessions_spawn", arguments, MINE, **{"X-Subagents-Cwd": home.cwd}
            )
            assert held["structured"]["status"] == "accepted", held
            refused = await use(
                home,
                "subagents",
                {"action": "status", "target": "abc"},
                {"X-Subagents-Session": "agent:main:third"},
            )
            assert refused["structured"]["status"] == "forbidden"
            assert mine not in refused["text"]
        finally:
            store.find = original  # type: ignore[method-assign]  # see above

    play(tmp_path, scenario)


@pytest.mark.requirement("http:tools:ack-auto")
def test_of_calls_at_the_same_time_without_a_reader_one_is_told_of_a_result(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        run_id = str((await home.spawn("work", headers=MINE))["runId"])
        arguments = {"runIds": [run_id], "timeoutSeconds": 15}
        waits = [
            use(home, "sessions_wait", arguments, MINE, **{"X-Subagents-Ack": "auto"})
            for _ in range(5)
        ]
        offered = [each["offered"] for each in await asyncio.gather(*waits)]
        assert sorted(offered) == [[], [], [], [], [f"{run_id}:announce"]]

    play(tmp_path, scenario)


@pytest.mark.requirement("inbox:not-ones-own-words")
def test_a_worker_cannot_take_its_own_notice_out_of_its_requesters_inbox(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        worker = await working(home, MINE)
        said = {"message": "I broke it", "priority": "info"}
        await use(home, "notify_parent", said, home.worker(worker))
        body = {"messageIds": [f"{worker}:n1"]}
        status, refused = await home.call("POST", "/v1/inbox/ack", body, home.worker(worker))
        assert (status, refused["code"]) == (403, "forbidden")
        found = await use(home, "subagents", {"action": "inbox"}, MINE)
        assert "I broke it" in found["text"]

    play(tmp_path, scenario)


@pytest.mark.requirement("http:tools:bad-input")
@pytest.mark.parametrize("depth", [300, 600, 900])
def test_arguments_that_are_nested_very_deeply_are_refused(tmp_path: Path, depth: int) -> None:
    async def scenario(home: Home) -> None:
        deep = b'{"q":' * depth + b"null" + b"}" * depth
        body = b'{"task":"x","verification":' + deep + b"}"
        status, found = await home.call("POST", "/v1/tools/sessions_spawn", body, MINE)
        assert status in {200, 422}, found
        if status == 200:
            assert found["structured"]["code"] == "invalid"

    play(tmp_path, scenario)


@pytest.mark.requirement("refusals:no-secrets")
def test_a_token_in_the_path_of_a_refused_call_is_not_written_down(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        worker = await working(home, MINE)
        token = home.worker(worker)["Authorization"].removeprefix("Bearer ")
        stranger = {"Authorization": f"Bearer {token[:-1]}~"}
        status, _ = await home.call("GET", f"/v1/runs/{token}", headers=stranger)
        assert status == 401
        await home.services.refusals.flush()
        text = await asyncio.to_thread(home.services.refusals.file.read_text)
        assert "/v1/runs/[redacted]" in text
        assert token not in text

    play(tmp_path, scenario)


@pytest.mark.requirement("http:errors:any-host")
@pytest.mark.parametrize("host", ["", "[", "a b"])
def test_an_error_names_the_path_whatever_the_host_header_says(tmp_path: Path, host: str) -> None:
    def exchange(path: Path, method: str, target: str) -> Document:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(15)
            connection.connect(str(path))
            head = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
            connection.sendall(f"{head}Content-Length: 2\r\n\r\n{{}}".encode())
            received = b""
            while part := connection.recv(65536):
                received += part
        document: Document = json.loads(received.partition(b"\r\n\r\n")[2])
        return document

    async def scenario(home: Home) -> None:
        place = home.services.paths.socket
        missing = await asyncio.to_thread(exchange, place, "GET", "/nowhere")
        assert missing["message"] == "no such path: /nowhere"
        refused = await asyncio.to_thread(exchange, place, "POST", "/v1/runs")
        assert refused["status"] == "error"

    play(tmp_path, scenario)


@pytest.mark.requirement("announcement:no-controls")
def test_a_label_taken_from_a_task_holds_no_control_characters(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        run_id = str(
            (await home.spawn("quick", task="look\x1b[2J\x9b here", headers=MINE))["runId"]
        )
        found = await use(home, "subagents", {"action": "status", "target": run_id}, MINE)
        assert found["structured"]["label"] == "look here"

    play(tmp_path, scenario)
