"""Each store does what every store must do."""

import pytest

from subagents.extensions.testing.conformance import (
    Behaviour,
    StorePlace,
)
from subagents.extensions.testing.store_suite import SUITE

every_requirement = pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(each, id=each.name, marks=pytest.mark.requirement(each.requirement))
        for each in SUITE.behaviours
    ],
)


@every_requirement
def test_a_store_keeps_this_promise(behaviour: Behaviour[StorePlace], place: StorePlace) -> None:
    behaviour.check(place)
