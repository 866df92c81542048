"""``GET /openapi.json``: valid, complete, and the same as what the handlers do."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from starlette.routing import Route
from tests.api.answer_schemas import ROUTES
from tests.api.home_daemon import Home, serving

from subagents import errors
from subagents.api.server import app as http
from subagents.api.server import openapi
from subagents.api.server.openapi import answer_schemas, document, field_docs
from subagents.api.wire.run_answers import RunRow, RunStatus

Document = dict[str, Any]


def described() -> Document:
    return document(ROUTES)


def operations(found: Document) -> Iterator[tuple[str, str, Document]]:
    for path, item in found["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


def resolved(found: Document, value: Document) -> Document:
    reference = value.get("$ref")
    if reference is None:
        return value
    here: Any = found
    for part in reference.removeprefix("#/").split("/"):
        here = here[part]
    return dict(here)


@pytest.mark.requirement("openapi:valid")
def test_the_document_is_valid_openapi_and_every_schema_in_it_compiles() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # noqa: PLC0415 - takes seconds

    found = described()

    OpenAPIV31SpecValidator(found).validate()
    assert found["openapi"] == "3.1.0"
    for name in found["components"]["schemas"]:
        root = {**found, "$ref": f"#/components/schemas/{name}"}
        jsonschema_rs.Draft202012Validator(root)
    ids = [operation["operationId"] for _, _, operation in operations(found)]
    assert len(ids) == len(set(ids))
    assert all(operation["summary"] for _, _, operation in operations(found))


@pytest.mark.requirement("openapi:every-route")
async def test_every_route_of_the_application_is_described_and_no_other(tmp_path: Path) -> None:
    async with serving(tmp_path) as home:
        app = http.create_app(home.services)
        routes = [each for each in app.routes if isinstance(each, Route)]
        there = {
            (method, route.path)
            for route in routes
            if route.path not in openapi.unlisted()
            for method in (route.methods or set()) - {"HEAD"}
        }
        given = await home.ok("GET", "/openapi.json")
        assert {(method, path) for method, path, _ in operations(given)} == there
        assert set(openapi.operations()) == there
        assert given == json.loads(json.dumps(described()))


@pytest.mark.requirement("openapi:answers")
def test_every_field_of_every_answer_is_described_in_words() -> None:
    for name, schema in answer_schemas().items():
        for field, each in schema["properties"].items():
            assert each.get("description"), f"{name}.{field}"


@pytest.mark.requirement("openapi:answers")
def test_every_point_in_time_is_named_so_and_has_the_one_format() -> None:
    for name, schema in answer_schemas().items():
        for field, each in schema["properties"].items():
            kinds = each.get("anyOf", [each])
            is_time = any(kind.get("format") == "date-time" for kind in kinds)
            assert is_time == (
                field.endswith("At") or (name, field) == ("RunStatus", "deadline")
            ), f"{name}.{field}"
            if field.endswith("Ms"):
                assert {kind.get("type") for kind in kinds} <= {"integer", "null"}, name


@pytest.mark.requirement("openapi:parameters")
def test_the_described_query_parameters_are_those_that_the_handlers_know(tmp_path: Path) -> None:
    """An unknown parameter is refused with the known ones: those must be in the document."""

    async def known(home: Home, method: str, path: str) -> set[str] | None:
        status, answered = await home.call(method, f"{path}?noSuchParameter=1")
        if status != 422 or "unknown query parameter" not in answered["message"]:
            return None
        names = answered["hint"].removeprefix("known: ")
        return set() if names == "none" else set(names.split(", "))

    async def scenario() -> None:
        async with serving(tmp_path) as home:
            run = (await home.spawn("hang"))["runId"]
            await home.until_phase(run, "running")
            body = {"runId": run, "question": "which?", "timeoutSeconds": 60}
            asked = await home.ok("POST", "/v1/requests", body)
            values = {"{sel}": run, "{id}": asked["requestId"], "{name}": "sessions_list"}
            for method, path, operation in operations(described()):
                if method != "GET" or path in {"/metrics", "/openapi.json"}:
                    continue
                real = path
                for placeholder, value in values.items():
                    real = real.replace(placeholder, value)
                found = {p["name"] for p in operation["parameters"] if p.get("in") == "query"}
                assert (await known(home, method, real) or set()) == found, path

    asyncio.run(scenario())


@pytest.mark.requirement("openapi:parameters")
def test_a_handler_reads_no_list_of_parameters_that_is_not_declared() -> None:
    """Every ``query_of`` names a declaration: texts in place would be a second truth."""
    folder = Path(openapi.__file__).parent
    for file in folder.glob("*.py"):
        for line in file.read_text(encoding="utf-8").splitlines():
            if "query_of(" in line and "def query_of" not in line:
                assert 'query_of(request, ("' not in line, f"{file.name}: {line.strip()}"


@pytest.mark.requirement("openapi:problems")
def test_every_error_code_is_in_the_description_of_problems(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as home:
            found = described()
            problem = found["components"]["schemas"]["Problem"]
            validator = jsonschema_rs.Draft202012Validator(problem)
            for method, path in (("GET", "/v1/runs/none"), ("GET", "/none"), ("PUT", "/v1/runs")):
                _, answered = await home.call(method, path)
                validator.validate(answered)
            body = {"spec": {"task": "x", "agentId": "none"}, "cwd": "/"}
            _, answered = await home.call("POST", "/v1/runs", body)
            validator.validate(answered)

    asyncio.run(scenario())
    codes = set(described()["components"]["schemas"]["Problem"]["properties"]["code"]["enum"])
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    assert {each.code for each in kinds if issubclass(each, errors.SubagentsError)} <= codes


@pytest.mark.requirement("openapi:bodies")
@pytest.mark.parametrize(
    ("name", "body", "fits"),
    [
        ("SpawnBody", {"spec": {"task": "x", "agentId": "sh"}, "cwd": "/"}, True),
        ("SpawnBody", {"spec": {"task": "x", "dependsOn": "one"}}, True),
        ("SpawnBody", {"spec": {"task": "x", "dependsOn": ["one"]}}, True),
        ("SpawnBody", {"spec": {"task": ""}}, False),
        ("SpawnBody", {"spec": {"task": "x", "retryCount": 101}}, False),
        ("SpawnBody", {"spec": {"task": "x", "budget": {"maxTokens": 0}}}, False),
        ("SpawnBody", {"spec": {"task": "x", "label": "l" * 81}}, False),
        ("SpawnBody", {"spec": {"task": "x", "labl": "l"}}, False),
        ("PlanBody", {"specs": []}, False),
        ("PlanBody", {"specs": [{"task": "x"}]}, True),
        ("WaitBody", {"runIds": ["a"], "until": "any"}, True),
        ("WaitBody", {"until": "some"}, False),
        ("NotifyBody", {"message": "m", "priority": "blocker"}, True),
        ("NotifyBody", {"message": "m", "priority": "low"}, False),
        ("RespondBody", {"response": "r", "decision": "timeout"}, False),
        ("Report", {"summary": "s", "status": "partial", "confidence": "low"}, True),
        ("Report", {"summary": "s", "status": "done"}, False),
    ],
)
def test_a_body_fits_its_schema_when_the_daemon_takes_it(
    name: str, body: Document, *, fits: bool
) -> None:
    root = {**described(), "$ref": f"#/components/schemas/{name}"}

    assert jsonschema_rs.Draft202012Validator(root).is_valid(body) is fits


@pytest.mark.requirement("openapi:headers")
def test_the_headers_of_a_call_and_the_token_are_described() -> None:
    found = described()
    _, _, spawn = next(each for each in operations(found) if each[:2] == ("POST", "/v1/runs"))

    names = {resolved(found, each)["name"] for each in spawn["parameters"]}

    assert {"Idempotency-Key", "X-Subagents-Session", "X-Subagents-Reader"} <= names
    assert found["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


@pytest.mark.requirement("openapi:answers")
def test_a_field_is_described_by_the_text_below_it_under_its_name_on_the_wire() -> None:
    assert field_docs(RunRow)["agentId"] == "The configured agent."


@pytest.mark.requirement("openapi:answers")
def test_a_subclass_has_the_descriptions_of_its_base_and_may_say_it_anew() -> None:
    row, status = field_docs(RunRow), field_docs(RunStatus)

    assert status["label"] == row["label"]
    assert status["budget"] != row["budget"]
