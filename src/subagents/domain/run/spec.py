"""What was asked for, kept word for word, and what it was resolved to.

``RunSpec`` never changes after the spawn: retries, restarts and later edits of the configuration
read the same values. ``Resolved`` is what the receipt states.
"""

from enum import StrEnum
from typing import Annotated, Final

from msgspec import structs

from subagents.domain.run.access import Access, AccessLevel
from subagents.domain.run.alert import AlertRules
from subagents.domain.run.parameter import (
    CONTRACT,
    DEPENDENCIES,
    DEPENDENCIES_MAX,
    LIMITS,
    PLACEMENT,
    RETRY,
    SESSION,
    TASK,
    about,
    name,
    names,
    number,
)
from subagents.domain.run.values import Value, replace
from subagents.domain.run.workspace import Worktree

TASK_BYTES_MAX: Final = 256 * 1024
LABEL_CHARS_MAX: Final = 80
PLAN_NAME_CHARS_MAX: Final = 80
BATCH_RUNS_MAX: Final = 1000
RETRY_COUNT_MAX: Final = 100
RETRY_DELAY_MS_MAX: Final = 3_600_000
TIMEOUT_SECONDS_MAX: Final = 30 * 24 * 3600
"""30 days: whoever means longer means none (0)."""
RETRY_TIME_MS_MAX: Final = TIMEOUT_SECONDS_MAX * 1000
VERIFICATION_TIMEOUT_MS_MAX: Final = 3_600_000
ARTIFACTS_MAX: Final = 1000
COMMANDS_MAX: Final = 100
REQUIRED_KEYS_MAX: Final = 1000
PATHS_MAX: Final = 100
JUDGE_SECONDS_MAX: Final = 24 * 3600
PRIORITY_MAX: Final = 1_000_000
TOKENS_MAX: Final = 10**12
COST_USD_MAX: Final = 10**6
PATH_BYTES_MAX: Final = 4096
"""PATH_MAX of Linux, so no longer path can be opened."""
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
    FALLBACK = "fallback"
    """Another agent does the work: ``fallbackAgentId``."""


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
    SANDBOX = "sandbox"
    """The run works in bubblewrap: of its user's files it sees those of its working directory
    alone."""


class Network(StrEnum):
    NONE = "none"
    HOST = "host"


class Artifact(Value, frozen=True, forbid_unknown_fields=True):
    """One file the work must leave behind."""

    path: Annotated[str, about("Path of the file, relative to cwd", form="path")]
    json: Annotated[bool, about("The file parses as JSON")] = False
    min_items: Annotated[
        int | None, about("Fewest items of the top-level array; needs json", minimum=0)
    ] = None
    required_keys: Annotated[
        tuple[str, ...], about("Keys that each item has; needs json", maxItems=REQUIRED_KEYS_MAX)
    ] = ()
    min_bytes: Annotated[int | None, about("The file has at least this size", minimum=0)] = None
    schema: Annotated[dict[str, object] | bool | None, about("JSON Schema it fits")] = None
    sha256: Annotated[str | None, about("SHA-256 of the file, in hexadecimal")] = None
    regex: Annotated[str | None, about("RE2, found in it")] = None
    junit: Annotated[bool, about("JUnit XML without failures")] = False
    min_tests: Annotated[int | None, about("Tests that ran; needs junit", minimum=0)] = None
    newer_than: Annotated[str | None, about("File that was modified before it", form="path")] = None
    min_files: Annotated[int | None, about("Makes path a glob", minimum=0)] = None
    max_files: Annotated[int | None, about("Makes path a glob", minimum=0)] = None
    fresh: Annotated[
        bool | None, about("It was written or changed by the work; default the contract's")
    ] = None

    @property
    def is_json(self) -> bool:
        """Whether the file must be JSON: ``json`` says so, and a ``schema`` implies it."""
        return self.json or self.schema is not None

    @property
    def is_glob(self) -> bool:
        """Whether ``path`` is a pattern; then each file that it matches must be as asked."""
        return self.min_files is not None or self.max_files is not None


