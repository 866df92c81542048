"""Agents of ours, called by the protocol's own client over the daemon's socket."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import Client, ClientConfig, create_client
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import a2a_pb2 as wire
from a2a.utils import errors
from tests.api.home_daemon import CONFIG, Home, play, segment

from subagents.extensions.a2a import a2a_tasks


def config(place: Path) -> str:
    """Those offered, and others."""
    return f"""{CONFIG}
[a2a]
agents = ["hello", "slow", "unsure"]

[agents.hello]
runtime = "scripted"
script = [{{ result = "hello" }}]
cwd = "{place}"
description = "Says hello"
capabilities = {{ tags = ["greeting"] }}

[agents.slow]
runtime = "scripted"
script = [{{ hang = true }}]
cwd = "{place}"

[agents.unsure]
runtime = "scripted"
script = [{{ result = "half" }}, {{ exit = 1 }}]
cwd = "{place}"
"""


def over(home: Home, session: str | None = None) -> httpx.AsyncClient:
    """HTTP over the daemon's socket."""
    transport = httpx.AsyncHTTPTransport(uds=str(home.services.paths.socket))
    headers = {} if session is None else {"X-Subagents-Session": session}
    return httpx.AsyncClient(transport=transport, timeout=40, headers=headers)


async def card_of(http: httpx.AsyncClient, agent: str) -> wire.AgentCard:
    return await A2ACardResolver(http, f"http://localhost/a2a/{agent}").get_agent_card()


@contextlib.asynccontextmanager
async def calling(
    home: Home, agent: str, *, streaming: bool = False, session: str | None = None
) -> AsyncIterator[Client]:
    """The SDK's client of one agent."""
    async with over(home, session) as http:
        card = await card_of(http, agent)
        yield await create_client(card, ClientConfig(httpx_client=http, streaming=streaming))


def message(text: str, *, at_once: bool = False, **more: Any) -> wire.SendMessageRequest:
    given = {"message_id": f"m-{text}", "role": wire.Role.ROLE_USER, **more}
    return wire.SendMessageRequest(
        message=wire.Message(parts=[wire.Part(text=text)], **given),
        configuration=wire.SendMessageConfiguration(return_immediately=at_once),
    )


async def sent(client: Client, request: wire.SendMessageRequest) -> wire.Task:
    """The task that the one answer holds."""
    (answer,) = [each async for each in client.send_message(request)]
    return answer.task


def run(tmp_path: Path, scenario: Any) -> None:
    (tmp_path / "work").mkdir()
    play(tmp_path / "home", scenario, config(tmp_path / "work"))


