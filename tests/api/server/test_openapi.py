"""``GET /openapi.json``: valid, complete, and the same as what the handlers do."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.routing import Route
from tests.api.answer_schemas import ROUTES, operation_of
from tests.api.home_daemon import Home, segment, serving

from subagents import errors
from subagents.api.server import app as http
from subagents.api.server import openapi
from subagents.api.server.openapi import answer_schemas, document

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
def test_every_route_of_the_application_is_described_and_no_other(tmp_path: Path) -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


@pytest.mark.requirement("openapi:answers")
def test_every_answer_has_the_fields_that_are_described_and_no_others(tmp_path: Path) -> None:
    """``Home`` holds every answer against the document; here each operation answers once."""

    async def scenario() -> None:
        async with serving(tmp_path) as home:
            answered = await everything(home)
            left_out = {("GET", "/metrics"), ("POST", "/v1/shutdown")}
            left_out |= {
                ("GET", f"/v1/runs/{{sel}}/{text}") for text in ("result/text", "artifacts/content")
            }
            # Only of a run with a worktree: see the end-to-end tests of those.
            left_out.add(("GET", "/v1/runs/{sel}/diff"))
            # Only of a delivery that was given up, or an escalation; they answer as pause does.
            left_out |= {("POST", f"/v1/runs/{{sel}}/{verb}") for verb in ("redeliver", "dismiss")}
            # Of a browser's own login, over TCP.
            left_out |= {("POST", "/v1/login"), ("DELETE", "/v1/login")}
            left_out.add(("DELETE", "/v1/logins/{login}"))
            # Only of a node of a cluster.
            left_out |= {("GET", "/v1/cluster"), ("POST", "/v1/cluster/drain")}
            assert answered == set(openapi.operations()) - left_out

    asyncio.run(scenario())


async def schedules(home: Home, ok: Callable[..., Awaitable[Document]], spec: object) -> None:
    """Every call about schedules."""
    body = {"name": "s", "when": "@daily", "specs": [spec], "cwd": home.cwd}
    await ok("POST", "/v1/schedules", body)
    await ok("GET", "/v1/schedules")
    started = await ok("POST", "/v1/schedules/s/run")
    await home.wait(*started["runIds"])
    for method, path in (("GET", ""), ("POST", "/pause"), ("POST", "/resume"), ("DELETE", "")):
        await ok(method, f"/v1/schedules/s{path}")


async def dry_runs(
    home: Home, ok: Callable[..., Awaitable[Document]], plan: list[dict[str, object]]
) -> None:
    """Every call that starts nothing."""
    await ok("POST", "/v1/runs/dry-run", {"spec": plan[0], "cwd": home.cwd})
    await ok("POST", "/v1/plans/dry-run", {"specs": plan, "cwd": home.cwd})


async def everything(home: Home) -> set[tuple[str, str]]:
    """Call every operation that answers JSON and lets the daemon live."""
    called: set[tuple[str, str]] = set()

    async def ok(
        method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Document:
        found = operation_of(method, path)
        assert found is not None, path
        called.add(found)
        return await home.ok(method, path, body, headers)

    spec = {"task": "work", "agentId": "hang", "budget": {"maxRuns": 3}, "thread": True}
    contract = {"artifacts": [{"path": "none"}]}
    plan: list[dict[str, object]] = [
        {"task": "a", "agentId": "quick", "label": "a", "verification": contract},
        {"task": "b", "agentId": "quick", "label": "b", "dependsOn": ["a"]},
    ]
    await dry_runs(home, ok, plan)
    run = (await ok("POST", "/v1/runs", {"spec": spec, "cwd": home.cwd}))["runId"]
    await home.until_phase(run, "running")
    made = await ok("POST", "/v1/plans", {"specs": plan, "cwd": home.cwd})
    await home.wait(*(each["runId"] for each in made["receipts"]))
    await ok("GET", "/v1/plans")
    for method, path in (
        ("GET", ""),
        ("POST", "/retry"),
        ("POST", "/cancel"),
        ("DELETE", "/cancel"),
    ):
        await ok(method, f"/v1/plans/{made['planId']}{path}")
    await schedules(home, ok, plan[0])
    me, base = home.worker(run), f"/v1/runs/{run}"
    await ok("POST", f"{base}/progress", {"phase": "p", "metrics": {"n": 1.5, "s": "x"}}, me)
    await ok("POST", f"{base}/progress", {"phase": "too soon"}, me)
    await ok("GET", f"{base}/progress")
    await ok("POST", f"{base}/notify", {"message": "m", "priority": "blocker"}, me)
    await ok("POST", f"{base}/hold", {"inputTokens": 10, "outputTokens": 5}, me)
    asked = await ok("POST", "/v1/requests", {"runId": run, "question": "which?"}, me)
    request = f"/v1/requests/{segment(asked['requestId'])}"
    for path in (request, base, f"{base}/status", f"{base}/result", f"{base}/tree"):
        await ok("GET", path)
    await ok("POST", f"{request}/respond", {"response": "this"})
    await ok("POST", f"{base}/report", {"summary": "s", "artifacts": [{"path": "x"}]}, me)
    # One message in two seconds is taken, so each goes to a run of its own.
    others = [(await home.spawn("hang", thread=True))["runId"] for _ in range(2)]
    for other in others:
        await home.until_phase(other, "running")
    await ok("POST", f"{base}/steer", {"message": "be quick"})
    await ok("POST", f"/v1/runs/{others[0]}/send", {"message": "be quick"})
    await ok("POST", f"/v1/threads/{others[1]}/messages", {"text": "be quick"})
    for method in ("DELETE", "POST"):
        await ok(method, f"/v1/runs/{others[0]}/interrupt")
    for path in ("/v1/runs", "/v1/tree", "/v1/inbox?all=1", "/v1/attention", "/v1/tools"):
        await ok("GET", path)
    for path in ("timeline", "why", "log", "log?summary=1", "artifacts"):
        await ok("GET", f"{base}/{path}")
    await ok("POST", "/v1/tools/sessions_list", {})
    for verb, given in (("pause", None), ("priority", {"priority": 3}), ("resume", None)):
        await ok("POST", f"{base}/{verb}", given)
    await ok("POST", "/v1/wait", {"timeoutSeconds": 0})
    await ok("DELETE", f"{base}/cancel")
    await ok("POST", f"{base}/cancel", {"reason": "enough"})
    await home.wait(run)
    read = await ok("POST", "/v1/inbox", {})
    await ok("POST", "/v1/inbox/ack", {"messageIds": [each["id"] for each in read["messages"]]})
    await ok("POST", f"{base}/retry")
    for path in (
        *("/v1/agents", "/v1/agents/stats", "/v1/agents/suggest?hint=x", "/v1/config"),
        *("/healthz", "/readyz", "/version", "/openapi.json", "/v1/diagnostics"),
        *("/v1/login", "/v1/logins", "/v1/alerts"),
        *(f"/v1/graph?tree={run}", "/v1/stats/series"),
        *("/v1/agents", "/v1/agents/stats", "/v1/agents/suggest?hint=x", "/v1/config"),
        *("/healthz", "/readyz", "/version", "/openapi.json", "/v1/diagnostics"),
    ):
        await ok("GET", path)
    await ok("GET", "/v1/events?after=0", headers={"Accept": "application/json"})
    for path in ("/v1/login/codes", "/v1/sweep"):
        await ok("POST", path)
    return called


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
