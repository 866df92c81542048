"""A real store with the journal of runs in it, a homeserver, and replies that are kept."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.builders import NOW_MS, RUN, Life, a_dependency
from tests.matrix_homeserver import YOU, Homeserver, homeserver
from tests.stored_lives import StoredLives

from subagents.domain.lifecycle.reduce import reduce
from subagents.domain.run.events import DependencySettled, RequestAnswered
from subagents.domain.run.outcome import OK
from subagents.domain.run.run import Answer, Decision
from subagents.domain.run.signals import PermissionAsked
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import RequestId, RunId
from subagents.extensions.notifications.chat_threads import ChatThreads, Taken
from subagents.extensions.notifications.matrix_room import MatrixRoom
from subagents.followers.journal_export import ReceiverUnavailable
from subagents.installation import extra_command
from subagents.ports import Batch


class Kept:
    """``Inward``. Raises what it is to raise, once each."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str, str]] = []
        self.said: list[tuple[str, str, str]] = []
        self.problems: list[Exception] = []
        self.taken = Taken()

    def answer(self, request: RequestId, text: str, decision: str) -> Taken:
        self.answers.append((request, text, decision))
        return self._taken()

    def say(self, thread: RunId, text: str, message_id: str) -> Taken:
        self.said.append((thread, text, message_id))
        return self._taken()

    def _taken(self) -> Taken:
        if self.problems:
            raise self.problems.pop(0)
        return self.taken


class Place(StoredLives):
    def __init__(self, root: Path, server: Homeserver) -> None:
        super().__init__(root)
        self.file = root / "chat.json"
        self.server = server
        self.inward = Kept()
        self.opened: list[ChatThreads] = []

    def threads(self) -> ChatThreads:
        """What the next daemon has; its threads are not started."""
        made = ChatThreads(
            room=self.server.room(),
            users=[YOU],
            inward=self.inward,
            store=self.store,
            file=self.file,
        )
        self.opened.append(made)
        return made

    def begin(self, *, thread: bool = True) -> Life:
        return Life.begin(RunSpec(task="look at it", thread=thread), run_id=RUN).start()

    def asking(self, *options: str) -> ChatThreads:
        """One whose room has a question, and which listens from here on."""
        life = self.begin()
        life.ask(options=options)
        self.write(life)
        found = self.threads()
        found.catch_up()
        found.poll()
        return found

    @property
    def first(self) -> str:
        found: str = self.server.event("look at it")["event_id"]
        return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with homeserver() as server:
        made = Place(tmp_path, server)
        yield made
        for each in made.opened:
            each.stop()
        made.store.close()


@pytest.mark.requirement("threads:chat:posts")
def test_a_session_has_a_thread_with_its_task_start_question_and_result(place: Place) -> None:
    life = place.begin()
    life.ask(options=("red", "blue"))
    place.write(life)
    threads = place.threads()
    threads.catch_up()
    place.write(life.result("all is well").exit())
    threads.catch_up()

    task, started, question, *_, end = place.server.events
    assert task["content"]["body"].endswith("\n\nlook at it")
    assert "m.relates_to" not in task["content"]
    for each in (started, question, end):
        relation = each["content"]["m.relates_to"]
        assert (relation["rel_type"], relation["event_id"]) == ("m.thread", task["event_id"])
    assert started["content"]["body"] == "Started."
    assert "1. red\n2. blue" in question["content"]["body"]
    assert question["content"]["m.mentions"] == {"user_ids": [YOU]}
    assert end["content"]["body"].endswith("completed successfully.\n\nall is well")


@pytest.mark.requirement("threads:chat:posts")
def test_a_run_without_a_thread_is_not_in_the_room(place: Place) -> None:
    place.write(place.begin(thread=False).exit(3))
    place.threads().catch_up()

    assert place.server.events == []


@pytest.mark.requirement("threads:chat:once")
def test_what_is_posted_again_after_a_crash_is_one_message(place: Place) -> None:
    place.write(place.begin().result("fine").exit())
    place.threads().catch_up()
    before = list(place.server.events)
    # Killed before anything of it was written down.
    for file in place.file.parent.glob("chat*.json"):
        file.unlink()
    again = place.threads()
    again.catch_up()

    assert place.server.sends > len(before) == 3
    assert place.server.events == before


@pytest.mark.requirement("threads:chat:once")
def test_an_end_that_several_events_of_one_instant_tell_is_sent_once(place: Place) -> None:
    place.write(place.begin().result("fine").exit())
    place.threads().catch_up()

    assert place.server.sends == len(place.server.events) == 3


