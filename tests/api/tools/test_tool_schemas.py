"""What a model is shown of a tool is what its decoder takes, as every provider can read it."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec
import pytest

from subagents.api.tools import action_tool
from subagents.api.tools import history_tool as history
from subagents.api.tools import tool_arguments as arguments
from subagents.api.tools.tool_registry import TOOLS
from subagents.api.tools.tool_schemas import OUTPUTS
from subagents.api.tools.worker_tools import _Ask
from subagents.api.wire import requests as wire
from subagents.domain.agents.suggest import COST_TIERS
from subagents.domain.run.access import AccessLevel
from subagents.domain.run.run import (
    Confidence,
    Decision,
    Priority,
    ProgressLevel,
    Report,
    ReportedArtifact,
    ReportStatus,
)
from subagents.domain.run.spec import (
    Artifact,
    Backoff,
    Budget,
    Cleanup,
    Contract,
    Isolation,
    Mode,
    Network,
    OnDependencyFailure,
    OnFailure,
    RunSpec,
)
from subagents.engine.runs.sessions import MODES

FORBIDDEN = {"anyOf", "oneOf", "allOf", "not", "if", "$ref", "$defs", "definitions", "const"}


DECODERS: dict[str, type[msgspec.Struct]] = {
    "sessions_wait": arguments.WaitArguments,
    "sessions_list": arguments.ListArguments,
    "sessions_tree": arguments.TreeArguments,
    "sessions_history": history.HistoryArguments,
    "sessions_send": arguments.SendArguments,
    "subagents": arguments.ActionArguments,
    "agents_list": arguments.AgentsArguments,
    "respond_orchestrator_request": arguments.RespondArguments,
    "report_completion": Report,
    "report_progress": wire.ProgressBody,
    "notify_parent": wire.NotifyBody,
    "request_orchestrator": _Ask,
}


INNER: dict[tuple[str, ...], type[msgspec.Struct]] = {
    ("sessions_spawn", "verification"): Contract,
    ("sessions_spawn", "verification", "artifacts", "[]"): Artifact,
    ("sessions_spawn", "budget"): Budget,
    ("report_completion", "artifacts", "[]"): ReportedArtifact,
}


ENUMS: dict[tuple[str, ...], tuple[str, ...] | type[StrEnum]] = {
    ("sessions_spawn", "mode"): Mode,
    ("sessions_spawn", "access"): AccessLevel,
    ("sessions_spawn", "cleanup"): Cleanup,
    ("sessions_spawn", "onDependencyFailure"): OnDependencyFailure,
    ("sessions_spawn", "retryBackoff"): Backoff,
    ("sessions_spawn", "verification", "onFailure"): OnFailure,
    ("sessions_spawn", "isolation"): Isolation,
    ("sessions_spawn", "network"): Network,
    ("sessions_wait", "until"): wire.UNTIL,
    ("sessions_list", "kinds", "[]"): Mode,
    ("sessions_send", "mode"): MODES,
    ("subagents", "action"): tuple(action_tool._ACTS),
    ("agents_list", "costTier"): COST_TIERS,
    ("respond_orchestrator_request", "decision"): (
        Decision.ANSWER,
        Decision.APPROVE,
        Decision.DENY,
    ),
    ("report_completion", "status"): ReportStatus,
    ("report_completion", "confidence"): Confidence,
    ("report_progress", "level"): ProgressLevel,
    ("notify_parent", "priority"): Priority,
}


def walk(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every schema inside ``schema``, itself included, with the parameters that lead to it."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from walk(inner, (*path, name))
    if "items" in schema:
        yield from walk(schema["items"], (*path, "[]"))


@pytest.mark.requirement("tools:schemas-flat")
@pytest.mark.parametrize("name", TOOLS)
def test_schemas_use_only_what_every_provider_takes(name: str) -> None:
    for path, schema in walk(TOOLS[name].schema, (name,)):
        known = {"type", "description", "properties", "required", "additionalProperties"}
        known |= {"items", "enum", "minimum", "maximum"}
        assert set(schema) <= known, path
        assert not FORBIDDEN & set(schema), path
        assert isinstance(schema["type"], str), path
        if "enum" in schema:
            assert schema["type"] == "string", path
            assert all(isinstance(each, str) for each in schema["enum"]), path
        if schema["type"] == "array":
            assert "items" in schema, path
        if "properties" in schema:
            assert schema["additionalProperties"] is False, path
            assert set(schema.get("required", ())) <= set(schema["properties"]), path
        assert len(schema.get("description", "")) <= 250, path


@pytest.mark.requirement("tools:schemas-match-decoders")
@pytest.mark.parametrize("name", TOOLS)
def test_a_schema_shows_exactly_the_parameters_that_are_decoded(name: str) -> None:
    shown = set(TOOLS[name].schema["properties"])  # type: ignore[call-overload]  # a schema is a mapping of anything

    if name == "sessions_spawn":
        assert shown == {*RunSpec.__struct_encode_fields__, "batch"}
    else:
        assert shown == {field.encode_name for field in msgspec.structs.fields(DECODERS[name])}


@pytest.mark.requirement("tools:schemas-match-decoders")
@pytest.mark.parametrize("name", TOOLS)
def test_inner_objects_and_enums_of_a_schema_are_those_of_the_decoder(name: str) -> None:
    for path, schema in walk(TOOLS[name].schema, (name,)):
        if len(path) > 1 and "properties" in schema:
            fields = {field.encode_name for field in msgspec.structs.fields(INNER[path])}
            assert set(schema["properties"]) == fields, path
        if "enum" in schema:
            allowed = ENUMS[path]
            assert set(schema["enum"]) == {str(each) for each in allowed}, path


@pytest.mark.requirement("tools:schemas-match-decoders")
@pytest.mark.parametrize("name", [*DECODERS])
def test_required_in_a_schema_is_what_the_decoder_cannot_do_without(name: str) -> None:
    needed = {
        field.encode_name for field in msgspec.structs.fields(DECODERS[name]) if field.required
    }

    assert set(TOOLS[name].schema.get("required", ())) == needed  # type: ignore[call-overload]  # a schema is a mapping of anything


@pytest.mark.requirement("tools:output-schemas")
def test_every_tool_has_a_flat_output_schema_that_a_refusal_fits_too() -> None:
    assert set(OUTPUTS) == set(TOOLS)
    for name, schema in OUTPUTS.items():
        text = str(schema)
        assert schema["type"] == "object", name
        assert "required" not in text, name
        assert "anyOf" not in text, name
        assert "$ref" not in text, name
