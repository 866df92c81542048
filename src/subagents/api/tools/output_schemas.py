"""What each tool answers as data, for clients that check it: from the structs of the wire.

Short, because some clients list it: names and plain types, no descriptions (``GET /openapi.json``
has those). Nothing is required: a refusal is an answer, too, with other fields. What may be null
has no type: a list of types is more than every provider takes.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from subagents.api.tools import act_tools, list_tools, spawn_tool, tool_wording
from subagents.api.tools.tool import Schema
from subagents.api.wire.agent_answers import SuggestedAgent
from subagents.api.wire.message_answers import (
    AttentionItem,
    History,
    HistoryMessage,
    Taken,
    WorkerRequest,
)
from subagents.api.wire.run_answers import (
    RunNode,
    RunResult,
    RunRow,
    RunState,
    SentMessage,
    SpawnReceipt,
    WaitError,
)

OBJECT: Final[Schema] = {"type": "object"}
TEXT: Final[Schema] = {"type": "string"}
COUNT: Final[Schema] = {"type": "integer"}


def _fields(kind: type[msgspec.Struct], names: Iterable[str] = ()) -> dict[str, Schema]:
    """The fields of a struct, those of ``names`` when there are any."""
    _, known = msgspec.json.schema_components([kind])
    properties = known[kind.__name__]["properties"]
    return {name: _plain(properties[name]) for name in names or properties}


def _plain(schema: Mapping[str, Any]) -> Schema:
    if "$ref" in schema:
        return OBJECT
    kind = schema.get("type")
    if kind == "array":
        return {"type": kind, "items": _plain(schema["items"])}
    return {} if kind is None else {"type": kind}


def _object(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(properties)}


def _list(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "array", "items": _object(properties)}


_RECEIPT: Final = _fields(SpawnReceipt, spawn_tool.RECEIPT)
_TAKEN: Final = _fields(Taken)
_ASKED: Final = ("status", "requestId", "answer", "decision", "answeredAt", "deadlineAt")

OUTPUTS: Final[Mapping[str, Schema]] = {
    "sessions_spawn": _object({**_RECEIPT, "receipts": _list({}), "wake": TEXT}),
    "sessions_wait": _object(
        {
            "completed": _list(_fields(RunResult, tool_wording.ENDED)),
            "pending": _list(_fields(RunState, ("runId", "label", "phase", "why"))),
            "errors": _list(_fields(WaitError)),
            "needs": _list(_fields(AttentionItem, tool_wording.NEED)),
            "moreCompleted": COUNT,
        }
    ),
    "sessions_list": _object(
        {"sessions": _list(_fields(RunRow, list_tools.ROW)), "total": COUNT, "nextOffset": {}}
    ),
    "sessions_tree": _object(
        {
            "roots": _list(_fields(RunNode, (*list_tools.NODE, "children"))),
            "hidden": COUNT,
            "olderRoots": COUNT,
        }
    ),
    "sessions_history": _object(
        {**_fields(History), "messages": _list(_fields(HistoryMessage))},
    ),
    "sessions_send": _object(
        _fields(SentMessage, (*act_tools.SENT, "continues", "warnings")),
    ),
    "subagents": OBJECT,
    "agents_list": _object(
        {
            "agents": _list(_fields(SuggestedAgent)),
            "total": COUNT,
            "ranked": {"type": "boolean"},
            "hint": TEXT,
        }
    ),
    "respond_orchestrator_request": _object(_fields(WorkerRequest, act_tools.RESPONDED)),
    "report_completion": _object({**_TAKEN, "report": OBJECT}),
    "report_progress": _object(_TAKEN),
    "notify_parent": _object({**_TAKEN, "priority": TEXT, "limit": TEXT}),
    "request_orchestrator": _object(
        {**_fields(WorkerRequest, _ASKED), "answeredBy": TEXT, "limit": TEXT}
    ),
}
"""By the name of the tool; ``subagents`` answers another document for each action."""
