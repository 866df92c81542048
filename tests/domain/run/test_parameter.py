"""What a struct's annotations declare is read as it was declared."""

from enum import StrEnum
from typing import Annotated

import msgspec
import pytest

from subagents.domain.run.parameter import LIMITS, TASK, about, leaves, name, number, parameters
from subagents.domain.run.values import Value


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(Value, frozen=True):
    path: Annotated[str, about("Where", form="path")]
    most: Annotated[float | None, number("How much", 0.5, 9, unit="USD")] = None


class Outer(Value, frozen=True):
    short_name: Annotated[str | None, name("Its name", TASK, chars_max=7)] = None
    colour: Annotated[Colour, about("Its colour", TASK)] = Colour.RED
    inner: Annotated[Inner | None, about("One", LIMITS)] = None
    several: Annotated[tuple[Inner, ...], about("Many", LIMITS, maxItems=3)] = ()


@pytest.mark.requirement("spawn:declared-once")
def test_each_parameter_is_read_with_all_that_is_declared_of_it() -> None:
    short, colour, inner, several = parameters(Outer)

    assert (short.name, short.attribute, short.description) == (
        "shortName",
        "short_name",
        "Its name",
    )
    assert (short.section, short.chars_max, short.default) == (TASK, 7, None)
    assert (colour.choices, colour.default) == (("red", "blue"), Colour.RED)
    assert (several.is_list, several.items_max, inner.is_list) == (True, 3, False)


@pytest.mark.requirement("spawn:declared-once")
def test_parameters_inside_others_have_their_path_and_their_section() -> None:
    found = {each.name: each for each in leaves(parameters(Outer))}

    assert [*found] == [
        *("shortName", "colour", "inner.path", "inner.most"),
        *("several[].path", "several[].most"),
    ]
    assert {found["inner.most"].section, found["several[].path"].section} == {LIMITS}
    assert (found["inner.most"].low, found["inner.most"].high) == (0.5, 9)
    assert (found["inner.most"].unit, found["inner.path"].form) == ("USD", "path")
    assert (found["inner.path"].is_required, found["inner.most"].is_required) == (True, False)


@pytest.mark.requirement("spawn:declared-once")
def test_what_another_parameter_lists_is_not_listed_twice() -> None:
    class Twice(Value, frozen=True):
        inner: Annotated[Inner | None, about("One", LIMITS)] = None
        other: Annotated[Inner | None, about("Another", LIMITS, like="inner")] = None

    *_, other = leaves(parameters(Twice))

    assert (other.name, other.like, other.inner) == ("other", "inner", ())


@pytest.mark.requirement("spawn:declared-once")
def test_what_was_stored_within_other_bounds_can_still_be_read() -> None:
    stored = b'{"shortName": "longer than seven", "inner": {"path": "", "most": 10}}'

    read = msgspec.json.decode(stored, type=Outer)

    assert read.short_name == "longer than seven"
    assert read.inner is not None
    assert read.inner.most == 10
