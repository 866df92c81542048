"""What ``codex app-server`` reports of a turn, decoded; pure, and nothing here raises.

Items (what the model wrote and did), token counts, errors and plans, as Codex 0.169 names them. A
field that is missing or odd is taken for absent; an item or event of a name that is not known
becomes a line of output ("unknown event: NAME").
"""

import re
import shlex
from collections.abc import Mapping
from typing import Final, NamedTuple

from subagents.domain.run.values import Value, replace
from subagents.domain.run.worker_output import (
    THINKING_CHARS_MAX,
    ApiError,
    ContextUse,
    LineType,
    OutputItem,
    ToolUse,
)
from subagents.extensions.conversation.json_fields import (
    as_table,
    count_at,
    table_at,
    tables_at,
    text_at,
    texts_at,
    value_at,
)
from subagents.extensions.conversation.provider_words import provider_message
from subagents.runtimes.output.output_items import ALIVE, shown, system_item, tool_item
from subagents.runtimes.output.terminal_text import plain
from subagents.runtimes.output.tool_lines import tool_use
from subagents.text import cut

Fields = Mapping[str, object]

LIMITS: Final = frozenset({"rateLimitExceeded", "usageLimitExceeded", "serverOverloaded"})
"""Codex's words for "the provider takes no more for now"; a status 429 or 529 says so, too."""
LIMIT_STATUSES: Final = frozenset({429, 529})
COMMAND_SPLIT_CHARS_MAX: Final = 64 * 1024
"""A longer command line is shown as it is: taking it apart costs more than it is worth."""
NAMES_MAX: Final = 5
"""How many files of one patch are named in its line."""

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
"""Events of no use to a reader, or that a later one repeats as a whole."""
_PROGRESS: Final = frozenset({"item/commandExecution/outputDelta", "item/mcpToolCall/progress"})
"""Nothing to read, but a sign that a long call continues."""

UNWANTED: Final = (
    *("item/agentMessage/delta", "item/plan/delta", "item/reasoning/textDelta"),
    *("item/reasoning/summaryTextDelta", "item/reasoning/summaryPartAdded"),
    *("item/fileChange/outputDelta", "item/fileChange/patchUpdated", "turn/diff/updated"),
    *("account/rateLimits/updated", "thread/started", "thread/readState/changed"),
)
"""The quiet ones that Codex is asked to leave out: the stream is shorter."""

_QUIET_ITEMS: Final = frozenset({"userMessage", "hookPrompt", "functionCallOutput", "sleep"})
_WORD_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TRY: Final = re.compile(r"\b(\d+/\d+)\s*$")
_FAILED: Final = frozenset({"failed", "declined", "interrupted"})


class TokenCount(Value, frozen=True):
    """What a thread used so far. Cached and reasoning tokens are part of the others."""

    sent: int = 0
    cached: int = 0
    received: int = 0

    def plus(self, other: "TokenCount") -> "TokenCount":
        return TokenCount(
            sent=self.sent + other.sent,
            cached=self.cached + other.cached,
            received=self.received + other.received,
        )

    def since(self, before: "TokenCount") -> "TokenCount":
        return TokenCount(
            sent=max(self.sent - before.sent, 0),
            cached=max(self.cached - before.cached, 0),
            received=max(self.received - before.received, 0),
        )


class CodexError(NamedTuple):
    """An error that Codex reported."""

    api_error: ApiError
    is_limit: bool
    will_retry: bool = False


def item_of(params: Fields) -> Fields:
    """The item of ``item/started`` and ``item/completed``."""
    return table_at(params, "item")


