"""``doctor`` where the daemon does not answer says where it is."""

import pytest
from tests.cli.setup.test_daemon_elsewhere import ELSEWHERE, Place, place

from subagents.cli.doctor_check import WARN
from subagents.domain.run.values import replace
from subagents.extensions.doctor import doctor

__all__ = ["place"]


@pytest.mark.requirement("cli:down:one-process")
@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_daemon_elsewhere_is_said_to_be_there(name: str, place: Place) -> None:
    changed, where = ELSEWHERE[name]
    place.leave(replace(place.record, **changed))
    check = doctor._daemon(place.paths, None, None, "it did not answer")
    assert check.status == WARN
    assert where in check.detail


@pytest.mark.requirement("cli:down:one-process")
def test_a_process_that_holds_the_home_without_an_answer_is_named(place: Place) -> None:
    place.leave(place.record)
    check = doctor._daemon(place.paths, None, None, "it did not answer")
    assert f"pid {place.innocent.pid} holds this home, but it did not answer" in check.detail
