"""What others import by a name that moved is the same module still."""

import importlib
import sys

import pytest

from subagents.former_names import FORMER


@pytest.mark.requirement("house:modules")
@pytest.mark.parametrize(
    "name",
    [
        *("testing", "testing.conformance", "testing.fakes"),
        *("runtimes.conversation", "runtimes.conversation.dialect"),
    ],
)
def test_a_former_name_is_the_module_itself_and_says_its_new_one(name: str) -> None:
    former = f"subagents.{name}"
    present = next(
        new + former.removeprefix(old) for old, new in FORMER.items() if former.startswith(old)
    )
    for each in [each for each in sys.modules if each.startswith(former)]:
        del sys.modules[each]

    with pytest.warns(DeprecationWarning, match=f"is now {present.partition('.testing')[0]}"):
        found = importlib.import_module(former)

    assert found is importlib.import_module(present)
    assert found.__spec__ is not None
    assert found.__spec__.name == present


@pytest.mark.requirement("house:modules")
def test_a_name_that_never_was_is_no_module() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"subagents\.testings"):
        importlib.import_module("subagents.testings")