def item_output(item: Fields, *, is_end: bool) -> OutputItem | None:
    """An item as output; None for one without any (yet)."""
    kind = text_at(item, "type")
    match kind:
        case "agentMessage" | "plan":
            return _spoken(text_at(item, "text")) if is_end else None
        case "reasoning":
            return _thought(item) if is_end else None
        case "contextCompaction":
            return system_item("the conversation was compacted") if is_end else None
        case "enteredReviewMode" | "exitedReviewMode":
            return system_item(_in_words(kind)) if is_end else None
        case "subAgentActivity":
            name = text_at(item, "agentPath") or text_at(item, "agentThreadId")
            return system_item(f"sub-agent {name} {text_at(item, 'kind')}") if is_end else None
        case _ if kind in _QUIET_ITEMS:
            return None
        case _:
            tool = item_tool(item, is_end=is_end)
            if tool is None:
                return unknown(f"item {kind}")
            return tool_item(tool)


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
    status = text_at(item, "status")
    use = tool_use(
        name,
        given=given,
        returned=returned if is_end else None,
        call_id=value_at(item, "id"),
        is_end=is_end,
        exit_code=value_at(item, "exitCode") if is_end else None,
        is_error=is_end and (status in _FAILED or value_at(item, "success") is False),
        duration_ms=_duration_ms(item) if is_end else None,
    )
    changed = changes(item)
    more = len(changed) - NAMES_MAX
    named = [*changed[:NAMES_MAX], f"{more} more"] if more > 0 else changed
    return replace(use, input=", ".join(named)) if changed else use


def tokens_of(params: Fields) -> TokenCount:
    """The totals of ``thread/tokenUsage/updated``: of the thread since it was made."""
    total = table_at(value_at(params, "tokenUsage"), "total")
    return TokenCount(
        sent=count_at(total, "inputTokens") or 0,
        cached=count_at(total, "cachedInputTokens") or 0,
        received=count_at(total, "outputTokens") or 0,
    )


def context_of(params: Fields, *, model: str | None) -> ContextUse | None:
    """How full the window is, by the last request; None when that is unknown."""
    usage = table_at(params, "tokenUsage")
    last = table_at(usage, "last")
    used = count_at(last, "totalTokens")
    if not used:
        return None
    return ContextUse(
        tokens=used, window=count_at(usage, "modelContextWindow") or None, model=model
    )


def plan_output(params: Fields) -> OutputItem:
    """``turn/plan/updated``: the worker's own plan, as a whole."""
    steps = [
        {"step": text_at(each, "step"), "status": _in_words(text_at(each, "status"), by="_")}
        for each in tables_at(params, "plan")
    ]
    return tool_item(tool_use("update_plan", given={"plan": steps}))


def problem_of(error: Fields, *, will_retry: bool = False) -> CodexError:
    """A ``TurnError``: of an ``error`` event or of a turn that failed."""
    info = value_at(error, "codexErrorInfo")
    status = _status_of(info)
    message = (
        provider_message(text_at(error, "message")) or "Codex reported an error without a text"
    )
    details = text_at(error, "additionalDetails")
    again = _TRY.search(message) if will_retry else None
    full = f"{message}: {details}" if details else message
    return CodexError(
        ApiError(message=shown(full), retry=again and again.group(1), status=status),
        is_limit=status in LIMIT_STATUSES or (isinstance(info, str) and info in LIMITS),
        will_retry=will_retry,
    )


def problem_output(problem: CodexError) -> OutputItem:
    return OutputItem(
        type=LineType.ERROR, text=problem.api_error.message, api_error=problem.api_error
    )


def notice_output(method: str, params: Fields) -> OutputItem:
    """Any other event: a line of the program itself, or what is not known."""
    match method:
        case _ if method in QUIET or method in _PROGRESS:
            return ALIVE
        case "warning" | "guardianWarning":
            return system_item(text_at(params, "message"))
        case "configWarning" | "deprecationNotice":
            parts = (text_at(params, "summary"), text_at(params, "details"))
            return system_item(": ".join(filter(None, parts)))
        case "turn/plan/updated":
            return plan_output(params)
        case "mcpServer/startupStatus/updated":
            return _server_status(params)
        case "model/rerouted":
            return system_item(f"the model is {text_at(params, 'toModel')} now")
        case "thread/compacted":
            return system_item("the conversation was compacted")
        case _:
            return unknown(method)


def unknown(name: str) -> OutputItem:
    """Names an item or event that is not known here."""
    return system_item(f"unknown event: {name}"[:200])


