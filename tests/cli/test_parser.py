"""What a command line comes to: each flag and word reaches its parameter, or is refused by name."""

from collections.abc import Mapping
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Final, Literal

import pytest

from subagents.api.calls import run_search
from subagents.cli.command_table import command_of, commands, is_only_group, target_of
from subagents.cli.flags import Argument, Parameter, Together
from subagents.cli.parser import declared, parse
from subagents.cli.runs import environment_flags, spawn_flags
from subagents.cli.runs.selectors import PHASES, PHASES_AT_WORK, STATES, is_several
from subagents.cli.show.search_query import SEARCH_FLAGS, search_query
from subagents.domain.rules.parameter_checks import SELECTING
from subagents.domain.run import parameter, spec
from subagents.domain.run.run import SETTLED, Phase
from subagents.errors import UsageError

PARTS: Final = (Argument("low", ("--low",), kind=int), Argument("high", ("--high",), kind=int))
Bounds = Annotated[Mapping[str, int], Together(dict, lambda: PARTS)]
NO_BOUNDS: Final = dict[str, int]()


def command(
    name: str,
    size: Annotated[int | None, Parameter(help="How large.")] = None,
    /,
    *rest: str,
    label: Annotated[str | None, Parameter(name=("--label", "-l"))] = None,
    tag: tuple[str, ...] = (),
    file: Path | None = None,
    ratio: float = 0.0,
    colour: Literal["red", "green", "blue"] | None = None,
    detach: Annotated[bool, Parameter(name=("--detach", "-d"))] = False,
    all_: bool = False,
    bounds: Bounds = NO_BOUNDS,
) -> int:
    raise NotImplementedError((name, size, rest, label, tag, file, ratio, colour, detach, all_))


READ: list[tuple[list[str], tuple[object, ...], dict[str, object]]] = [
    (["x", "3"], ("x", 3), {}),
    (["x", "-3", "b", "-4.5"], ("x", -3, "b", "-4.5"), {}),
    (["-", "3", "-"], ("-", 3, "-"), {}),
    (["--label", "a", "x"], ("x",), {"label": "a"}),
    (["x", "-l", "a"], ("x",), {"label": "a"}),
    (["x", "--label=a=b"], ("x",), {"label": "a=b"}),
    (["x", "--label="], ("x",), {"label": ""}),
    (["x", "--label", ""], ("x",), {"label": ""}),
    (["x", "--label", "-5"], ("x",), {"label": "-5"}),
    (["x", "--label", "-"], ("x",), {"label": "-"}),
    (["x", "--label=--detach"], ("x",), {"label": "--detach"}),
    (["x", "--label", "@file"], ("x",), {"label": "@file"}),
    (["x", "--label", "none"], ("x",), {"label": "none"}),
    (["x", "-la"], ("x",), {"label": "a"}),
    (["x", "-dl", "a"], ("x",), {"label": "a", "detach": True}),
    (["x", "--tag", "a", "--tag=b"], ("x",), {"tag": ("a", "b")}),
    (["x", "--file", "null"], ("x",), {"file": Path("null")}),
    (["x", "--ratio", "-0.5"], ("x",), {"ratio": -0.5}),
    (["x", "--ratio", "1e-3"], ("x",), {"ratio": 0.001}),
    (["x", "--colour", "green"], ("x",), {"colour": "green"}),
    (["x", "--all", "--detach"], ("x",), {"all_": True, "detach": True}),
    (["x", "--all=true", "--detach=no"], ("x",), {"all_": True, "detach": False}),
    (["x", "--low", "1", "--high=2"], ("x",), {"bounds": {"low": 1, "high": 2}}),
    (["--", "x", "3", "--all", "--", "-z"], ("x", 3, "--all", "--", "-z"), {}),
    (["x", "--all", "--"], ("x",), {"all_": True}),
]


@pytest.mark.requirement("cli:no-option-unread")
@pytest.mark.parametrize(("line", "words", "given"), READ, ids=[" ".join(r[0]) for r in READ])
def test_each_flag_and_word_reaches_its_parameter(
    line: list[str], words: tuple[object, ...], given: Mapping[str, object]
) -> None:
    call = parse(command, line)
    assert (call.args, {"bounds": {}, **given}) == (words, call.keywords)