class Budget(Value, frozen=True, forbid_unknown_fields=True):
    """Caps the run and all its descendants together, attempts and retries included."""

    max_tokens: Annotated[int | None, number("Uncached, with all below it", 1, TOKENS_MAX)] = None
    max_total_tokens: Annotated[int | None, number("Cached ones included", 1, TOKENS_MAX)] = None
    max_cost_usd: Annotated[
        float | None, number("Cost, with all below it", 0.000_001, COST_USD_MAX, unit="USD")
    ] = None
    max_runs: Annotated[int | None, number("Runs below it, itself included", 1, 1_000_000)] = None
    max_seconds: Annotated[
        float | None,
        number("Time, with retries and waits", 0.001, TIMEOUT_SECONDS_MAX, unit="seconds"),
    ] = None


class Checks(Value, frozen=True, forbid_unknown_fields=True):
    """What of a contract needs no agent to be checked."""

    artifacts: Annotated[
        tuple[Artifact, ...], about("Files it must leave", maxItems=ARTIFACTS_MAX)
    ] = ()
    require_completion_report: Annotated[
        bool, about("The worker must end with a completion report")
    ] = False
    commands: Annotated[
        tuple[str, ...], about("Must exit 0; if the operator allows it", maxItems=COMMANDS_MAX)
    ] = ()
    must_change: Annotated[
        tuple[str, ...], about("Globs of which something changes", maxItems=PATHS_MAX)
    ] = ()
    must_not_change: Annotated[
        tuple[str, ...], about("Globs of which nothing changes", maxItems=PATHS_MAX)
    ] = ()
    fresh: Annotated[bool, about("false: files from before the work count")] = True
    on_failure: Annotated[OnFailure, about("What follows when a check fails")] = OnFailure.FAIL
    verification_timeout_ms: Annotated[
        int,
        number(
            "Longest time for all checks but the judge",
            1,
            VERIFICATION_TIMEOUT_MS_MAX,
            unit="milliseconds",
        ),
    ] = 30_000

    def is_fresh(self, artifact: Artifact) -> bool:
        """Whether the file counts only when the run made its content."""
        return self.fresh if artifact.fresh is None else artifact.fresh

    @property
    def counts_changes(self) -> bool:
        """Whether something in it is compared with what it was before the work."""
        return bool(
            self.must_change
            or self.must_not_change
            or any(self.is_fresh(each) for each in self.artifacts)
        )

    @property
    def names_files(self) -> bool:
        """Whether files are looked at."""
        return bool(self.artifacts or self.must_change or self.must_not_change)

    @property
    def has_patterns(self) -> bool:
        """Whether something in it must be compiled before it can be used."""
        return any(each.schema is not None or each.regex is not None for each in self.artifacts)

    @property
    def has_checks(self) -> bool:
        """Whether anything is asked for."""
        return bool(
            self.artifacts
            or self.commands
            or self.must_change
            or self.must_not_change
            or self.require_completion_report
        )


class Judge(Value, frozen=True, forbid_unknown_fields=True):
    """An agent that looks at finished work once all other checks have passed, and gives a verdict.

    Its fields mean what they mean of a run.
    """

    agent_id: Annotated[str, name("Agent that judges")]
    criteria: Annotated[str, about("What it judges the work by", minLength=1)]
    model: Annotated[str | None, name("Model, where its runtime takes one")] = None
    run_timeout_seconds: Annotated[
        float, number("Deadline of its attempt", 1, JUDGE_SECONDS_MAX, unit="seconds")
    ] = 600
    access: Annotated[AccessLevel, about("What it may do, at most what the judged run may")] = (
        AccessLevel.READ
    )
    budget: Annotated[Budget | None, about("What the judge may use", like="budget")] = None
    verification: Annotated[
        Checks | None, about("Its own contract, without a judge", like="verification")
    ] = None


class Contract(Checks, frozen=True, forbid_unknown_fields=True):
    """What must be true of the output before anybody hears "done"."""

    judge: Annotated[Judge | None, about("Agent that judges last")] = None

    @property
    def has_checks(self) -> bool:
        """Whether anything is asked for."""
        return self.judge is not None or super().has_checks


class ForEach(Value, frozen=True, forbid_unknown_fields=True):
    """Runs for the items of a list that another run makes."""

    run: Annotated[str, name("Run (id or label) whose result is the list")]
    file: Annotated[str | None, about("File of its contract with the list", form="path")] = None
    max_items: Annotated[int, number("A longer list is refused", 1, BATCH_RUNS_MAX)] = 50
    max_parallel: Annotated[int | None, number("Most of them at work", 1, BATCH_RUNS_MAX)] = None


