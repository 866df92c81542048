"""What a viewer may ask for: what runs did, and nothing of the installation.

All else is closed, whoever adds it: configuration, agents, statistics of all sessions, diagnostics,
nodes, logins, protocols of agents, and the routes of other distributions' extensions; see
docs/decisions/0114.
"""

from typing import Final

from starlette.routing import compile_path
from starlette.types import Scope

_RUN: Final = "/v1/runs/{sel}"
SEEN: Final = (
    *("/healthz", "/version", "/v1/login", "/v1/events", "/v1/attention", "/v1/alerts"),
    *("/v1/runs", "/v1/tree", "/v1/graph", "/v1/inbox", "/v1/requests/{id}", _RUN),
    *(f"{_RUN}/{each}" for each in ("status", "why", "timeline", "tree", "log", "progress")),
    *(f"{_RUN}/{each}" for each in ("result", "result/text", "diff")),
    *(f"{_RUN}/{each}" for each in ("artifacts", "artifacts/content")),
    *("/v1/plans", "/v1/plans/{sel}", "/v1/schedules", "/v1/schedules/{sel}"),
)
"""Paths of calls that read; as routes have them."""
_SEEN: Final = tuple(compile_path(each)[0] for each in SEEN)


def may_see(scope: Scope) -> bool:
    """Whether a viewer may make this call, which reads."""
    path = scope["raw_path"].decode("latin-1")  # as routes are found by it, its escapes unresolved
    return any(each.fullmatch(path) for each in _SEEN)
