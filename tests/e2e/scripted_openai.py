"""OpenAI's wires of the scripted model: Chat Completions and Responses."""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Final

from tests.e2e.scripted_forms import (
    Answer,
    Document,
    Wire,
    asks_for_stream,
    called,
    calls_of,
    flat,
    next_id,
    pieces,
    result,
    said,
    tokens_of,
    user,
)

# -- OpenAI Chat Completions --------------------------------------------------------------------


def _chat_read(request: Document) -> Document:
    system, messages = [], []
    for message in request.get("messages", ()):
        role, text = message.get("role"), flat(message.get("content"))
        if role in {"system", "developer"}:
            system.append(text)
        elif role == "tool":
            messages.append(result(message.get("tool_call_id"), text))
        elif role == "user":
            messages.append(user(text))
        else:
            blocks: list[Document] = [{"type": "text", "text": text}] if text else []
            blocks += [
                called(call["id"], call["function"]["name"], call["function"].get("arguments"))
                for call in message.get("tool_calls") or ()
            ]
            messages.append({"role": "assistant", "content": blocks})
    declared = (each.get("function") for each in request.get("tools") or ())
    schema = (request.get("response_format") or {}).get("json_schema") or {}
    return {
        "model": request.get("model"),
        "system": "\n".join(system),
        "messages": messages,
        "tools": [{"name": each["name"]} for each in declared if each],
        "schema": schema.get("schema"),
    }


def _chat_usage(answer: Answer, body: Document) -> Document:
    tokens = tokens_of(answer, body)
    prompt = tokens.tokens_in + tokens.cached
    return {
        "prompt_tokens": prompt,
        "completion_tokens": tokens.tokens_out,
        "total_tokens": prompt + tokens.tokens_out,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
    }


def _chat_calls(answer: Answer) -> list[Document]:
    return [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["input"])},
        }
        for call in calls_of(answer)
    ]


def _chat_whole(answer: Answer, body: Document) -> Document:
    message: Document = {"role": "assistant", "content": said(answer, "text") or None}
    if thinking := said(answer, "thinking"):
        message["reasoning_content"] = thinking
    if calls := _chat_calls(answer):
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": _chat_end(answer)}
    return {
        **_chat_base(body, "chat.completion"),
        "choices": [choice],
        "usage": _chat_usage(answer, body),
    }


def _chat_base(body: Document, kind: str) -> Document:
    model = body.get("model") or "scripted"
    return {"id": next_id("chatcmpl"), "object": kind, "created": 1_700_000_000, "model": model}


def _chat_end(answer: Answer) -> str:
    return "tool_calls" if answer.stop == "tool_use" else "stop"


