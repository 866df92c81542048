"""Answers about the daemon itself: health, version, configuration, diagnostics, tools."""

from msgspec import UNSET, UnsetType

from subagents.api.wire.message_answers import ChannelState
from subagents.api.wire.schedule_answers import ScheduleRow
from subagents.api.wire.wire_struct import Time, WireStruct
from subagents.api.wire.words import UNSAID, Phase


class Health(WireStruct, frozen=True, kw_only=True):
    """The process answers."""

    status: str = "ok"
    """`ok` or `degraded`; either way it answers."""
    degraded: str | UnsetType = UNSET
    """Why this node of a cluster starts nothing; absent = it does."""


class Readiness(WireStruct, frozen=True, kw_only=True):
    """Whether new runs are accepted."""

    status: str = "ok"
    """`ok` or `degraded`."""
    degraded: str | None = None
    """Why they are not; null = they are."""


class DaemonVersion(WireStruct, frozen=True, kw_only=True):
    """Which daemon this is."""

    version: str = ""
    """The package's version."""
    schema: int = 0
    """The version of the database's schema."""
    pid: int = 0
    """Its process id."""
    started_at: Time | None = None
    """When it started."""
    database: str = ""
    """Its file."""
    degraded: str | None = None
    """Why new runs are not accepted; null = they are."""
    problem: str | None = None
    """Why this node of a cluster starts nothing; null = it does."""
    set_aside: list[str] = []
    """Runs, messages and events that are damaged and left out; `doctor` says why."""


class ConfigValue(WireStruct, frozen=True, kw_only=True):
    """One setting."""

    key: str = ""
    """Its name with dots, as the configuration file has it."""
    value: object = None
    """The value in effect; secrets are hidden."""
    origin: str = ""
    """Where it came from."""


class EffectiveConfig(WireStruct, frozen=True, kw_only=True):
    """The effective configuration."""

    files: list[str] = []
    """That were read, in order."""
    warnings: list[str] = []
    """What of them was ignored."""
    values: list[ConfigValue] = []
    """Every setting."""


class Orphan(WireStruct, frozen=True, kw_only=True):
    """A process of an attempt that is over."""

    attempt_id: str = ""
    """The run's id and the number."""
    pid: int = 0
    """The process's id."""


class SweepResult(WireStruct, frozen=True, kw_only=True):
    """What a sweep did."""

    archived: int = 0
    """Runs that were put away."""
    pruned: int = 0
    """Runs that were deleted."""
    redriven: int = 0
    """Runs whose next step was done again."""
    orphans: list[Orphan] = []
    """Processes whose attempts are over."""


class RecoveredRun(WireStruct, frozen=True, kw_only=True):
    """What was decided about a run when the daemon started."""

    run_id: str = ""
    """Its id."""
    phase: Phase = UNSAID
    """The phase in which it was found."""
    decision: str = ""
    """What was done."""


class SetAsideRow(WireStruct, frozen=True, kw_only=True):
    """Something stored that is damaged, left out everywhere and never changed."""

    name: str = ""
    """A run's or message's id, or `<run id>/<seq>` of an event."""
    run_id: str = ""
    """Whose it is."""
    reason: str = ""
    """What is wrong with it."""


class DatabaseState(WireStruct, frozen=True, kw_only=True):
    """The database."""

    path: str = ""
    """Its file, or its address."""
    bytes: int = 0
    """Its size."""
    problems: list[str] = []
    """What a check of it found."""


class DiskState(WireStruct, frozen=True, kw_only=True):
    """Where the state is kept."""

    free_bytes: int | None = None
    """Room that is left."""


class TelemetryState(WireStruct, frozen=True, kw_only=True):
    """Where spans go, and how that is going."""

    endpoint: str = ""
    """Where they are sent."""
    spans_sent: int = 0
    """Spans that arrived."""
    spans_refused: int = 0
    """Spans that were not taken."""
    last_sent_at: Time | None = None
    """When some last arrived."""
    last_error: str | None = None
    """Why the newest ones did not arrive; null = they did."""


class Refusal(WireStruct, frozen=True, kw_only=True):
    """A call that was turned away."""

    refused_at: Time | None = None
    """When it was turned away."""
    call: str = ""
    """`POST /v1/runs`, or a tool's name."""
    reason: str = ""
    """Why it was turned away."""
    by: str = ""
    """The session in whose name it was made; `unknown` when that was not proved."""
    peer: str = ""
    """The process or address it came from; empty = not known."""
    run_id: str | None = None
    """The run whose worker it claimed to be."""


class RecentRefusals(WireStruct, frozen=True, kw_only=True):
    """Who was turned away lately."""

    file: str = ""
    """The file that has all of them."""
    last_day: int = 0
    """How many there were in the last 24 hours."""
    newest: list[Refusal] = []
    """The newest ones, at most five."""


