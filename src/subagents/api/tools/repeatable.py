"""Which calls of tools may be made again by whoever does not know whether they were served."""

from collections.abc import Mapping
from typing import Any, Final

WAIT: Final = "sessions_wait"
WAIT_S: Final = 30.0
"""``sessions_wait`` holds a call so long by default."""
WAIT_S_MAX: Final = 270.0
"""It returns by itself after so long: clients give up after 300 s, of silence or in all."""

REPEATABLE_TOOLS: Final = frozenset(
    {
        "sessions_spawn",  # under the id of the call: the second time returns the first run
        "sessions_wait",
        "sessions_list",
        "sessions_tree",
        "sessions_history",
        "agents_list",
        "request_orchestrator",  # under the id of the call, too
        "report_completion",  # the last one counts
    }
)
REPEATABLE_ACTIONS: Final = frozenset(
    {"list", "status", "log", "why", "inbox", "result", "attention", "kill", "pause", "resume"}
)
"""Actions of the tool ``subagents`` that only look, or are harmless twice."""


def may_repeat(method: str, params: Mapping[str, Any]) -> bool:
    """Whether a request of JSON-RPC may be sent again when it is unknown if it was served."""
    return method != "tools/call" or may_repeat_tool(params.get("name"), params.get("arguments"))


def may_repeat_tool(name: object, arguments: object) -> bool:
    """The same for one call of a tool; a client may put anything there."""
    if name == "subagents":
        action = arguments.get("action") if isinstance(arguments, dict) else None
        return isinstance(action, str) and action in REPEATABLE_ACTIONS
    return isinstance(name, str) and name in REPEATABLE_TOOLS


def wait_s_of(name: object, arguments: object) -> float | None:
    """How long a call of a tool may hold the line, in seconds; None = its tool answers when it can.

    A client may put anything there.
    """
    if name != WAIT:
        return None
    asked = arguments.get("timeoutSeconds", WAIT_S) if isinstance(arguments, dict) else WAIT_S
    # bool is an int to Python, and no number to JSON.
    is_number = isinstance(asked, int | float) and not isinstance(asked, bool)
    return min(max(float(asked), 0.0), WAIT_S_MAX) if is_number else WAIT_S