REFUSED: list[tuple[list[str], str, str]] = [
    ([], "NAME", "NAME is missing"),
    (["x", "many"], "SIZE", "SIZE must be a whole number, not 'many'"),
    (["x", "1.5"], "SIZE", "SIZE must be a whole number, not '1.5'"),
    (["x", "none"], "SIZE", "SIZE must be a whole number, not 'none'"),
    (["x", "--ratio", "half"], "--ratio", "--ratio must be a number, not 'half'"),
    (["x", "--lable", "a"], "--lable", "there is no option --lable; did you mean '--label'?"),
    (["x", "--no-all"], "--no-all", "there is no option --no-all; did you mean '--all'?"),
    (["x", "--lab", "a"], "--lab", "there is no option --lab; did you mean '--label'?"),
    (["x", "--worktree"], "--worktree", "there is no option --worktree"),
    (["x", "-z"], "-z", "there is no option -z"),
    (["x", "-dz"], "-z", "there is no option -z"),
    (["x", "-d5"], "-d5", "there is no option -d5; did you mean '-d'?"),
    (["x", "--label"], "--label", "--label needs a value"),
    (["x", "--label", "--all"], "--label", "--label needs a value"),
    (["x", "--label", "--", "a"], "--label", "--label needs a value"),
    (["x", "--label", "a", "-l", "b"], "-l", "-l is given twice"),
    (["x", "--all", "--all"], "--all", "--all is given twice"),
    (["x", "--all=maybe"], "--all", "--all takes no value"),
    (
        ["x", "--colour", "gren"],
        "--colour",
        "--colour must be red, green or blue, not 'gren'; did you mean 'green'?",
    ),
]


@pytest.mark.requirement("cli:bad-input", "cli:no-option-unread")
@pytest.mark.parametrize(("line", "field", "message"), REFUSED, ids=[r[2] for r in REFUSED])
def test_what_nothing_takes_is_refused_by_its_name(
    line: list[str], field: str, message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        parse(command, line)
    assert (refused.value.message, refused.value.details) == (message, {"field": field})


def _two(one: str, two: str = "", /, *, must: str) -> str:
    return f"{one}{two}{must}"


@pytest.mark.requirement("cli:bad-input", "cli:no-option-unread")
def test_a_word_too_many_and_a_flag_that_must_be_there_are_named() -> None:
    with pytest.raises(UsageError, match="unexpected argument: 'c'"):
        parse(_two, ["a", "b", "c", "--must", "x"])
    with pytest.raises(UsageError, match="--must is missing"):
        parse(_two, ["a"])
    assert parse(_two, ["a", "--must", "x"])() == "ax"


@pytest.mark.requirement("cli:no-option-unread")
def test_a_command_may_be_decorated_and_need_not_be_annotated() -> None:
    def plain(limit: int = 3, /, *, most: str = "m") -> tuple[int, str]:
        return limit, most

    @wraps(plain)
    def around(*words: object, **flags: object) -> object:
        return words, flags

    assert parse(around, ["4", "--most", "b"])() == ((4,), {"most": "b"})
    assert parse(lambda *, most="m": most, ["--most", "b"])() == "b"


@pytest.mark.requirement("cli:no-option-unread")
def test_annotations_that_are_texts_are_read_as_well() -> None:
    def quoted(*, limit: "Annotated[int, Parameter(name='--most')]" = 1) -> int:
        return limit

    assert parse(quoted, ["--most", "3"])() == 3


NAMES: Final = [each.name for each in commands() if not is_only_group(each.name)]


@pytest.mark.requirement("cli:no-option-unread", "cli:contract-flags")
@pytest.mark.parametrize("name", NAMES)
def test_every_flag_of_every_command_sets_something(name: str) -> None:
    row = command_of(name)
    assert row is not None
    function = target_of(row)
    arguments = declared(function)
    required = [each for each in arguments if not each.names and each.is_required]
    words = [each.choices[0] if each.choices else "1" for each in required]
    without = parse(function, words).keywords
    for each in arguments:
        for flag in filter(None, (*each.names, each.opposite)):
            is_time = each.attribute in {"since", "until"}
            value = "1" if each.kind in {int, float} else "5m" if is_time else "ok"
            takes_none = each.kind is bool
            given = [*words, flag, *([] if takes_none else [*each.choices, value][:1])]
            assert parse(function, given).keywords != without, flag


@pytest.mark.requirement("cli:start-up")
def test_what_is_spelled_out_to_start_quickly_is_what_the_domain_says() -> None:
    assert tuple(Phase) == PHASES
    assert STATES == run_search.STATES
    assert all(is_several(each) is (each != "agent:") for each in SELECTING)
    assert set(PHASES_AT_WORK) == set(Phase) - SETTLED
    assert spec.TASK_BYTES_MAX == spawn_flags.TASK_BYTES_MAX
    assert parameter.NAME_CHARS_MAX == spawn_flags.NAME_CHARS_MAX
    assert parameter.PLACEMENT == environment_flags.PLACEMENT
    assert {each.attribute for each in SEARCH_FLAGS} == {*search_query.__annotations__} - {"return"}


@pytest.mark.requirement("cli:no-option-unread")
def test_what_a_flag_alone_turns_on_is_off_without_it() -> None:
    on = [
        f"{each.name} {parameter.name}"
        for each in commands()
        for parameter in signature(target_of(each)).parameters.values()
        if parameter.default is True
    ]
    assert on == []