@pytest.mark.requirement("a2a:card")
def test_an_agents_card_says_what_it_is_and_where_each_version_is_spoken(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        async with over(home) as http:
            card = await card_of(http, "hello")
        assert (card.name, card.description) == ("hello", "Says hello")
        assert [(each.url, each.protocol_version) for each in card.supported_interfaces] == [
            ("http://localhost/a2a/hello", "1.0"),
            ("http://localhost/a2a/hello", "0.3"),
        ]
        assert card.capabilities.streaming
        assert not card.capabilities.push_notifications
        assert list(card.skills[0].tags) == ["greeting"]

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:offered-only")
def test_only_agents_that_the_user_named_are_offered(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        status, refused = await home.call("POST", "/a2a/quick", {})
        assert status == 404
        assert refused["message"] == "no agent 'quick' is offered over A2A"
        assert "[a2a] agents" in refused["hint"]
        assert (await home.call("GET", "/a2a/quick/.well-known/agent-card.json"))[0] == 404

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:send")
def test_a_message_is_answered_with_the_result_once_the_work_is_done(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "hello") as client:
            task = await sent(client, message("greet"))
            assert task.status.state == wire.TaskState.TASK_STATE_COMPLETED
            assert [part.text for part in task.artifacts[0].parts] == ["hello"]
            assert task == await client.get_task(wire.GetTaskRequest(id=task.id))
        detail = await home.ok("GET", f"/v1/runs/{task.id}")
        assert detail["agentId"] == "hello"
        # It was read where it was asked for: nothing waits in an inbox.
        assert (await home.ok("GET", "/v1/inbox"))["messages"] == []

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:stream")
def test_a_stream_begins_with_the_task_and_ends_with_result_and_state(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "hello", streaming=True) as client:
            events = [each async for each in client.send_message(message("greet"))]
        kinds = [each.WhichOneof("payload") for each in events]
        assert kinds[0] == "task"
        if len(kinds) > 1:  # else it had ended before the first look
            assert kinds[-2:] == ["artifact_update", "status_update"]
            assert events[-1].status_update.status.state == wire.TaskState.TASK_STATE_COMPLETED

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:question")
def test_a_workers_question_is_input_required_and_the_next_message_answers_it(
    tmp_path: Path,
) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "slow") as client:
            task = await sent(client, message("paint", at_once=True))
            await home.until_phase(task.id, "running")
            asked = {"runId": task.id, "question": "which colour?", "options": ["red", "blue"]}
            made = await home.ok("POST", "/v1/requests", asked, home.worker(task.id))

            task = await client.get_task(wire.GetTaskRequest(id=task.id))
            assert task.status.state == wire.TaskState.TASK_STATE_INPUT_REQUIRED
            (part,) = task.status.message.parts
            assert part.text == "which colour?\n\nOptions: red, blue"

            task = await sent(client, message("blue", task_id=task.id, at_once=True))
            assert task.status.state == wire.TaskState.TASK_STATE_WORKING
        answered = await home.ok("GET", f"/v1/requests/{segment(made['requestId'])}")
        assert (answered["decision"], answered["answer"]) == ("answer", "blue")

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:cancel")
def test_a_task_is_cancelled_once_and_says_so(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "slow") as client:
            task = await sent(client, message("wait", at_once=True))
            assert task.status.state in {
                wire.TaskState.TASK_STATE_SUBMITTED,
                wire.TaskState.TASK_STATE_WORKING,
            }
            ended = await client.cancel_task(wire.CancelTaskRequest(id=task.id))
            assert ended.status.state == wire.TaskState.TASK_STATE_CANCELED
            with pytest.raises(errors.TaskNotCancelableError):
                await client.cancel_task(wire.CancelTaskRequest(id=task.id))
            with pytest.raises(errors.UnsupportedOperationError, match="without its taskId"):
                await sent(client, message("more", task_id=task.id))

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:failed")
def test_a_failed_task_says_why(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "unsure") as client:
            task = await sent(client, message("try"))
        assert task.status.state == wire.TaskState.TASK_STATE_FAILED
        assert task.status.message.parts[0].text.startswith("error (exit_code)")

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:once")
def test_a_message_that_is_sent_twice_is_one_task(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "hello") as client:
            first, second = [await sent(client, message("greet")) for _ in range(2)]
        assert first.id == second.id

    run(tmp_path, scenario)


async def asked(home: Home, task_id: str, *questions: str) -> list[str]:
    """The ids of questions that the task's worker asks."""
    bodies = [{"runId": task_id, "question": each} for each in questions]
    worker = home.worker(task_id)
    return [(await home.ok("POST", "/v1/requests", each, worker))["requestId"] for each in bodies]


@pytest.mark.requirement("a2a:once")
def test_an_answer_that_is_sent_twice_is_not_that_to_the_next_question(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "slow") as client:
            task = await sent(client, message("paint", at_once=True))
            await home.until_phase(task.id, "running")
            ids = await asked(home, task.id, "blue?", "delete the other colours?")
            for _ in range(2):
                await sent(client, message("yes", task_id=task.id, at_once=True))
        found = [await home.ok("GET", f"/v1/requests/{segment(each)}") for each in ids]
        assert [each["status"] for each in found] == ["answered", "pending"]

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:question")
def test_words_that_came_too_late_for_a_question_reach_the_worker_as_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "slow") as client:
            task = await sent(client, message("paint", at_once=True))
            await home.until_phase(task.id, "running")
            (request_id,) = await asked(home, task.id, "which colour?")
            # As it was when this message looked: the other answer came in between.
            monkeypatch.setattr(a2a_tasks, "question_of", lambda run: run.questions.requests[0])
            answer = {"response": "red"}
            await home.ok("POST", f"/v1/requests/{segment(request_id)}/respond", answer)
            await sent(client, message("rather blue", task_id=task.id, at_once=True))
        events = (await home.ok("GET", f"/v1/runs/{task.id}/timeline"))["events"]
        assert [each["text"] for each in events if "rather blue" in each["text"]]

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:refused")
@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        ("a\0b", {}, "NUL byte"),
        ("é" * 140_000, {}, "message.parts must be at most 262144 bytes"),
        ("x", {"context_id": "c" * 300}, "message.contextId"),
        ("x", {"message_id": "a\nb"}, "message.messageId must be one line"),
    ],
    ids=["nul", "long", "context", "id"],
)
def test_a_message_out_of_its_bounds_is_refused_by_the_name_of_its_field(
    tmp_path: Path, text: str, more: dict[str, str], says: str
) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "slow") as client:
            with pytest.raises(errors.InvalidParamsError, match=says):
                await sent(client, message(text, at_once=True, **{"message_id": "m", **more}))
            assert (await client.list_tasks(wire.ListTasksRequest())).total_size == 0

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:ownership")
def test_the_task_of_another_session_is_not_there(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "hello") as client:
            task = await sent(client, message("greet"))
        async with calling(home, "hello", session="agent:hello:other") as client:
            for task_id in (task.id, "r-nope"):
                with pytest.raises(errors.TaskNotFoundError):
                    await client.get_task(wire.GetTaskRequest(id=task_id))

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:list")
def test_tasks_are_listed_by_conversation_and_state_a_page_at_a_time(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "hello") as client:
            ids = {
                (await sent(client, message(f"{at}", context_id=f"c{at % 2}"))).id
                for at in range(3)
            }
            even = await client.list_tasks(wire.ListTasksRequest(context_id="c0"))
            assert {each.context_id for each in even.tasks} == {"c0"}
            assert even.total_size == 2
            page = await client.list_tasks(wire.ListTasksRequest(page_size=2))
            rest = await client.list_tasks(
                wire.ListTasksRequest(page_size=2, page_token=page.next_page_token)
            )
            assert {each.id for each in (*page.tasks, *rest.tasks)} == ids
            assert rest.next_page_token == ""
            working = wire.TaskState.TASK_STATE_WORKING
            none = await client.list_tasks(wire.ListTasksRequest(status=working))
            assert list(none.tasks) == []

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:list")
@pytest.mark.parametrize(
    "wanted", [{"page_size": 0}, {"page_size": -1}, {"page_size": 101}, {"history_length": -1}]
)
def test_a_page_size_or_history_length_out_of_bounds_is_refused(
    tmp_path: Path, wanted: dict[str, Any]
) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "hello") as client:
            with pytest.raises(errors.InvalidParamsError, match="must be"):
                await client.list_tasks(wire.ListTasksRequest(**wanted))

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:list")
@pytest.mark.parametrize("token", ["9" * 30, "9" * 5000, "-1", "٣", " 3", "1_0", "1e3", "next"])
def test_a_page_token_that_is_none_of_ours_is_refused(tmp_path: Path, token: str) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "hello") as client:
            with pytest.raises(errors.InvalidParamsError, match="none of ours"):
                await client.list_tasks(wire.ListTasksRequest(page_token=token))

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:refused")
@pytest.mark.parametrize(
    ("params", "code"),
    [
        ('{"a":' * 100_000 + "1" + "}" * 100_000, -32700),
        ("[" * 900 + "]" * 900, -32600),
        ('{"a":[' * 33 + "]}" * 33, -32600),
        ("9" * 6_000, -32700),
        ("{", -32700),
    ],
    ids=["objects", "lists", "both", "digits", "open"],
)
def test_a_call_that_cannot_be_read_is_refused_and_logged_as_no_fault_of_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, params: str, code: int
) -> None:
    async def scenario(home: Home) -> None:
        async with over(home) as http:
            body = f'{{"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {params}}}'
            answer = await http.post("http://localhost/a2a/hello", content=body)
        assert answer.json()["error"]["code"] == code

    run(tmp_path, scenario)
    assert not [each for each in caplog.records if each.exc_info]


