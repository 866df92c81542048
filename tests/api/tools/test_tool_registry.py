"""The table of tools: who sees which, what they cost, and that schema and decoder agree."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.api.tools.tool_seats import CONFIG, Seat, play

from subagents.api.tools import action_tool
from subagents.api.tools import history_tool as history
from subagents.api.tools import tool_arguments as arguments
from subagents.api.tools.tool import Audience
from subagents.api.tools.tool_registry import TOOLS, visible
from subagents.api.tools.worker_tools import LEVELS, PRIORITIES, _Ask
from subagents.api.wire import requests as wire
from subagents.domain.run.run import (
    Confidence,
    Decision,
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
    OnDependencyFailure,
    OnFailure,
    RunSpec,
)
from subagents.domain.track_record.suggest import COST_TIERS
from subagents.engine.runs.sessions import MODES
from subagents.errors import NotFound

REQUESTER = [name for name, tool in TOOLS.items() if tool.audience is Audience.REQUESTER]
WORKER = [name for name, tool in TOOLS.items() if tool.audience is Audience.WORKER]
FORBIDDEN = {"anyOf", "oneOf", "allOf", "not", "if", "$ref", "$defs", "definitions", "const"}
TOKENS_MAX = 3_000
CHARS_PER_TOKEN = 3.2
"""Two real tokenizers need one token for 4.4 characters of these schemas (docs/tools.md)."""

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
    ("sessions_spawn", "cleanup"): Cleanup,
    ("sessions_spawn", "onDependencyFailure"): OnDependencyFailure,
    ("sessions_spawn", "retryBackoff"): Backoff,
    ("sessions_spawn", "verification", "onFailure"): OnFailure,
    ("sessions_spawn", "isolation"): Isolation,
    ("sessions_wait", "until"): arguments.UNTIL,
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
    ("report_progress", "level"): LEVELS,
    ("notify_parent", "priority"): PRIORITIES,
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


@pytest.mark.requirement("tools:cheap")
def test_the_requesters_tools_cost_less_than_three_thousand_tokens() -> None:
    listed = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}
        for name, tool in TOOLS.items()
        if name in REQUESTER
    ]
    text = json.dumps({"tools": listed}, separators=(",", ":"))

    assert len(text) / CHARS_PER_TOKEN < TOKENS_MAX


@pytest.mark.requirement("tools:visible")
def test_each_caller_sees_the_tools_it_may_use(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        def seen(seat: Seat) -> list[str]:
            return [tool.name for tool in visible(seat.home.services, seat.caller)]

        boss = await desk.worker("boss")
        leaf = await boss.worker("hang")

        assert seen(desk) == REQUESTER
        assert seen(boss) == [*WORKER, *REQUESTER]
        assert seen(leaf) == WORKER
        await desk.ok("subagents", action="kill", target=boss.run_id)
        await desk.until_phase(boss.run_id, "completed")
        assert seen(boss) == WORKER

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:visible")
def test_a_tool_that_is_not_shown_is_refused_when_it_is_called_all_the_same(
    tmp_path: Path,
) -> None:
    async def scenario(desk: Seat) -> None:
        for name in WORKER:
            answer = await desk.refused(name)
            assert answer.structured["details"] == {"guardrail": "role"}
            assert f"{name} is for workers" in answer.text
        leaf = await (await desk.worker("boss")).worker("hang")
        for name in REQUESTER:
            assert (await leaf.refused(name)).structured["details"] == {"guardrail": "depth"}
        gone = Seat(desk.home, replace(leaf.caller, run_id=None, session=leaf.caller.session))
        await desk.ok("subagents", action="kill", target=leaf.run_id)
        await desk.until_phase(leaf.run_id, "completed")
        assert "has ended" in (await gone.refused("sessions_list")).text

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:visible")
def test_an_unknown_tool_is_no_answer_but_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        with pytest.raises(
            NotFound, match='no tool "session_spawn": did you mean "sessions_spawn"'
        ):
            await desk.call("session_spawn", task="x")

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:no-operator")
def test_an_operators_connection_has_an_agents_rights_through_a_tool(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        theirs = await desk.elsewhere("other").spawn("quick")

        assert desk.caller.is_operator
        answer = await desk.refused("subagents", action="status", target=theirs)
        assert answer.structured["details"] == {"guardrail": "ownership"}
        spawned = await desk.refused("sessions_spawn", task="x", agentId="hidden")
        assert spawned.structured["details"] == {"guardrail": "allow_agents"}

    play(tmp_path, scenario)


@pytest.mark.requirement("tools:refuses-unknown")
@pytest.mark.parametrize("name", REQUESTER)
def test_an_unknown_parameter_is_refused_with_the_nearest_known_one(
    tmp_path: Path, name: str
) -> None:
    async def scenario(desk: Seat) -> None:
        properties = TOOLS[name].schema["properties"]
        assert isinstance(properties, dict)
        known = list(properties)
        typo = f"{known[0][:-1]}_{known[0][-1]}"
        answer = await desk.refused(name, **{typo: "x"})
        nonsense = await desk.refused(name, zzzzqqqq="x")

        assert f'unknown parameter "{typo}": did you mean "{known[0]}"?' in answer.text
        assert answer.structured["code"] == "invalid"
        assert answer.structured["hint"] == answer.text.splitlines()[1].removeprefix("hint: ")
        assert 'unknown parameter "zzzzqqqq"' in nonsense.text
        for parameter in known:
            assert parameter in str(nonsense.structured["hint"])

    play(tmp_path, scenario, CONFIG)


@pytest.mark.requirement("tools:errors")
def test_an_error_says_the_same_in_words_and_as_data(tmp_path: Path) -> None:
    async def scenario(desk: Seat) -> None:
        answer = await desk.refused("subagents", action="status")
        document = answer.structured

        assert document == {
            "status": "error",
            "code": "invalid",
            "error": "target is required for action=status",
            "hint": "a run id, label, unique prefix, last, or session key",
            "details": {"field": "target"},
        }
        assert answer.text == f"error: {document['error']}\nhint: {document['hint']}"

    play(tmp_path, scenario)
