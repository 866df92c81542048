"""``GET /openapi.json``: what the HTTP interface takes and answers, as OpenAPI 3.1.

Nothing is written twice: answers come from the structs that they are made of, bodies from those
that requests are decoded into, their bounds from the tables that check them, query parameters from
the declarations that handlers read by (``parameters``), words from the handlers' docstrings. Which
belong together is in the table ``OPERATIONS`` beside the handlers. Answers may get more fields.
"""

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from subagents import extension
from subagents.api.calls.auth import Caller
from subagents.api.calls.call import query_of
from subagents.api.calls.operation import JSON, Anything, Operation, routes
from subagents.api.routes import (
    agent_routes,
    artifact_routes,
    daemon_routes,
    event_routes,
    inbox_routes,
    run_routes,
    session_routes,
    spawn_routes,
    tool_routes,
)
from subagents.api.wire import requests as wire
from subagents.api.wire.parameters import Parameter
from subagents.api.wire.wire_struct import WireStruct
from subagents.domain.run.parameter import parameters
from subagents.domain.run.run import Decision, Priority
from subagents.domain.run.spec import BATCH_RUNS_MAX, IDEMPOTENCY_KEY_CHARS_MAX, RunSpec
from subagents.errors import SubagentsError
from subagents.version import __version__


def field_docs(kind: type[msgspec.Struct]) -> Mapping[str, str]:
    """The description of each field by its name on the wire; those of its bases, too.

    Read from the literals below them in the module's source; without that there are none.
    """
    texts: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("subagents."):
            texts |= _in_module(each.__module__).get(each.__name__, {})
    names = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
    return {names[name]: text for name, text in texts.items() if name in names}


@cache
def _in_module(name: str) -> Mapping[str, Mapping[str, str]]:
    """Of every class of a module: its fields and the texts below them."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[name]))
    except OSError:
        return {}
    return {
        node.name: dict(_described(node)) for node in tree.body if isinstance(node, ast.ClassDef)
    }


def _described(node: ast.ClassDef) -> list[tuple[str, str]]:
    found = []
    for field, text in pairwise(node.body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            found.append((field.target.id, " ".join(text.value.value.split())))
    return found


Schema = dict[str, Any]

VERSION: Final = "3.1.0"
PROBLEM: Final = "application/problem+json"
REF: Final = "#/components/schemas/{name}"

CORE: Final = (
    spawn_routes,
    run_routes,
    artifact_routes,
    session_routes,
    inbox_routes,
    tool_routes,
    agent_routes,
    daemon_routes,
    event_routes,
)
"""The core's modules of routes, in the order in which their routes are tried."""

PATH_WORDS: Final[Mapping[str, str]] = {
    "sel": "A run: its id, a unique beginning of it, its label, a session key, or `last`.",
    "id": "A worker's question: `<runId>:q<n>`.",
    "thread": "A thread: `threadId` in the receipt of a spawn with `thread: true`.",
    "name": "A tool of `GET /v1/tools`.",
    "agent": "A configured agent's id.",
    "call": "One of its `allowedCalls`, word for word.",
}


@cache
def operations() -> Mapping[tuple[str, str], Operation]:
    """By method and path: the core's and those of extensions."""
    modules = (*CORE, *extension.route_modules())
    more = (getattr(module, "OPERATIONS", {}) for module in modules)
    return {
        **OPERATIONS,
        **{place: each for found in more for place, each in found.items()},
    }


@cache
def unlisted() -> frozenset[str]:
    """Paths that speak protocols of their own, which have descriptions of their own."""
    others = (each for each in extension.route_modules() if not hasattr(each, "OPERATIONS"))
    return frozenset({"/mcp", *(route.path for module in others for route in module.ROUTES)})


@cache
def path_words() -> Mapping[str, str]:
    """What each part of a path is, by its name or, stronger, the path down to it."""
    more = (getattr(module, "PATH_WORDS", {}) for module in extension.route_modules())
    return {**PATH_WORDS, **{name: text for found in more for name, text in found.items()}}


