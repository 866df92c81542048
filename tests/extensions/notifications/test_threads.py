"""A conversation outside, bound to a session of ours: by a real daemon and a real receiver."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.live_home import LiveHome, live_home, until
from tests.extensions.notifications.webhook_place import Answering, Posted, WebhookPlace

from subagents.client.client import Client
from subagents.errors import NotFound, UsageError

AGENTS = """
[agents.chat.courier]
webhook = "{url}"
webhook_secret_env = "HOOK_SECRET"

[agents.talker]
runtime = "scripted"
script = [{{ result = "hello" }}]

[agents.busy]
runtime = "scripted"
script = [{{ result = "so far" }}, {{ hang = true }}]
"""
CHAT = "agent:chat:room-7"


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[WebhookPlace]:
    with WebhookPlace(tmp_path, secret_env="HOOK_SECRET") as found:
        yield found


@pytest.fixture
def home(tmp_path: Path, hook: WebhookPlace) -> Iterator[LiveHome]:
    config = AGENTS.format(url=hook.url)
    with live_home(tmp_path / "home", config=config, env={"HOOK_SECRET": "s"}) as found:
        yield found


def bound(home: LiveHome, agent: str, **spec: object) -> dict[str, Any]:
    """The receipt of a session that is bound to a thread, spawned by the chat's agent."""
    with chat(home) as client:
        body = home.spawn_body("say hello", agent=agent, thread=True, **spec)
        return dict(client.post("/v1/runs", body))


def chat(home: LiveHome) -> Client:
    return home.client(session=CHAT)


def write(home: LiveHome, thread: str, text: str, **more: object) -> dict[str, Any]:
    return home.post(f"/v1/threads/{thread}/messages", {"text": text, **more})


@pytest.mark.requirement("threads:conversation")
def test_a_conversation_goes_on_over_many_runs_and_a_killed_daemon(
    home: LiveHome, hook: WebhookPlace
) -> None:
    receipt = bound(home, "talker", label="bot")
    thread = receipt["threadId"]
    (first,) = hook.until(1)
    answers = [write(home, thread, "how are you?", messageId="m1")]
    hook.until(2)
    # Else it could be posted again after the restart, under the same key: at least once.
    home.until_phase(answers[0]["runId"], "completed")
    home.restart_after_kill()
    answers.append(write(home, thread, "still there?", messageId="m2"))
    posted = hook.until(3)

    assert (receipt["mode"], thread) == ("session", receipt["runId"])
    assert (first.document["runId"], first.document["threadId"]) == (thread, thread)
    assert [each["status"] for each in answers] == ["accepted", "accepted"]
    assert [each.document["runId"] for each in posted[1:]] == [a["runId"] for a in answers]
    assert {each.document["threadId"] for each in posted} == {thread}
    assert {each.document["sessionKey"] for each in posted} == {CHAT}
    assert "how are you?" in posted[1].document["text"]
    assert posted[2].document["continues"] == answers[0]["runId"]
    assert all("X-Subagents-Signature" in each.headers for each in posted)


@pytest.mark.requirement("threads:once")
def test_a_message_of_the_chat_that_comes_twice_is_one(home: LiveHome, hook: WebhookPlace) -> None:
    thread = bound(home, "talker")["threadId"]
    hook.until(1)
    first = write(home, thread, "once", messageId="m1")
    hook.until(2)
    home.restart_after_kill()
    again = write(home, thread, "once", messageId="m1")

    assert (first["repeated"], again["repeated"]) == (False, True)
    assert again["runId"] == first["runId"]
    assert len(home.get("/v1/runs", archived=1)["runs"]) == 2


@pytest.mark.requirement("threads:live")
def test_what_is_written_while_it_works_goes_into_its_turn(
    home: LiveHome, hook: WebhookPlace
) -> None:
    thread = bound(home, "busy")["threadId"]
    home.until_phase(thread, "running")
    told = write(home, thread, "hurry", messageId="m1")
    home.post(f"/v1/runs/{thread}/interrupt")
    (posted,) = hook.until(1)

    assert (told["status"], told["runId"], told["isNew"]) == ("steered", thread, False)
    assert posted.document["outcome"]["reason"] == "interrupted"
    assert "so far" in posted.document["text"]


@pytest.mark.requirement("threads:whoever-goes-on")
def test_the_thread_hears_of_a_run_that_a_person_started_elsewhere(
    home: LiveHome, hook: WebhookPlace
) -> None:
    thread = bound(home, "talker")["threadId"]
    hook.until(1)
    sent = home.post(f"/v1/runs/{thread}/send", {"message": "from the command line"})
    posted = hook.until(2)[1]

    assert posted.document["runId"] == sent["runId"]
    assert posted.document["threadId"] == thread
    assert home.show(sent["runId"])["requester"] == CHAT


@pytest.mark.requirement("threads:kept")
def test_the_session_of_a_thread_is_never_archived(home: LiveHome, hook: WebhookPlace) -> None:
    thread = bound(home, "talker")["threadId"]
    hook.until(1)
    home.until_phase(thread, "completed")
    home.post("/v1/sweep")

    assert home.show(thread)["archivedAt"] is None
    assert write(home, thread, "hello again")["status"] == "accepted"


@pytest.mark.requirement("threads:refused")
def test_what_cannot_be_written_into_a_thread_is_refused(
    home: LiveHome, hook: WebhookPlace
) -> None:
    unbound = home.spawn("true")
    thread = bound(home, "talker")["threadId"]
    hook.until(1)
    for name in (unbound, "r-nobody00000", "talker"):
        with pytest.raises(NotFound, match="no thread"):
            write(home, name, "x")
    with pytest.raises(UsageError, match="text must not be empty"):
        write(home, thread, "  ")
    with pytest.raises(UsageError, match="messageId must be one line"):
        write(home, thread, "x", messageId="a\nb")
    with pytest.raises(UsageError, match='mode="session" requires thread=true'):
        home.post("/v1/runs", home.spawn_body("x", agent="talker", mode="session"))
    with pytest.raises(UsageError, match=r'^thread: runtime "command" cannot continue a session'):
        bound(home, "sh", label="deaf")


@pytest.mark.requirement("couriers:webhook:delivered-once")
def test_what_a_receiver_refuses_for_now_is_tried_again_and_arrives_once(
    home: LiveHome, hook: WebhookPlace
) -> None:
    refused: list[Posted] = []

    def busy_once(posted: Posted) -> Answering:
        refused.append(posted)
        return Answering(429, {"Retry-After": "1"}) if len(refused) == 1 else Answering()

    hook.answers = busy_once
    run_id = bound(home, "talker")["runId"]
    home.until_phase(run_id, "announce_deferred")
    home.post(f"/v1/runs/{run_id}/redeliver")
    hook.until(1)
    found = until(lambda: home.show(run_id)["announcementConsumedAt"], what="it was read")

    assert found
    tries = home.show(run_id)["delivery"]["tries"]
    assert [each["outcome"]["kind"] for each in tries] == ["failed", "delivered"]
    assert tries[0]["outcome"]["retryAfterMs"] == 1_000
    assert [each.headers["Idempotency-Key"] for each in refused] == [f"{run_id}:announce"] * 2
    assert len(hook.posted) == 1
