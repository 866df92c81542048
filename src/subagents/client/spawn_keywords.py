"""The keywords of ``Orchestrator.spawn``; written by ``make docs`` from ``RunSpec``."""

from collections.abc import Mapping, Sequence
from typing import Literal, Required, TypedDict


class ForEachParameters(TypedDict, total=False):
    """The parameters of one foreach."""

    run: Required[str]
    """Run (id or label) whose result is the list."""
    file: str | None
    """File of its contract with the list."""
    max_items: int
    """A longer list is refused."""
    max_parallel: int | None
    """Most of them at work."""


class ArtifactParameters(TypedDict, total=False):
    """The parameters of one artifact."""

    path: Required[str]
    """Path of the file, relative to cwd."""
    json: bool
    """The file parses as JSON."""
    min_items: int | None
    """Fewest items of the top-level array; needs json."""
    required_keys: Sequence[str]
    """Keys that each item has; needs json."""
    min_bytes: int | None
    """The file has at least this size."""
    schema: Mapping[str, object] | bool | None
    """JSON Schema it fits."""
    sha256: str | None
    """SHA-256 of the file, in hexadecimal."""
    regex: str | None
    """RE2, found in it."""
    junit: bool
    """JUnit XML without failures."""
    min_tests: int | None
    """Tests that ran; needs junit."""
    newer_than: str | None
    """File that was modified before it."""
    min_files: int | None
    """Makes path a glob."""
    max_files: int | None
    """Makes path a glob."""
    fresh: bool | None
    """It was written or changed by the work; default the contract's."""


class JudgeParameters(TypedDict, total=False):
    """The parameters of one judge."""

    agent_id: Required[str]
    """Agent that judges."""
    criteria: Required[str]
    """What it judges the work by."""
    model: str | None
    """Model, where its runtime takes one."""
    run_timeout_seconds: float | str
    """Deadline of its attempt."""
    access: Literal["read", "write", "full"]
    """What it may do, at most what the judged run may."""
    budget: "BudgetParameters | None"
    """What the judge may use."""
    verification: "ContractParameters | None"
    """Its own contract, without a judge."""


class ContractParameters(TypedDict, total=False):
    """The parameters of one contract."""

    artifacts: Sequence[ArtifactParameters]
    """Files it must leave."""
    require_completion_report: bool
    """The worker must end with a completion report."""
    commands: Sequence[str]
    """Must exit 0; if the operator allows it."""
    must_change: Sequence[str]
    """Globs of which something changes."""
    must_not_change: Sequence[str]
    """Globs of which nothing changes."""
    fresh: bool
    """false: files from before the work count."""
    on_failure: Literal["retry_once", "escalate", "fail"]
    """What follows when a check fails."""
    verification_timeout_ms: int | str
    """Longest time for all checks but the judge."""
    judge: JudgeParameters | None
    """Agent that judges last."""


class BudgetParameters(TypedDict, total=False):
    """The parameters of one budget."""

    max_tokens: int | None
    """Uncached, with all below it."""
    max_total_tokens: int | None
    """Cached ones included."""
    max_cost_usd: float | None
    """Cost, with all below it."""
    max_runs: int | None
    """Runs below it, itself included."""
    max_seconds: float | str | None
    """Time, with retries and waits."""


class SpawnParameters(TypedDict, total=False):
    """The parameters of one spawn."""

    label: str | None
    """Short name that stands for its id."""
    agent_id: str | None
    """Agent id, or auto."""
    model: str | None
    """Model, where its runtime takes one."""
    thinking: str | None
    """Thinking level, where one is taken."""
    run_timeout_seconds: float | str | None
    """Deadline of each attempt; 0 = none."""
    cwd: str | None
    """Directory; default the caller's."""
    mode: Literal["run", "session"] | None
    """session: stays open for messages."""
    thread: bool
    """Bind its session to a thread; mode=session needs it."""
    cleanup: Literal["keep", "delete"]
    """delete: task, session, transcript go with its end."""
    expects_completion_message: bool
    """Push its end to you first, then queue it."""
    chain_after: str | None
    """Run (id or label) to start after."""
    depends_on: Sequence[str]
    """Runs (id or label) to start after."""
    for_each: ForEachParameters | None
    """A run for each item of a run's list; task has ${{ item }}."""
    gate: str | None
    """Asks a person, whose yes lets it begin."""
    include_dependency_result: bool
    """Their results precede the task."""
    on_dependency_failure: Literal["cancel", "run", "fallback"]
    """When one fails."""
    fallback_agent_id: str | None
    """Agent for fallback."""
    accept_partial_dependencies: bool
    """A partial outcome will do."""
    dependency_timeout_seconds: float | str | None
    """Longest wait for them; default none."""
    retry_count: int
    """Attempts after an error."""
    retry_delay: str
    """Delay of the first retry, like ``500ms`` or ``5s``."""
    retry_backoff: Literal["exponential", "linear", "fixed"]
    """How the delay grows."""
    retry_on: Sequence[str]
    """Only errors with these texts."""
    retry_max_time: str | None
    """No retry later than this, like ``500ms`` or ``5s``."""
    on_limit: Sequence[str]
    """Steps at its provider's limit: wait 3d, agent:ID, model:NAME."""
    retry_until_verified: int
    """Attempts after a failed check, in its session."""
    retry_afresh: bool
    """Those in new sessions."""
    verification: ContractParameters | None
    """What must be true before it counts as done; say it in the task too."""
    completion_report: bool
    """Ask for a structured report."""
    progress_reporting: bool
    """Ask for progress."""
    tools_allow: Sequence[str] | None
    """Only these tools."""
    tools_deny: Sequence[str]
    """Not these, nor below it."""
    access: Literal["read", "write", "full"] | None
    """read, write (below cwd) or full."""
    budget: BudgetParameters | None
    """Limits of it and all below."""
    lane: str | None
    """Slot pool."""
    place: str | None
    """Node label."""
    priority: int
    """Higher starts first."""
    tags: Sequence[str]
    """Words to find it by."""
    isolation: Literal["none", "worktree", "sandbox"]
    """worktree: its own; sandbox: sees only cwd."""
    network: Literal["none", "host"] | None
    """Default host; none in a sandbox."""
    idempotency_key: str | None
    """The same key within 24 h: the same run."""
    continues: str | None
    """Ended run whose session to continue, with task as the next message."""
