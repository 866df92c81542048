"""A session in a thread of a chat room: a real daemon, and a homeserver with one room."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.live_home import LiveHome, live_home, until
from tests.e2e.test_field_failures import asking, question_of
from tests.matrix_homeserver import ROOM, YOU, Homeserver, homeserver

from subagents.domain.run.values import RequestId
from subagents.extensions.notifications.chat_threads import OwnApi

CONFIG = """
[threads]
homeserver = "{url}"
room = "{room}"
token = "token"
users = ["{you}"]

[agents.talker]
runtime = "scripted"
script = [{{ result = "hello" }}]
"""


@pytest.fixture
def server() -> Iterator[Homeserver]:
    with homeserver() as found:
        yield found


@pytest.fixture
def home(tmp_path: Path, server: Homeserver) -> Iterator[LiveHome]:
    config = CONFIG.format(url=server.url, room=ROOM, you=YOU)
    with live_home(tmp_path / "home", config=config) as found:
        yield found


@pytest.mark.requirement("threads:chat:conversation")
def test_a_conversation_in_the_room_goes_on_over_a_killed_daemon_and_nothing_is_said_twice(
    home: LiveHome, server: Homeserver
) -> None:
    receipt = dict(home.post("/v1/runs", home.spawn_body("say hello", agent="talker", thread=True)))
    server.event("completed successfully")
    thread = server.event("say hello")["event_id"]
    listening = home.paths.state_dir / "chat-threads-room.json"
    until(lambda: '"since":"' in listening.read_text(), what="that it listens")
    server.reply(thread, "how are you?")
    server.event("how are you?")
    until(lambda: len(server.reactions()) == 1, what="that the reply was taken")
    home.restart_after_kill()
    server.reply(thread, "still there?")
    server.event("still there?")
    until(lambda: len(server.reactions()) == 2, what="that the second one was taken")
    until(lambda: len(server.texts()) == 7, what="the end of the third run")

    runs = home.get("/v1/runs", archived=1)["runs"]
    assert len(runs) == 3
    assert {home.show(each["runId"])["threadId"] for each in runs} == {receipt["threadId"]}
    assert len(server.texts()) == len(set(server.texts())) + 2  # "Started." three times


@pytest.mark.requirement("threads:chat:answers")
def test_an_answer_reaches_the_worker_once_and_what_comes_too_late_is_said(
    home: LiveHome,
) -> None:
    run_id = asking(home, 1)
    request_id = RequestId(question_of(home, run_id))
    api = OwnApi(home.paths.socket)
    first = api.answer(request_id, "red", "answer")
    again = api.answer(request_id, "red", "answer")
    unknown = api.answer(RequestId(f"{run_id}:q9"), "red", "answer")

    assert home.finish(run_id)[0]["result"] == "red"
    assert (first.problem, again.problem) == (None, None)
    assert "does not exist" in (unknown.problem or "")