CALLER_HEADERS: Final = ("Session", "Reader", "Caller", "Cwd")
HEADERS: Final[Mapping[str, tuple[str, Schema]]] = {
    "Idempotency-Key": (
        "The same key within 24 hours is the same run.",
        {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARS_MAX},
    ),
    "X-Subagents-Ack": (
        "When what is handed over counts as read: acknowledged, or read from the socket.",
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
    "Range": (
        "Some of the bytes, such as `bytes=0-1023`: the answer is then a 206.",
        {"type": "string", "pattern": "^bytes=[0-9]*-[0-9]*$"},
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
    ("WaitBody", "until"): wire.UNTIL,
    ("NotifyBody", "priority"): tuple(Priority),
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
        KeyError: A route that ``operations`` does not know.
    """
    paths: dict[str, Schema] = {}
    for route in listed(routes):
        for method in sorted((route.methods or set()) - {"HEAD"}):
            operation = operations()[method, route.path]
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
        "security": [{}, {"token": []}, {"login": []}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "parameters": {
                name: {"name": name, "in": "header", "description": text, "schema": schema}
                for name, (text, schema) in HEADERS.items()
            },
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
                },
                "login": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "subagents-PORT",
                    "description": "Of a browser, over TCP; with X-Subagents-CSRF for writes.",
                },
            },
        },
    }


def listed(routes: Iterable[BaseRoute]) -> Iterator[Route]:
    """The routes that the document describes."""
    return (each for each in routes if isinstance(each, Route) and each.path not in unlisted())


def _operation(route: Route, operation: Operation) -> Schema:
    endpoint = route.endpoint
    words = " ".join((endpoint.__doc__ or "").split("\n\n")[0].split())
    rest = " ".join(" ".join((endpoint.__doc__ or "").split("\n\n")[1:]).split())
    module = endpoint.__module__.rpartition(".")[2]
    found: Schema = {
        "operationId": f"{module}_{endpoint.__name__}",
        "summary": words.partition(": ")[2].rstrip(".") or endpoint.__name__,
        "parameters": [
            *(_path_parameter(name, route.path) for name in route.param_convertors),
            *(_query_parameter(each) for each in operation.query),
            *(_shared(name) for name in operation.headers),
            *(_shared(f"X-Subagents-{name}") for name in CALLER_HEADERS),
        ],
        "responses": {
            **{
                str(status): {
                    "description": meaning,
                    "content": {
                        media: {"schema": _answer(operation, media)} for media in operation.media
                    },
                }
                for status, meaning in ((operation.status, "Done."), *operation.also)
            },
            "default": {"$ref": "#/components/responses/Problem"},
        },
    }
    if rest:
        found["description"] = rest
    if operation.body is not None:
        found["requestBody"] = {
            # No body is the empty object to every handler.
            "required": any(each.required for each in msgspec.structs.fields(operation.body)),
            "content": {JSON: {"schema": {"$ref": REF.format(name=operation.body.__name__)}}},
        }
    return found


def _answer(operation: Operation, media: str) -> Schema:
    if media != JSON:
        return {"type": "string"}
    found = [{"$ref": REF.format(name=each.__name__)} for each in operation.answers]
    if len(found) > 1:
        return {"anyOf": found}
    return found[0] if found else {"type": "object"}


def _path_parameter(name: str, path: str) -> Schema:
    words, part = path_words(), f"{{{name}}}"
    place = path.partition(part)[0] + part
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": words[place if place in words else name],
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


# -- schemas ------------------------------------------------------------------------------------


def _schemas() -> Schema:
    bodies = {each.body for each in operations().values() if each.body is not None}
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
    return schemas | answer_schemas()


def answer_schemas() -> Schema:
    """Every struct that an answer is made of, by its name.

    What the daemon always sends is required, whatever a client makes of it when it is missing.
    """
    answered = {kind for each in operations().values() for kind in each.answers}
    kinds = sorted(answered, key=lambda kind: kind.__name__)
    _, found = msgspec.json.schema_components(kinds, schema_hook=_hook, ref_template=REF)
    known: Schema = msgspec.json.decode(msgspec.json.encode(found))
    structs = {each.__name__: each for each in _wire_structs(WireStruct)}
    return {name: _answered(structs[name], _in_words(schema)) for name, schema in known.items()}


def _wire_structs(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from _wire_structs(each)


def _answered(kind: type[msgspec.Struct], schema: Schema) -> Schema:
    texts = field_docs(kind)
    properties = {
        name: {key: value for key, value in each.items() if key != "default"}
        | {"description": texts[name]}
        for name, each in schema["properties"].items()
    }
    # An unset field is left out of an answer; with ``omit_defaults`` so is every default.
    always = [
        field.encode_name
        for field in msgspec.structs.fields(kind)
        if field.default is not msgspec.UNSET and not kind.__struct_config__.omit_defaults
    ]
    required = always or schema.get("required", [])
    return {**schema, "properties": properties, "required": required}


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
    for declared in parameters(RunSpec):
        spec[declared.name]["x-section"] = declared.section
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
    # An unknown path and a mistake of ours have no class of their own (``app``).
    found = {"not_found", "invalid", "error", "internal"}
    pending: list[type[SubagentsError]] = [SubagentsError]
    while pending:
        kind = pending.pop()
        found.add(kind.code)
        pending += kind.__subclasses__()
    return found


OPERATIONS: Final = {("GET", "/openapi.json"): Operation(openapi)}
ROUTES: Final = routes(OPERATIONS)
