"""The supervisor socket: lines of JSON in, answers and events out, and nobody else comes in."""

import asyncio
import contextlib
import itertools
import json
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.home_daemon import CONFIG, DEADLINE_S, Document, Home, build, serving, until

from subagents.api.server import daemon
from subagents.api.server.daemon import run_daemon
from subagents.api.supervisor import supervisor_socket as door
from subagents.api.supervisor.bounded_lines import lines
from subagents.api.supervisor.supervisor_stream import Stream, Subscription
from subagents.domain.transcript.feed_entry import FeedDocument
from subagents.engine.runs.feed import Page, Scope
from subagents.errors import AlreadyRunning

SLOW = CONFIG + '\n[agents.slow]\nruntime = "scripted"\nscript = [{ hang = true }]\n'


class Supervisor:
    """One connection; answers are found by their request, events in the order they came."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.events: list[Document] = []
        self._ids = itertools.count(1)

    async def line(self) -> Document:
        async with asyncio.timeout(DEADLINE_S):
            raw = await self.reader.readline()
        assert raw.endswith(b"\n"), "the connection was closed"
        document: Document = json.loads(raw)
        return document

    async def answer(self) -> Document:
        """The next line that is no event."""
        while (found := await self.line())["type"] == "event":
            self.events.append(found)
        return found

    async def say(self, raw: bytes) -> Document:
        self.writer.write(raw + b"\n")
        return await self.answer()

    async def register(self, name: str = "openclaw") -> Document:
        said = {"type": "register_supervisor", "agentId": name}
        return await self.say(json.dumps(said).encode())

    async def ask(self, action: str, **params: Any) -> Document:
        """The whole answer to a command."""
        request_id = f"q{next(self._ids)}"
        said = {"type": "command", "requestId": request_id, "action": action, "params": params}
        found = await self.say(json.dumps(said).encode())
        assert (found["type"], found["requestId"]) == ("response", request_id)
        return found

    async def do(self, action: str, **params: Any) -> Any:
        found = await self.ask(action, **params)
        assert "error" not in found, found
        return found["result"]

    async def refused(self, action: str, **params: Any) -> tuple[str, str]:
        error = (await self.ask(action, **params))["error"]
        return error["code"], error["message"]

    async def told(self, count: int) -> list[Document]:
        """The first ``count`` events."""
        while len(self.events) < count:
            self.events.append(await self.line())
        return self.events

    async def until_end(self, name: str) -> Document:
        """The completion of that agent."""
        while True:
            for each in self.events:
                if each["event"] == "completion" and each["agentId"] == name:
                    return each
            await self.told(len(self.events) + 1)


@contextlib.asynccontextmanager
async def supervisor(home: Home, name: str | None = "openclaw") -> AsyncIterator[Supervisor]:
    path = home.services.paths.supervisor_socket
    reader, writer = await asyncio.open_unix_connection(path, limit=16 * 1024 * 1024)
    try:
        found = Supervisor(reader, writer)
        if name is not None:
            assert (await found.register(name))["type"] == "registered"
        yield found
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def create(one: Supervisor, home: Home, name: str, agent: str, **more: Any) -> str:
    params = {"agentId": name, "agent": agent, "task": "work", "cwd": home.cwd, **more}
    return str((await one.do("create_agent", **params))["runId"])


# -- coming in -----------------------------------------------------------------------------------


@pytest.mark.requirement("supervisor:socket")
def test_the_socket_lies_beside_the_daemons_is_as_private_and_goes_with_it(tmp_path: Path) -> None:
    async def scenario() -> Path:
        async with serving(tmp_path) as home:
            path = home.services.paths.supervisor_socket
            assert path == home.services.paths.socket.with_name("supervisor.sock")
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        return path

    assert not asyncio.run(scenario()).exists()


@pytest.mark.requirement("supervisor:socket")
def test_a_stale_socket_is_replaced_and_one_that_answers_is_left_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        services = build(tmp_path)
        path = services.paths.supervisor_socket
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
            left.bind(str(path))
        async with serving(tmp_path) as home, supervisor(home) as one:
            assert (await one.do("ping"))["pong"] is True
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.bind(str(path))
            other.listen()
            again = build(tmp_path)
            with pytest.raises(AlreadyRunning):
                await run_daemon(again, paths=again.paths, log_path=again.paths.log_file)
            assert path.is_socket()

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:same-user")
def test_a_supervisor_of_another_user_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home:
            monkeypatch.setattr(door, "peer_uid", lambda _connection: os.getuid() + 1)
            async with supervisor(home, None) as one:
                assert await one.reader.read() == b""
            monkeypatch.undo()
            async with supervisor(home) as one:
                await one.do("ping")
        assert f"refused a supervisor of user {os.getuid() + 1}" in (
            home.services.paths.log_file.read_text()
        )

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:register")
def test_before_registering_only_ping_is_answered(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home, supervisor(home, None) as one:
            assert (await one.do("ping"))["pong"] is True
            code, message = await one.refused("status")
            assert (code, message[:14]) == ("unauthorized", "register first")
            assert (await one.refused("subscribe"))[0] == "unauthorized"
            found = await one.register("openclaw")
            assert {k: found[k] for k in ("type", "agentId", "session", "seq")} == {
                "type": "registered",
                "agentId": "openclaw",
                "session": "agent:openclaw:main",
                "seq": 0,
            }
            assert await one.do("status") == {"agents": [], "total": 0}

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:register")
def test_a_supervisor_is_one_session_which_owns_what_it_creates(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home, supervisor(home, None) as one:
            assert (await one.register("agent:ci:night"))["session"] == "agent:ci:night"
            assert (await one.register("agent:ci:night"))["type"] == "registered"
            assert (await one.register("other"))["error"]["code"] == "conflict"
            run_id = await create(one, home, "builder", "quick")
            await one.until_end("builder")
            row = await home.ok("GET", f"/v1/runs/{run_id}/status")
            assert (row["requester"], row["label"]) == ("agent:ci:night", "builder")
            for wrong in ("", "Open Claw", "agent:x", "ä", "a" * 65):
                refused = await one.register(wrong)
                assert refused["error"]["code"] == "invalid", wrong

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:no-worker")
def test_a_worker_gets_no_operators_rights_here(tmp_path: Path) -> None:
    """Neither by the name of its session, nor by leaving its name out."""

    async def scenario() -> None:
        async with serving(tmp_path) as home:
            receipt = await home.spawn("hang")
            await home.until_phase(receipt["runId"], "running")
            async with supervisor(home, None) as one:
                refused = await one.register(receipt["childSessionKey"])
                assert refused["error"]["code"] == "unauthorized"
                assert (await one.refused("status"))[0] == "unauthorized"
            talk = (
                "import json, socket; s = socket.socket(socket.AF_UNIX);"
                f"s.connect({str(home.services.paths.supervisor_socket)!r});"
                "s.sendall(json.dumps({'type': 'register_supervisor', 'agentId': 'me'}).encode()"
                " + b'\\n'); print(s.makefile().readline())"
            )
            found = await home.spawn("shell", task=f'python3 -c "{talk}"')
            await home.until_phase(found["runId"], "completed")
            result = await home.ok("GET", f"/v1/runs/{found['runId']}/result")
            told = json.loads(result["result"])
            assert told["error"]["code"] == "unauthorized"
            assert "belongs to the worker" in told["error"]["message"]
            log = home.services.refusals
            assert {each.call for each in await log.recent()} == {"register_supervisor"}

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:many")
def test_more_supervisors_than_there_may_be_are_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "SUPERVISORS_MAX", 2)

    async def scenario() -> None:
        async with serving(tmp_path) as home:
            async with supervisor(home, "a") as one, supervisor(home, "b") as two:
                async with supervisor(home, None) as three:
                    assert (await three.answer())["error"]["code"] == "rate_limited"
                    assert await three.reader.read() == b""
                await one.do("ping")
                await two.do("ping")
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    async with supervisor(home, None) as again:
                        if "registered" in (await again.register())["type"]:
                            break

    asyncio.run(scenario())


# -- lines ---------------------------------------------------------------------------------------


@pytest.mark.requirement("supervisor:lives-on")
@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (b"nonsense", "invalid", "the line is not JSON"),
        (b"\xff\xfe", "invalid", "the line is not JSON"),
        (b"[" * 100_000, "invalid", "the line is not JSON"),
        (b"[1]", "invalid", "the line must be a JSON object"),
        (b"{}", "invalid", "type must be"),
        (b'{"type":"comand"}', "invalid", 'did you mean "command"?'),
        (b'{"type":"command","action":"ping"}', "invalid", "requestId must be"),
        (b'{"type":"command","requestId":1}', "invalid", "action must be text"),
        (b'{"type":"command","requestId":1,"action":"pong"}', "invalid", 'did you mean "ping"?'),
        (b'{"type":"command","requestId":1,"action":"ping2","params":3}', "invalid", "params must"),
        (b'{"type":"command","requestId":1,"action":"status","params":{"x":1}}', "invalid", '"x"'),
        (b'{"type":"command","requestId":1,"action":"get_log"}', "invalid", "agentId is required"),
        (
            b'{"type":"command","requestId":1,"action":"status","params":{"agentId":"nobody"}}',
            "not_found",
            'no run "nobody"',
        ),
        (b"x" * (1024 * 1024 + 1), "invalid", "a line must have at most 1048576 bytes"),
    ],
    ids=lambda value: value[:24] if isinstance(value, bytes) else None,
)
def test_what_makes_no_sense_gets_an_error_and_the_connection_lives_on(
    tmp_path: Path, line: bytes, code: str, message: str
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home, supervisor(home) as one:
            found = await one.say(line)
            assert found["type"] == "response"
            assert found["error"]["code"] == code
            assert message in found["error"]["message"]
            has_id = b'"requestId":1' in line
            assert found["requestId"] == (1 if has_id else None)
            assert (await one.do("ping"))["pong"] is True

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:lives-on")
def test_lines_may_come_in_pieces_many_at_once_empty_or_without_an_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home, supervisor(home, None) as one:
            ping = b'{"type":"command","requestId":%d,"action":"ping"}'
            one.writer.write(b"\n \n" + ping % 1 + b"\n" + ping % 2 + b"\r\n" + (ping % 3)[:20])
            assert [(await one.answer())["requestId"] for _ in range(2)] == [1, 2]
            one.writer.write((ping % 3)[20:])
            one.writer.write_eof()
            assert (await one.answer())["requestId"] == 3
            assert await one.reader.read() == b""

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:bounded")
def test_a_line_without_end_is_skipped_and_not_kept() -> None:
    async def scenario() -> None:
        reader = asyncio.StreamReader()
        for part in (
            b"ab",
            b"c" * 9,
            b"\nshort\n",
            b"d" * 11 + b"\n" + b"e" * 10,
            b"\n",
            b"f" * 11,
        ):
            reader.feed_data(part)
        reader.feed_eof()
        found = [line async for line in lines(reader, bytes_max=10)]
        assert found == [None, b"short", None, b"e" * 10, None]

    asyncio.run(scenario())


# -- commands ------------------------------------------------------------------------------------


@pytest.mark.requirement("supervisor:create")
def test_an_agent_is_created_watched_and_its_log_and_status_read(tmp_path: Path) -> None:
    async def scenario() -> None:
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
            grep = await one.do(
                "get_log", agentId="sentinella", grep="^Here are the last 3", offset=0
            )
            assert [each["type"] for each in grep["lines"]] == ["text"]
            recent = await one.do("get_log", agentId="sentinella", since=300_000)
            assert recent["totalLines"] >= 5
            assert (await one.do("get_log", agentId="sentinella", since=0))["totalLines"] == 0
            assert (await one.refused("get_log", agentId="sentinella", grep="["))[0] == "invalid"
            status = await one.do("status", agentId=found["runId"])
            assert status["state"] == "ok"
            assert status["toolsUsed"] is not None
            assert {"runtime", "sessionId", "costUsd", "lastActivity", "lastActivityAge"} <= set(
                status
            )

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:create")
def test_what_cannot_be_created_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


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
def test_a_turn_is_cancelled_and_the_agent_goes_on_with_the_next_message(tmp_path: Path) -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:end")
def test_killing_ends_the_workers_processes_and_destroying_puts_it_away(tmp_path: Path) -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


# -- events --------------------------------------------------------------------------------------


@pytest.mark.requirement("supervisor:subscribe")
def test_each_of_two_supervisors_hears_what_it_subscribed_to(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            serving(tmp_path) as home,
            supervisor(home, "one") as one,
            supervisor(home, "two") as two,
        ):
            everything = await two.do("subscribe")
            assert (everything["subscribed"], everything["seq"]) == ("*", 0)
            await create(one, home, "mine", "quick")
            await home.spawn("quick", label="by hand")
            assert (await one.until_end("mine"))["event"] == "completion"
            await two.until_end("mine")
            await two.until_end("by hand")
            assert {each["agentId"] for each in one.events} == {"mine"}
            assert await two.do("unsubscribe") == {"unsubscribed": 1}
            await create(one, home, "after", "quick")
            await one.until_end("after")
            await two.do("ping")
            assert {each["agentId"] for each in two.events} == {"mine", "by hand"}

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:subscribe")
def test_a_name_means_the_supervisors_own_runs_of_that_name_also_later_ones(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home, supervisor(home) as one:
            await one.do("subscribe", agentId="worker")
            await home.spawn("quick", label="worker")
            for _ in range(2):
                await create(one, home, "worker", "quick", subscribe=False)
                found = len(one.events) + 1
                await one.told(found)
            await one.do("ping")
            runs = {each["runId"] for each in one.events}
            mine = (await home.ok("GET", "/v1/runs?requester=agent:openclaw:main"))["runs"]
            assert runs == {each["runId"] for each in mine}
            assert len(one.events) == 2
            bad = await one.refused("subscribe", events=["completed"])
            assert bad[0] == "invalid"
            assert 'did you mean "completion"?' in bad[1]
            assert (await one.refused("subscribe", session="x"))[0] == "invalid"

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:replay")
def test_replay_gives_what_was_missed_then_what_happens_each_once_and_in_order(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home:
            names = ["run", "completion"]
            async with supervisor(home) as one:
                await one.do("subscribe", **{"from": 0}, events=names)
                for number in range(3):
                    await create(one, home, f"early{number}", "quick")
                for number in range(3):
                    await one.until_end(f"early{number}")
                # Where both kinds are wanted, ``run`` is the last of its number.
                while one.events[-1]["event"] != "run":
                    await one.told(len(one.events) + 1)
                seen = one.events[-1]["seq"]
            async with supervisor(home) as again:
                burst = asyncio.gather(*(home.spawn("quick", label=f"l{n}") for n in range(20)))
                start = await again.do("subscribe", **{"from": seen}, events=names)
                assert start["seq"] == seen
                await again.do("subscribe", agentId="l3", events=["completion"])
                await burst
                for number in range(20):
                    await again.until_end(f"l{number}")
                async with supervisor(home) as whole:
                    await whole.do("subscribe", **{"from": 0}, events=names)
                    wanted = [
                        each
                        for each in await whole.told(len(one.events) + len(again.events))
                        if each["seq"] > seen
                    ]

            def keys(found: list[Document]) -> list[tuple[int, str]]:
                return [(each["seq"], each["event"]) for each in found]

            got = keys(again.events)
            assert got == sorted(set(got), key=got.index)
            assert [n for n, _ in got] == sorted(n for n, _ in got)
            assert got == keys(wanted)[: len(got)]
            steps = [number for number, name in got if name == "run"]
            assert steps == list(range(seen + 1, steps[-1] + 1))

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:replay")
def test_a_second_subscription_replays_what_it_wants_and_nothing_of_the_first(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home, supervisor(home) as one:
            await one.do("subscribe", events=["completion"])
            for name in ("a", "b"):
                await home.spawn("quick", label=name)
                await one.until_end(name)
            await one.do("subscribe", agentId="a", events=["completion"], **{"from": 0})
            await one.told(3)
            await home.spawn("quick", label="c")
            await one.until_end("c")
            assert [each["agentId"] for each in one.events] == ["a", "b", "a", "c"]

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:replay")
def test_a_subscription_made_while_events_are_being_sent_loses_none_of_its_own(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home:
            first = str((await home.spawn("quick"))["runId"])
            await home.until_phase(first, "completed")
            newest = await home.services.engine.feed.newest()
            began, may_go, told = asyncio.Event(), asyncio.Event(), list[tuple[int, str]]()

            async def send(each: FeedDocument) -> None:
                told.append((each.number, each.name))
                if each.number == newest:
                    began.set()
                    await may_go.wait()

            stream = Stream(home.services.engine.feed, send)
            stream.add("*", Subscription(Scope(), frozenset({"run"}), 0))
            pushing = asyncio.create_task(stream.run())
            await began.wait()
            stream.add("late", Subscription(Scope(), frozenset({"completion"}), 0))
            may_go.set()
            await until(lambda: told[-1][1] == "completion")
            assert [number for number, name in told if name == "run"] == list(range(1, newest + 1))
            assert sum(name == "completion" for _, name in told) == 1
            pushing.cancel()
            await asyncio.wait({pushing})

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:replay")
def test_a_number_of_another_database_is_answered_with_a_reset(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home, supervisor(home) as one:
            found = await one.do("subscribe", **{"from": 4711})
            assert (found["seq"], found["reset"]) == (0, True)

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:bounded")
def test_while_a_supervisor_does_not_read_nothing_more_is_read_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home:
            feed = home.services.engine.feed
            may_go, told, pages = asyncio.Event(), list[int](), list[int]()
            read = feed.page

            async def page(after: int) -> Page:
                pages.append(after)
                return await read(after)

            async def send(each: FeedDocument) -> None:
                told.append(each.number)
                await may_go.wait()

            monkeypatch.setattr(feed, "page", page)
            stream = Stream(feed, send)
            stream.add("*", Subscription(Scope(), frozenset({"run"}), 0))
            pushing = asyncio.create_task(stream.run())
            ids = [str((await home.spawn("quick"))["runId"]) for _ in range(60)]
            for run_id in ids:
                await home.until_phase(run_id, "completed")
            assert told == [1]
            assert len(pages) <= 2
            newest = await feed.newest()
            may_go.set()
            await until(lambda: told[-1] == newest)
            assert told == list(range(1, newest + 1))
            assert set(feed._waiting) == {stream._changed}
            pushing.cancel()
            await asyncio.wait({pushing})
            assert not feed._waiting

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:bounded")
def test_a_supervisor_that_does_not_read_holds_up_nobody_and_misses_nothing(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with (
            serving(tmp_path) as home,
            supervisor(home, "lazy") as lazy,
            supervisor(home, "keen") as keen,
        ):
            await lazy.do("subscribe", events=["completion"])
            lazy.reader._transport.pause_reading()  # type: ignore[attr-defined]
            task = "head -c 100000 /dev/zero | tr '\\0' x"
            for number in range(100):
                await create(keen, home, f"k{number}", "shell", task=task)
                await keen.until_end(f"k{number}")
            assert (await keen.do("ping"))["pong"] is True
            lazy.reader._transport.resume_reading()  # type: ignore[attr-defined]
            await lazy.until_end("k99")
            assert lazy.events == keen.events
            assert sum(len(json.dumps(each)) for each in lazy.events) > 400_000

    asyncio.run(scenario())


@pytest.mark.requirement("supervisor:stop")
def test_the_daemon_stops_at_once_with_supervisors_connected_and_some_not_reading(
    tmp_path: Path,
) -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        async with serving(tmp_path) as home, contextlib.AsyncExitStack() as stack:
            ones = [await stack.enter_async_context(supervisor(home, f"s{n}")) for n in range(5)]
            for one in ones:
                await one.do("subscribe", **{"from": 0}, events=["run"])
            began = loop.time()
            home.services.stopping.set()
            for one in ones:
                async with asyncio.timeout(DEADLINE_S):
                    with contextlib.suppress(ConnectionError):
                        await one.reader.read()
        return loop.time() - began

    assert asyncio.run(scenario()) < 4
    assert daemon.STOP_S == 5
