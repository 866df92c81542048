"""The stdio bridge with real processes: it outlives the daemon, and loses and doubles nothing."""

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.bridge_client import (
    MODERN,
    PROGRAM,
    BridgeProcess,
    bridge,
    completed,
    connected,
    environment,
)
from tests.e2e.live_home import BOUND_S, LiveHome, live_home, until

from subagents.api.tools.repeatable import REPEATABLE_TOOLS
from subagents.api.tools.tool_registry import REQUESTER_TOOLS, TOOLS
from subagents.config.paths import session_name
from subagents.domain.run.events import AnnouncementConsumed
from subagents.unread import unread_bytes

ERA = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
each_era = pytest.mark.parametrize("era", ["legacy", "auto"])


def spawned(client: BridgeProcess, task: str) -> str:
    answer = client.call("sessions_spawn", task=task, agentId="sh")
    assert not answer["isError"], answer
    return str(answer["structuredContent"]["runId"])


def consumed(home: LiveHome, run_id: str) -> int:
    return len(home.events(run_id, AnnouncementConsumed))


def until_consumed(home: LiveHome, run_id: str) -> None:
    until(lambda: consumed(home, run_id), what=f"{run_id} was read")


def until_ended(home: LiveHome, run_id: str) -> None:
    home.until_phase(run_id, "announcing", "announce_deferred", "cleanup_pending", "completed")


def until_awaited(home: LiveHome, run_id: str) -> None:
    """Return once a call that waits for all of the desk's runs is with the daemon."""
    message = f"{run_id}:announce"

    def look() -> bool:
        rows: Any = home.client(session="agent:main:desk").get("/v1/inbox")["messages"]
        return any(each["id"] == message and each["awaited"] for each in rows)

    until(look, what=f"a call that waits for {run_id}")


@pytest.mark.requirement("mcp:eras", "mcp:tools-called")
@each_era
def test_a_client_starts_the_daemon_delegates_and_hears_of_it_once(
    era: str, tmp_path: Path
) -> None:
    async def scenario(home: LiveHome) -> None:
        async with connected(home, era) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == [tool.name for tool in REQUESTER_TOOLS]
            receipt = await client.call_tool("sessions_spawn", {"task": "pwd", "agentId": "sh"})
            assert receipt.structured_content is not None, receipt
            answer = await client.call_tool("sessions_wait", {"timeoutSeconds": 20})
            again = await client.call_tool("sessions_wait", {"timeoutSeconds": 0})
        assert answer.structured_content is not None
        assert again.structured_content is not None
        # It works where its client works.
        assert answer.structured_content["completed"][0]["result"] == str(home.work.resolve())
        assert again.structured_content["completed"] == []
        assert consumed(home, receipt.structured_content["runId"]) == 1

    with live_home(tmp_path, started=False) as home:
        asyncio.run(scenario(home))


