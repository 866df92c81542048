"""A real store, the journal of runs in it, and a channel that keeps what it is told."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.builders import NOW_MS, Life, a_dependency, a_resolved
from tests.runtimes.attempt_harness import until
from tests.stored_lives import StoredLives

from subagents.domain.run.events import DependencySettled
from subagents.domain.run.outcome import OK, Outcome, Reason, Status
from subagents.domain.run.signals import PermissionAsked
from subagents.domain.run.spec import PlanStep, RunSpec
from subagents.domain.run.values import RunId, SessionKey
from subagents.extensions.notifications.notification_settings import NotificationReason
from subagents.extensions.notifications.notifier import AGE_MS_MAX, Notification, Notifier
from subagents.followers.journal_export import ReceiverRefused, ReceiverUnavailable


class Kept:
    """A channel. Raises what it is to raise, once each."""

    where = "memory"

    def problem(self) -> str | None:
        return None

    def __init__(self) -> None:
        self.seen: list[Notification] = []
        self.problems: list[Exception] = []

    @property
    def titles(self) -> list[str]:
        return [each.title for each in self.seen]

    def send(self, notification: Notification) -> None:
        if self.problems:
            raise self.problems.pop(0)
        self.seen.append(notification)


class Place(StoredLives):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.file = root / "cursor.json"
        self.file.write_text('{"number": 0}')
        self.channel = Kept()
        self.now_ms = NOW_MS
        self.runs = 0

    def notifier(self, *reasons: NotificationReason) -> Notifier:
        """One that reads from the beginning; its thread is not started."""
        return Notifier(
            name="desk",
            channel=self.channel,
            reasons=reasons or tuple(NotificationReason),
            store=self.store,
            file=self.file,
            now_ms=lambda: self.now_ms,
        )

    def begin(self, session: str = "agent:main:a", at: int | None = None) -> Life:
        """A run; with a place it is a step of a plan."""
        self.runs += 1
        run_id = RunId(f"r-{self.runs:010}")
        step = None if at is None else PlanStep(plan="p-1", position=at, name="many")
        granted = a_resolved(step=step)
        given = {"run_id": run_id, "requester": SessionKey(session)}
        return Life.begin(RunSpec(task="do"), granted, **given).start()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.store.close()


@pytest.mark.requirement("notifications:reasons")
def test_a_failure_says_why_and_that_it_was_the_last(place: Place) -> None:
    place.write(place.begin().exit(3))

    place.notifier().catch_up()

    (seen,) = place.channel.seen
    assert seen.title.endswith(" failed")
    assert "subagents why r-0000000001" in seen.body
    assert "nothing else is at work" in seen.body


@pytest.mark.requirement("notifications:once")
def test_what_another_node_told_is_no_news_when_its_runs_become_ours(place: Place) -> None:
    notifier, ours = place.notifier(), set[RunId]()
    notifier.is_ours, notifier.look_s = ours.__contains__, 0.01

    def is_at_end() -> bool:
        return notifier._number == place.store.newest_number()

    notifier.start()
    try:
        theirs = place.begin().exit(3)
        place.write(theirs)
        until("passed by", is_at_end)
        own = place.begin().exit(3)
        ours.update((theirs.run.id, own.run.id))
        place.write(own)
        until("told", is_at_end)
    finally:
        notifier.stop()
    assert len(place.channel.seen) == 1


@pytest.mark.requirement("notifications:plan")
@pytest.mark.parametrize("page", [1, 500])
def test_what_failed_of_a_plan_is_said_once_when_all_its_steps_have_ended(
    place: Place, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr("subagents.followers.journal_export.FEED_PAGE", page)
    lives = [place.begin(at=at) for at in range(3)]
    for life in lives[:2]:
        place.write(life.exit(3))
    place.write(lives[2])
    place.notifier(NotificationReason.FAILED).catch_up()
    assert place.channel.titles == []

    place.write(lives[2].result("fine").exit())
    place.notifier(NotificationReason.FAILED).catch_up()

    (seen,) = place.channel.seen
    assert (seen.title, seen.kind) == ("many: 2 of 3 failed", "failure")
    assert "subagents show plan:p-1" in seen.body


@pytest.mark.requirement("notifications:plan")
def test_what_failed_by_itself_is_told_and_not_a_step_that_it_kept_from_starting(
    place: Place,
) -> None:
    failed = Outcome(Status.ERROR, Reason.EXIT_CODE, "no disk")
    kept = Life.begin(
        RunSpec(task="do"),
        a_resolved(step=PlanStep(plan="p-1", position=0)),
        run_id=RunId("r-0000000009"),
        dependencies=(a_dependency(outcome=failed),),
    )
    place.write(place.begin(at=1).exit(3))
    place.write(kept)
    place.notifier().catch_up()

    (seen,) = place.channel.seen
    assert seen.title.endswith("2 of 2 failed")
    assert "exit code 3" in seen.body


@pytest.mark.requirement("notifications:plan")
@pytest.mark.parametrize("page", [1, 500])
def test_of_steps_that_ended_at_the_same_instant_one_tells(
    place: Place, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr("subagents.followers.journal_export.FEED_PAGE", page)
    for life in reversed([place.begin(at=at).exit(3) for at in range(3)]):
        place.write(life)
    place.notifier(NotificationReason.FAILED).catch_up()

    assert place.channel.titles == ["many: 3 of 3 failed"]


@pytest.mark.requirement("notifications:plan")
def test_of_a_step_that_was_retried_the_newest_run_counts(place: Place) -> None:
    place.write(place.begin(at=0).exit(3))
    place.notifier().catch_up()
    place.write(place.begin(at=0).result("fine").exit())
    place.notifier().catch_up()

    assert place.channel.titles == ["many: 1 of 1 failed", "All done"]


@pytest.mark.requirement("notifications:once")
@pytest.mark.parametrize(
    ("end", "told"),
    [
        (lambda life: life.result("bad").exit(3), ("job failed", "failure")),
        (lambda life: life.result("a").result("b").exit(3), ("job failed", "failure")),
        (lambda life: life.result("bad").exit(signal=9), ("job failed", "failure")),
        (lambda life: life.exit(3), ("job failed", "failure")),
        (lambda life: life.result("so far").cancel().exit(signal=15), ("All done", "info")),
        (lambda life: life.result("bad").exit(3).result("late"), ("job failed", "failure")),
        (lambda life: life.result("fine").exit(0), ("All done", "success")),
        (lambda life: life.result("a").result("b").exit(0), ("All done", "success")),
    ],
)
@pytest.mark.parametrize("page", [1, 2, 500])
def test_an_end_is_one_notification_however_many_events_of_its_instant_there_are(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    end: Callable[[Life], Life],
    told: tuple[str, str],
    page: int,
) -> None:
    monkeypatch.setattr("subagents.followers.journal_export.FEED_PAGE", page)
    life = place.begin()
    place.write(end(life))

    place.notifier().catch_up()

    assert [(each.title, each.kind) for each in place.channel.seen] == [told]


@pytest.mark.requirement("notifications:reasons")
def test_all_done_is_said_once_when_the_last_run_of_a_caller_ended(place: Place) -> None:
    for _ in range(3):
        place.write(place.begin().result("fine").exit())
    place.write(place.begin("agent:main:b"))

    place.notifier().catch_up()

    assert place.channel.titles == ["All done"]
    assert "subagents list --session agent:main:a" in place.channel.seen[0].body


@pytest.mark.requirement("notifications:reasons")
def test_nothing_is_done_while_a_run_of_the_caller_lives(place: Place) -> None:
    place.write(place.begin().result("fine").exit())
    place.write(place.begin())

    place.notifier().catch_up()

    assert place.channel.seen == []


@pytest.mark.requirement("notifications:reasons")
def test_an_open_question_needs_somebody(place: Place) -> None:
    life = place.begin()
    life.ask()
    place.write(life)

    place.notifier().catch_up()

    (seen,) = place.channel.seen
    assert seen.title.endswith("needs you")
    assert seen.kind == "warning"
    assert life.run.pending_requests[0].question in seen.body


@pytest.mark.requirement("notifications:reasons")
@pytest.mark.parametrize("page", [1, 500])
def test_a_gate_and_a_program_that_asks_need_somebody_once(
    place: Place, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr("subagents.followers.journal_export.FEED_PAGE", page)
    asks = PermissionAsked(key="p", call_id="c", tool="Bash", what="ls")
    place.write(place.begin().signal(asks))
    waits = a_dependency(1), a_dependency(2)
    gate = Life.begin(
        RunSpec(task="ship", gate="Ship it?"), run_id=RunId("r-g"), dependencies=waits
    )
    for each in waits:
        gate.apply(DependencySettled(at_ms=NOW_MS, run_id=each.run_id, outcome=OK))
    place.write(gate)

    place.notifier(NotificationReason.NEEDS_YOU).catch_up()

    told = [each.body.partition("\n")[0] for each in place.channel.seen]
    assert told == ["May it use Bash? ls", "Ship it?"]


@pytest.mark.requirement("notifications:reasons")
def test_a_channel_hears_only_of_what_it_asked_for(place: Place) -> None:
    place.write(place.begin().exit(3))

    place.notifier(NotificationReason.NEEDS_YOU).catch_up()
    assert place.channel.seen == []


@pytest.mark.requirement("notifications:reasons")
def test_what_a_runs_own_children_do_is_that_runs_business(place: Place) -> None:
    life = Life.begin(RunSpec(task="do"), requester_run=RunId("r-0000000009"), depth=2)
    place.write(life.start().exit(3))

    place.notifier().catch_up()

    assert place.channel.seen == []


@pytest.mark.requirement("notifications:at-least-once")
def test_what_could_not_be_sent_is_sent_by_the_next_one_and_nothing_twice(place: Place) -> None:
    place.write(place.begin().exit(3))
    place.write(place.begin("agent:main:b").exit(4))
    first = place.notifier()
    first.catch_up()
    place.write(place.begin("agent:main:c").exit(5))
    place.channel.problems = [ReceiverUnavailable("down")]
    with pytest.raises(ReceiverUnavailable):
        first.catch_up()
    first.stop()

    later = place.notifier()
    later.start()
    later.stop()

    assert len(place.channel.seen) == 3
    assert "exit" in place.channel.seen[2].body


@pytest.mark.requirement("notifications:at-least-once")
def test_one_that_is_refused_for_good_holds_up_no_later_one(place: Place) -> None:
    place.write(place.begin().exit(3))
    place.write(place.begin("agent:main:b").exit(4))
    place.channel.problems = [ReceiverRefused("too long")]
    notifier = place.notifier()

    notifier.catch_up()

    assert len(place.channel.seen) == 1
    assert notifier.state.refused == 1


@pytest.mark.requirement("notifications:at-least-once")
def test_what_is_a_day_old_is_no_news(place: Place) -> None:
    place.write(place.begin().exit(3))
    place.now_ms = NOW_MS + AGE_MS_MAX + 60_000

    place.notifier().catch_up()

    assert place.channel.seen == []
