"""The keywords of the Python API are the spawn parameters."""

from typing import get_type_hints

import pytest
from scripts import spawn_parameters as script

from subagents.client import spawn_keywords as keywords
from subagents.domain.run.parameter import parameters
from subagents.domain.run.spec import RunSpec
from subagents.text import camel

DECLARED = parameters(RunSpec)


@pytest.mark.requirement("spawn:declared-once")
def test_the_python_keywords_are_the_parameters() -> None:
    found = {camel(each) for each in get_type_hints(keywords.SpawnParameters)}

    assert found | {*script.BEYOND_KEYWORDS} == {each.name for each in DECLARED}
