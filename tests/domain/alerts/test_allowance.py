"""How much of a run's news is pushed, and what becomes of the rest."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import Life, a_resolved

from subagents.domain.alerts import allowance
from subagents.domain.run.alert import Alert, AlertKind, AlertRules
from subagents.domain.run.events import AttemptStarted, SlotGranted
from subagents.domain.run.run import Message, MessageKind, Run
from subagents.domain.run.spec import RunSpec
from subagents.domain.run.values import SessionKey

HOUR = allowance.HOUR_MS


def running(**rules: Any) -> Run:
    life = Life.begin(RunSpec(task="do it", label="worker"), a_resolved(alerts=AlertRules(**rules)))
    life.apply(SlotGranted(at_ms=life.at_ms, session_key=SessionKey("agent:w:subagent:u1")))
    life.apply(AttemptStarted(at_ms=life.at_ms, attempt=1))
    return life.run


def an_alert(number: int = 1, kind: AlertKind = AlertKind.GIT_COMMIT, text: str = "") -> Alert:
    return Alert(kind=kind, text=text or f"📝 Committed: number {number}", key=f"k{number}")


def pushed(run: Run, count: int, *, at_ms: int = 0) -> tuple[Run, list[Message]]:
    found: list[Message] = []
    for number in range(count):
        run, messages = allowance.admit(run, an_alert(number), at_ms=at_ms)
        found += messages
    return run, found


@pytest.mark.requirement("alerts:form")
def test_an_alert_is_one_line_behind_the_workers_name() -> None:
    run, (message,) = allowance.admit(running(), an_alert(text="⚠️ No\nprogress"), at_ms=5)

    assert message.text == f"[subagent:{run.resolved.label}] ⚠️ No progress"
    assert message.kind is MessageKind.ALERT
    assert message.session_key == run.requester


@pytest.mark.requirement("alerts:numbered")
def test_alerts_of_a_run_are_numbered() -> None:
    run, messages = pushed(running(), 3)

    assert [each.id for each in messages] == [f"{run.id}:a{n}:git_commit" for n in (1, 2, 3)]


@pytest.mark.requirement("alerts:allowance")
def test_five_hundred_alerts_in_an_hour_push_no_more_than_the_allowance() -> None:
    run, messages = pushed(running(tokens_per_hour=600), 500)

    assert 0 < sum(allowance.tokens_of(each.text) for each in messages) <= 600
    assert sum(run.alerts.held.values()) == 500 - len(messages)


@pytest.mark.requirement("alerts:allowance")
@given(gaps=st.lists(st.integers(0, HOUR // 4), max_size=80), limit=st.integers(0, 900))
def test_no_hour_pushes_more_than_the_allowance(gaps: list[int], limit: int) -> None:
    run, at_ms, messages = running(tokens_per_hour=limit), 0, list[Message]()
    windows: list[tuple[int | None, int]] = []
    for number, gap in enumerate(gaps):
        at_ms += gap
        run, found = allowance.admit(run, an_alert(number), at_ms=at_ms)
        messages += found
        windows.append((run.alerts.since_ms, run.alerts.tokens))

    assert all(tokens <= max(limit, 0) for _, tokens in windows)
    assert len({each.id for each in messages}) == len(messages)


@pytest.mark.requirement("alerts:digest")
def test_what_was_held_back_becomes_one_digest_line_when_the_hour_is_over() -> None:
    run, _ = pushed(running(tokens_per_hour=100), 10)
    held = sum(run.alerts.held.values())
    assert allowance.digest_due_ms(run) == HOUR

    early, none = allowance.roll(run, at_ms=HOUR - 1)
    after, (digest,) = allowance.roll(run, at_ms=HOUR)

    assert (early, none) == (run, ())
    assert digest.text == f"[subagent:job] 🗂 {held} more alerts held back: {held} commits"
    assert after.alerts.held == {}
    assert allowance.digest_due_ms(after) is None


@pytest.mark.requirement("alerts:digest")
def test_nothing_overtakes_what_is_held_back() -> None:
    run, _ = pushed(running(tokens_per_hour=100), 10)

    run, messages = allowance.admit(run, an_alert(99, text="📝 x"), at_ms=1)

    assert messages == ()


@pytest.mark.requirement("alerts:urgent")
def test_a_worker_that_commits_all_the_time_can_still_be_reported_stuck() -> None:
    run, _ = pushed(running(), 500)

    _, (message,) = allowance.admit(run, an_alert(999, AlertKind.STUCK, "⚠️ No progress"), at_ms=1)

    assert message.text == "[subagent:job] ⚠️ No progress"


@pytest.mark.requirement("alerts:off")
def test_a_kind_that_is_off_is_never_pushed_and_never_counted() -> None:
    run = running(off=(AlertKind.GIT_COMMIT,))

    after, messages = allowance.admit(run, an_alert(), at_ms=1)

    assert (after, messages) == (run, ())


@pytest.mark.requirement("alerts:wake")
def test_only_what_needs_a_look_is_worth_waking_somebody_for() -> None:
    urgent = []
    for kind in AlertKind:
        _, (message,) = allowance.admit(running(), an_alert(kind=kind), at_ms=1)
        urgent += [kind] if allowance.is_urgent(message.id) else []

    assert urgent == ["api_error", "stuck", "budget_alert", "failure_loop", "same_path"]


@pytest.mark.requirement("alerts:digest")
def test_every_kind_has_a_name_in_the_digest() -> None:
    assert set(allowance._NAMES) == set(AlertKind)
