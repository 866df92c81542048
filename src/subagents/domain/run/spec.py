"""What was asked for, kept word for word, and what it was resolved to.

``RunSpec`` never changes after the spawn: retries, restarts and later edits of the configuration
read the same values (2-lifecycle §2). ``Resolved`` is what the receipt states.
"""

from enum import StrEnum
from typing import Final

from subagents.domain.run.alert import AlertRules
from subagents.domain.run.values import Value
from subagents.domain.run.workspace import Worktree

TASK_BYTES_MAX: Final = 256 * 1024
LABEL_CHARS_MAX: Final = 80
BATCH_RUNS_MAX: Final = 1000
RETRY_COUNT_MAX: Final = 100
RETRY_DELAY_MS_MAX: Final = 3_600_000
IDEMPOTENCY_KEY_CHARS_MAX: Final = 255
IDEMPOTENCY_WINDOW_MS: Final = 24 * 3_600_000


class Mode(StrEnum):
    RUN = "run"
    SESSION = "session"


class Cleanup(StrEnum):
    KEEP = "keep"
    DELETE = "delete"


class OnDependencyFailure(StrEnum):
    CANCEL = "cancel"
    RUN = "run"


class Backoff(StrEnum):
    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    FIXED = "fixed"


class OnFailure(StrEnum):
    RETRY_ONCE = "retry_once"
    ESCALATE = "escalate"
    FAIL = "fail"


class Isolation(StrEnum):
    NONE = "none"
    WORKTREE = "worktree"


class Artifact(Value, frozen=True, forbid_unknown_fields=True):
    """One file the work must leave behind (2-lifecycle §6)."""

    path: str
    json: bool = False
    min_items: int | None = None
    required_keys: tuple[str, ...] = ()
    min_bytes: int | None = None
    schema: dict[str, object] | bool | None = None
    sha256: str | None = None


class Contract(Value, frozen=True, forbid_unknown_fields=True):
    """What must be true of the output before anybody is told "done"."""

    artifacts: tuple[Artifact, ...] = ()
    require_completion_report: bool = False
    commands: tuple[str, ...] = ()
    on_failure: OnFailure = OnFailure.FAIL
    verification_timeout_ms: int = 30_000


class Budget(Value, frozen=True, forbid_unknown_fields=True):
    """Caps the run and all its descendants together, attempts and retries included."""

    max_tokens: int | None = None
    max_cost_usd: float | None = None
    max_runs: int | None = None
    max_seconds: float | None = None


class RunSpec(Value, frozen=True, forbid_unknown_fields=True):
    """The spawn parameters, with the names of the tool ``sessions_spawn`` (3-tools)."""

    task: str
    label: str | None = None
    agent_id: str | None = None
    model: str | None = None
    thinking: str | None = None
    run_timeout_seconds: float | None = None
    cwd: str | None = None
    mode: Mode | None = None
    thread: bool = False
    cleanup: Cleanup = Cleanup.KEEP
    expects_completion_message: bool = True
    chain_after: str | None = None
    depends_on: tuple[str, ...] = ()
    include_dependency_result: bool = False
    on_dependency_failure: OnDependencyFailure = OnDependencyFailure.CANCEL
    accept_partial_dependencies: bool = False
    dependency_timeout_seconds: float = 1800
    retry_count: int = 0
    retry_delay: int = 1000
    retry_backoff: Backoff = Backoff.EXPONENTIAL
    retry_on: tuple[str, ...] = ()
    retry_max_time: int | None = None
    verification: Contract | None = None
    completion_report: bool = False
    progress_reporting: bool = False
    tools_allow: tuple[str, ...] | None = None
    tools_deny: tuple[str, ...] = ()
    budget: Budget | None = None
    lane: str | None = None
    priority: int = 0
    tags: tuple[str, ...] = ()
    isolation: Isolation = Isolation.NONE
    idempotency_key: str | None = None
    continues: str | None = None
    """A run that ended, whose session this one goes on with; ``task`` is the next message in it."""


class Abilities(Value, frozen=True):
    """What a runtime can do; declared by its adapter, stored with the run it starts."""

    survives_daemon: bool = False
    steer: bool = False
    resume: bool = False
    scope_tools: bool = False
    interrupt: bool = False
    usage: bool = False
    model: bool = False
    """Takes ``model`` and ``thinking``; others refuse a spawn that names them."""


class Resolved(Value, frozen=True):
    """What the spawn came to: agent, runtime, limits; stored, so later edits change nothing."""

    agent_id: str
    runtime: str
    mode: Mode
    label: str
    cwd: str
    lane: str
    lane_slots: int
    model: str | None = None
    thinking: str | None = None
    timeout_ms: int = 0
    """0 = none."""
    effective_tools: tuple[str, ...] | None = None
    """None = the runtime's own, unscoped."""
    tools_deny: tuple[str, ...] = ()
    """With the requester's; inherited by every descendant."""
    max_spawn_depth: int = 1
    max_announce_chars: int = 4000
    worktree: Worktree | None = None
    """Where it works apart from others; ``cwd`` lies in it."""
    grace_ms: int = 5000
    abilities: Abilities = Abilities()
    alerts: AlertRules = AlertRules()
    max_transcript_mb: float = 32
    fleet: tuple[str, ...] = ()
    """The agents it may spawn, one line each; empty where it may spawn none."""
    shared_budget: Budget | None = None
    """What was left, at the spawn, of the budgets above it that it shares with other runs."""
    options: dict[str, object] = {}
    """The agent's runtime section as configured at the spawn (argv, stdin, env, …)."""

    @property
    def project(self) -> str:
        """The directory whose configuration holds for it; a worktree may lack files that do."""
        return self.cwd if self.worktree is None else self.worktree.origin
