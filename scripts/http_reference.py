"""Every route and document over HTTP, from the OpenAPI document: docs/reference/http.md.

Drawn where the site is built (``scripts.docs_site``), and in no commit.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from scripts.marked_pages import cell, drawn_anew

from subagents.api.server.app import parts
from subagents.api.server.openapi import CALLER_HEADERS, HEADERS, document

PAGE: Final = "docs/reference/http.md"
BEGIN: Final = "<!-- routes: drawn by `make site` from the OpenAPI document -->"
END: Final = "<!-- end of routes -->"
ENUM_WORDS_MAX: Final = 12
"""A longer list of words is counted, not shown."""

Schema = Mapping[str, Any]


def route(method: str, path: str, operation: Schema) -> Iterator[str]:
    """One route: what it does, takes and answers."""
    yield f"### {method.upper()} {path}"
    text = operation["summary"].strip().rstrip(".")
    yield f"{text[:1].upper()}{text[1:]}."
    if "description" in operation:
        yield operation["description"]
    rows = list(_parameters(operation))
    if rows:
        yield "\n".join(["| parameter | in | type | |", "|---|---|---|---|", *rows])
    body = operation.get("requestBody")
    if body:
        (content,) = body["content"].values()
        optional = "" if body["required"] else ", optional"
        yield f"Body{optional}: {kind(content['schema'])}."
    for status, answer in operation["responses"].items():
        if status == "default":
            continue
        media = [
            f"`{name}`" if name != "application/json" else kind(content["schema"])
            for name, content in answer["content"].items()
        ]
        yield f"Answers {status}: {', '.join(media)}."


def _parameters(operation: Schema) -> Iterator[str]:
    for each in operation["parameters"]:
        if "$ref" in each:
            name = each["$ref"].rpartition("/")[2]
            if name.removeprefix("X-Subagents-") in CALLER_HEADERS:
                continue
            text, schema = HEADERS[name]
            place = "header"
        else:
            name, text, schema, place = (
                each["name"],
                each["description"],
                each["schema"],
                each["in"],
            )
        yield f"| `{name}` | {place} | {kind(schema)} | {cell(text)} |"


def kind(schema: Schema) -> str:
    """A type in words; a document is a link to its table."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema:
        words = [str(each) for each in schema["enum"]]
        if len(words) > ENUM_WORDS_MAX:
            return f"one of {len(words)} words"
        return " or ".join(f"`{each}`" for each in words)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(kind(each) for each in schema[several]))
    found = schema.get("type", "any value")
    if isinstance(found, list):
        return " or ".join(found)
    if found == "array" and "prefixItems" in schema:
        kinds = dict.fromkeys(kind(each) for each in schema["prefixItems"])
        return f"list of {len(schema['prefixItems'])}: {', '.join(kinds)}"
    if found == "array":
        return f"list of {kind(schema.get('items', {}))}"
    if found == "object" and isinstance(schema.get("additionalProperties"), dict):
        inner = schema["additionalProperties"]
        return f"object of {kind(inner)}" if inner else "object"
    return str(found)


def table(name: str, schema: Schema) -> Iterator[str]:
    """One document: its fields, and whether they are always there."""
    yield f"### {name}"
    if "description" in schema:
        yield schema["description"].replace("``", "`")
    properties = schema.get("properties")
    if not properties:
        if "description" not in schema:
            yield f"{kind(schema)}."
        return
    required = schema.get("required", ())
    yield "\n".join(
        [
            "| field | type | |",
            "|---|---|---|",
            *(
                f"| `{field}`{'' if field in required else '?'} | {cell(kind(each))}"
                f" | {cell(each.get('description', '').replace('``', '`'))} |"
                for field, each in properties.items()
            ),
        ]
    )


def drawn(page: str) -> str:
    """``page`` with the routes and documents of today."""
    found = document([each for part in parts() for each in part.ROUTES])
    sections = ["## Headers", "\n".join(["| header | |", "|---|---|", *_headers()]), "## Routes"]
    for path, item in sorted(found["paths"].items()):
        for method, operation in item.items():
            sections += route(method, path, operation)
    sections.append("## Documents")
    sections.append("A field with a question mark is not always there.")
    for name, schema in sorted(found["components"]["schemas"].items()):
        sections += table(name, schema)
    return drawn_anew(page, BEGIN, END, *sections)


def _headers() -> Iterator[str]:
    for name in CALLER_HEADERS:
        text, _ = HEADERS[f"X-Subagents-{name}"]
        yield f"| `X-Subagents-{name}` | {cell(text)} |"
