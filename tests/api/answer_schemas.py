"""Holds every answer that a test gets against ``GET /openapi.json``, without a field too many."""

import re
from functools import cache
from typing import Any

import jsonschema_rs

from subagents.api.server import app as http
from subagents.api.server.openapi import answer_schemas, document

Document = dict[str, Any]
ROUTES = [route for part in http.parts() for route in part.ROUTES]


@cache
def description() -> Document:
    """The OpenAPI document, but answers may have only the fields it names."""
    found = document(ROUTES)
    for name in answer_schemas():
        found["components"]["schemas"][name]["additionalProperties"] = False
    return found


@cache
def _validator(path: str, method: str) -> jsonschema_rs.Validator:
    operation = description()["paths"][path][method]
    answer = next(each for status, each in operation["responses"].items() if status != "default")
    schema = answer["content"]["application/json"]["schema"]
    return jsonschema_rs.validator_for({**description(), **schema})


def operation_of(method: str, target: str) -> tuple[str, str] | None:
    """Method and path of the description for a call; None = it describes none."""
    target = target.partition("?")[0]
    fixed_first = sorted(description()["paths"], key=lambda path: path.count("{"))
    for path in fixed_first:
        pattern = re.sub(r"\{\w+\}", "[^/]+", path)
        if re.fullmatch(pattern, target) and method.lower() in description()["paths"][path]:
            return method, path
    return None


def check_answer(method: str, target: str, answered: Document) -> None:
    """Fail when the answer to a call that succeeded is not as it is described."""
    found = operation_of(method, target)
    if found is not None and found[1] != "/openapi.json":
        _validator(found[1], method.lower()).validate(answered)
