"""The requesters' tools as flat JSON Schema: what a model is shown of them.

By hand and short: every word is paid for in each session that has the tools. No ``anyOf``,
``oneOf``, ``allOf``, ``$ref`` and no lists of types: some providers refuse them. Bounds are not
repeated here; the decoder refuses with a message that says what is allowed.

Source: 3-tools.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from subagents.api.tools.tool import Schema


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


_ARTIFACT: Final = {
    "type": "object",
    "properties": {
        "path": text("Relative to cwd"),
        "json": flag("Must parse"),
        "minItems": whole("Of the top-level array; needs json"),
        "requiredKeys": texts("Of each item; needs json"),
        "minBytes": whole(),
        "schema": _one("object", "JSON Schema"),
        "sha256": text(),
    },
    "required": ["path"],
    "additionalProperties": False,
}
_CONTRACT: Final = {
    "type": "object",
    "description": "What must be true of the output before it counts as done; write it into the "
    "task too",
    "properties": {
        "artifacts": {"type": "array", "description": "Files it must leave", "items": _ARTIFACT},
        "requireCompletionReport": flag(),
        "commands": texts("Must exit 0; only where the operator allows it"),
        "onFailure": word(["fail", "retry_once", "escalate"]),
        "verificationTimeoutMs": whole(),
    },
    "additionalProperties": False,
}
_BUDGET: Final = {
    "type": "object",
    "description": "For the run and all below it",
    "properties": {
        "maxTokens": whole(),
        "maxCostUsd": number(),
        "maxRuns": whole(),
        "maxSeconds": number(),
    },
    "additionalProperties": False,
}

SPAWN: Final = flat(
    {
        "task": text("What to do, complete in itself. Required unless batch is given"),
        "label": text("Short name; other tools take it instead of the id"),
        "agentId": text("Who does it: see agents_list"),
        "model": text("Where its runtime takes one"),
        "thinking": text("Level, where its runtime takes one"),
        "runTimeoutSeconds": number("Deadline of each attempt; 0 = none"),
        "cwd": text("Absolute; default yours"),
        "mode": word(["run", "session"]),
        "thread": flag("Required for mode=session"),
        "cleanup": word(["keep", "delete"], "Of its session; the result is kept"),
        "expectsCompletionMessage": flag("Default true: its end comes to your inbox"),
        "chainAfter": text("Run to start after"),
        "dependsOn": texts("Runs (id or label) to start after"),
        "includeDependencyResult": flag("Put their results before the task"),
        "onDependencyFailure": word(["cancel", "run"], "Default cancel"),
        "acceptPartialDependencies": flag("A partial outcome will do"),
        "dependencyTimeoutSeconds": number("Default 1800"),
        "retryCount": whole("Default 0"),
        "retryDelay": whole("ms, default 1000"),
        "retryBackoff": word(["exponential", "linear", "fixed"]),
        "retryOn": texts("Only errors with one of these texts"),
        "retryMaxTime": whole("ms in all"),
        "verification": _CONTRACT,
        "completionReport": flag("Ask the worker for a structured report"),
        "progressReporting": flag("Ask the worker for progress"),
        "toolsAllow": texts("Narrow its tools"),
        "toolsDeny": texts("Also for all below it"),
        "budget": _BUDGET,
        "lane": text("Pool of slots"),
        "priority": whole("Higher starts first"),
        "tags": texts(),
        "isolation": word(["none", "worktree"], "worktree: a git worktree of its own"),
        "idempotencyKey": text("The same key never spawns twice"),
        "continues": text("Ended run whose session goes on; task is the next message in it"),
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