# Unknown fields are refused: a misspelt limit that is ignored is a limit that does not hold.
class RunSpec(Value, frozen=True, forbid_unknown_fields=True):
    """The spawn parameters: the one declaration that every way to spawn is made from.

    A field added here is a parameter everywhere: JSON, tools, plan files, and after ``make docs``
    the flags (scripts/spawn_flags.py says how they are spelled), the Python keywords and the page.
    """

    task: Annotated[str, about("What to do, complete in itself", TASK, form="task", minLength=1)]
    label: Annotated[
        str | None, name("Short name that stands for its id", TASK, chars_max=LABEL_CHARS_MAX)
    ] = None
    agent_id: Annotated[str | None, name("Agent id, or auto", TASK)] = None
    model: Annotated[str | None, name("Model, where its runtime takes one", TASK)] = None
    thinking: Annotated[str | None, name("Thinking level, where one is taken", TASK)] = None
    run_timeout_seconds: Annotated[
        float | None,
        number(
            "Deadline of each attempt; 0 = none", 0, TIMEOUT_SECONDS_MAX, LIMITS, unit="seconds"
        ),
    ] = None
    cwd: Annotated[str | None, about("Directory; default the caller's", PLACEMENT, form="path")] = (
        None
    )
    mode: Annotated[Mode | None, about("session: stays open for messages", SESSION)] = None
    thread: Annotated[
        bool, about("Bind its session to a thread; mode=session needs it", SESSION)
    ] = False
    cleanup: Annotated[
        Cleanup, about("delete: task, session, transcript go with its end", SESSION)
    ] = Cleanup.KEEP
    expects_completion_message: Annotated[
        bool, about("Push its end to you first, then queue it", SESSION)
    ] = True
    chain_after: Annotated[str | None, name("Run (id or label) to start after", DEPENDENCIES)] = (
        None
    )
    depends_on: Annotated[
        tuple[str, ...],
        names("Runs (id or label) to start after", DEPENDENCIES, items_max=DEPENDENCIES_MAX),
    ] = ()
    for_each: Annotated[
        ForEach | None,
        about("A run for each item of a run's list; task has ${{ item }}", DEPENDENCIES),
    ] = None
    gate: Annotated[
        str | None, name("Asks a person, whose yes lets it begin", DEPENDENCIES, chars_max=1000)
    ] = None
    include_dependency_result: Annotated[
        bool, about("Their results precede the task", DEPENDENCIES)
    ] = False
    on_dependency_failure: Annotated[OnDependencyFailure, about("When one fails", DEPENDENCIES)] = (
        OnDependencyFailure.CANCEL
    )
    fallback_agent_id: Annotated[str | None, name("Agent for fallback", DEPENDENCIES)] = None
    accept_partial_dependencies: Annotated[
        bool, about("A partial outcome will do", DEPENDENCIES)
    ] = False
    dependency_timeout_seconds: Annotated[
        float | None,
        number(
            "Longest wait for them; default none",
            0.001,
            TIMEOUT_SECONDS_MAX,
            DEPENDENCIES,
            unit="seconds",
        ),
    ] = None
    retry_count: Annotated[int, number("Attempts after an error", 0, RETRY_COUNT_MAX, RETRY)] = 0
    retry_delay: Annotated[
        int, number("Delay of the first retry", 0, RETRY_DELAY_MS_MAX, RETRY, unit="milliseconds")
    ] = 1000
    retry_backoff: Annotated[Backoff, about("How the delay grows", RETRY)] = Backoff.EXPONENTIAL
    retry_on: Annotated[tuple[str, ...], names("Only errors with these texts", RETRY)] = ()
    retry_max_time: Annotated[
        int | None,
        number("No retry later than this", 0, RETRY_TIME_MS_MAX, RETRY, unit="milliseconds"),
    ] = None
    on_limit: Annotated[
        tuple[str, ...],
        names("Steps at its provider's limit: wait 3d, agent:ID, model:NAME", RETRY, items_max=8),
    ] = ()
    retry_until_verified: Annotated[
        int, number("Attempts after a failed check, in its session", 0, RETRY_COUNT_MAX, RETRY)
    ] = 0
    retry_afresh: Annotated[bool, about("Those in new sessions", RETRY)] = False
    verification: Annotated[
        Contract | None,
        about("What must be true before it counts as done; say it in the task too", CONTRACT),
    ] = None
    completion_report: Annotated[bool, about("Ask for a structured report", CONTRACT)] = False
    progress_reporting: Annotated[bool, about("Ask for progress", TASK)] = False
    tools_allow: Annotated[tuple[str, ...] | None, names("Only these tools", LIMITS)] = None
    tools_deny: Annotated[tuple[str, ...], names("Not these, nor below it", LIMITS)] = ()
    access: Annotated[AccessLevel | None, about("read, write (below cwd) or full", LIMITS)] = None
    budget: Annotated[Budget | None, about("Limits of it and all below", LIMITS)] = None
    lane: Annotated[str | None, name("Slot pool", PLACEMENT)] = None
    place: Annotated[str | None, name("Node label", PLACEMENT)] = None
    priority: Annotated[
        int, number("Higher starts first", -PRIORITY_MAX, PRIORITY_MAX, PLACEMENT)
    ] = 0
    tags: Annotated[tuple[str, ...], names("Words to find it by", TASK)] = ()
    isolation: Annotated[
        Isolation, about("worktree: its own; sandbox: sees only cwd", PLACEMENT)
    ] = Isolation.NONE
    network: Annotated[Network | None, about("Default host; none in a sandbox", LIMITS)] = None
    idempotency_key: Annotated[
        str | None,
        name("The same key within 24 h: the same run", TASK, chars_max=IDEMPOTENCY_KEY_CHARS_MAX),
    ] = None
    continues: Annotated[
        str | None,
        name("Ended run whose session to continue, with task as the next message", SESSION),
    ] = None

    @property
    def attempts_max(self) -> int:
        """So many it has at most, the one retry of ``retry_once`` not counted."""
        return 1 + self.retry_count + self.retry_until_verified


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
    holds: bool = False
    """Asks before each request to its model, so that none can cross a budget."""
    usage_by_turn: bool = False
    """Usage is reported at the end of a turn, not after each answer of the model."""
    freeze: bool = False
    """A live worker can be stopped where it is, and go on later; one with turns is not."""
    isolate: bool = False
    """Works where it sees nothing of its user's but its working directory (``Access.sees``)."""


