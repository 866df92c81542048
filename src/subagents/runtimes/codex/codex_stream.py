"""What ``codex app-server`` tells of a turn, decoded; pure, and nothing here raises.

Items (what the model said and did), token counts, errors and plans, as Codex 0.169 names them. A
field that is missing or odd is taken for absent; an item or event of a name that is not known is
something said ("unknown event: NAME").
"""

import re
import shlex
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from subagents.domain.run.values import Value, replace
from subagents.domain.run.worker_output import (
    THINKING_CHARS_MAX,
    ApiError,
    ContextUse,
    LineType,
    OutputItem,
    ToolUse,
)
from subagents.runtimes.output.terminal_text import plain, shortened
from subagents.runtimes.output.tool_lines import COUNT_MAX, tool_line, tool_use
from subagents.text import cut

Fields = Mapping[str, object]

LIMITS: Final = frozenset({"rateLimitExceeded", "usageLimitExceeded", "serverOverloaded"})
"""Codex's words for "the provider takes no more for now"; a status 429 or 529 says so, too."""
LIMIT_STATUSES: Final = frozenset({429, 529})
NAMES_MAX: Final = 5
"""So many files of one patch are named in its line."""

QUIET: Final = frozenset(
    {
        *("account/rateLimits/updated", "account/updated", "app/list/updated", "fs/changed"),
        *("thread/started", "thread/status/changed", "thread/readState/changed"),
        *("thread/settings/updated", "thread/name/updated", "thread/goal/cleared"),
        *("thread/goal/updated", "thread/closed", "thread/queue/changed", "skills/changed"),
        *("thread/attachment/updated", "thread/environment/connected", "project/changed"),
        *("thread/environment/disconnected", "thread/project/updated", "thread/archived"),
        *("thread/prediction/updated", "thread/section/changed", "thread/unarchived"),
        *("turn/started", "turn/diff/updated", "turn/moderationMetadata"),
        *("hook/started", "hook/completed", "serverRequest/resolved"),
        *("item/agentMessage/delta", "item/plan/delta", "item/reasoning/summaryTextDelta"),
        *("item/reasoning/summaryPartAdded", "item/reasoning/textDelta"),
        *("item/fileChange/outputDelta", "item/fileChange/patchUpdated"),
        *("item/commandExecution/terminalInteraction", "model/verification"),
        *("item/autoApprovalReview/started", "item/autoApprovalReview/completed"),
        *("mcpServer/oauthLogin/completed", "mcpServer/event/stream/notification"),
        *("modelProvider/authRecoveryStarted", "modelProvider/authRecoveryCompleted"),
        *("remoteControl/status/changed", "model/safetyBuffering/updated"),
    }
)
"""Events that say nothing to a reader, or nothing that a later one does not say as a whole."""
ALIVE: Final = frozenset({"item/commandExecution/outputDelta", "item/mcpToolCall/progress"})
"""Nothing to read, but a sign that a long call goes on."""

UNWANTED: Final = (
    *("item/agentMessage/delta", "item/plan/delta", "item/reasoning/textDelta"),
    *("item/reasoning/summaryTextDelta", "item/reasoning/summaryPartAdded"),
    *("item/fileChange/outputDelta", "item/fileChange/patchUpdated", "turn/diff/updated"),
    *("account/rateLimits/updated", "thread/started", "thread/readState/changed"),
)
"""Of the quiet ones, those that Codex is asked to leave out: the stream is shorter."""

_QUIET_ITEMS: Final = frozenset({"userMessage", "hookPrompt", "functionCallOutput", "sleep"})
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TRY: Final = re.compile(r"\b(\d+/\d+)\s*$")
_FAILED: Final = frozenset({"failed", "declined", "interrupted"})
_BEGAN: Final = frozenset({"inProgress", "pending"})


class Tokens(Value, frozen=True):
    """What a thread used so far. Cached and reasoning tokens are part of the others."""

    sent: int = 0
    cached: int = 0
    received: int = 0

    def plus(self, other: "Tokens") -> "Tokens":
        return Tokens(
            sent=self.sent + other.sent,
            cached=self.cached + other.cached,
            received=self.received + other.received,
        )

    def since(self, before: "Tokens") -> "Tokens":
        return Tokens(
            sent=max(self.sent - before.sent, 0),
            cached=max(self.cached - before.cached, 0),
            received=max(self.received - before.received, 0),
        )


class Problem(NamedTuple):
    """An error that Codex told of."""

    api_error: ApiError
    is_limit: bool
    will_retry: bool = False


def item_of(params: Fields) -> Fields:
    """The item of ``item/started`` and ``item/completed``."""
    return fields(params.get("item"))


