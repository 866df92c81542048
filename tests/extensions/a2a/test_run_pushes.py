"""A real store with runs in it, and receivers that are real HTTP servers."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.builders import Life
from tests.notification_receivers import HttpReceiver, http_receiver
from tests.stored_lives import StoredLives

from subagents.domain.run.run import Run
from subagents.extensions.a2a.run_pushes import GIVE_UP_S, PushTarget, RunPushes
from subagents.followers.journal_export import ReceiverUnavailable


def state_of(run: Run) -> tuple[str, bytes]:
    return str(run.phase), json.dumps({"run": run.id, "phase": run.phase}).encode()


class Place(StoredLives):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.file = root / "pushes.json"
        self.now_s = 0.0

    def pushes(self, *urls: str) -> RunPushes:
        """One whose thread is not started."""
        return RunPushes(
            urls=urls or ("http://127.0.0.1",),
            store=self.store,
            file=self.file,
            state_of=state_of,
            now_s=lambda: self.now_s,
        )


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with http_receiver() as made:
        yield made


def target(receiver: HttpReceiver, name: str = "one", told: str = "running") -> PushTarget:
    return PushTarget(id=name, url=f"http://127.0.0.1:{receiver.port}/{name}", told=told)


def pushes_to(place: Place, *receivers: HttpReceiver) -> RunPushes:
    return place.pushes(*(f"http://127.0.0.1:{each.port}" for each in receivers))


def phases(receiver: HttpReceiver) -> list[str]:
    return [json.loads(each.body)["phase"] for each in receiver.requests]


@pytest.mark.requirement("a2a:push")
def test_a_receiver_hears_of_each_state_once_and_of_none_after_the_end(
    place: Place, receiver: HttpReceiver
) -> None:
    life = Life.begin().start()
    run_id = place.write(life)
    pushes = pushes_to(place, receiver)
    pushes.put(run_id, target(receiver))
    pushes.catch_up()
    assert phases(receiver) == []

    life.result("fine").exit()
    place.write(life)
    pushes.catch_up()
    pushes.catch_up()
    assert phases(receiver) == [str(life.phase)]
    assert pushes.of(run_id) == ()


@pytest.mark.requirement("a2a:push")
def test_what_a_receiver_does_not_take_is_sent_again_and_delays_no_other(
    place: Place, receiver: HttpReceiver
) -> None:
    life = Life.begin().start()
    run_id = place.write(life)
    with http_receiver() as down:
        down.status = 503
        pushes = pushes_to(place, receiver, down)
        pushes.put(run_id, target(down, "down", told="queued"))
        pushes.put(run_id, target(receiver, told="queued"))
        with pytest.raises(ReceiverUnavailable, match="answered 503"):
            pushes.catch_up()
        assert phases(receiver) == ["running"]

        down.status = 200
        pushes.catch_up()
        assert (len(down.requests), len(receiver.requests)) == (2, 1)


@pytest.mark.requirement("a2a:push")
@pytest.mark.parametrize(
    "broken",
    [
        PushTarget(id="0", url="http://127.0.0.1\t/tab", told=""),
        PushTarget(id="0", url="http://127.0.0.1/", token="ü中", told=""),
        PushTarget(id="0", url="http://127.0.0.1/", authorization="Bearer \u2028", told=""),
        PushTarget(id="0", url="http://127.0.0.1/", token="a\r\nX-Other: b", told=""),
        PushTarget(id="0", url="http://127.0.0.1:99999999/", told=""),
        PushTarget(id="0", url="http://[::1/", told=""),
        PushTarget(id="0", url="", told=""),
    ],
    ids=["tab", "token", "line-separator", "header", "port", "bracket", "empty"],
)
def test_an_address_that_nothing_can_be_sent_to_silences_no_other(
    place: Place, receiver: HttpReceiver, broken: PushTarget
) -> None:
    """Kept by a daemon that still let it in, and read from its file."""
    life = Life.begin().start()
    run_id = place.write(life)
    pushes = pushes_to(place, receiver)
    pushes.put(run_id, broken)
    pushes.put(run_id, target(receiver, told=""))

    with suppress(ReceiverUnavailable):
        pushes.catch_up()
    life.result("fine").exit()
    place.write(life)
    with suppress(ReceiverUnavailable):
        pushes.catch_up()

    assert phases(receiver) == ["running", str(life.phase)]


@pytest.mark.requirement("a2a:push")
def test_a_receiver_that_takes_nothing_for_an_hour_is_given_up_until_the_next_state(
    place: Place, receiver: HttpReceiver
) -> None:
    life = Life.begin().start()
    run_id = place.write(life)
    receiver.status = 500
    pushes = pushes_to(place, receiver)
    pushes.put(run_id, target(receiver, told="queued"))
    with pytest.raises(ReceiverUnavailable):
        pushes.catch_up()

    place.now_s = GIVE_UP_S
    pushes.catch_up()
    assert pushes.state.refused == 1

    receiver.status = 200
    pushes.catch_up()
    assert len(receiver.requests) == 2
    life.result("fine").exit()
    place.write(life)
    pushes.catch_up()
    assert len(receiver.requests) == 3


@pytest.mark.requirement("a2a:push")
def test_a_redirect_is_a_refusal_and_is_not_followed(place: Place, receiver: HttpReceiver) -> None:
    run_id = place.write(Life.begin().start())
    receiver.status = 307
    pushes = pushes_to(place, receiver)
    pushes.put(run_id, target(receiver, told="queued"))
    pushes.catch_up()
    pushes.catch_up()
    assert (len(receiver.requests), pushes.state.refused) == (1, 1)


@pytest.mark.requirement("a2a:push")
def test_the_next_daemon_knows_the_addresses_and_what_each_was_told(
    place: Place, receiver: HttpReceiver
) -> None:
    run_id = place.write(Life.begin().start())
    before = pushes_to(place, receiver)
    before.put(run_id, target(receiver, "first", told="queued"))
    before.catch_up()
    before.put(run_id, target(receiver, "second", told="queued"))

    after = pushes_to(place, receiver)
    after.start()
    after.stop()
    assert [each.path for each in receiver.requests] == ["/first", "/second"]
    assert place.file.stat().st_mode & 0o077 == 0
    assert {each.told for each in after.of(run_id)} == {"running"}


@pytest.mark.requirement("a2a:push")
def test_a_removed_address_hears_nothing(place: Place, receiver: HttpReceiver) -> None:
    run_id = place.write(Life.begin().start())
    pushes = pushes_to(place, receiver)
    pushes.put(run_id, target(receiver, told="queued"))
    pushes.remove(run_id, "one")
    pushes.remove(run_id, "another")
    pushes.catch_up()
    assert receiver.requests == []
    assert json.loads(place.file.read_text()) == {}


@pytest.mark.requirement("a2a:push-only-where-allowed")
@pytest.mark.parametrize(
    ("url", "is_allowed"),
    [
        ("https://hooks.example.org/a2a", True),
        ("https://hooks.example.org/a2a/", True),
        ("https://hooks.example.org:443/a2a/x?y=1", True),
        ("https://HOOKS.example.org/a2a/x", True),
        ("https://hooks.example.org/a2abc", False),
        ("https://hooks.example.org/", False),
        ("https://hooks.example.org/a2a/../admin", False),
        ("https://hooks.example.org/a2a/%2E%2e/admin", False),
        ("https://hooks.example.org/a2a\\..\\admin", False),
        ("http://hooks.example.org/a2a", False),
        ("https://hooks.example.org:8443/a2a", False),
        ("https://hooks.example.org.evil.example/a2a", False),
        ("https://hooks.example.org@evil.example/a2a", False),
        ("https://user:x@hooks.example.org/a2a", False),
        ("https://hooks.example.org/a2a#x", False),
        ("https://[::1/a2a", False),
        ("https://hooks.example.org\t/a2a", False),
        ("https://hooks.example.org/a2a/\n", False),
        ("ht\rtps://hooks.example.org/a2a", False),
        ("https://hooks.example.org/a2a/a b", False),
        ("https://hooks.example.org/a2a/\x7f", False),
        ("https://hooks.example.org/a2a/ü", False),
        ("https://hooks.example.org\u200b/a2a", False),
        ("", False),
    ],
)
def test_only_what_lies_within_an_allowed_address_is_sent_to(
    place: Place, url: str, *, is_allowed: bool
) -> None:
    assert place.pushes("https://hooks.example.org/a2a").allows(url) is is_allowed