@pytest.mark.requirement("mcp:bridge:survives-daemon")
def test_a_wait_goes_on_over_a_kill_of_the_daemon_and_brings_the_result_once(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home, bridge(home) as client:
        first = spawned(client, "echo first")
        until_ended(home, first)
        last = spawned(client, f"while [ ! -e {home.root}/go ]; do sleep 0.05; done; echo last")
        waiting = client.start_call("sessions_wait", until="all", timeoutSeconds=60)
        until_awaited(home, first)
        home.kill()
        until(home.is_up, what="the bridge started the daemon again")
        (home.root / "go").touch()
        ended = completed(client.answer_to(waiting)["result"])
        again = completed(client.call("sessions_wait", timeoutSeconds=0))

        results = {each["runId"]: each["result"] for each in ended}
        assert results == {first: "first", last: "last"}
        assert again == []
        assert [consumed(home, run_id) for run_id in (first, last)] == [1, 1]
        assert client.close() == 0
        assert "the daemon went away during tools/call" in client.stderr()


@pytest.mark.requirement("mcp:bridge:survives-daemon")
def test_a_spawn_that_is_sent_twice_is_one_run(tmp_path: Path) -> None:
    """The id of the call is its key, whichever daemon takes it."""
    with live_home(tmp_path) as home, bridge(home) as client:
        number = client.start_call("sessions_spawn", task="echo once", agentId="sh")
        home.kill()
        answer = client.answer_to(number)["result"]
        run_id = answer["structuredContent"]["runId"]
        until_ended(home, run_id)
        assert list(home.stored()) == [run_id]


@pytest.mark.requirement("mcp:bridge:acknowledges")
def test_what_a_killed_client_cannot_have_kept_goes_to_the_next_session_at_once(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        with bridge(home) as client:
            run_id = spawned(client, "echo kept")
            until_ended(home, run_id)
            assert completed(client.call("sessions_wait"))[0]["runId"] == run_id
            client.kill()
        before = time.monotonic()
        with bridge(home) as client:
            # Its lease would have been a minute.
            assert completed(client.call("sessions_wait"))[0]["runId"] == run_id
            assert time.monotonic() - before < 50
            client.ask("tools/list")
            until_consumed(home, run_id)
            assert completed(client.call("sessions_wait", timeoutSeconds=0)) == []
        assert consumed(home, run_id) == 1


@pytest.mark.requirement("mcp:bridge:acknowledges", "inbox:after-hand-over")
@pytest.mark.parametrize("killed", ["client", "bridge"])
def test_an_answer_that_was_half_written_when_one_of_both_was_killed_is_not_lost(
    tmp_path: Path, killed: str
) -> None:
    """The pipe is full, so the bridge stands between having the results and handing them over."""
    with live_home(tmp_path) as home:
        run_ids = [home.spawn(f"head -c 3000 /dev/zero | tr '\\0' {each}") for each in "abcd"]
        for run_id in run_ids:
            home.until_phase(run_id, "completed")
        with subprocess.Popen(
            [PROGRAM, "mcp", "--session", "main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(home),
            cwd=home.work,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            pipe = process.stdout.fileno()
            room = fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
            call = {"name": "sessions_wait", "arguments": {"until": "all"}, "_meta": ERA}
            request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            until(lambda: unread_bytes(pipe) == room, what="a full pipe")
            if killed == "bridge":
                process.kill()
            process.stdin.close()
            process.stdout.close()
        # Its lease would have been a minute.
        until(
            lambda: {*home.wait(*run_ids)["messages"]} == {f"{each}:announce" for each in run_ids},
            what="all of them offered again",
            within_s=20,
        )


@pytest.mark.requirement("mcp:bridge:acknowledges")
def test_a_client_that_lives_on_has_read_its_answer_and_one_that_leaves_at_once_has_not(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home:
        with bridge(home) as client:
            first = spawned(client, "echo first")
            until_ended(home, first)
            client.call("sessions_wait")
            until_consumed(home, first)  # it says nothing, but it is there
            second = spawned(client, "echo second")
            until_ended(home, second)
            client.call("sessions_wait")
            assert client.close() == 0
        with bridge(home) as client:
            found = completed(client.call("sessions_wait"))
        assert [each["runId"] for each in found] == [second]


@pytest.mark.requirement("mcp:bridge:acknowledges")
def test_two_clients_of_one_session_are_not_both_told(tmp_path: Path) -> None:
    with live_home(tmp_path) as home, bridge(home) as one, bridge(home) as two:
        run_id = spawned(one, f"while [ ! -e {home.root}/go ]; do sleep 0.05; done; echo ok")
        waits = [(each, each.start_call("sessions_wait", timeoutSeconds=15)) for each in (one, two)]
        home.until_phase(run_id, "running")
        (home.root / "go").touch()
        answers = [completed(each.answer_to(number)["result"]) for each, number in waits]
        assert sorted(len(ended) for ended in answers) == [0, 1]
        until_consumed(home, run_id)
        assert consumed(home, run_id) == 1


@pytest.mark.requirement("mcp:tasks:durable")
def test_a_task_is_there_after_a_kill_of_the_daemon_between_its_birth_and_the_first_look(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path) as home, bridge(home) as client:
        task = client.call("sessions_spawn", tasks=True, task="sleep 0.5; echo ok", agentId="sh")
        home.kill()
        task_id = task["taskId"]
        assert task["resultType"] == "task"

        def look() -> dict[str, object] | None:
            found = client.ask("tasks/get", tasks=True, taskId=task_id)
            return found if found["status"] == "completed" else None

        done = until(look, what="the task ended")
        assert completed(done["result"])[0]["result"] == "ok"  # type: ignore[arg-type]  # a document
        until_consumed(home, task_id)
        assert consumed(home, task_id) == 1


# -- the protocol -------------------------------------------------------------------------------


@pytest.mark.requirement("mcp:bridge:protocol")
def test_bad_lines_are_answered_and_harm_nothing(tmp_path: Path) -> None:
    with live_home(tmp_path) as home, bridge(home) as client:
        wrong = {
            b"{not json": (None, -32700),
            b"\xff\xfe": (None, -32700),
            b"[]": (None, -32600),
            b"5": (None, -32600),
            b'{"jsonrpc":"2.0","id":null,"method":"ping"}': (None, -32600),
            b'{"jsonrpc":"2.0","id":7,"method":"pi\\r\\nng"}': (7, -32600),
            b'{"jsonrpc":"2.0","id":9,"method":"no/such"}': (9, -32601),
        }
        for line, (number, code) in wrong.items():
            client.write(line)
            message = client.receive()
            assert (message["id"], message["error"]["code"]) == (number, code), line
        for line in (b"", b"   ", b'{"jsonrpc":"2.0","method":"notifications/initialized"}'):
            client.write(line)
        client.write(b'{"jsonrpc":"2.0","id":"text","method":"ping"}')
        assert client.receive() == {"jsonrpc": "2.0", "id": "text", "result": {}}
        assert client.close() == 0


@pytest.mark.requirement("mcp:bridge:protocol")
def test_a_batch_is_answered_in_one_line(tmp_path: Path) -> None:
    with live_home(tmp_path) as home, bridge(home) as client:
        batch = [
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": "two", "method": "tools/list"},
            4,
        ]
        client.write(json.dumps(batch).encode())
        answers = client.receive()
        assert {str(each["id"]): "result" in each for each in answers} == {
            "1": True,
            "two": True,
            "None": False,
        }
        client.write(b'[{"jsonrpc":"2.0","method":"notifications/initialized"}]')
        client.write(b'{"jsonrpc":"2.0","id":"next","method":"ping"}')
        assert client.receive() == {"jsonrpc": "2.0", "id": "next", "result": {}}


@pytest.mark.requirement("mcp:bridge:cancel")
def test_a_cancelled_call_is_not_answered_and_the_others_are(tmp_path: Path) -> None:
    with live_home(tmp_path) as home, bridge(home) as client:
        run_id = spawned(client, "sleep 60")
        home.until_phase(run_id, "running")
        waiting = client.start_call("sessions_wait", runIds=[run_id], timeoutSeconds=60)
        cancel = {"requestId": waiting, "reason": "enough"}
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}
        client.write(json.dumps(note).encode())
        assert not client.call("subagents", action="kill", target=run_id)["isError"]
        until_ended(home, run_id)
        # Nothing but its answer comes, and what the other one would have taken is there.
        assert completed(client.call("sessions_wait"))[0]["runId"] == run_id


PATIENT = """
from subagents.__main__ import main
from subagents.extensions.mcp.bridge import bridge
bridge.END_GRACE_S = 600.0
main()
"""
"""For a bridge that waits for its calls at its end, if it waits for them at all."""


@pytest.mark.requirement("mcp:bridge:ends")
@pytest.mark.parametrize("how", ["eof", "term"])
def test_it_ends_cleanly_in_the_middle_of_a_call(how: str, tmp_path: Path) -> None:
    program = [sys.executable, "-c", PATIENT]
    with live_home(tmp_path) as home, bridge(home, program=program) as client:
        run_id = spawned(client, "sleep 600")
        client.start_call("sessions_wait", runIds=[run_id], timeoutSeconds=600)
        if how == "eof":
            assert client.close() == 0
        else:
            client.process.send_signal(signal.SIGTERM)
            assert client.process.wait(BOUND_S) == 0, client.stderr()
        assert client.stderr() == ""
        assert home.row(run_id)["phase"] in {"queued", "spawning", "running"}


# -- who it is ----------------------------------------------------------------------------------


@pytest.mark.requirement("mcp:bridge:session")
def test_without_a_name_the_session_is_that_of_the_project(tmp_path: Path) -> None:
    with live_home(tmp_path) as home:
        with bridge(home, session=None) as client:
            in_cwd = spawned(client, "echo")
        project = home.root / "My Project"
        project.mkdir()
        with bridge(home, session=None, env={"CLAUDE_PROJECT_DIR": str(project)}) as client:
            in_project = spawned(client, "pwd")
        with bridge(home, session="agent:main:exact") as client:
            exact = spawned(client, "echo")
        assert home.show(in_cwd)["requester"] == f"agent:main:{session_name(home.work)}"
        assert home.show(in_project)["requester"] == f"agent:main:{session_name(project)}"
        assert home.show(in_project)["resolved"]["cwd"] == str(project)
        assert home.show(exact)["requester"] == "agent:main:exact"
        assert session_name(project).startswith("my-project-")


@pytest.mark.requirement("mcp:bridge:worker")
def test_inside_a_worker_it_speaks_for_that_worker(tmp_path: Path) -> None:
    calls = [
        ("tools/list", {}),
        ("tools/call", {"name": "report_completion", "arguments": {"summary": "by mcp"}}),
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(calls)
    ]
    with live_home(tmp_path) as home:
        script = home.root / "feed.sh"
        quoted = " ".join(f"'{line}'" for line in lines)
        script.write_text(f"printf '%s\\n' {quoted} | {PROGRAM} mcp; sleep 0.2\n")
        run_id = home.spawn(f"sh {script}")
        [item] = home.finish(run_id)
        assert item["report"]["summary"] == "by mcp"
        listed = [json.loads(line) for line in item["result"].splitlines() if '"tools"' in line]
        names = [tool["name"] for tool in listed[0]["result"]["tools"]]
        assert names[:4] == [
            *("report_completion", "report_progress"),
            *("notify_parent", "request_orchestrator"),
        ]


@pytest.mark.requirement("mcp:light")
def test_a_daemon_that_serves_a_bridge_loads_nothing_heavy_for_it(tmp_path: Path) -> None:
    with live_home(tmp_path) as home, bridge(home) as client:
        run_id = spawned(client, "echo hi")
        waited = completed(client.call("sessions_wait", timeoutSeconds=30))
        assert [each["runId"] for each in waited] == [run_id]
        assert "pydantic_core" not in Path(f"/proc/{home.pid}/maps").read_text()


@pytest.mark.requirement("mcp:bridge:light")
def test_it_imports_nothing_heavy_and_little_else(tmp_path: Path) -> None:
    with live_home(tmp_path, started=False) as home:
        code = (
            "import sys; from subagents.__main__ import main; sys.argv[1:] = ['mcp']; main();"
            # A thread imports it while the first lines are answered, and is somewhere by now.
            "import subagents.extensions.mcp.bridge.mcp_command;"
            "heavy = {'mcp', 'mcp_types', 'starlette', 'asyncio', 'pydantic', 'http'};"
            "sys.exit(', '.join(heavy & set(sys.modules)) or 0 if len(sys.modules) < 185"
            " else f'{len(sys.modules)} modules')"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**environment(home), "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
            timeout=BOUND_S,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.requirement("mcp:bridge:survives-daemon")
def test_only_tools_that_may_be_called_twice_are() -> None:
    assert set(TOOLS) >= REPEATABLE_TOOLS
    changes = {
        name for name in REPEATABLE_TOOLS if not (TOOLS[name].read_only or TOOLS[name].idempotent)
    }
    # These two are told apart by the id of their call.
    assert changes <= {"sessions_spawn", "request_orchestrator"}
    assert not REPEATABLE_TOOLS & {"sessions_send", "notify_parent", "report_progress"}