def item_output(item: Fields, *, is_end: bool) -> OutputItem | None:
    """What an item says; None for one that says nothing (yet)."""
    kind = text(item.get("type"))
    match kind:
        case "agentMessage" | "plan":
            return _spoken(text(item.get("text"))) if is_end else None
        case "reasoning":
            return _thought(item) if is_end else None
        case "contextCompaction":
            return system("the conversation was compacted") if is_end else None
        case "enteredReviewMode" | "exitedReviewMode":
            return system(_in_words(kind)) if is_end else None
        case "subAgentActivity":
            name = text(item.get("agentPath")) or text(item.get("agentThreadId"))
            return system(f"sub-agent {name} {text(item.get('kind'))}") if is_end else None
        case _ if kind in _QUIET_ITEMS:
            return None
        case _:
            tool = item_tool(item, is_end=is_end)
            if tool is None:
                return unknown(f"item {kind}")
            return OutputItem(type=LineType.TOOL, text=tool_line(tool), tool=tool)


def item_tool(item: Fields, *, is_end: bool) -> ToolUse | None:
    """The use of a tool that an item is; None for any other item.

    Args:
        item: As Codex sends it.
        is_end: False = it began.
    """
    found = _call_of(item)
    if found is None:
        return None
    name, given, returned = found
    status = text(item.get("status"))
    use = tool_use(
        name,
        given=given,
        returned=returned if is_end else None,
        call_id=item.get("id"),
        is_end=is_end,
        exit_code=item.get("exitCode") if is_end else None,
        is_error=is_end and (status in _FAILED or item.get("success") is False),
        duration_ms=_duration_ms(item) if is_end else None,
    )
    changed = _changes(item)
    return replace(use, input=", ".join(changed)) if changed else use


def tokens_of(params: Fields) -> Tokens:
    """The totals of ``thread/tokenUsage/updated``: of the thread since it was made."""
    total = fields(fields(params.get("tokenUsage")).get("total"))
    return Tokens(
        sent=count(total.get("inputTokens")),
        cached=count(total.get("cachedInputTokens")),
        received=count(total.get("outputTokens")),
    )


def context_of(params: Fields, *, model: str | None) -> ContextUse | None:
    """How full the window is, by the last request; None when that is not told."""
    usage = fields(params.get("tokenUsage"))
    last = fields(usage.get("last"))
    used = count(last.get("totalTokens"))
    if not used:
        return None
    return ContextUse(
        tokens=used, window=count(usage.get("modelContextWindow")) or None, model=model
    )


def plan_output(params: Fields) -> OutputItem:
    """``turn/plan/updated``: the worker's own plan, as a whole."""
    listed = params.get("plan")
    steps = [
        {"step": text(each.get("step")), "status": _in_words(text(each.get("status")), by="_")}
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict)
    ]
    tool = tool_use("update_plan", given={"plan": steps})
    return OutputItem(type=LineType.TOOL, text=tool_line(tool), tool=tool)


def problem_of(error: Fields, *, will_retry: bool = False) -> Problem:
    """A ``TurnError``: of an ``error`` event or of a turn that failed."""
    info = error.get("codexErrorInfo")
    status = _status_of(info)
    message = _plainly(text(error.get("message"))) or "Codex told of an error without a text"
    details = text(error.get("additionalDetails"))
    again = _TRY.search(message) if will_retry else None
    shown = f"{message}: {details}" if details else message
    return Problem(
        ApiError(message=shortened(plain(shown)), retry=again and again.group(1), status=status),
        is_limit=status in LIMIT_STATUSES or (isinstance(info, str) and info in LIMITS),
        will_retry=will_retry,
    )


def problem_output(problem: Problem) -> OutputItem:
    return OutputItem(
        type=LineType.ERROR, text=problem.api_error.message, api_error=problem.api_error
    )


def notice_output(method: str, params: Fields) -> OutputItem:
    """Any other event: a line of the program itself, or what is not known."""
    match method:
        case _ if method in QUIET or method in ALIVE:
            return OutputItem(type=LineType.SYSTEM)
        case "warning" | "guardianWarning":
            return system(text(params.get("message")))
        case "configWarning" | "deprecationNotice":
            parts = (text(params.get("summary")), text(params.get("details")))
            return system(": ".join(filter(None, parts)))
        case "mcpServer/startupStatus/updated":
            return _server_said(params)
        case "model/rerouted":
            return system(f"the model is {text(params.get('toModel'))} now")
        case "thread/compacted":
            return system("the conversation was compacted")
        case _:
            return unknown(method)


def system(words: str) -> OutputItem:
    return OutputItem(type=LineType.SYSTEM, text=shortened(plain(words).strip("\n")))


