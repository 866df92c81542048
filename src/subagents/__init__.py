"""One local service that any agent can call and any agent can work for.

The names are imported when they are first used: the command line starts in a fraction of the time.
"""

import sys

from subagents.version import __version__ as __version__

# Type checkers take it for theirs; importing typing would be half of the bridge's start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from subagents.api.wire.run_answers import Outcome, RunResult
    from subagents.client.orchestrator import Orchestrator
    from subagents.client.run_handle import RunFailed, RunHandle
    from subagents.client.spawn_request import PlanRun
    from subagents.client.sync_client import Subagents, SyncRunHandle
    from subagents.client.worker_function import Unanswered, WorkerContext, worker
    from subagents.errors import (
        AlreadyRunning,
        ConfigError,
        Conflict,
        DaemonUnreachable,
        Forbidden,
        NotFound,
        SubagentsError,
        UsageError,
    )

__all__ = [
    "AlreadyRunning",
    "ConfigError",
    "Conflict",
    "DaemonUnreachable",
    "Forbidden",
    "NotFound",
    "Orchestrator",
    "Outcome",
    "PlanRun",
    "RunFailed",
    "RunHandle",
    "RunResult",
    "Subagents",
    "SubagentsError",
    "SyncRunHandle",
    "Unanswered",
    "UsageError",
    "WorkerContext",
    "worker",
]

_ELSEWHERE = {
    "Orchestrator": "client.orchestrator",
    "Outcome": "api.wire.run_answers",
    "PlanRun": "client.spawn_request",
    "RunFailed": "client.run_handle",
    "RunHandle": "client.run_handle",
    "RunResult": "api.wire.run_answers",
    "Subagents": "client.sync_client",
    "SyncRunHandle": "client.sync_client",
    "Unanswered": "client.worker_function",
    "WorkerContext": "client.worker_function",
    "worker": "client.worker_function",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


class _FormerNames:
    """Finds modules by the names that they had; before all others, or there were two of each."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> object:
        """See ``former_names``, which is imported only for such a name."""
        if not name.startswith(("subagents.testing", "subagents.runtimes.conversation")):
            return None
        from subagents.former_names import spec_of  # noqa: PLC0415

        return spec_of(name)


sys.meta_path.insert(0, _FormerNames)  # type: ignore[arg-type]  # a finder by its method
