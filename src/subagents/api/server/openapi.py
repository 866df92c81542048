"""``GET /openapi.json``: what the HTTP interface takes, as OpenAPI 3.1.

Nothing is written twice: bodies come from the structs that requests are decoded into, their bounds
from the tables that check them, query parameters from the declarations that handlers read by
(``parameters``), words from the handlers' docstrings. Here stands only which belong together.
Answers are described by their kind only: they are documents that may get more fields.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from subagents.api.answers import log_pages
from subagents.api.calls.auth import Caller
from subagents.api.calls.call import query_of
from subagents.api.routes import (
    agent_routes,
    daemon_routes,
    event_routes,
    inbox_routes,
    run_routes,
    session_routes,
    tool_routes,
)
from subagents.api.wire import requests as wire
from subagents.api.wire.parameters import Parameter
from subagents.domain.run.run import Decision, Report
from subagents.domain.run.spec import BATCH_RUNS_MAX, IDEMPOTENCY_KEY_CHARS_MAX, RunSpec
from subagents.errors import SubagentsError
from subagents.version import __version__

Schema = dict[str, Any]

VERSION: Final = "3.1.0"
JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
UNLISTED: Final = frozenset({"/mcp"})
"""Speaks a protocol of its own, which has a description of its own."""
REF: Final = "#/components/schemas/{name}"


class Anything(msgspec.Struct, frozen=True):
    """A body whose shape something else describes: a tool's arguments."""


class Operation(NamedTuple):
    """What one route takes besides its path."""

    query: Sequence[Parameter] = ()
    body: type[msgspec.Struct] | None = None
    is_body_optional: bool = False
    status: int = 200
    headers: Sequence[str] = ()
    media: Sequence[str] = (JSON,)


OPERATIONS: Final[Mapping[tuple[str, str], Operation]] = {
    ("GET", "/healthz"): Operation(),
    ("GET", "/readyz"): Operation(),
    ("GET", "/version"): Operation(),
    ("GET", "/metrics"): Operation(media=("text/plain",)),
    ("GET", "/openapi.json"): Operation(),
    ("POST", "/v1/runs"): Operation(body=wire.SpawnBody, status=201, headers=("Idempotency-Key",)),
    ("POST", "/v1/plans"): Operation(body=wire.PlanBody, status=201),
    ("POST", "/v1/runs/{sel}/retry"): Operation(status=201),
    ("GET", "/v1/runs"): Operation(query=run_routes.LIST),
    ("GET", "/v1/tree"): Operation(),
    ("GET", "/v1/runs/{sel}"): Operation(),
    ("GET", "/v1/runs/{sel}/status"): Operation(),
    ("GET", "/v1/runs/{sel}/result"): Operation(),
    ("GET", "/v1/runs/{sel}/tree"): Operation(),
    ("GET", "/v1/runs/{sel}/timeline"): Operation(query=run_routes.TIMELINE),
    ("GET", "/v1/runs/{sel}/why"): Operation(),
    ("GET", "/v1/runs/{sel}/log"): Operation(query=log_pages.PARAMETERS),
    ("POST", "/v1/runs/{sel}/cancel"): Operation(body=wire.CancelBody, is_body_optional=True),
    ("POST", "/v1/runs/{sel}/steer"): Operation(body=wire.SteerBody),
    ("POST", "/v1/runs/{sel}/send"): Operation(body=session_routes.SendBody),
    ("POST", "/v1/runs/{sel}/interrupt"): Operation(
        body=session_routes.InterruptBody, is_body_optional=True
    ),
    ("POST", "/v1/threads/{thread}/messages"): Operation(
        body=session_routes.ThreadBody, status=202
    ),
    ("POST", "/v1/runs/{sel}/pause"): Operation(),
    ("POST", "/v1/runs/{sel}/resume"): Operation(),
    ("POST", "/v1/runs/{sel}/redeliver"): Operation(),
    ("POST", "/v1/wait"): Operation(body=wire.WaitBody, is_body_optional=True),
    ("POST", "/v1/inbox"): Operation(body=wire.InboxBody, is_body_optional=True),
    ("GET", "/v1/inbox"): Operation(query=inbox_routes.INBOX),
    ("POST", "/v1/inbox/ack"): Operation(body=wire.AckBody),
    ("GET", "/v1/attention"): Operation(),
    ("POST", "/v1/requests"): Operation(body=wire.AskBody, status=201),
    ("GET", "/v1/requests/{id}"): Operation(query=inbox_routes.ANSWER),
    ("POST", "/v1/requests/{id}/respond"): Operation(body=wire.RespondBody),
    ("POST", "/v1/runs/{sel}/report"): Operation(body=Report),
    ("POST", "/v1/runs/{sel}/progress"): Operation(body=wire.ProgressBody),
    ("GET", "/v1/runs/{sel}/progress"): Operation(),
    ("POST", "/v1/runs/{sel}/notify"): Operation(body=wire.NotifyBody),
    ("GET", "/v1/tools"): Operation(),
    ("POST", "/v1/tools/{name}"): Operation(
        body=Anything,
        is_body_optional=True,
        headers=("X-Subagents-Ack", "X-Subagents-Call-Id"),
    ),
    ("GET", "/v1/agents"): Operation(query=daemon_routes.WHERE),
    ("GET", "/v1/agents/stats"): Operation(query=agent_routes.STATS),
    ("GET", "/v1/agents/suggest"): Operation(query=agent_routes.SUGGEST),
    ("GET", "/v1/config"): Operation(query=daemon_routes.WHERE),
    ("POST", "/v1/sweep"): Operation(),
    ("GET", "/v1/diagnostics"): Operation(),
    ("POST", "/v1/shutdown"): Operation(status=202),
    ("GET", "/v1/events"): Operation(
        query=event_routes.FOLLOW,
        headers=("Last-Event-ID",),
        media=(event_routes.EVENT_STREAM, JSON),
    ),
}