class PlanBudget(Value, frozen=True):
    """What all runs of one plan may use together."""

    id: str
    """The id of the plan: that of its first run."""
    budget: Budget


class PlanStep(Value, frozen=True):
    """Which step of a plan a run is; runs that a step spawns are none."""

    plan: str
    """Id of the plan: that of its first run."""
    position: int
    """Its place in the plan, from 0. A step that was retried has several runs, of which the newest
    counts."""
    name: str | None = None
    """The plan's name; None = it has none."""
    jobs: int | None = None
    """The most runs of the plan that have a slot at once; None = as their lanes have."""


class AgentChosen(Value, frozen=True):
    """The agent that was chosen for a run that left it open (``auto``), and why."""

    agent_id: str
    among: int
    """How many agents could have taken it."""
    reasons: tuple[str, ...] = ()
    """What spoke for it and against it; () = nothing is known that tells them apart."""

    @property
    def text(self) -> str:
        """``best of 3: has the tags: tests``."""
        why = "; ".join(self.reasons) or "nothing tells them apart"
        which = "only one that can take it" if self.among == 1 else f"best of {self.among}"
        return f"{which}: {why}"


class ScheduledTime(Value, frozen=True):
    """For which time of which schedule a run was started."""

    schedule: str
    """Id of the schedule."""
    name: str
    """The schedule's name, as it was then."""
    due_ms: int
    by_hand: bool = False
    """Somebody started it before its time."""


