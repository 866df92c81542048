"""Alerts: short news of a run, one line per cause, and the rules when they are due.

What finds them is in ``detectors`` (lines) and ``budgets`` (usage); what keeps them from flooding
the requester's context is in ``allowance``.
"""

from enum import StrEnum
from typing import TypeAlias

from subagents.domain.run.values import Value


class AlertKind(StrEnum):
    """The structured events that are alerts.

    ``completion`` is the announcement and ``cc_message`` a worker's notice: both have messages of
    their own.
    """

    API_ERROR = "api_error"
    STUCK = "stuck"
    BUDGET_ALERT = "budget_alert"
    TASK_MILESTONE = "task_milestone"
    BUILD_RESULT = "build_result"
    GIT_COMMIT = "git_commit"
    CONTEXT_PRESSURE = "context_pressure"
    SUBAGENT_SPAWN = "subagent_spawn"
    FAILURE_LOOP = "failure_loop"
    SAME_PATH = "same_path"


class OnStuck(StrEnum):
    """What is done about a worker that fell silent, besides its alert."""

    TELL = "tell"
    """Nothing: whoever reads the alert decides."""
    STEER = "steer"
    """It is asked where it stands; one that takes no messages is escalated."""
    CANCEL = "cancel"
    """Its run ends as ``cancelled``, for the reason ``stuck``."""
    ESCALATE = "escalate"
    """Its requester gets a blocker instead of the alert; what it answers goes to the worker."""


Field: TypeAlias = str | int | float | bool | None


class Alert(Value, frozen=True):
    """One piece of news."""

    kind: AlertKind
    text: str
    """What stands behind ``[subagent:<label>] ``, on one line, its sign included."""
    key: str
    """Unique within the run, and the same when the same lines are looked at again."""
    fields: dict[str, Field] = {}
    """The fields of the structured event, in camelCase, without ``type``, ``event`` and
    ``agentId``."""


class AlertRules(Value, frozen=True):
    """When alerts are due, as configured for the agent at the spawn."""

    stuck_ms: int = 300_000
    stuck_tool_ms: int = 1_200_000
    """While a tool runs."""
    on_stuck: OnStuck = OnStuck.TELL
    """What is done about it, also where ``off`` names its alert, and whatever is left of the hour's
    allowance."""
    budget_percent: tuple[int, ...] = (50, 80, 100)
    cost_usd: tuple[float, ...] = (1.0, 5.0, 10.0, 25.0)
    """The marks for a run that has no budget."""
    context_percent: tuple[int, ...] = (50, 75, 90)
    failures: int = 3
    commit_batch_ms: int = 30_000
    tokens_per_hour: int = 600
    """How many tokens of alerts are pushed to the requester per run; more becomes one digest
    line."""
    off: tuple[AlertKind, ...] = ()
    """The kinds that are never pushed; they are on the event stream all the same."""
