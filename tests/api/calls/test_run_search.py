"""The words of a list's query say which runs are wanted."""

import pytest

from subagents.api.calls.call import Query
from subagents.api.calls.run_search import SEARCH, STATES, in_states, search_in
from subagents.api.wire.words import state_word
from subagents.domain.run.outcome import Reason, Status
from subagents.domain.run.run import OVER, Phase
from subagents.errors import UsageError
from subagents.ports import RunFilter

UNDER_WAY = tuple(phase for phase in Phase if phase not in OVER)


@pytest.mark.requirement("list:states")
@pytest.mark.parametrize(
    ("phase", "outcome", "wanted"),
    [
        (None, None, RunFilter()),
        ("running,queued", None, RunFilter(phases=(Phase.RUNNING, Phase.QUEUED))),
        (None, "error", RunFilter(outcomes=(Status.ERROR,))),
        (None, "failed", RunFilter(states=("failed",), outcomes=(Status.ERROR,))),
        ("failed", None, RunFilter(states=("failed",), outcomes=(Status.ERROR,))),
        (
            None,
            "failed,lost",
            RunFilter(states=("failed", "lost"), outcomes=(Status.ERROR, Status.LOST)),
        ),
        ("blocked", None, RunFilter(states=("blocked",), phases=UNDER_WAY)),
        (None, "paused, blocked", RunFilter(states=("paused", "blocked"), phases=UNDER_WAY)),
        ("blocked,failed", None, RunFilter(states=("blocked", "failed"))),
        ("ok", None, RunFilter(states=("ok",), outcomes=(Status.OK,))),
        ("completed,ok", None, RunFilter(states=("completed", "ok"))),
        ("running", "ok", RunFilter(phases=(Phase.RUNNING,), outcomes=(Status.OK,))),
    ],
)
def test_each_word_that_a_list_shows_finds_its_runs_under_both_names(
    phase: str | None, outcome: str | None, wanted: RunFilter
) -> None:
    assert in_states(RunFilter(), phase=phase, outcome=outcome) == wanted


@pytest.mark.requirement("list:states")
@pytest.mark.parametrize(
    ("state", "phase", "wanted"),
    [
        ("working", None, RunFilter(states=("is working",), phases=UNDER_WAY)),
        ("needs_you,waiting", None, RunFilter(states=("blocked", "is waiting"), phases=UNDER_WAY)),
        ("ok", None, RunFilter(states=("ok",), outcomes=(Status.OK,))),
        ("cancelled, working", None, RunFilter(states=("cancelled", "is working"))),
        (
            "cancelled",
            "completed",
            RunFilter(
                states=("cancelled",), outcomes=(Status.CANCELLED,), phases=(Phase.COMPLETED,)
            ),
        ),
    ],
)
def test_each_state_that_people_are_shown_finds_its_runs(
    state: str, phase: str | None, wanted: RunFilter
) -> None:
    assert in_states(RunFilter(), state=state, phase=phase) == wanted


@pytest.mark.requirement("list:states")
def test_a_list_shows_no_state_that_is_no_filter() -> None:
    shown = {state_word(status, reason, "", 0) for status in Status for reason in Reason}
    shown |= {state_word(None, None, phase, pending) for phase in Phase for pending in (0, 1)}
    assert shown | {"paused"} <= set(STATES)


@pytest.mark.requirement("list:states")
@pytest.mark.parametrize("name", ["phase", "outcome"])
def test_an_unknown_state_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(UsageError, match=f'{name} must be .*"failed".* not "fialed"'):
        search_in(Query(SEARCH, {name: "ok,fialed"}), now_ms=0)


@pytest.mark.requirement("list:states")
def test_states_are_asked_for_once() -> None:
    with pytest.raises(UsageError, match="state, phase and outcome name the same"):
        in_states(RunFilter(), phase="blocked", outcome="failed")
    with pytest.raises(UsageError, match="state, phase and outcome name the same"):
        in_states(RunFilter(), state="working", phase="blocked")
