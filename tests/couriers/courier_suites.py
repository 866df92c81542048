"""The behaviours of the courier suite, each with its requirement."""

import pytest

from subagents.extensions.testing.courier_suite import SUITE

each_with_its_requirement = [
    pytest.param(each, id=each.name, marks=pytest.mark.requirement(each.requirement))
    for each in SUITE.behaviours
]