@pytest.mark.requirement("threads:chat:once")
def test_a_homeserver_that_is_down_is_told_later_from_where_it_was(place: Place) -> None:
    place.write(place.begin().result("fine").exit())
    threads = place.threads()
    place.server.down = (429, {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests"})
    with pytest.raises(ReceiverUnavailable, match="429 M_LIMIT_EXCEEDED: Too Many Requests"):
        threads.catch_up()
    place.server.down = None
    threads.catch_up()

    assert len(place.server.texts()) == 3


@pytest.mark.requirement("threads:chat:answers")
def test_a_number_in_the_thread_answers_the_question_with_that_option(place: Place) -> None:
    threads = place.asking("red", "blue")
    reply = place.server.reply(place.first, "2")
    threads.poll()

    assert place.inward.answers == [(f"{RUN}:q1", "blue", "answer")]
    assert place.inward.said == []
    assert place.server.reactions() == [reply]


@pytest.mark.requirement("threads:chat:answers")
def test_a_program_that_asks_and_a_gate_ask_in_the_thread_once(place: Place) -> None:
    asks = PermissionAsked(key="p", call_id="c", tool="Bash", what="ls")
    life, waits = place.begin(), (a_dependency(1), a_dependency(2))
    place.write(life.signal(asks))
    spec = RunSpec(task="ship", gate="Ship it?", thread=True)
    gate = Life.begin(spec, run_id=RunId("r-g"), dependencies=waits)
    for each in waits:
        gate.apply(DependencySettled(at_ms=NOW_MS, run_id=each.run_id, outcome=OK))
    place.write(gate)
    threads = place.threads()
    threads.catch_up()
    threads.poll()
    place.server.reply(place.first, "1")
    threads.poll()

    asked = [each.partition("\n")[0] for each in place.server.texts() if "Reply " in each]
    assert asked == ["May it use Bash? ls", "Ship it?"]
    assert place.inward.answers == [(f"{RUN}:q1", "once", "answer")]


@pytest.mark.requirement("threads:chat:allowed")
def test_only_replies_of_the_users_in_a_thread_of_ours_count(place: Place) -> None:
    threads = place.asking()
    place.server.reply(place.first, "let me", sender="@stranger:example.org")
    place.server.reply("$another-thread", "elsewhere")
    place.server.add(YOU, "m.room.message", {"msgtype": "m.text", "body": "in no thread"})
    threads.poll()

    assert (place.inward.answers, place.inward.said) == ([], [])


@pytest.mark.requirement("threads:chat:answers")
def test_without_an_open_question_a_reply_is_a_message_for_the_session(place: Place) -> None:
    place.write(place.begin())
    threads = place.threads()
    threads.catch_up()
    threads.poll()
    reply = place.server.reply(place.first, "hurry up")
    threads.poll()

    assert place.inward.said == [(RUN, "hurry up", reply)]


@pytest.mark.requirement("threads:chat:meant-once")
def test_a_reply_that_is_taken_again_after_a_crash_still_answers_the_same_question(
    place: Place,
) -> None:
    threads = place.asking()
    place.server.reply(place.first, "the red one")
    place.inward.problems = [KeyboardInterrupt()]  # type: ignore[list-item]  # killed right then
    with pytest.raises(KeyboardInterrupt):
        threads.poll()
    run = place.store.run(RUN)
    assert run is not None
    (request,) = run.pending_requests
    answer = Answer(decision=Decision.ANSWER, text="red", by="me", at_ms=NOW_MS)
    answered = RequestAnswered(at_ms=NOW_MS, request_id=request.id, answer=answer)
    after = reduce(run, answered).run
    place.store.commit(Batch(runs={RUN: after}))
    place.threads().poll()

    assert place.inward.answers == [(f"{RUN}:q1", "the red one", "answer")] * 2
    assert place.inward.said == []


@pytest.mark.requirement("threads:chat:answers")
def test_what_is_not_taken_is_said_in_the_thread(place: Place) -> None:
    threads = place.asking()
    place.inward.taken = Taken("it is over")
    place.server.reply(place.first, "red")
    threads.poll()

    assert place.server.texts()[-1] == "Not taken: it is over"
    assert place.server.reactions() == []


@pytest.mark.requirement("threads:chat:answers")
def test_a_reply_that_cannot_be_taken_now_is_taken_later(place: Place) -> None:
    threads = place.asking()
    place.inward.problems = [ReceiverUnavailable("busy")]
    place.server.reply(place.first, "red")
    with pytest.raises(ReceiverUnavailable):
        threads.poll()
    threads.poll()

    assert len(place.inward.answers) == 2
    assert len(place.server.reactions()) == 1


@pytest.mark.requirement("threads:chat:answers")
def test_more_replies_than_one_sync_holds_are_all_taken_in_their_order(place: Place) -> None:
    place.write(place.begin())
    threads = place.threads()
    threads.catch_up()
    threads.poll()
    for number in range(7):
        place.server.reply(place.first, f"number {number}")
    place.server.timeline_max = 2
    threads.poll()

    assert [text for _, text, _ in place.inward.said] == [f"number {n}" for n in range(7)]


@pytest.mark.requirement("threads:chat:posts")
def test_without_its_extra_a_room_says_which_one_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    room = MatrixRoom("https://matrix.test", "!r:matrix.test", "token", str)
    with pytest.raises(ReceiverUnavailable, match=re.escape(extra_command("notify"))):
        _ = room.me
