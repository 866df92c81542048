"""The requesters' tools as flat JSON Schema: what a model is shown of them.

Short, since every word is paid for in each session that has the tools. No ``anyOf``, ``oneOf``,
``allOf``, ``$ref`` and no lists of types: some providers refuse them. Bounds are not repeated here;
the decoder refuses with a message that says what is allowed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import inspect, json

from subagents.api.tools.tool import Schema
from subagents.domain.run.parameter import Parameter, parameters
from subagents.domain.run.spec import RunSpec

NAMED_WELL: Final = frozenset(
    {
        *("mode", "retryCount", "retryBackoff", "tags"),
        *("verification.requireCompletionReport", "verification.onFailure"),
        *("verification.verificationTimeoutMs", "verification.artifacts[].minBytes"),
        *("verification.artifacts[].json", "verification.artifacts[].sha256"),
        *("budget.maxTokens", "budget.maxCostUsd", "budget.maxRuns", "budget.maxSeconds"),
    }
)
"""Parameters whose name and type tell a model enough: their words would only cost it."""
QUOTE: Final = '"'


def flat(properties: Mapping[str, Schema], *required: str) -> Schema:
    """A schema of these parameters and no others."""
    schema: dict[str, object] = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    return {**schema, "additionalProperties": False}


def _one(kind: str, description: str) -> Schema:
    return {"type": kind, "description": description} if description else {"type": kind}


def text(description: str = "") -> Schema:
    return _one("string", description)


def number(description: str = "") -> Schema:
    return _one("number", description)


def whole(description: str = "") -> Schema:
    return _one("integer", description)


def flag(description: str = "") -> Schema:
    return _one("boolean", description)


def texts(description: str = "") -> Schema:
    return {**_one("array", description), "items": {"type": "string"}}


def word(allowed: Sequence[str], description: str = "") -> Schema:
    return {**_one("string", description), "enum": list(allowed)}


def schema_of(declared: Iterable[Parameter], also: Mapping[str, str] = {}) -> dict[str, Schema]:
    """The schemas of parameters by their names, with their meaning, unit and default in words.

    Args:
        declared: As their struct declares them.
        also: What only a tool's caller must know of one, by its name.
    """
    return {
        each.name.rpartition(".")[2]: _schema_of(each, also.get(each.name, "")) for each in declared
    }


def _schema_of(parameter: Parameter, also: str) -> Schema:
    said = (parameter.description, *_derived(parameter), also)
    words = "" if parameter.name in NAMED_WELL else "; ".join(filter(None, said))
    if parameter.choices:
        return word(parameter.choices, words)
    required = [each.attribute for each in parameter.inner if each.is_required]
    inside = flat(schema_of(parameter.inner), *required)
    match parameter.type:
        case inspect.VarTupleType() if parameter.inner:
            return {**_one("array", words), "items": inside}
        case inspect.VarTupleType():
            return texts(words)
        case inspect.StructType():
            return {**_one("object", words), **inside}
        case inspect.BoolType():
            return flag(words)
        case inspect.IntType():
            return whole(words)
        case inspect.FloatType():
            return number(words)
        case inspect.DictType():
            return _one("object", words)
        case _:
            return text(words)


def _derived(parameter: Parameter) -> Iterator[str]:
    if parameter.unit == "milliseconds" and not parameter.name.endswith("Ms"):
        yield "ms"
    # That nothing, no or zero is the default goes without saying.
    if parameter.default:
        yield f"default {json.encode(parameter.default).decode().strip(QUOTE)}"


SPAWN: Final = flat(
    {
        **schema_of(
            parameters(RunSpec),
            {
                "task": "required unless batch is given",
                "agentId": "see agents_list",
                "cwd": "absolute",
            },
        ),
        "batch": {
            "type": "array",
            "description": "Many runs, all or nothing: each an object of these parameters; the "
            "ones beside batch hold for all. dependsOn may name labels of the batch",
            "items": {"type": "object"},
        },
    }
)

WAIT: Final = flat(
    {
        "runIds": texts("Ids or labels; empty = all yours"),
        "until": word(["any", "all"], "Default any"),
        "timeoutSeconds": number("0 to 600, default 30; returns after 270 with what is pending"),
    }
)

LIST: Final = flat(
    {
        "kinds": {"type": "array", "items": {"type": "string", "enum": ["run", "session"]}},
        "activeMinutes": number("Active, or ended within so many minutes"),
        "label": text(),
        "agentId": text(),
        "phase": text("One or several, with commas"),
        "tag": text(),
        "limit": whole("Default 20, at most 200"),
        "offset": whole(),
    }
)

TREE: Final = flat({"root": text("Run to begin at; default all yours"), "depth": whole("Levels")})

HISTORY: Final = flat(
    {
        "sessionKey": text("Or a run id or label"),
        "limit": whole("Default 50"),
        "offset": whole(),
        "includeTools": flag("Progress too"),
    },
    "sessionKey",
)

SEND: Final = flat(
    {
        "sessionKey": text("Or a run id"),
        "label": text("Instead of sessionKey"),
        "message": text(),
        "mode": word(
            ["steer", "followup"],
            "steer (default): into the live turn; followup: the next, or a new run when it ended",
        ),
    },
    "message",
)

ACTIONS: Final = (
    "list",
    "status",
    "log",
    "steer",
    "interrupt",
    "kill",
    "pause",
    "resume",
    "why",
    "inbox",
    "answer",
    "result",
    "attention",
)

SUBAGENTS: Final = flat(
    {
        "action": word(ACTIONS),
        "target": text("Run: id, label, unique prefix, last; answer: the request id"),
        "message": text("For steer and answer; the reason of kill and interrupt"),
        "grep": text("log: regex"),
        "since": text("log: 5m, 2d, ISO time"),
        "type": text("log: text, thinking, tool, error, system, user; several with commas"),
        "summary": flag("log: a digest instead of lines"),
        "attempt": whole("log"),
        "afterSeq": whole("log: nextSeq of the page before"),
        "tail": whole("log: newest lines"),
        "offset": whole("log: line, default the newest; result: character"),
        "limit": whole("log: lines, default 50"),
    },
    "action",
)

AGENTS: Final = flat(
    {
        "hint": text("The work in words: ranks the agents"),
        "tags": texts("Wanted"),
        "costTier": word(["free", "cheap", "medium", "expensive"], "Preferred"),
        "limit": whole(),
    }
)

RESPOND: Final = flat(
    {
        "requestId": text(),
        "response": text(),
        "decision": word(["answer", "approve", "deny"], "Default answer"),
    },
    "requestId",
    "response",
)