def unknown(name: str) -> OutputItem:
    return system(f"unknown event: {name}"[:200])


def fields(value: object) -> Fields:
    return value if isinstance(value, dict) else {}


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and isinstance(value, int) and 0 <= value <= COUNT_MAX else 0


def _spoken(words: str) -> OutputItem | None:
    shown = shortened(plain(words).strip("\n"))
    return OutputItem(type=LineType.TEXT, text=shown) if shown else None


def _thought(item: Fields) -> OutputItem | None:
    parts = item.get("summary") or item.get("content")
    words = "\n".join(text(part) for part in parts) if isinstance(parts, list) else ""
    shown = cut(plain(words).strip(), THINKING_CHARS_MAX)
    return OutputItem(type=LineType.THINKING, text=shown) if shown else None


def _call_of(item: Fields) -> tuple[str, object, object] | None:
    """Name, input and output of the tool that an item is a use of."""
    match text(item.get("type")):
        case "commandExecution":
            line = {"command": _words(text(item.get("command")))}
            return "exec_command", line, item.get("aggregatedOutput")
        case "fileChange":
            changes = _listed(item.get("changes"))
            path = next((text(each.get("path")) for each in changes), "")
            return "apply_patch", {"path": path}, "\n".join(text(c.get("diff")) for c in changes)
        case "mcpToolCall":
            name = f"mcp__{text(item.get('server'))}__{text(item.get('tool'))}"
            error = text(fields(item.get("error")).get("message"))
            content = fields(item.get("result")).get("content")
            return name, item.get("arguments"), error or content
        case "dynamicToolCall":
            return text(item.get("tool")), item.get("arguments"), item.get("contentItems")
        case "collabAgentToolCall":
            name = _in_words(text(item.get("tool")), by="_")
            asked = text(item.get("prompt"))
            return (
                "wait_agent" if name == "wait" else name,
                {"prompt": asked} if asked else {},
                None,
            )
        case "webSearch":
            action = fields(item.get("action"))
            asked = text(item.get("query")) or text(action.get("url"))
            return "web_search", {"query": asked}, None
        case "imageView":
            return "view_image", {"path": item.get("path")}, None
        case "imageGeneration":
            return "image_generation", {"prompt": item.get("revisedPrompt")}, item.get("savedPath")
        case _:
            return None


def _words(command: str) -> list[str] | str:
    """``/bin/bash -lc 'the line'`` as words: the line is what was run."""
    try:
        words = shlex.split(command) if len(command) <= COMMAND_LOOKED_AT else []
    except ValueError:
        words = []
    is_line = len(words) == 3 and words[1].startswith("-") and words[1].endswith("c")
    return words if is_line else command


COMMAND_LOOKED_AT: Final = 64 * 1024
"""A longer one is shown as it is: taking it apart costs more than it tells."""


def _changes(item: Fields) -> list[str]:
    if text(item.get("type")) != "fileChange":
        return []
    found = [
        f"{text(fields(each.get('kind')).get('type'))} {text(each.get('path'))}".strip()
        for each in _listed(item.get("changes"))
    ]
    more = len(found) - NAMES_MAX
    return [*found[:NAMES_MAX], f"{more} more"] if more > 0 else found


def _listed(value: object) -> list[Fields]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _duration_ms(item: Fields) -> object:
    told = item.get("durationMs")
    if told is not None:
        return told
    began, ended = count(item.get("startedAtMs")), count(item.get("completedAtMs"))
    return ended - began if began and ended >= began else None


def _status_of(info: object) -> int | None:
    """``{"responseTooManyFailedAttempts": {"httpStatusCode": 429}}``, and its like."""
    for each in fields(info).values():
        status = count(fields(each).get("httpStatusCode"))
        if 100 <= status <= 599:
            return status
    return None


def _plainly(message: str) -> str:
    """A provider's answer that is passed on as it came: ``{"error": {"message": …}}``."""
    if not message.startswith("{"):
        return message
    try:
        found = fields(msgspec.json.decode(message))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return message
    return text(fields(found.get("error")).get("message")) or message


def _server_said(params: Fields) -> OutputItem:
    status, name = text(params.get("status")), text(params.get("name"))
    if status != "failed":
        return OutputItem(type=LineType.SYSTEM)
    why = text(params.get("error")) or text(params.get("failureReason"))
    return OutputItem(
        type=LineType.ERROR, text=shortened(f"MCP server {name} did not start: {why}")
    )


def _in_words(name: str, *, by: str = " ") -> str:
    """``spawnAgent`` as ``spawn agent`` or ``spawn_agent``."""
    return _WORDS.sub(by, name).lower()
