"""A run that continues a session takes over what it does not say, and never gets wider."""

import pytest
from tests.builders import RUN, Life, a_contract, a_resolved
from tests.domain.resumable_lives import ABLE, able

from subagents.domain.rules.continuation import check_resumable, inherited
from subagents.domain.run.outcome import VerificationState
from subagents.domain.run.run import VerificationRecord
from subagents.domain.run.spec import Budget, Cleanup, Mode, RunSpec
from subagents.domain.run.values import replace
from subagents.errors import Conflict


@pytest.mark.requirement("sessions:inherited")
def test_what_a_continuation_does_not_say_is_as_before() -> None:
    spec = RunSpec(
        task="first",
        thread=True,
        tags=("t",),
        run_timeout_seconds=9,
        budget=Budget(max_runs=2),
        completion_report=True,
        priority=5,
        depends_on=("r-9",),
    )
    resolved = a_resolved(abilities=ABLE, label="job", lane="narrow", mode=Mode.SESSION, model="m")
    run = Life.begin(spec, resolved).run

    found = inherited(RunSpec(task="next", tags=("u",), run_timeout_seconds=0), run)

    assert found == RunSpec(
        task="next",
        continues=RUN,
        label="job",
        agent_id="worker",
        cwd="/tmp",
        run_timeout_seconds=0,
        mode=Mode.SESSION,
        thread=True,
        lane=None,
        tags=("u",),
        budget=Budget(max_runs=2),
        completion_report=True,
    )
    knows_models = replace(resolved, abilities=replace(ABLE, model=True))
    with_model = inherited(RunSpec(task="next"), Life.begin(spec, knows_models).run)
    assert (with_model.model, with_model.run_timeout_seconds) == ("m", 9)


@pytest.mark.requirement("sessions:inherited")
@pytest.mark.parametrize(
    ("state", "holds"),
    [
        (VerificationState.PASSED, False),
        (VerificationState.FAILED, True),
        (VerificationState.PENDING, True),
    ],
)
def test_a_contract_holds_until_it_was_met(state: VerificationState, *, holds: bool) -> None:
    contract = a_contract()
    spec = RunSpec(task="x", verification=contract, retry_until_verified=4, retry_afresh=True)
    life = Life.begin(spec, a_resolved(abilities=ABLE))
    run = replace(life.run, verification=VerificationRecord(state=state))

    found = inherited(RunSpec(task="y"), run)
    assert found.verification == (contract if holds else None)
    assert (found.retry_until_verified, found.retry_afresh) == ((4, True) if holds else (0, False))
    given = inherited(RunSpec(task="y", retry_until_verified=1), run)
    assert (given.retry_until_verified, given.retry_afresh) == (1, False)


@pytest.mark.requirement("sessions:continue:refused")
def test_a_session_that_is_not_there_is_not_gone_on_with() -> None:
    named = able().run
    cases = (
        (Life.begin().run, 'runtime "scripted" cannot continue a session'),
        (named, "its worker's program never named one"),
        (replace(named, spec=RunSpec(task="x", cleanup=Cleanup.DELETE)), "cleanup: delete"),
    )
    for run, text in cases:
        with pytest.raises(Conflict, match=text):
            check_resumable(run)
    session = replace(named.attempt.session, native="s")
    known = replace(named.attempt, session=session)
    assert check_resumable(replace(named, attempts=(known,))) == "s"
