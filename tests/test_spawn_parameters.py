"""What is declared in ``RunSpec`` can be given wherever a run is spawned, and nothing else can."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from scripts import spawn_parameters as script
from scripts.spawn_flags import ARTIFACTS, FLAGS, HELP, WITHOUT_FLAG

from subagents.api.server import openapi
from subagents.api.tools import tool_schemas
from subagents.api.tools.tool_registry import TOOLS
from subagents.api.wire.requests import parse_spec
from subagents.cli.main import main
from subagents.domain.run.parameter import Parameter, leaves, parameters
from subagents.domain.run.spec import RunSpec
from subagents.extensions.plans.plan_file import read_plan

DECLARED = parameters(RunSpec)
NAMES = {each.name for each in leaves(DECLARED)}
GIVEN_BY_TYPE: Mapping[str, object] = {
    "IntType": 1,
    "FloatType": 1.0,
    "StrType": "x",
    "BoolType": True,
    "DictType": {"type": "array"},
}
GIVEN_BY_LIKENESS: Mapping[str, object] = {
    "budget": {"maxTokens": 1},
    "verification": {"commands": ["x"]},
}


def example(declared: Sequence[Parameter], *, snake: bool) -> dict[str, object]:
    """A value for each of these parameters."""
    return {
        each.attribute if snake else each.name.rpartition(".")[2]: value_of(each, snake=snake)
        for each in declared
    }


def value_of(parameter: Parameter, *, snake: bool) -> object:
    if parameter.inner:
        inside = example(parameter.inner, snake=snake)
        return [inside] if parameter.is_list else inside
    if parameter.like is not None:
        return GIVEN_BY_LIKENESS[parameter.like]
    if parameter.choices:
        return parameter.choices[-1]
    if isinstance(parameter.default, bool):
        return not parameter.default
    if parameter.is_list:
        return ["x"]
    return GIVEN_BY_TYPE[type(parameter.type).__name__]


def inside(properties: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The paths of a JSON Schema's innermost properties, spelled as those of parameters."""
    for name, schema in properties.items():
        if "properties" in schema:
            yield from inside(schema["properties"], f"{prefix}{name}.")
        elif "properties" in schema.get("items", {}):
            yield from inside(schema["items"]["properties"], f"{prefix}{name}[].")
        elif f"{prefix}{name}" in tool_schemas.FOLDED:
            keys = schema["description"].partition(": ")[2].split(", ")
            yield from (f"{prefix}{name}.{key}" for key in keys)
        else:
            yield f"{prefix}{name}"


@pytest.mark.requirement("spawn:declared-once")
def test_the_tool_shows_every_parameter_and_besides_them_the_batch() -> None:
    properties: Any = TOOLS["sessions_spawn"].schema["properties"]

    assert {*inside(properties)} == NAMES | {"batch"}


@pytest.mark.requirement("spawn:declared-once")
def test_a_request_and_its_description_know_every_parameter() -> None:
    whole = example(DECLARED, snake=False)
    schemas = openapi._schemas()

    spec = parse_spec(whole)

    assert all(getattr(spec, each.attribute) != each.default for each in DECLARED)
    assert {*schemas["RunSpec"]["properties"]} == {*whole}
    for each in leaves(DECLARED):
        struct = {"verification": "Contract", "budget": "Budget", "forEach": "ForEach"}.get(
            each.name.split(".")[0]
        )
        struct = "Artifact" if "[]" in each.name else struct or "RunSpec"
        struct = "Judge" if ".judge." in each.name else struct
        described = schemas[struct]["properties"][each.name.rpartition(".")[2]]
        assert described["description"] == each.description, each.name
        assert described.get("maximum") == each.high, each.name


@pytest.mark.requirement("spawn:declared-once")
def test_a_plan_file_takes_every_parameter_in_both_spellings(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    task = {"task": "do ${{ item }}"}
    runs = [{**example(DECLARED, snake=snake), **task} for snake in (True, False)]
    file.write_text(json.dumps({"runs": runs}))

    assert read_plan(file).specs == (parse_spec(runs[1]), parse_spec(runs[1]))


@pytest.mark.requirement("spawn:declared-once")
def test_every_parameter_has_a_flag_or_a_reason_to_have_none() -> None:
    flags = {flag.parameter.name for flag in FLAGS}

    assert flags | {*WITHOUT_FLAG} == NAMES
    assert not flags & {*WITHOUT_FLAG}
    assert all(reason.strip() for reason in WITHOUT_FLAG.values())


@pytest.mark.requirement("spawn:declared-once", "cli:help")
def test_a_text_for_people_belongs_to_a_flag_there_is() -> None:
    flags = {flag.parameter.name.removeprefix(ARTIFACTS) for flag in FLAGS}

    assert {*HELP} <= flags


@pytest.mark.requirement("spawn:declared-once", "cli:help")
def test_help_shows_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spawn", "--help-all"]) == 0
    page = capsys.readouterr().out
    shown = set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", page))

    spelled = {name for flag in FLAGS for name in (*flag.names, flag.opposite) if name}
    assert spelled <= shown
    assert "Default: ()" not in page


@pytest.mark.requirement("spawn:declared-once", "docs:generated")
def test_what_is_written_from_the_declaration_is_up_to_date() -> None:
    assert script.main(["--check"]) == 0
    page = script.PAGE.read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in NAMES)