def _chat_events(answer: Answer, body: Document) -> Iterator[tuple[None, Document | str]]:
    base = _chat_base(body, "chat.completion.chunk")

    def chunk(delta: Document, end: str | None = None) -> tuple[None, Document]:
        return None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}

    yield chunk({"role": "assistant", "content": ""})
    for text in pieces(said(answer, "thinking")):
        yield chunk({"reasoning_content": text})
    for text in pieces(said(answer, "text")):
        yield chunk({"content": text})
    for index, call in enumerate(_chat_calls(answer)):
        function = call["function"]
        named = {**call, "index": index, "function": {**function, "arguments": ""}}
        yield chunk({"tool_calls": [named]})
        for text in pieces(function["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
    yield chunk({}, _chat_end(answer))
    yield None, {**base, "choices": [], "usage": _chat_usage(answer, body)}
    yield None, "[DONE]"


def _openai_error(status: int, message: str) -> Document:
    kind = "rate_limit_exceeded" if status == 429 else "server_error"
    return {"error": {"message": message, "type": kind, "code": kind, "param": None}}


# -- OpenAI Responses ---------------------------------------------------------------------------


def _responses_read(request: Document) -> Document:
    system = [request.get("instructions") or ""]
    given = request.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
    messages: list[Document] = []
    turn_of_call: dict[str, Document] = {}
    for item in items:
        kind = item.get("type", "message")
        if kind == "message" and item.get("role") in {"system", "developer"}:
            system.append(flat(item.get("content")))
        elif kind == "message" and item.get("role") == "assistant":
            block = {"type": "text", "text": flat(item.get("content"))}
            messages.append({"role": "assistant", "content": [block]})
        elif kind == "message":
            messages.append(user(flat(item.get("content"))))
        elif kind.endswith("_call_output"):
            messages.append(result(item.get("call_id"), flat(item.get("output"))))
        elif kind.endswith("_call"):
            _add_call(item, messages, turn_of_call)
    return {
        "model": request.get("model"),
        "system": "\n".join(system),
        "messages": messages,
        "tools": list(_responses_tools(request)),
        "schema": ((request.get("text") or {}).get("format") or {}).get("schema"),
    }


def _add_call(item: Document, messages: list[Document], turn_of_call: dict[str, Document]) -> None:
    """Calls of one answer may come back with their results in between: they stay one turn."""
    call_id = str(item.get("call_id"))
    block = called(call_id, item.get("name"), item.get("arguments") or item.get("input"))
    turn = call_id.rpartition("_")[0]
    if turn and turn in turn_of_call:
        turn_of_call[turn]["content"].append(block)
        return
    message = {"role": "assistant", "content": [block]}
    turn_of_call[turn] = message
    messages.append(message)


def _responses_tools(request: Document) -> Iterator[Document]:
    # Codex tells some models of their tools in a message of their own.
    given = request.get("input")
    told = [item for item in given or () if isinstance(item, dict) and "tools" in item]
    listed = (request.get("tools") or (), *(item["tools"] for item in told))
    for tool in itertools.chain.from_iterable(listed):
        kind = tool.get("type")
        if kind == "namespace":
            for inner in tool.get("tools", ()):
                name = f"{tool['name']}__{inner['name']}"
                kept = {"kind": inner.get("type"), "short": inner["name"]}
                yield {"name": name, "namespace": tool["name"], **kept}
        elif kind in {"function", "custom"}:
            yield {"name": tool["name"], "kind": kind, "short": tool["name"]}


def _responses_whole(answer: Answer, body: Document) -> Document:
    tokens = tokens_of(answer, body)
    total_in = tokens.tokens_in + tokens.cached
    return {
        "id": next_id("resp"),
        "object": "response",
        "created_at": 1_700_000_000,
        "model": body.get("model") or "scripted",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "output": [_responses_item(block, body) for block in answer.blocks],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": total_in,
            "input_tokens_details": {"cached_tokens": tokens.cached},
            "output_tokens": tokens.tokens_out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": total_in + tokens.tokens_out,
        },
    }


def _responses_item(block: Document, body: Document) -> Document:
    match block["type"]:
        case "text":
            content = {"type": "output_text", "text": block["text"], "annotations": []}
            return {
                "type": "message",
                "id": next_id("msg"),
                "role": "assistant",
                "status": "completed",
                "content": [content],
            }
        case "thinking":
            summary = [{"type": "summary_text", "text": block["thinking"]}]
            return {"type": "reasoning", "id": next_id("rs"), "summary": summary}
    declared = (tool for tool in body.get("tools", ()) if tool["name"] == block["name"])
    tool = next(declared, {"short": block["name"]})
    named: Document = {"call_id": block["id"], "name": tool["short"], "status": "completed"}
    if "namespace" in tool:
        named["namespace"] = tool["namespace"]
    if tool.get("kind") == "custom":
        text = block["input"].get("input", "")
        return {"type": "custom_tool_call", "id": next_id("ctc"), "input": text, **named}
    text = json.dumps(block["input"])
    return {"type": "function_call", "id": next_id("fc"), "arguments": text, **named}


def _responses_events(answer: Answer, body: Document) -> Iterator[tuple[str, Document]]:
    whole = _responses_whole(answer, body)
    start = {**whole, "status": "in_progress", "output": [], "usage": None}
    numbers = itertools.count()
    told = itertools.chain(
        [("response.created", {"response": start}), ("response.in_progress", {"response": start})],
        *(_item_events(index, item) for index, item in enumerate(whole["output"])),
        [("response.completed", {"response": whole})],
    )
    for kind, fields in told:
        yield kind, {"type": kind, "sequence_number": next(numbers), **fields}


def _item_events(index: int, item: Document) -> Iterator[tuple[str, Document]]:
    at = {"output_index": index, "item_id": item["id"]}
    begun, inner = _item_parts(item)
    yield "response.output_item.added", {"output_index": index, "item": begun}
    for kind, fields in inner:
        yield f"response.{kind}", {**fields, **at}
    yield "response.output_item.done", {"output_index": index, "item": item}


def _item_parts(item: Document) -> tuple[Document, list[tuple[str, Document]]]:
    """The item as it begins, and its events but for their numbers."""
    match item["type"]:
        case "message":
            part, of = item["content"][0], {"content_index": 0}
            text, empty = part["text"], {**part, "text": ""}
            deltas = [("output_text.delta", {"delta": each, **of}) for each in pieces(text)]
            return {**item, "content": [], "status": "in_progress"}, [
                ("content_part.added", {"part": empty, **of}),
                *deltas,
                ("output_text.done", {"text": text, **of}),
                ("content_part.done", {"part": part, **of}),
            ]
        case "reasoning":
            part, of = item["summary"][0], {"summary_index": 0}
            name, text = "reasoning_summary_text", part["text"]
            deltas = [(f"{name}.delta", {"delta": each, **of}) for each in pieces(text)]
            return {**item, "summary": []}, [
                ("reasoning_summary_part.added", {"part": {**part, "text": ""}, **of}),
                *deltas,
                (f"{name}.done", {"text": text, **of}),
                ("reasoning_summary_part.done", {"part": part, **of}),
            ]
        case "custom_tool_call":
            name, key = "custom_tool_call_input", "input"
        case _:
            name, key = "function_call_arguments", "arguments"
    deltas = [(f"{name}.delta", {"delta": each}) for each in pieces(item[key])]
    return {**item, key: "", "status": "in_progress"}, [
        *deltas,
        (f"{name}.done", {key: item[key], "name": item["name"]}),
    ]


OPENAI: Final = (
    Wire(
        "chat",
        re.compile(r"/chat/completions$"),
        _chat_read,
        asks_for_stream,
        _chat_whole,
        _chat_events,
        _openai_error,
    ),
    Wire(
        "responses",
        re.compile(r"/responses$"),
        _responses_read,
        asks_for_stream,
        _responses_whole,
        _responses_events,
        _openai_error,
    ),
)