class ResolvedAgent(Value, frozen=True, kw_only=True, omit_defaults=False):
    """What of ``Resolved`` its agent decides. By itself it is stored with all its fields."""

    agent_id: str
    runtime: str
    lane: str
    lane_slots: int
    model: str | None = None
    thinking: str | None = None
    instructions: str | None = None
    """The instructions of its agent, for every worker of the run."""
    timeout_ms: int = 0
    """0 = none."""
    effective_tools: tuple[str, ...] | None = None
    """None = the runtime's own, unscoped."""
    tools_deny: tuple[str, ...] = ()
    """The tools that it may not use, with those that its requester may not; inherited by every
    descendant."""
    access: Access | None = None
    """None = of a run from before there were levels: nothing was kept from it."""
    grace_ms: int = 5000
    abilities: Abilities = Abilities()
    alerts: AlertRules = AlertRules()
    fleet: tuple[str, ...] = ()
    """The agents it may spawn, one line each; empty where it may spawn none."""
    options: dict[str, object] = {}
    """The agent's runtime section as configured at the spawn (argv, stdin, env, …)."""

    @property
    def mcp_servers(self) -> tuple[str, ...] | None:
        """The MCP servers of its worker besides ours; None = those that its program has."""
        named = self.options.get("mcp_servers")
        return tuple(map(str, named)) if isinstance(named, (list, tuple)) else None


class LimitStep(Value, frozen=True):
    """How long a run waits at a limit of its model's provider, and who goes on with it then."""

    wait_ms: int
    agent: ResolvedAgent | None = None
    """None = nobody: the run ends."""


class Resolved(ResolvedAgent, frozen=True, kw_only=True, omit_defaults=True):
    """What the spawn came to: agent, runtime, limits; stored, so later edits change nothing."""

    mode: Mode
    label: str
    cwd: str
    max_spawn_depth: int = 1
    max_announce_chars: int = 4000
    worktree: Worktree | None = None
    """Where it works apart from others; ``cwd`` lies in it."""
    max_transcript_mb: float = 32
    shared_budget: Budget | None = None
    """What was left, at the spawn, of the budgets above it that it shares with other runs."""
    judge: "Resolved | None" = None
    """What the judge of its contract came to; None = it has none."""
    place: str | None = None
    """Label that the node has on which it works; None = any will do."""
    commands_trusted: bool = False
    """The commands of its contract are the operator's own."""
    contract_root: str | None = None
    """The directory in which an agent's contract is checked: its working directory at the spawn,
    without links. None = the contract is the operator's, or of 0.1.0."""
    step: PlanStep | None = None
    """None = it was not spawned with a plan."""
    plan: PlanBudget | None = None
    """The budget that it shares with the other runs of its plan, and those below them."""
    chosen: AgentChosen | None = None
    """None = its agent was named, or is the default one."""
    scheduled: ScheduledTime | None = None
    """None = no schedule started it."""
    tags_above: tuple[str, ...] = ()
    """The tags of the runs above it: what it uses counts towards their caps, too."""
    caller_env: tuple[str, ...] | None = None
    """Names of the variables that its caller brought; their values are in a file next to the run.
    None = there is none."""
    fallback: ResolvedAgent | None = None
    """The agent that takes over when a dependency fails; None = none does, or it did."""
    instead_of: str | None = None
    """The agent that was asked for, where another one took over."""
    on_limit: tuple[LimitStep, ...] = ()
    """What follows at limits of its provider, one after another; behind the last it waits as a run
    without any."""
    began_as: ResolvedAgent | None = None
    """The agent before the first limit at which another one took over."""

    @property
    def fallen_back(self) -> "Resolved":
        """The same with its fallback agent; one that has none is its own."""
        return self if self.fallback is None else replace(self._of(self.fallback), fallback=None)

    def handed_over(self, times: int) -> "Resolved":
        """The same with the agent that took over at so many limits; 0 = none did."""
        agent = self.on_limit[times - 1].agent if times else None
        if agent is None:
            return self
        names = ResolvedAgent.__struct_fields__
        before = self.began_as or ResolvedAgent(**{each: getattr(self, each) for each in names})
        return replace(self._of(agent), began_as=before)

    @property
    def taken_over(self) -> str:
        """Who goes on after a limit, in words."""
        if self.began_as is not None and self.began_as.agent_id == self.agent_id:
            return f"its model is {self.model} from now on"
        return f"agent {self.agent_id} takes over from {self.instead_of}"

    def _of(self, agent: ResolvedAgent) -> "Resolved":
        # The agent's fields alone: the run keeps its label, directory and contract.
        asked = self.instead_of or self.agent_id
        return replace(self, chosen=None, instead_of=asked, **structs.asdict(agent))

    @property
    def project(self) -> str:
        """The directory whose configuration holds for it; a worktree may lack files that do."""
        return self.cwd if self.worktree is None else self.worktree.origin