PATH_WORDS: Final[Mapping[str, str]] = {
    "sel": "A run: its id, a unique beginning of it, its label, a session key, or `last`.",
    "id": "A worker's question: `<runId>:q<n>`.",
    "thread": "A thread: `threadId` in the receipt of a spawn with `thread: true`.",
    "name": "A tool of `GET /v1/tools`.",
}
CALLER_HEADERS: Final = ("Session", "Reader", "Caller", "Cwd")
HEADERS: Final[Mapping[str, tuple[str, Schema]]] = {
    "Idempotency-Key": (
        "The same key within 24 hours is the same run.",
        {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARS_MAX},
    ),
    "X-Subagents-Ack": (
        "When what the answer hands over counts as read.",
        {"type": "string", "enum": ["explicit", "auto"], "default": "explicit"},
    ),
    "X-Subagents-Call-Id": (
        "Names a call that may be repeated.",
        {"type": "string", "minLength": 1, "maxLength": tool_routes.CALL_ID_CHARS_MAX},
    ),
    "Last-Event-ID": (
        "The last number that was seen; browsers send it by themselves.",
        {"type": "integer", "minimum": 0, "maximum": event_routes.NUMBER_MAX},
    ),
    "X-Subagents-Session": (
        "In whose name the call is made; a worker's token is stronger.",
        {"type": "string", "default": "agent:main:main"},
    ),
    "X-Subagents-Reader": (
        "Names the client process: messages are offered to it.",
        {"type": "string", "minLength": 1, "maxLength": 200},
    ),
    "X-Subagents-Caller": ("`agent` = a model drives the client.", {"type": "string"}),
    "X-Subagents-Cwd": ("The client's directory, percent-encoded.", {"type": "string"}),
}
WORDS: Final[Mapping[tuple[str, str], Iterable[str]]] = {
    ("WaitBody", "until"): inbox_routes.UNTIL,
    ("NotifyBody", "priority"): inbox_routes.PRIORITIES,
    ("RespondBody", "decision"): (Decision.ANSWER, Decision.APPROVE, Decision.DENY),
}
"""Fields that are any text to their struct and one of these words to their handler."""


async def openapi(request: Request) -> Response:
    """GET /openapi.json: this document."""
    Caller.of(request)
    query_of(request, ())
    state = request.app.state
    if not hasattr(state, "openapi"):
        state.openapi = msgspec.json.encode(document(request.app.routes))
    return Response(state.openapi, media_type=JSON)


def document(routes: Iterable[BaseRoute]) -> Schema:
    """The whole description.

    Raises:
        KeyError: A route that ``OPERATIONS`` does not know.
    """
    paths: dict[str, Schema] = {}
    for route in listed(routes):
        for method in sorted((route.methods or set()) - {"HEAD"}):
            operation = OPERATIONS[method, route.path]
            paths.setdefault(route.path, {})[method.lower()] = _operation(route, operation)
    return {
        "openapi": VERSION,
        "info": {
            "title": "subagents",
            "version": __version__,
            "description": "One local service that any agent can call and any agent can work for.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [
            {"url": "http://localhost", "description": "Over the Unix socket, or daemon.http_port."}
        ],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "parameters": _parameters(),
            "responses": {
                "Problem": {
                    "description": "Why not (RFC 9457); `code` says it to programs.",
                    "content": {PROBLEM: {"schema": {"$ref": REF.format(name="Problem")}}},
                }
            },
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A worker's SUBAGENTS_TOKEN; over TCP also the operator's.",
                }
            },
        },
    }


def listed(routes: Iterable[BaseRoute]) -> Iterator[Route]:
    """The routes that the document describes."""
    return (each for each in routes if isinstance(each, Route) and each.path not in UNLISTED)


