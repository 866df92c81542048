"""Steering keeps the promises of a courier."""

from pathlib import Path

import pytest
from tests.couriers.courier_places import SteeredPlace
from tests.couriers.courier_suites import each_with_its_requirement

from subagents.extensions.testing.conformance import Behaviour, CourierPlace


@pytest.mark.parametrize("behaviour", each_with_its_requirement)
def test_steering_keeps_this_promise(behaviour: Behaviour[CourierPlace], tmp_path: Path) -> None:
    behaviour.check(SteeredPlace(tmp_path))