class SharedBudget(WireStruct, frozen=True, kw_only=True):
    """A cap over several runs, of `[budgets]` or of a plan, and what is used of it."""

    key: str = ""
    """Where it is configured; of a plan `plan:` and its first run."""
    max_tokens: int | None = None
    """The limit of uncached tokens, read and written; null = none."""
    max_total_tokens: int | None = None
    """The limit with those that come from a cache."""
    max_cost_usd: float | None = None
    """The limit in US dollars; null = none."""
    tokens: int = 0
    """Uncached tokens used."""
    total_tokens: int = 0
    """The same with those that came from a cache."""
    cost_usd: float = 0
    """US dollars used, as far as known; a lower bound while `costUnknownRuns` is not 0."""
    cost_unknown_runs: int = 0
    """Runs with an ended attempt whose cost was not reported."""
    held_tokens: int = 0
    """Kept free for requests of our own loop that are under way."""
    text: str = ""
    """The same in words: `80k of 100k tokens`."""
    exhausted: bool = False
    """Nothing is left: runs under it are stopped, and new ones refused."""
    until_at: Time | None = None
    """When the day ends; null = it is not of a day."""


class LaneState(WireStruct, frozen=True, kw_only=True):
    """A lane at one depth: runs of different depths never wait for each other's slots."""

    name: str = ""
    """The lane."""
    depth: int = 0
    """1 = of runs that a top-level session asked for."""
    slots: int = 0
    """Slots that there are, as the daemon's configuration has it."""
    used: int = 0
    """Slots that are taken."""
    queued: int = 0
    """Runs that wait for one."""


class Diagnostics(WireStruct, frozen=True, kw_only=True):
    """What `doctor` shows of the running daemon."""

    daemon_pid: int = 0
    """Its process id."""
    uptime_seconds: int = 0
    """How long it has been running."""
    open_runs: int = 0
    """Runs that are not over."""
    live_attempts: int = 0
    """Workers at work."""
    recoveries: list[RecoveredRun] = []
    """What was decided about runs when it started."""
    set_aside: list[SetAsideRow] = []
    """What it leaves out because it is damaged."""
    database: DatabaseState = DatabaseState()
    """Its size and problems."""
    disk: DiskState = DiskState()
    """Room that is left."""
    log: str = ""
    """Its log file."""
    telemetry: TelemetryState | None = None
    """Where spans go; null = nowhere."""
    notifications: list[ChannelState] = []
    """The channels on which people hear of runs."""
    user_directory: str = ""
    """The home directory of the user as whom it runs."""
    socket: str = ""
    """Its Unix socket."""
    supervisor_socket: str = ""
    """The socket of supervisors."""
    http_url: str | None = None
    """Its address on TCP; null = it has none."""
    attempts_dir: str = ""
    """Where workers' files are."""
    degraded: str | None = None
    """Why new runs are not accepted; null = they are."""
    orphans: list[Orphan] = []
    """Processes whose attempts are over."""
    containment: str = ""
    """How workers' processes are kept together, in words."""
    refusals: RecentRefusals = RecentRefusals()
    """Who was turned away."""
    lanes: list[LaneState] = []
    """Lanes in which something is at work or waits."""
    budgets: list[SharedBudget] = []
    """Caps over several runs."""
    schedules: list[ScheduleRow] = []
    """What is started at its times."""
    node: str | None = None
    """Its name in its cluster; null = it is in none."""
    started_by: str | None = None
    """The agent program whose client started it; null = another one, or a command."""
    login_variables: list[str] = []
    """Names of the variables it has by which a worker asks its model provider, for runs whose
    caller brings none."""


class Stopping(WireStruct, frozen=True, kw_only=True):
    """The daemon stops; workers continue, the next daemon adopts them."""

    status: str = "stopping"
    """Always `stopping`."""
    pid: int = 0
    """Its process id."""


class ToolDescription(WireStruct, frozen=True, kw_only=True):
    """A tool that the caller is shown."""

    name: str = ""
    """Its name."""
    description: str = ""
    """What it does."""
    audience: str = ""
    """`requester` or `worker`."""
    input_schema: dict[str, object] = {}
    """JSON Schema of its arguments."""
    output_schema: dict[str, object] = {}
    """JSON Schema of its answer as data."""
    annotations: dict[str, bool] = {}
    """Hints: `readOnlyHint`, `destructiveHint`, `idempotentHint`, `openWorldHint`."""


class ToolList(WireStruct, frozen=True, kw_only=True):
    """The tools that the caller is shown."""

    tools: list[ToolDescription] = []
    """The tools, always in the same order."""


class ToolAnswer(WireStruct, frozen=True, kw_only=True):
    """What a tool answers; one that refuses answers, too."""

    text: str = ""
    """The answer as text."""
    structured: dict[str, object] = {}
    """The same as data."""
    is_error: bool = False
    """It refused; `structured` says why."""
    offered: list[str] = []
    """Messages that are handed over, to be acknowledged."""