@pytest.mark.requirement("a2a:push-only-where-allowed")
@pytest.mark.parametrize("text", ["ü中", "a\r\nX-Other: b", "a\tb", "\x00", "\x7f", "a\u2028b"])
def test_what_is_no_text_of_a_header_is_refused_before_anything_begins(
    tmp_path: Path, text: str
) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "hello") as client:
            for field in ("token", "credentials"):
                request = message("call me")
                wanted = request.configuration.task_push_notification_config
                wanted.url = "https://example.com"
                wanted.authentication.scheme = "Bearer"
                setattr(wanted if field == "token" else wanted.authentication, field, text)
                with pytest.raises(errors.InvalidParamsError, match="printable ASCII"):
                    await sent(client, request)
            assert (await client.list_tasks(wire.ListTasksRequest())).total_size == 0

    (tmp_path / "work").mkdir()
    allowed = '[a2a]\npush_urls = ["https://example.com"]\n'
    whole = config(tmp_path / "work").replace("[a2a]\n", allowed)
    play(tmp_path / "home", scenario, whole)


@pytest.mark.requirement("a2a:get")
def test_a_task_holds_as_many_of_its_messages_as_are_asked_for(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "hello") as client:
            task = await sent(client, message("greet"))
            none = await client.get_task(wire.GetTaskRequest(id=task.id, history_length=0))
            many = await client.get_task(wire.GetTaskRequest(id=task.id, history_length=9))
        assert [each.parts[0].text for each in many.history] == ["greet"]
        assert list(none.history) == []

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:card")
def test_the_first_agents_card_is_where_clients_look_that_know_a_host(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        async with over(home) as http:
            card = await A2ACardResolver(http, "http://localhost").get_agent_card()
            assert card == await card_of(http, "hello")

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:refused")
def test_files_and_push_are_refused_in_words(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        async with calling(home, "hello") as client:
            request = message("read")
            request.message.parts.append(wire.Part(url="https://example.com/a.pdf"))
            with pytest.raises(errors.InvalidParamsError, match="a part of kind url"):
                await sent(client, request)
            request = message("call me")
            request.configuration.task_push_notification_config.url = "https://example.com"
            with pytest.raises(errors.PushNotificationNotSupportedError):
                await sent(client, request)

    run(tmp_path, scenario)


@pytest.mark.requirement("a2a:versions")
def test_a_client_of_the_protocols_first_version_is_served(tmp_path: Path) -> None:
    async def scenario(home: Home) -> None:
        said = {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "greet"}]}
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "message/send",
            "params": {"message": said, "configuration": {"blocking": True}},
        }
        async with over(home) as http:
            answer = await http.post("http://localhost/a2a/hello", content=json.dumps(call))
        result = answer.json()["result"]
        assert result["status"]["state"] == "completed"
        assert result["artifacts"][0]["parts"][0]["text"] == "hello"

    run(tmp_path, scenario)
