"""What tools take and what they answer, as flat JSON Schema.

``schema`` and ``SPAWN`` are what a model is shown of a tool: short, since every word is paid for in
each session that has the tools. No ``anyOf``, ``oneOf``, ``allOf``, ``$ref`` and no lists of types:
some providers refuse them. Bounds are not repeated here; the decoder refuses with a message that
says what is allowed.

``OUTPUTS`` is for clients that check answers, from the structs of the wire: names and plain types
without descriptions (``GET /openapi.json`` has those), because some clients list it. Nothing is
required: a refusal is an answer, too, with other fields. What may be null has no type.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import inspect, json

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
from subagents.domain.run.parameter import Parameter, parameters
from subagents.domain.run.spec import RunSpec

NAMED_WELL: Final = frozenset(
    {
        *("mode", "retryCount", "tags", "model", "thinking", "acceptPartialDependencies", "lane"),
        *("verification.requireCompletionReport", "verification.onFailure", "fallbackAgentId"),
        *("place", "priority", "retryAfresh", "label", "network", "toolsAllow"),
        *("verification.verificationTimeoutMs", "verification.artifacts[].minBytes"),
        *("verification.artifacts[].json", "verification.artifacts[].sha256", "chainAfter"),
        *("verification.artifacts[].junit", "verification.artifacts[].minTests"),
        *("verification.artifacts[].newerThan", "verification.artifacts[].maxFiles"),
        *("verification.artifacts[].fresh", "verification.artifacts[].minItems", "retryBackoff"),
        *("verification.mustChange", "verification.mustNotChange", "dependencyTimeoutSeconds"),
        *("completionReport", "progressReporting", "verification.artifacts[].requiredKeys"),
        "includeDependencyResult",
    }
)
"""Spawn parameters whose name and type tell a model enough: their words would only cost it."""
FOLDED: Final = frozenset({"budget", "forEach", "verification.judge"})
"""Rarely given: their keys are named in one line, and the decoder knows the rest."""
ALSO: Final = {
    "task": "required unless batch is given",
    "agentId": "see agents_list",
    "cwd": "absolute",
}
"""What only the caller of ``sessions_spawn`` must know of a parameter."""
BATCH: Final = {
    "type": "array",
    "description": "Many runs, all or nothing: objects of these parameters; the "
    "ones beside it hold for all. dependsOn may name their labels",
    "items": {"type": "object"},
}
QUOTE: Final = '"'
_KINDS: Final = {
    inspect.BoolType: "boolean",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.VarTupleType: "array",
    inspect.StructType: "object",
    inspect.DictType: "object",
}

OBJECT: Final[Schema] = {"type": "object"}
TEXT: Final[Schema] = {"type": "string"}
COUNT: Final[Schema] = {"type": "integer"}
FLAG: Final[Schema] = {"type": "boolean"}


def schema(struct: type[msgspec.Struct]) -> Schema:
    """What a model is shown of a tool whose arguments are decoded into ``struct``."""
    return _object(parameters(struct), _words)


def _object(declared: Sequence[Parameter], words: Callable[[Parameter], str]) -> Schema:
    properties = {each.name.rpartition(".")[2]: _property(each, words) for each in declared}
    required = [name for name, each in zip(properties, declared, strict=True) if each.is_required]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _property(parameter: Parameter, words: Callable[[Parameter], str]) -> Schema:
    description = words(parameter)
    one = {
        "type": _KINDS.get(type(parameter.type), "string"),
        **({"description": description} if description else {}),
    }
    items: Schema = {"type": "string"}
    if parameter.name in FOLDED:
        return one
    if parameter.inner:
        items = _object(parameter.inner, words)
    elif parameter.choices:
        items = {"type": "string", "enum": list(parameter.choices)}
    elif not parameter.is_list:
        return one
    return {**one, "items": items} if parameter.is_list else {**items, **one}


def _words(parameter: Parameter) -> str:
    """The meaning, with the unit and the default where they do not go without saying."""
    parts = [parameter.description] if parameter.description else []
    if parameter.unit == "milliseconds" and not parameter.name.endswith("Ms"):
        parts.append("ms")
    if parameter.default:  # not: nothing, no or zero
        parts.append(f"default {json.encode(parameter.default).decode().strip(QUOTE)}")
    return "; ".join(parts)


def _spawn_words(parameter: Parameter) -> str:
    if parameter.name in NAMED_WELL:
        return ""
    if parameter.name in FOLDED:
        keys = ", ".join(each.name.rpartition(".")[2] for each in parameter.inner)
        return f"{parameter.description}: {keys}"
    also = ALSO.get(parameter.name)
    return f"{_words(parameter)}; {also}" if also else _words(parameter)


_ONE: Final = _object(parameters(RunSpec), _spawn_words)
_PARAMETERS: Final = cast("Mapping[str, Schema]", _ONE["properties"])
SPAWN: Final[Schema] = {
    "type": "object",
    "properties": {**_PARAMETERS, "batch": BATCH},
    "additionalProperties": False,
}
"""``task`` is not required: with ``batch`` each entry has its own."""


def _fields(kind: type[msgspec.Struct], names: Iterable[str] = ()) -> dict[str, Schema]:
    """The fields of a struct, those of ``names`` when there are any."""
    _, known = msgspec.json.schema_components([kind])  # nested structs become ``$ref`` there
    properties = known[kind.__name__]["properties"]
    return {name: _plain(properties[name]) for name in names or properties}


def _plain(schema: Mapping[str, Any]) -> Schema:
    if "$ref" in schema:
        return OBJECT
    kind = schema.get("type")
    # ``anyOf``, which is what may be null, has no type: such a field may be anything.
    if kind == "array":
        return {"type": kind, "items": _plain(schema["items"])}
    return {} if kind is None else {"type": kind}


def _answer(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(properties)}


def _list(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "array", "items": _answer(properties)}


_RECEIPT: Final = _fields(SpawnReceipt, spawn_tool.RECEIPT)
_TAKEN: Final = _fields(Taken)
_ASKED: Final = ("status", "requestId", "answer", "decision", "answeredAt", "deadlineAt")

OUTPUTS: Final[Mapping[str, Schema]] = {
    "sessions_spawn": _answer({**_RECEIPT, "receipts": _list({}), "wake": TEXT}),
    "sessions_wait": _answer(
        {
            "completed": _list(_fields(RunResult, tool_wording.ENDED)),
            "pending": _list(_fields(RunState, ("runId", "label", "phase", "why"))),
            "errors": _list(_fields(WaitError)),
            "needs": _list(_fields(AttentionItem, tool_wording.NEED)),
            "moreCompleted": COUNT,
            "morePending": COUNT,
        }
    ),
    "sessions_list": _answer(
        {
            "sessions": _list(_fields(RunRow, list_tools.ROW)),
            "total": COUNT,
            "totalIsBound": FLAG,
            "nextOffset": {},
        }
    ),
    "sessions_tree": _answer(
        {
            "roots": _list(_fields(RunNode, (*list_tools.NODE, "children"))),
            "hidden": COUNT,
            "olderRoots": COUNT,
            "olderRootsIsBound": FLAG,
        }
    ),
    "sessions_history": _answer(
        {**_fields(History), "messages": _list(_fields(HistoryMessage))},
    ),
    "sessions_send": _answer(
        _fields(SentMessage, (*act_tools.SENT, "continues", "warnings")),
    ),
    "subagents": OBJECT,
    "agents_list": _answer(
        {
            "agents": _list(_fields(SuggestedAgent)),
            "total": COUNT,
            "ranked": {"type": "boolean"},
            "hint": TEXT,
        }
    ),
    "respond_orchestrator_request": _answer(_fields(WorkerRequest, act_tools.RESPONDED)),
    "report_completion": _answer({**_TAKEN, "report": OBJECT}),
    "report_progress": _answer(_TAKEN),
    "notify_parent": _answer({**_TAKEN, "priority": TEXT, "limit": TEXT}),
    "request_orchestrator": _answer(
        {**_fields(WorkerRequest, _ASKED), "answeredBy": TEXT, "limit": TEXT}
    ),
}
"""The schema of each tool's answer; ``subagents`` answers another document for each action."""