def _operation(route: Route, operation: Operation) -> Schema:
    endpoint = route.endpoint
    words = " ".join((endpoint.__doc__ or "").split("\n\n")[0].split())
    rest = " ".join(" ".join((endpoint.__doc__ or "").split("\n\n")[1:]).split())
    module = endpoint.__module__.rpartition(".")[2].removeprefix("routes_")
    found: Schema = {
        "operationId": f"{module}_{endpoint.__name__}",
        "summary": words.partition(": ")[2].rstrip(".") or endpoint.__name__,
        "parameters": [
            *(_path_parameter(name) for name in route.param_convertors),
            *(_query_parameter(each) for each in operation.query),
            *(_shared(name) for name in operation.headers),
            *(_shared(f"X-Subagents-{name}") for name in CALLER_HEADERS),
        ],
        "responses": {
            str(operation.status): {
                "description": "Done.",
                "content": {media: {"schema": _answer(media)} for media in operation.media},
            },
            "default": {"$ref": "#/components/responses/Problem"},
        },
    }
    if route.path == "/readyz":
        found["responses"]["503"] = {
            "description": "Not ready, and why.",
            "content": {JSON: {"schema": _answer(JSON)}},
        }
    if rest:
        found["description"] = rest
    if operation.body is not None:
        found["requestBody"] = {
            "required": not operation.is_body_optional,
            "content": {JSON: {"schema": {"$ref": REF.format(name=operation.body.__name__)}}},
        }
    return found


def _answer(media: str) -> Schema:
    return {"type": "object"} if media == JSON else {"type": "string"}


def _path_parameter(name: str) -> Schema:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": PATH_WORDS[name],
        "schema": {"type": "string", "minLength": 1},
    }


def _query_parameter(parameter: Parameter) -> Schema:
    found: Schema = {
        "name": str(parameter),
        "in": "query",
        "description": parameter.text,
        "schema": dict(parameter.schema),
    }
    if parameter.schema.get("type") == "array":
        found |= {"style": "form", "explode": False}
    return found


def _shared(header: str) -> Schema:
    return {"$ref": f"#/components/parameters/{header}"}


def _parameters() -> Schema:
    return {
        name: {"name": name, "in": "header", "description": text, "schema": schema}
        for name, (text, schema) in HEADERS.items()
    }


# -- schemas ------------------------------------------------------------------------------------


def _schemas() -> Schema:
    bodies = {each.body for each in OPERATIONS.values() if each.body is not None}
    kinds = sorted(bodies - {Anything}, key=lambda kind: kind.__name__)
    _, found = msgspec.json.schema_components(kinds, schema_hook=_hook, ref_template=REF)
    # Defaults are tuples and enums there, and must be JSON here.
    known: Schema = msgspec.json.decode(msgspec.json.encode(found))
    schemas = {name: _in_words(schema) for name, schema in known.items()}
    _complete(schemas)
    for (kind, field), allowed in WORDS.items():
        schemas[kind]["properties"][field]["enum"] = [str(each) for each in allowed]
    schemas["Anything"] = {"type": "object", "description": "See the tool's inputSchema."}
    schemas["Problem"] = _problem()
    return schemas


def _hook(kind: type) -> Schema:
    if kind is object:
        return {"description": "Any JSON value."}
    raise NotImplementedError(kind)


def _in_words(schema: Schema) -> Schema:
    """The docstring is for readers of the code, its first paragraph for everybody."""
    text = schema.get("description")
    if not isinstance(text, str):
        return schema
    return {**schema, "description": " ".join(text.split("\n\n")[0].split())}


def _complete(schemas: Schema) -> None:
    """What the structs' own schemas do not say."""
    spec = schemas[RunSpec.__name__]["properties"]
    for each in (spec[name] for name in wire.LISTS):
        # A single text stands for a list of one.
        lists = each.pop("anyOf", None) or [{key: each.pop(key) for key in ("type", "items")}]
        each["anyOf"] = [{"type": "string", "minLength": 1}, *lists]
    schemas["PlanBody"]["properties"]["specs"] |= {"minItems": 1, "maxItems": BATCH_RUNS_MAX}


def _problem() -> Schema:
    return {
        "type": "object",
        "description": "Why a call did not succeed.",
        "required": ["code", "message", "status"],
        "properties": {
            "code": {"type": "string", "enum": sorted(codes())},
            "message": {"type": "string"},
            "details": {"type": "object"},
            "retryable": {"type": "boolean", "description": "The same call can succeed later."},
            "hint": {"type": ["string", "null"]},
            "status": {
                "type": ["integer", "string"],
                "description": "The HTTP status; of a refused spawn `forbidden` or `error`.",
            },
            "error": {"type": "string", "description": "Of a refused spawn: the message again."},
        },
    }


def codes() -> set[str]:
    """Every ``code`` an error document can have."""
    # Of an unknown path and of a mistake of ours, see ``http``.
    found = {"not_found", "invalid", "error", "internal"}
    pending: list[type[SubagentsError]] = [SubagentsError]
    while pending:
        kind = pending.pop()
        found.add(kind.code)
        pending += kind.__subclasses__()
    return found


ROUTES: Final = (Route("/openapi.json", openapi, methods=["GET"]),)
