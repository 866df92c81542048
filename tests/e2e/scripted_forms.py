"""What the wires of the scripted model have in common: an answer, and small readers of requests."""

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

Document: TypeAlias = dict[str, Any]

_NUMBERS: Final = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Tokens:
    """What one answer is said to have used."""

    tokens_in: int
    """Without the cached ones."""
    tokens_out: int = 8
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """Blocks as Anthropic has them: ``text``, ``thinking``, ``tool_use``."""

    blocks: list[Document]
    stop: str = "end_turn"
    tokens: Tokens | None = None


class Wire(NamedTuple):
    """How one API is spoken."""

    name: str
    path: re.Pattern[str]
    read: Callable[[Document], Document]
    """The request as Anthropic Messages; ``schema`` = what the answer must fit, if anything."""
    is_stream: Callable[[Document, str], bool]
    whole: Callable[[Answer, Document], Document]
    events: Callable[[Answer, Document], Iterator[tuple[str | None, Document | str]]]
    error: Callable[[int, str], Document]

    def stream(self, answer: Answer, body: Document) -> bytes:
        """The answer as server-sent events."""
        return "".join(
            (f"event: {name}\n" if name else "")
            + f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
            for name, data in self.events(answer, body)
        ).encode()


def fitting(schema: Any, root: Any) -> Any:
    """A small value that fits a JSON schema: enough for a router or a summary nobody reads."""
    if not isinstance(schema, dict):
        return None
    if "$ref" in schema:
        found = root
        for part in str(schema["$ref"]).removeprefix("#/").split("/"):
            found = found.get(part, {})
        return fitting(found, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return fitting(options[0], root)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = str(kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: fitting(properties.get(name), root) for name in schema.get("required", ())}
    simple = {"array": [], "integer": 1, "number": 1, "boolean": False, "null": None}
    return simple.get(kind, "ok")


def next_id(prefix: str) -> str:
    return f"{prefix}_{next(_NUMBERS):08d}"


def flat(content: Any) -> str:
    """The text of any wire's content."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return flat(
            next((content[key] for key in ("text", "parts", "content") if key in content), "")
        )
    return "\n".join(filter(None, map(flat, content or ())))


def user(text: str) -> Document:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def result(call_id: object, text: str) -> Document:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return {"role": "user", "content": [block]}


def called(call_id: object, name: object, given: object) -> Document:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def calls_of(answer: Answer) -> list[Document]:
    return [block for block in answer.blocks if block["type"] == "tool_use"]


def said(answer: Answer, kind: str) -> str:
    return "".join(block[kind] for block in answer.blocks if block["type"] == kind)


def tokens_of(answer: Answer, body: Document) -> Tokens:
    if answer.tokens is not None:
        return answer.tokens
    return Tokens(max(1, len(json.dumps(body)) // 4))


def pieces(text: str) -> Iterable[str]:
    """Two of them, so that readers must join."""
    middle = len(text) // 2
    return filter(None, (text[:middle], text[middle:]))


def asks_for_stream(request: Document, path: str) -> bool:
    del path
    return bool(request.get("stream"))
