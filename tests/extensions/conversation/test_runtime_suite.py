"""A conversation does what a runtime must do."""

from pathlib import Path

import pytest
from tests.extensions.conversation.echo_place import EchoPlace
from tests.runtimes.test_runtime_suite import each_with_its_requirement

from subagents.extensions.conversation import conversation
from subagents.extensions.testing.conformance import Behaviour
from subagents.extensions.testing.runtime_suite import RuntimePlace


@pytest.mark.parametrize("behaviour", each_with_its_requirement)
def test_a_conversation_keeps_this_promise(
    behaviour: Behaviour[RuntimePlace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An interrupted program is given less time than in earnest.
    monkeypatch.setattr(conversation, "EXIT_BOUND_S", 1.0)
    place = EchoPlace(tmp_path)
    with place.harness:
        behaviour.check(place)
