"""Each contract flag belongs to the ``--verify`` before it, in any number of them."""

from typing import Any

import pytest

from subagents.cli.command_table import commands, target_of
from subagents.cli.parser import parse
from subagents.cli.runs.spawn_flags import CHECKS, Check, Flags, checks
from subagents.cli.runs.submission import run
from subagents.errors import UsageError
from subagents.extension import Command

READ: list[tuple[str, list[Check]]] = [
    ("task", []),
    ("t --verify a", [{"path": "a"}]),
    ("--verify=a=b t", [{"path": "a=b"}]),
    (
        "--verify a --min-items 3 --verify b --min-bytes 10",
        [{"path": "a", "json": True, "minItems": 3}, {"path": "b", "minBytes": 10}],
    ),
    (
        "--verify a --label x --verify-json --required-keys id,name",
        [{"path": "a", "json": True, "requiredKeys": ["id", "name"]}],
    ),
    ("--verify a --min-items=0", [{"path": "a", "json": True, "minItems": 0}]),
    ("--verify a --schema s.json", [{"path": "a", "schema": "s.json"}]),
    ("--verify j.xml --min-tests 2", [{"path": "j.xml", "minTests": 2, "junit": True}]),
    ("--verify j.xml --verify-junit", [{"path": "j.xml", "junit": True}]),
    (
        "--verify out/*.csv --min-files 2 --max-files 3 --verify-regex ^a",
        [{"path": "out/*.csv", "minFiles": 2, "maxFiles": 3, "regex": "^a"}],
    ),
    ("--verify a --newer-than b", [{"path": "a", "newerThan": "b"}]),
    ("--verify a --verify-existing", [{"path": "a", "fresh": False}]),
    (
        "--verify-existing --verify a --verify b --min-bytes 1",
        [{"path": "a", "fresh": False}, {"path": "b", "fresh": False, "minBytes": 1}],
    ),
    ("-- ls --verify x", []),
    (
        "--verify a --sha256 00 -- --min-items",
        [{"path": "a", "sha256": "00"}],
    ),
]
REFUSED = [
    ("t --min-items 3", "--min-items describes the file of a --verify before it"),
    ("t --verify-json", "--verify-json describes the file of a --verify before it"),
    ("--verify", "--verify needs a value"),
    ("--verify --", "--verify needs a value"),
    ("--verify --verify-json", "--verify needs a value"),
    ("--verify a --schema", "--schema needs a value"),
    ("t --verify-existing", "--verify-existing is about the files of --verify, and there is none"),
    ("--verify a --schema=", "--schema must not be empty"),
    ("--verify a --min-items x", "--min-items must be a whole number, 0 or more, not 'x'"),
    ("--verify a --min-items -1", "--min-items must be a whole number, 0 or more, not '-1'"),
    ("--verify a --min-bytes ٣", "--min-bytes must be a whole number, 0 or more, not '٣'"),
    ("--verify a --min-bytes 1 --min-bytes 2", "--min-bytes stands twice after --verify a"),
    ("--verify a --required-keys a,,b", "--required-keys must be keys separated by commas"),
    ("--verify a --verify-json=1", "--verify-json takes no value"),
]


def given(line: str) -> Any:
    """What the parser makes of the flags of ``run``."""
    return parse(run, line.split(" ")).keywords["flags"]


@pytest.mark.requirement("cli:contract-flags")
@pytest.mark.parametrize(("line", "artifacts"), READ, ids=[line for line, _ in READ])
def test_a_modifier_describes_the_last_verify_before_it(line: str, artifacts: list[Check]) -> None:
    assert checks(given(line).get(CHECKS, ())) == artifacts


@pytest.mark.requirement("cli:contract-flags")
@pytest.mark.parametrize(("line", "message"), REFUSED, ids=[line for line, _ in REFUSED])
def test_a_contract_flag_that_makes_no_sense_is_refused_by_name(line: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        checks(given(line).get(CHECKS, ()))
    assert caught.value.message.startswith(message)
    assert caught.value.details["field"] == message.split(" ", maxsplit=1)[0]


TASKS = [
    ("task", ("task",)),
    ("-", ("-",)),
    ("- --label x", ("-",)),
    ("--label x -", ("-",)),
    ("--tag - t", ("t",)),
    ("-- ls -l -", ("ls", "-l", "-")),
    ("--", ()),
    ("-- ls --verify x", ("ls", "--verify", "x")),
]


@pytest.mark.requirement("cli:task")
@pytest.mark.parametrize(("line", "words"), TASKS, ids=[line for line, _ in TASKS])
def test_a_dash_is_a_word_and_what_follows_two_dashes_stays_as_it_is(
    line: str, words: tuple[str, ...]
) -> None:
    assert parse(run, line.split(" ")).args == words


def takes_spawn_flags(command: Command) -> bool:
    annotations = getattr(target_of(command), "__annotations__", {}).values()
    return any(each is Flags for each in annotations)


@pytest.mark.requirement("cli:contract-flags", "cli:no-option-unread")
def test_every_command_that_takes_the_flags_of_a_spawn_says_so() -> None:
    marked = {each.name for each in commands() if each.spawns}
    assert marked == {each.name for each in commands() if takes_spawn_flags(each)}
    assert {"run", "spawn"} <= marked
