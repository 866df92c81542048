"""One tool call of an ACP agent, put together from the updates that tell of it; pure.

Each update may know more than the one before, and each agent puts the name, the input and what came
out in places of its own; those that were seen are listed here.
"""

import re
from collections.abc import Mapping
from typing import Final

from subagents.domain.run.values import Value, replace
from subagents.text import cut_middle

OUTPUT_CHARS_MAX: Final = 64_000
NAME_CHARS_MAX: Final = 120

_WORD: Final = re.compile(r"[A-Za-z_][\w.-]{0,119}\Z")
_GEMINI_ID: Final = re.compile(r"([A-Za-z_][\w.-]*?)(?:__fc_|__call_|-\d{9,})")


class Call(Value, frozen=True):
    """A tool call that did not end yet."""

    name: str = ""
    kind: str = ""
    title: str = ""
    given: object = None
    output: str = ""
    path: str | None = None
    exit_code: object = None
    is_told: bool = False
    """It was said to have begun."""
    began_ms: int | None = None


def learned(call: Call, update: Mapping[str, object], *, is_first: bool) -> Call:
    """The call with what this update adds; what it leaves out, or leaves empty, stays."""
    given = update.get("rawInput")
    # Some repeat the whole input with each update, some send it once, one sends a part first.
    given = given if given not in (None, {}, "", []) else call.given
    if isinstance(given, dict) and isinstance(given.get("arguments"), dict) and "tool" in given:
        given = given["arguments"]  # of an MCP call, with its server beside it
    title = text_of(update.get("title")) or call.title
    returned = _returned(update)
    output = returned if returned is not None else call.output + _delta(update)
    found = _exit_code(update)
    return replace(
        call,
        name=_name(update, is_first=is_first) or call.name,
        kind=text_of(update.get("kind")) or call.kind,
        title=title,
        given=given,
        output=cut_middle(output, OUTPUT_CHARS_MAX),
        path=_path(update) or call.path,
        exit_code=call.exit_code if found is None else found,
    )


def _name(update: Mapping[str, object], *, is_first: bool) -> str:
    """What the agent's model calls the tool; each agent puts it in another place."""
    meta = update.get("_meta")
    goose = of(of(meta, "goose"), "toolCall")
    places = (
        update.get("name"),
        of(meta, "toolName"),
        of(of(meta, "claudeCode"), "toolName"),
        of(goose, "toolName"),
    )
    name = next((each for each in places if isinstance(each, str) and each.strip()), "")
    if not name and (match := _GEMINI_ID.match(text_of(update.get("toolCallId")))):
        name = match[1]
    if not name and is_first and _WORD.match(text_of(update.get("title"))):
        name = text_of(update.get("title"))
    return name[:NAME_CHARS_MAX]


def named(call: Call) -> str:
    return call.name or call.kind or "tool"


def given_to(call: Call) -> object:
    """The input as ``tool_use`` reads it; where there is none, the title says what is done."""
    if call.given is not None:
        if isinstance(call.given, dict) and call.path and not _WORD.match(call.title):
            return {"path": call.path, **call.given}
        return call.given
    if call.kind == "execute" and call.title:
        return {"command": call.title}
    told = {"path": call.path} if call.path else {}
    return told or call.title


def has_input(call: Call, update: Mapping[str, object]) -> bool:
    if text_of(update.get("status")) == "in_progress":
        return True
    given = call.given
    return bool(given) and (not isinstance(given, dict) or bool(set(given) - {"cwd"}))


def _returned(update: Mapping[str, object]) -> str | None:
    """The whole output, when the update holds it."""
    raw = update.get("rawOutput")
    for found in (raw, of(raw, "output"), of(raw, "stdout"), of(raw, "text")):
        if isinstance(found, str) and found:
            return found
    served = of(of(raw, "result"), "content")  # of an MCP server, as it came
    if isinstance(served, list) and served:
        return "\n".join(block_text(each) for each in served)
    content = update.get("content")
    if isinstance(content, list):
        texts = (_content_text(each) for each in content)
        joined = "\n".join(text for text in texts if text)
        if joined:
            return joined
    return None


def _content_text(content: object) -> str:
    match of(content, "type"):
        case "content":
            return block_text(of(content, "content"))
        case "diff":
            return f"edited {text_of(of(content, 'path'))}"
        case _:
            return ""


def _delta(update: Mapping[str, object]) -> str:
    return text_of(of(of(update.get("_meta"), "terminal_output_delta"), "data"))


def _exit_code(update: Mapping[str, object]) -> object:
    raw, meta = update.get("rawOutput"), update.get("_meta")
    places = (
        of(raw, "exitCode"),
        of(raw, "exit_code"),
        of(of(raw, "metadata"), "exit"),
        of(of(meta, "terminal_exit"), "exit_code"),
    )
    return next((found for found in places if found is not None), None)


def _path(update: Mapping[str, object]) -> str | None:
    if text_of(update.get("kind")) == "execute":
        return None  # the working directory, with some
    found = update.get("content")
    diffs = found if isinstance(found, list) else []
    places = update.get("locations")
    listed = places if isinstance(places, list) else []
    paths = (of(each, "path") for each in (*diffs, *listed))
    return next((path for path in paths if isinstance(path, str) and path), None)


def block_text(block: object) -> str:
    """The text of a content block; of pictures and sounds what they are."""
    match of(block, "type"):
        case "text":
            return text_of(of(block, "text"))
        case "resource":
            return text_of(of(of(block, "resource"), "text"))
        case "resource_link":
            return text_of(of(block, "uri"))
        case "image" | "audio" as kind:
            return f"[{kind}]"
        case _:
            return ""


def of(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""
