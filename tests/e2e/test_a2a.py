"""A client of the Agent2Agent protocol, and a daemon that is killed under it."""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from a2a.client import Client, ClientConfig, create_client
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import a2a_pb2 as wire
from a2a.utils import errors
from tests.e2e.live_home import BOUND_S, DEFAULTS, LiveHome, live_home, until
from tests.free_ports import free_port
from tests.notification_receivers import http_receiver

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "a2a.md"


def config(root: Path) -> str:
    return f"""
[a2a]
agents = ["painter"]

[agents.painter]
runtime = "command"
command = ["sh", "-c", "echo painted $(subagents ask 'which colour?' --timeout 2m)"]
cwd = "{root}"
{DEFAULTS}"""


@contextlib.asynccontextmanager
async def calling(home: LiveHome) -> AsyncIterator[Client]:
    transport = httpx.AsyncHTTPTransport(uds=str(home.paths.socket))
    async with httpx.AsyncClient(transport=transport, timeout=60) as http:
        card = await A2ACardResolver(http, "http://localhost/a2a/painter").get_agent_card()
        yield await create_client(card, ClientConfig(httpx_client=http, streaming=True))


async def say(home: LiveHome, text: str, task_id: str = "") -> wire.StreamResponse:
    """The last event of the stream that a message begins."""
    said = wire.Message(message_id=text, task_id=task_id, parts=[wire.Part(text=text)])
    async with calling(home) as client:
        *_, last = [
            each async for each in client.send_message(wire.SendMessageRequest(message=said))
        ]
        return last


async def task_of(home: LiveHome, task_id: str) -> wire.Task:
    async with calling(home) as client:
        return await client.get_task(wire.GetTaskRequest(id=task_id))


@pytest.mark.requirement("a2a:survives-kill")
def test_a_task_survives_the_kill_of_the_daemon_with_its_question_and_its_result(
    tmp_path: Path,
) -> None:
    with live_home(tmp_path, config=config(tmp_path)) as home:
        asked = asyncio.run(say(home, "paint"))
        found = asked.task if asked.HasField("task") else asked.status_update
        assert found.status.state == wire.TaskState.TASK_STATE_INPUT_REQUIRED
        task_id = asked.task.id or asked.status_update.task_id

        home.restart_after_kill()

        task = asyncio.run(task_of(home, task_id))
        assert task.status.state == wire.TaskState.TASK_STATE_INPUT_REQUIRED
        assert task.status.message.parts[0].text == "which colour?"

        asyncio.run(say(home, "blue", task_id))
        until(lambda: home.row(task_id)["phase"] == "completed", what="the end of the task")
        task = asyncio.run(task_of(home, task_id))
        assert task.artifacts[0].parts[0].text == "painted blue"

        home.restart_after_kill()

        assert asyncio.run(task_of(home, task_id)) == task


@pytest.mark.requirement("a2a:push")
def test_the_states_of_a_task_are_pushed_over_the_kill_of_the_daemon(tmp_path: Path) -> None:
    with http_receiver() as receiver:
        url = f"http://127.0.0.1:{receiver.port}/hook"
        allowed = f'push_urls = ["{url}"]\n\n[agents.painter]'
        configured = config(tmp_path).replace("\n[agents.painter]", allowed, 1)
        with live_home(tmp_path, config=configured) as home:
            asked = asyncio.run(say(home, "paint"))
            task_id = asked.task.id or asked.status_update.task_id
            asyncio.run(_pushed_to(home, task_id, url))

            home.restart_after_kill()
            asyncio.run(say(home, "blue", task_id))
            until(
                lambda: bool(receiver.requests) and "COMPLETED" in receiver.requests[-1].body,
                what="the notification of the end",
            )
    assert {each.path for each in receiver.requests} == {"/hook"}
    assert {each.authorization for each in receiver.requests} == {"Bearer theirs"}
    assert json.loads(receiver.requests[-1].body)["statusUpdate"]["taskId"] == task_id


async def _pushed_to(home: LiveHome, task_id: str, url: str) -> None:
    """Have it pushed there, after trying where it may not be."""
    wanted = wire.TaskPushNotificationConfig(
        task_id=task_id,
        id="mine",
        url=url,
        authentication=wire.AuthenticationInfo(scheme="Bearer", credentials="theirs"),
    )
    elsewhere = wire.TaskPushNotificationConfig(task_id=task_id, url="http://169.254.169.254/")
    of_it = wire.GetTaskPushNotificationConfigRequest(task_id=task_id, id="mine")
    all_of_it = wire.ListTaskPushNotificationConfigsRequest(task_id=task_id)
    async with calling(home) as client:
        with pytest.raises(errors.InvalidParamsError, match="push_urls"):
            await client.create_task_push_notification_config(elsewhere)
        assert await client.create_task_push_notification_config(wanted) == wanted
        assert await client.get_task_push_notification_config(of_it) == wanted
        found = await client.list_task_push_notification_configs(all_of_it)
        assert list(found.configs) == [wanted]


@pytest.mark.requirement("a2a:list")
def test_a_task_that_asks_is_listed_as_such_and_not_as_working(tmp_path: Path) -> None:
    async def listed(home: LiveHome, state: wire.TaskState) -> list[str]:
        async with calling(home) as client:
            found = await client.list_tasks(wire.ListTasksRequest(status=state))
            return [each.id for each in found.tasks]

    with live_home(tmp_path, config=config(tmp_path)) as home:
        asked = asyncio.run(say(home, "paint"))
        task_id = asked.task.id or asked.status_update.task_id
        assert asyncio.run(listed(home, wire.TaskState.TASK_STATE_INPUT_REQUIRED)) == [task_id]
        assert asyncio.run(listed(home, wire.TaskState.TASK_STATE_WORKING)) == []
        said = [each.parts[0].text for each in asyncio.run(task_of(home, task_id)).history]
        assert said == ["paint", "which colour?"]


@pytest.mark.requirement("a2a:page")
def test_the_pages_program_calls_an_agent_over_tcp(tmp_path: Path) -> None:
    port = free_port()
    configured = f"""
[a2a]
agents = ["reviewer"]

[daemon]
http_port = {port}

[agents.reviewer]
runtime = "scripted"
script = [{{ result = "looks good" }}]
cwd = "{tmp_path}"
{DEFAULTS}"""
    program = PAGE.read_text("utf-8").partition("```python\n")[2].partition("```")[0]
    with live_home(tmp_path, config=configured) as home:
        token = home.paths.state_dir / "operator.token"
        for old, new in (("8765", str(port)), ("~/.local/state/subagents/operator.token", token)):
            assert old in program
            program = program.replace(old, str(new))
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "looks good" in done.stdout
    assert "TASK_STATE_COMPLETED" in done.stdout
