"""The wires of the scripted model: Anthropic Messages, Gemini, and OpenAI's (``scripted_openai``).

A request of any of them is read into the form of Anthropic Messages, and an answer in that form is
written back: so a script knows one form. Streams are sent as a whole, in several pieces each.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from tests.e2e.scripted_forms import (
    Answer,
    Document,
    Tokens,
    Wire,
    asks_for_stream,
    called,
    fitting,
    flat,
    pieces,
    result,
    tokens_of,
    user,
)
from tests.e2e.scripted_openai import OPENAI

__all__ = ["WIRES", "Answer", "Tokens", "Wire", "fitting"]

# -- Anthropic Messages -------------------------------------------------------------------------


def _anthropic_read(request: Document) -> Document:
    schema = (request.get("output_config") or {}).get("format") or request.get("output_format")
    return request if schema is None else {**request, "schema": schema.get("schema")}


def _anthropic_whole(answer: Answer, body: Document) -> Document:
    tokens = tokens_of(answer, body)
    return {
        "id": f"msg_{len(body.get('messages', []))}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": answer.blocks,
        "stop_reason": answer.stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": tokens.tokens_in,
            "output_tokens": tokens.tokens_out,
            "cache_read_input_tokens": tokens.cached,
            "cache_creation_input_tokens": 0,
        },
    }


def _anthropic_events(answer: Answer, body: Document) -> Iterator[tuple[str | None, Document]]:
    message = _anthropic_whole(answer, body)
    for event in _anthropic_parts(message):
        yield event["type"], event


def _anthropic_parts(message: Document) -> Iterator[Document]:
    start = {**message, "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(message["content"]):
        empty, deltas = _anthropic_block(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": {"output_tokens": message["usage"]["output_tokens"]},
    }
    yield {"type": "message_stop"}


def _anthropic_block(block: Document) -> tuple[Document, list[Document]]:
    match block["type"]:
        case "text":
            deltas = [{"type": "text_delta", "text": text} for text in pieces(block["text"])]
            return {**block, "text": ""}, deltas
        case "thinking":
            told = pieces(block["thinking"])
            deltas = [{"type": "thinking_delta", "thinking": text} for text in told]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, "thinking": "", "signature": ""}, deltas
        case _:
            given = pieces(json.dumps(block["input"]))
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": text} for text in given
            ]


_ANTHROPIC_KINDS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def _anthropic_error(status: int, message: str) -> Document:
    kind = _ANTHROPIC_KINDS.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


# -- Gemini -------------------------------------------------------------------------------------


def _gemini_read(request: Document) -> Document:
    messages: list[Document] = []
    for content in request.get("contents", ()):
        parts = content.get("parts", ())
        if content.get("role") == "model":
            messages.append({"role": "assistant", "content": list(_gemini_said(parts))})
            continue
        for part in parts:
            if "functionResponse" in part:
                returned = part["functionResponse"]
                messages.append(result(returned.get("id"), _gemini_result(returned)))
        text = "\n".join(part["text"] for part in parts if "text" in part)
        if text:
            messages.append(user(text))
    config = request.get("generationConfig") or {}
    return {
        "model": request.get("model"),
        "system": flat(request.get("systemInstruction")),
        "messages": messages,
        "tools": [
            {"name": declared["name"]}
            for tool in request.get("tools") or ()
            for declared in tool.get("functionDeclarations") or ()
        ],
        "schema": config.get("responseJsonSchema") or config.get("responseSchema"),
    }


def _gemini_said(parts: Iterable[Document]) -> Iterator[Document]:
    for part in parts:
        if "functionCall" in part:
            call = part["functionCall"]
            yield called(call.get("id"), call["name"], call.get("args"))
        elif "text" in part and not part.get("thought"):
            yield {"type": "text", "text": part["text"]}


def _gemini_result(returned: Document) -> str:
    response = returned.get("response") or {}
    told = next(
        (response[key] for key in ("output", "result", "return_value") if key in response), None
    )
    return told if isinstance(told, str) else json.dumps(response)


def _gemini_whole(answer: Answer, body: Document) -> Document:
    return _gemini_document([_gemini_part(block) for block in answer.blocks], answer, body)


def _gemini_document(
    parts: list[Document], answer: Answer, body: Document, *, is_last: bool = True
) -> Document:
    tokens = tokens_of(answer, body)
    total_in = tokens.tokens_in + tokens.cached
    candidate: Document = {"index": 0, "content": {"role": "model", "parts": parts}}
    if is_last:
        candidate["finishReason"] = "STOP"
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": total_in,
            "candidatesTokenCount": tokens.tokens_out,
            "cachedContentTokenCount": tokens.cached,
            "totalTokenCount": total_in + tokens.tokens_out,
        },
        "modelVersion": body.get("model") or "scripted",
        # The same in all pieces of a stream: another one would be another answer.
        "responseId": f"gemini_{len(body.get('messages', ()))}_{id(answer)}",
    }


def _gemini_part(block: Document) -> Document:
    match block["type"]:
        case "text":
            return {"text": block["text"]}
        case "thinking":
            return {"text": block["thinking"], "thought": True}
    call = {"id": block["id"], "name": block["name"], "args": block["input"]}
    return {"functionCall": call, "thoughtSignature": "c2lnbmVk"}


def _gemini_events(answer: Answer, body: Document) -> Iterator[tuple[None, Document]]:
    parts: list[Document] = []
    for part in map(_gemini_part, answer.blocks):
        texts = list(pieces(part["text"])) if "text" in part else []
        parts += [{**part, "text": text} for text in texts] or [part]
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        yield None, _gemini_document([part], answer, body, is_last=is_last)


def _gemini_asks_for_stream(request: Document, path: str) -> bool:
    del request
    return path.endswith(":streamGenerateContent")


def _gemini_error(status: int, message: str) -> Document:
    kind = {429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}.get(status, "INTERNAL")
    return {"error": {"code": status, "message": message, "status": kind}}


WIRES: Final = (
    Wire(
        "anthropic",
        re.compile(r"/messages$"),
        _anthropic_read,
        asks_for_stream,
        _anthropic_whole,
        _anthropic_events,
        _anthropic_error,
    ),
    *OPENAI,
    Wire(
        "gemini",
        re.compile(r":(?:stream)?[gG]enerateContent$"),
        _gemini_read,
        _gemini_asks_for_stream,
        _gemini_whole,
        _gemini_events,
        _gemini_error,
    ),
)
