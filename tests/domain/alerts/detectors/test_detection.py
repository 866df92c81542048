"""What a worker says becomes alerts: each once, under keys that do not depend on how it came."""

import pytest
from tests.domain.alerts.detectors.detector_inputs import (
    MINUTE,
    RULES,
    START,
    after,
    committed,
    context,
    see,
    task,
    text,
    used,
)

from subagents.domain.alerts import detectors
from subagents.domain.run.alert import AlertRules

# -- silence -----------------------------------------------------------------------------------


@pytest.mark.requirement("detectors:stuck")
def test_silence_is_told_once_with_the_last_activity_and_again_after_something_was_said() -> None:
    watch, _ = see(used("Edit", path="src/bridge.py"))

    assert detectors.next_due_ms(watch, RULES) == 5 * MINUTE
    assert after(watch, 5 * MINUTE - 1) == (watch, [])
    watch, (alert,) = after(watch, 5 * MINUTE)
    assert alert.text == "⚠️ No progress for 5 minutes (last: editing bridge.py)"
    assert alert.fields == {"silentMs": 300_000, "lastActivity": "editing src/bridge.py"}
    assert detectors.next_due_ms(watch, RULES) is None
    assert after(watch, 90 * MINUTE) == (watch, [])
    watch, _ = see(text(), watch=watch, at_ms=91 * MINUTE)
    assert len(after(watch, 96 * MINUTE)[1]) == 1


@pytest.mark.requirement("detectors:stuck")
def test_a_worker_that_never_says_anything_is_told_too() -> None:
    (alert,) = after(START, 5 * MINUTE)[1]

    assert alert.text == "⚠️ No progress for 5 minutes"
    assert alert.fields["lastActivity"] is None


@pytest.mark.requirement("detectors:stuck")
def test_a_tool_that_runs_may_be_silent_for_longer() -> None:
    began = used(command="npm test", is_end=False, call_id="c1")
    watch, _ = see(began)

    assert detectors.next_due_ms(watch, RULES) == 20 * MINUTE
    assert [each.text for each in after(watch, 20 * MINUTE)[1]] == [
        "⚠️ No progress for 20 minutes (last: running npm test)"
    ]
    watch, _ = see(used(call_id="c1"), watch=watch)
    assert detectors.next_due_ms(watch, RULES) == 5 * MINUTE


@pytest.mark.requirement("detectors:stuck")
def test_a_new_attempt_begins_with_no_open_tool_and_new_silence() -> None:
    watch, _ = see(used(command="npm test", is_end=False, call_id="c1"))
    watch = detectors.begin(watch, attempt=2, at_ms=MINUTE)

    assert detectors.next_due_ms(watch, RULES) == 6 * MINUTE
    assert after(watch, 6 * MINUTE)[1][0].key == "stuck:2.0"


@pytest.mark.requirement("detectors:stuck")
@pytest.mark.parametrize(
    ("silent_ms", "words"),
    [(2_000, "2 seconds"), (90_000, "90 seconds"), (60_000, "1 minute"), (7_200_000, "2 hours")],
)
def test_silence_is_measured_in_words_of_its_size(silent_ms: int, words: str) -> None:
    (alert,) = after(START, silent_ms, AlertRules(stuck_ms=silent_ms))[1]

    assert alert.text == f"⚠️ No progress for {words}"


# -- sub-agents --------------------------------------------------------------------------------


@pytest.mark.requirement("detectors:spawns")
def test_sub_agents_started_side_by_side_are_one_line() -> None:
    calls = (task("a", team="refactor-squad"), context(10), task("b"), task("c"))
    watch, alerts = see(*calls, text("waiting"))

    assert [each.text for each in alerts] == ["🔄 Spawned 3 sub-agents (team: refactor-squad)"]
    assert alerts[0].fields == {"count": 3, "teamName": "refactor-squad"}
    assert alerts[0].key == "subagent_spawn:1.1"
    ends = [task(each, is_end=True) for each in "abc"]
    assert see(*ends, text(), watch=watch)[1] == []


@pytest.mark.requirement("detectors:spawns")
def test_sub_agents_that_nothing_follows_are_told_after_two_seconds() -> None:
    watch, alerts = see(task("a", is_end=True, agents=2), at_ms=1_000)

    assert alerts == []
    assert detectors.next_due_ms(watch, RULES) == 3_000
    watch, told = after(watch, 3_000)
    assert [each.text for each in told] == ["🔄 Spawned 2 sub-agents"]
    assert told[0].fields == {"count": 2, "teamName": None}
    assert see(task("b"), text(), watch=watch, at_ms=3_000)[1][0].text == "🔄 Spawned 1 sub-agent"


# -- what is gathered, and what is open --------------------------------------------------------


@pytest.mark.requirement("detectors:commits")
def test_what_is_gathered_is_told_when_the_attempt_ends_or_the_next_begins() -> None:
    watch, _ = see(committed("last words"), task("a"))
    _, at_the_end = detectors.ended(watch)
    _, later = after(detectors.begin(watch, attempt=2, at_ms=5_000), 40_000)

    assert [each.text for each in at_the_end] == [
        "🔄 Spawned 1 sub-agent",
        '📝 Committed: "last words"',
    ]
    assert [each.key for each in later] == [each.key for each in at_the_end]


@pytest.mark.requirement("detectors:builds")
def test_the_end_of_a_tool_is_read_with_the_command_it_began_with() -> None:
    began = used(command="make", is_end=False, call_id="c1")
    ended = used(call_id="c1", exit_code=2, is_error=True, output="make: *** [x] Error 1")
    watch, alerts = see(began, ended)

    assert [each.text for each in alerts] == ["🔨 Build failed: make: *** [x] Error 1"]
    assert watch.open == ()
    assert watch.tools_used == 1