def _spoken(words: str) -> OutputItem | None:
    text = shown(words)
    return OutputItem(type=LineType.TEXT, text=text) if text else None


def _thought(item: Fields) -> OutputItem | None:
    parts = texts_at(item, "summary") or texts_at(item, "content")
    text = cut(plain("\n".join(parts)).strip(), THINKING_CHARS_MAX)
    return OutputItem(type=LineType.THINKING, text=text) if text else None


def _call_of(item: Fields) -> tuple[str, object, object] | None:
    """Name, input and output of the tool that an item is a use of."""
    match text_at(item, "type"):
        case "commandExecution":
            line = {"command": _words(text_at(item, "command"))}
            return "exec_command", line, value_at(item, "aggregatedOutput")
        case "fileChange":
            changes = tables_at(item, "changes")
            path = next((text_at(each, "path") for each in changes), "")
            return "apply_patch", {"path": path}, "\n".join(text_at(c, "diff") for c in changes)
        case "mcpToolCall":
            name = f"mcp__{text_at(item, 'server')}__{text_at(item, 'tool')}"
            error = text_at(value_at(item, "error"), "message")
            content = value_at(value_at(item, "result"), "content")
            return name, value_at(item, "arguments"), error or content
        case "dynamicToolCall":
            return (
                text_at(item, "tool"),
                value_at(item, "arguments"),
                value_at(item, "contentItems"),
            )
        case "collabAgentToolCall":
            name = _in_words(text_at(item, "tool"), by="_")
            asked = text_at(item, "prompt")
            return (
                "wait_agent" if name == "wait" else name,
                {"prompt": asked} if asked else {},
                None,
            )
        case "webSearch":
            action = table_at(item, "action")
            asked = text_at(item, "query") or text_at(action, "url")
            return "web_search", {"query": asked}, None
        case "imageView":
            return "view_image", {"path": value_at(item, "path")}, None
        case "imageGeneration":
            return (
                "image_generation",
                {"prompt": value_at(item, "revisedPrompt")},
                value_at(item, "savedPath"),
            )
        case _:
            return None


def _words(command: str) -> list[str] | str:
    """``/bin/bash -lc 'the line'`` as words: the line is what was run."""
    try:
        words = shlex.split(command) if len(command) <= COMMAND_SPLIT_CHARS_MAX else []
    except ValueError:
        words = []
    is_line = len(words) == 3 and words[1].startswith("-") and words[1].endswith("c")
    return words if is_line else command


def changes(item: Fields) -> list[str]:
    """What a patch changes (``update src/a.py``); none of any other item."""
    if text_at(item, "type") != "fileChange":
        return []
    return [
        f"{text_at(kind, 'type')} {text_at(c, 'path')} → {text_at(kind, 'move_path')}".strip(" →")
        for c in tables_at(item, "changes")
        for kind in (value_at(c, "kind"),)
    ]


def _duration_ms(item: Fields) -> object:
    duration_ms = value_at(item, "durationMs")
    if duration_ms is not None:
        return duration_ms
    began, ended = count_at(item, "startedAtMs") or 0, count_at(item, "completedAtMs") or 0
    return ended - began if began and ended >= began else None


def _status_of(info: object) -> int | None:
    """``{"responseTooManyFailedAttempts": {"httpStatusCode": 429}}``, and its like."""
    for each in as_table(info).values():
        status = count_at(each, "httpStatusCode") or 0
        if 100 <= status <= 599:
            return status
    return None


def _server_status(params: Fields) -> OutputItem:
    status, name = text_at(params, "status"), text_at(params, "name")
    if status != "failed":
        return ALIVE
    why = text_at(params, "error") or text_at(params, "failureReason")
    return OutputItem(type=LineType.ERROR, text=shown(f"MCP server {name} did not start: {why}"))


def _in_words(name: str, *, by: str = " ") -> str:
    """``spawnAgent`` as ``spawn agent`` or ``spawn_agent``."""
    return _WORD_BOUNDARY.sub(by, name).lower()
