"""Each contract flag belongs to the ``--verify`` before it, in any number of them."""

import inspect
from collections.abc import Sequence
from typing import get_args

import msgspec
import pytest
from cyclopts import CycloptsError

from subagents.cli.command_table import commands, target_of
from subagents.cli.flag_table import CHECKS
from subagents.cli.main import spawn_arguments
from subagents.cli.parser import application
from subagents.cli.runs.contract_flags import Check, extract
from subagents.cli.runs.spawn_flags import SpawnFlags
from subagents.errors import UsageError
from subagents.extension import Command

READ: list[tuple[str, list[str], list[Check]]] = [
    ("run task", ["run", "task"], []),
    ("run t --verify a", ["run", "t"], [{"path": "a"}]),
    ("run --verify=a=b t", ["run", "t"], [{"path": "a=b"}]),
    (
        "--verify a --min-items 3 --verify b --min-bytes 10",
        [],
        [{"path": "a", "json": True, "minItems": 3}, {"path": "b", "minBytes": 10}],
    ),
    (
        "--verify a --label x --verify-json --required-keys id,name",
        ["--label", "x"],
        [{"path": "a", "json": True, "requiredKeys": ["id", "name"]}],
    ),
    ("--verify a --min-items=0", [], [{"path": "a", "json": True, "minItems": 0}]),
    ("--verify a --schema s.json", [], [{"path": "a", "schema": "s.json"}]),
    ("--verify j.xml --min-tests 2", [], [{"path": "j.xml", "minTests": 2, "junit": True}]),
    ("--verify j.xml --verify-junit", [], [{"path": "j.xml", "junit": True}]),
    (
        "--verify out/*.csv --min-files 2 --max-files 3 --verify-regex ^a",
        [],
        [{"path": "out/*.csv", "minFiles": 2, "maxFiles": 3, "regex": "^a"}],
    ),
    ("--verify a --newer-than b", [], [{"path": "a", "newerThan": "b"}]),
    ("--verify a --verify-existing", [], [{"path": "a", "fresh": False}]),
    (
        "--verify-existing --verify a --verify b --min-bytes 1",
        [],
        [{"path": "a", "fresh": False}, {"path": "b", "fresh": False, "minBytes": 1}],
    ),
    ("run -- ls --verify x", ["run", "--", "ls", "--verify", "x"], []),
    (
        "--verify a --sha256 00 -- --min-items",
        ["--", "--min-items"],
        [{"path": "a", "sha256": "00"}],
    ),
]
REFUSED = [
    ("run t --min-items 3", "--min-items describes the file of a --verify before it"),
    ("run t --verify-json", "--verify-json describes the file of a --verify before it"),
    ("--verify", "--verify needs a value"),
    ("--verify --", "--verify needs a value"),
    ("--verify a --schema", "--schema needs a value"),
    ("--verify a --schema=", "--schema must not be empty"),
    ("--verify a --min-items x", "--min-items must be a whole number, 0 or more, not 'x'"),
    ("--verify a --min-items -1", "--min-items must be a whole number, 0 or more, not '-1'"),
    ("--verify a --min-bytes ٣", "--min-bytes must be a whole number, 0 or more, not '٣'"),
    ("--verify a --min-bytes 1 --min-bytes 2", "--min-bytes stands twice after --verify a"),
    ("--verify a --required-keys a,,b", "--required-keys must be keys separated by commas"),
    ("--verify a --verify-json=1", "--verify-json takes no value"),
]


@pytest.mark.requirement("cli:contract-flags")
@pytest.mark.parametrize(("line", "rest", "artifacts"), READ, ids=[line for line, *_ in READ])
def test_a_modifier_describes_the_last_verify_before_it(
    line: str, rest: Sequence[str], artifacts: Sequence[Check]
) -> None:
    assert extract(line.split(" ")) == (rest, artifacts)


@pytest.mark.requirement("cli:contract-flags")
@pytest.mark.parametrize(("line", "message"), REFUSED, ids=[line for line, _ in REFUSED])
def test_a_contract_flag_that_makes_no_sense_is_refused_by_name(line: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        extract(line.split(" "))
    assert caught.value.message.startswith(message)
    assert caught.value.details["field"] == message.split(" ", maxsplit=1)[0]


ARGUMENTS = [
    (["run", "task"], ["run", "task"]),
    (["run", "-"], ["run", "--", "-"]),
    (["run", "-", "--label", "x"], ["run", "--label", "x", "--", "-"]),
    (["run", "--label", "x", "-"], ["run", "--label", "x", "--", "-"]),
    (["run", "--tag", "-", "t"], ["run", "--tag", "-", "t"]),
    (["spawn", "--", "ls", "-l", "-"], ["spawn", "--", "ls", "-l", "-"]),
    (["spawn", "--"], ["spawn", "--"]),
    (["map", "wc {}", "-", "--each", "-"], ["map", "wc {}", "-", "--each", "-"]),
    (["schedule", "add", "n", "@daily", "-"], ["schedule", "add", "n", "@daily", "--", "-"]),
    (
        ["schedule", "add", "n", "@daily", "--", "ls", "--verify", "x"],
        ["schedule", "add", "n", "@daily", "--", "ls", "--verify", "x"],
    ),
]


@pytest.mark.requirement("cli:task")
@pytest.mark.parametrize(("given", "expected"), ARGUMENTS, ids=[" ".join(g) for g, _ in ARGUMENTS])
def test_a_dash_is_stdin_and_what_follows_two_dashes_stays_as_it_is(
    given: list[str], expected: list[str]
) -> None:
    assert spawn_arguments(given) == expected


@pytest.mark.requirement("cli:contract-flags")
def test_the_contract_passes_the_parser_as_one_option() -> None:
    found = spawn_arguments(["run", "t", "--verify", "a", "--min-items", "2", "--", "x"])
    assert found[0] == "run"
    assert found[1] == "--contract-flags"
    assert found[3:] == ["t", "--", "x"]
    decoded = msgspec.json.decode(found[2], type=list[Check])
    assert decoded == [{"path": "a", "json": True, "minItems": 2}]


@pytest.mark.requirement("cli:contract-flags")
def test_the_contract_of_a_command_of_two_words_stands_behind_both() -> None:
    found = spawn_arguments(["schedule", "add", "n", "@daily", "t", "--verify", "a"])
    assert (found[:3], found[4:]) == (["schedule", "add", "--contract-flags"], ["n", "@daily", "t"])


def takes_spawn_flags(command: Command) -> bool:
    if command.name == "mcp":  # reads its arguments itself
        return False
    annotations = inspect.get_annotations(target_of(command), eval_str=True).values()
    return any(SpawnFlags in get_args(each) for each in annotations)


@pytest.mark.requirement("cli:contract-flags", "cli:no-option-unread")
def test_every_command_with_the_flags_of_a_spawn_reads_those_of_its_contract() -> None:
    marked = {each.name for each in commands() if each.spawns}
    assert marked == {each.name for each in commands() if takes_spawn_flags(each)}
    assert {"run", "spawn", "map", "schedule add"} <= marked


@pytest.mark.requirement("cli:contract-flags", "cli:no-option-unread")
@pytest.mark.parametrize("flag", CHECKS)
@pytest.mark.parametrize("command", ["run t", "map t x", "spawn t", "schedule add n @daily t"])
def test_no_parser_takes_a_contract_flag_that_nothing_read(command: str, flag: str) -> None:
    kind = CHECKS[flag][1]
    value = {"set": [], "int": ["3"]}.get(kind, ["x"])
    with pytest.raises(CycloptsError, match="does not read the flags of a contract"):
        application()([*command.split(), flag, *value])
