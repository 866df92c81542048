"""Answers about runs: a row, everything about one, its result, its node in a tree, its receipt."""

from subagents.api.wire.listing import Listing, Truncated
from subagents.api.wire.message_answers import AttentionItem, Progress, WorkerRequest
from subagents.api.wire.usage_answers import BudgetState, BudgetUse, TreeUsage, Usage
from subagents.api.wire.wire_struct import NamedRun, Time, WireStruct
from subagents.api.wire.words import (
    UNSAID,
    AccessLevel,
    ChangeKind,
    CheckType,
    Confidence,
    Keeper,
    Mode,
    OutcomeReason,
    OutcomeStatus,
    Overshoot,
    Phase,
    Priority,
    ReportStatus,
    RunStatusWord,
    StopCause,
    VerificationState,
    VerificationStatus,
    WaitKind,
    shown_state,
)


class Outcome(WireStruct, frozen=True, kw_only=True):
    """How a run or an attempt ended."""

    status: OutcomeStatus = UNSAID
    """`ok`, `partial`, `error`, `timeout`, `cancelled` or `lost`."""
    reason: OutcomeReason | None = None
    """A stable code of why it is not plain `ok`."""
    error: str | None = None
    """The same in words."""

    @property
    def is_ok(self) -> bool:
        """With a contract: every check passed."""
        return self.status == "ok"


class Check(WireStruct, frozen=True, kw_only=True):
    """One check of a contract."""

    type: CheckType = UNSAID
    """`artifact`, `change`, `completion_report`, `command` or `judge`."""
    target: str = ""
    """The file, the path or the command."""
    passed: bool = False
    """Whether it holds."""
    reason: str | None = None
    """Why it does not."""
    evidence: str | None = None
    """What was found."""


class FileChange(WireStruct, frozen=True, kw_only=True):
    """One file that was changed in a worktree."""

    path: str = ""
    """Its path from the root of the repository."""
    kind: ChangeKind = UNSAID
    """`added`, `modified` or `deleted`."""
    insertions: int | None = None
    """Lines added; null for a binary file."""
    deletions: int | None = None
    """Lines removed; null for a binary file."""


class Changes(WireStruct, frozen=True, kw_only=True):
    """What a run changed in its worktree, committed or not."""

    summary: str = ""
    """All of it in one line: `3 files changed, +40 -2, 1 commit`."""
    deleted: list[str] = []
    """Files that are gone, by name."""
    out_of_scope: list[str] = []
    """Changed files that its contract does not name."""
    kept_branches: list[str] = []
    """Where the work of attempts before this one is kept."""
    files: int = 0
    """How many were changed."""
    insertions: int = 0
    """Lines added."""
    deletions: int = 0
    """Lines removed."""
    commits: int = 0
    """Commits that the worker made."""
    ignored: int = 0
    """Files and directories that git ignores."""
    deleted_files: int = 0
    """How many of `files` are gone; `deleted` may name fewer."""
    changed: list[FileChange] = []
    """The changed files, at most 200, the deleted ones first."""
    error: str | None = None
    """Why it could not be looked at; then nothing else is known."""


class Workspace(WireStruct, frozen=True, kw_only=True):
    """The worktree of a run."""

    isolation: str = "worktree"
    """Always `worktree`."""
    path: str = ""
    """Its root, absolute."""
    branch: str = ""
    """Its branch."""
    repository: str = ""
    """Root of the checkout it comes from."""
    origin: str = ""
    """The working directory that was asked for."""
    kept: bool | None = None
    """Whether it is still there; null until the run is over."""
    changes: Changes | None = None
    """What was changed; null until an attempt has ended."""


class Verification(WireStruct, frozen=True, kw_only=True):
    """What the contract found."""

    status: VerificationStatus = UNSAID
    """`passed`, `failed`, or `skipped`: it never ran, or could not check."""
    checks: list[Check] = []
    """One for each thing the contract asks for."""
    verified_at: Time | None = None
    """When it was checked."""
    vacuous: bool = False
    """All of it held before the work began: `passed` proves nothing then."""
    changes: Changes | None = None
    """What a run with a worktree changed there, for information."""


class ReportedFile(WireStruct, frozen=True, kw_only=True):
    """A file that a worker says it left."""

    path: str = ""
    """The path that was given."""
    description: str | None = None
    """The worker's description of it."""


class ResultFile(ReportedFile, frozen=True, kw_only=True):
    """A file that the contract asks for, or that the worker reported."""

    verified: bool = False
    """A check of the contract passed for it, and had not passed before the work."""


class WorkerReport(WireStruct, frozen=True, kw_only=True):
    """The worker's own claim of completion: evidence, never the outcome."""

    summary: str = ""
    """What was done."""
    status: ReportStatus = "complete"
    """`complete`, `partial` or `failed`."""
    confidence: Confidence | None = None
    """`high`, `medium` or `low`."""
    artifacts: list[ReportedFile] = []
    """Files it left."""
    blockers: list[str] = []
    """What stood in the way."""
    warnings: list[str] = []
    """What the requester should look at."""


class Claim(WireStruct, frozen=True, kw_only=True):
    """What a worker claims about its work, in short: evidence, never the outcome."""

    status: ReportStatus | None = None
    """`complete`, `partial` or `failed`; null = it reported nothing, `summary` is from its
    result."""
    confidence: Confidence | None = None
    """`high`, `medium` or `low`."""
    summary: str = ""
    """The first line of it, at most 300 characters."""


class Verdict(WireStruct, frozen=True, kw_only=True):
    """What a contract found, in short."""

    status: VerificationStatus = UNSAID
    """`passed`, `failed`, or `skipped`: it never ran, or could not check."""
    passed: int = 0
    """So many of its checks hold."""
    checks: int = 0
    """So many it has; of an attempt before the newest they are not kept: 0."""
    found: str | None = None
    """The first thing that does not hold, or could not be checked; at most 300 characters."""


class RunLink(NamedRun, frozen=True, kw_only=True):
    """A run that another one waits for, or spawned."""

    outcome: Outcome | None = None
    """How it ended; null while it is active."""


class WaitRoot(NamedRun, frozen=True, kw_only=True):
    """The run at the end of a chain of runs that wait for each other."""

    kind: WaitKind | None = None
    """What it waits for in turn; null = it is at work."""
    name: str | None = None
    """The lane, plan or provider."""


class Wait(WireStruct, frozen=True, kw_only=True):
    """What a run waits for now."""

    kind: WaitKind = UNSAID
    """`provider` (it refuses for now), `lane` (a slot), `plan` (so many of its runs work already),
    `runs` (other runs have to end first), `retry` (its next attempt is due later), `answer` (to a
    question) or `paused`."""
    name: str | None = None
    """The lane, plan or provider."""
    status: int | None = None
    """The HTTP status of the provider's refusal, where it is known."""
    runs: list[NamedRun] = []
    """The runs that have not ended, at most 20; with `provider` the one that goes first."""
    runs_total: int = 0
    """How many runs that are."""
    root: WaitRoot | None = None
    """The end of the chain of runs that wait for each other, with `runs`."""
    place: int | None = None
    """Its place in the lane's line, 1 = next."""
    used: int | None = None
    """The lane's slots that are taken; null in a cluster, all of whose nodes use them."""
    slots: int | None = None
    """The lane's slots."""
    request_id: str | None = None
    """The oldest open question, with `answer`."""
    ends_at: Time | None = None
    """When it ends by itself; null = not known, or never."""
    gives_up_at: Time | None = None
    """When the run stops waiting for it; null = never."""


class Standing(NamedRun, frozen=True, kw_only=True):
    """A run, where it is, and how it ended."""

    phase: Phase = UNSAID
    """Its place in the life of a run: `queued`, `running`, `completed`, …"""
    outcome: Outcome | None = None
    """How it ended; null until then."""


class RunState(Standing, frozen=True, kw_only=True, omit_defaults=True):
    """Where a run is, in short: the answer to a change of it, or one that a wait still waits for.

    What does not apply is left out.
    """

    status: str | None = None
    """What the call came to, such as `cancelling` or `already ended`."""
    why: str | None = None
    """Why it is where it is, in one sentence."""


class RunHead(Standing, frozen=True, kw_only=True):
    """What a run in a list and one in a tree both show."""

    agent_id: str = ""
    """The configured agent."""
    session_key: str = ""
    """The session its newest attempt works in."""
    run_status: RunStatusWord = UNSAID
    """One word for people: the outcome's status, `blocked`, `paused`, `waiting` or the phase."""
    state: str = ""
    """The one of six words that people are shown: `waiting`, `working`, `needs_you`, `ok`, `failed`
    or `cancelled`."""
    latest_progress: Progress | None = None
    """What its worker last reported of its progress."""
    pending_request_count: int = 0
    """Open questions of its worker."""
    usage: Usage | None = None
    """What its own attempts used; null when nothing was reported."""
    subtree_usage: TreeUsage | None = None
    """What it and everything below it used; null for a run without children."""
    why: str | None = None
    """Why it is where it is, in one sentence."""
    vacuous: bool = False
    """Its contract was met before the work began: that it is met proves nothing."""
    wait: Wait | None = None
    """What it waits for, as data; null = nothing: it is at work, or has ended."""
    last_sign_at: Time | None = None
    """When its worker last gave a sign of life; null before it began, and once it has ended."""
    claim: Claim | None = None
    """What its worker claims about its work; null = nothing yet."""
    verdict: Verdict | None = None
    """What its contract found; null without a contract, and until it is known."""
    budget: BudgetState | None = None
    """How it stands to its own budget; null = it has none."""
    charged_to: NamedRun | None = None
    """The nearest run above whose budget pays for it, while it is open; null = it has a budget of
    its own, or none is above it."""
    cancel_at: Time | None = None
    """When it is cancelled, as somebody asked; until then it can be taken back."""
    interrupt_at: Time | None = None
    """When its turn is ended, as somebody asked; until then it can be taken back."""
    read_at: Time | None = None
    """When its end was read, or marked as read; null = it is unread, or has not ended."""

    @property
    def shown_state(self) -> str:
        """One word: its outcome once there is one, else `blocked`, `paused` or its phase."""
        return shown_state(self)


class BelowCounts(WireStruct, frozen=True, kw_only=True):
    """The runs below one, on all levels."""

    runs: int = 0
    """So many."""
    states: dict[str, int] = {}
    """How many have each `runStatus`, such as `ok`, `error`, `running` or `waiting`."""
    is_bound: bool = False
    """There may be more: for all rows of an answer together at most 20,000 are counted."""


class RunRow(RunHead, frozen=True, kw_only=True):
    """A run in a list."""

    runtime: str | None = None
    """The runtime that runs it."""
    requester: str = ""
    """The session that asked for it."""
    depth: int = 0
    """1 = spawned by a top-level session."""
    attempt: int = 0
    """The newest attempt's number; 0 before the first."""
    attempts_max: int = 1
    """So many it has at most, the one retry of `onFailure: retry_once` not counted."""
    blocked_reason: str | None = None
    """The oldest open question."""
    created_at: Time | None = None
    """When it was spawned."""
    started_at: Time | None = None
    """When its first attempt began."""
    ended_at: Time | None = None
    """When its outcome was known."""
    took_ms: int | None = None
    """How long it has been at work, to its end if it has one; null before it began."""
    phase_since_at: Time | None = None
    """When it entered its phase."""
    task: str | None = None
    """The beginning of its task, at most 500 characters."""
    tags: list[str] = []
    """Words to find it by."""
    model: str | None = None
    """The model it was given; null = the program's own choice."""
    directory: str = ""
    """The directory of its project, absolute."""
    plan_id: str | None = None
    """The plan it is a step of; null = none."""
    plan_name: str | None = None
    """The plan's name."""
    requester_run: str | None = None
    """The run that spawned it; null for a top-level session's."""
    retry_from: str | None = None
    """The run whose parameters it repeats."""
    below: BelowCounts | None = None
    """The runs below it, by state; only in lists of `roots` or `folded`, null = there are none."""


class NextTime(WireStruct, frozen=True, kw_only=True):
    """What is started at its time."""

    name: str = ""
    """What that is called."""
    next_at: Time | None = None
    """When it is due next."""


class RunPage(Listing, frozen=True, kw_only=True):
    """A page of runs, newest first."""

    runs: list[RunRow] = []
    """The runs, at most `limit`."""
    total: int | None = None
    """So many fit. Counting ends at 1,000, or at the end of the page: see `totalIsBound`."""
    total_is_bound: bool = False
    """More than `total` fit."""
    limit: int | None = None
    """The `limit` that was asked for."""
    offset: int = 0
    """So many newer ones were left out."""
    hidden: int = 0
    """So many more fit that are archived: `archived=1` shows them. At most 1,000 are counted."""
    hidden_is_bound: bool = False
    """More than `hidden` are archived."""
    set_aside: list[str] = []
    """Runs, messages and events that are damaged and left out; `doctor` says why."""
    scheduled: list[NextTime] = []
    """What is started next, the first first; for operators, at most three."""


class Attempt(WireStruct, frozen=True, kw_only=True):
    """One try at a run."""

    attempt_id: str = ""
    """The run's id and the number."""
    number: int = 0
    """Its number, from 1."""
    session_key: str = ""
    """The session it works in."""
    retry_of: str | None = None
    """The attempt that it repeats."""
    retry_reason: str | None = None
    """Why there had to be another."""
    verification_retry: bool = False
    """It repeats one that failed its contract."""
    requested_at: Time | None = None
    """When its runtime was asked to start it."""
    started_at: Time | None = None
    """When it began."""
    ended_at: Time | None = None
    """When it ended."""
    deadline_at: Time | None = None
    """When it is stopped at the latest."""
    turns: int = 1
    """Turns of the conversation with its worker."""
    resumes: str | None = None
    """The program's own session in which it continues."""
    node: str | None = None
    """Name of the daemon that started it."""
    pid: int | None = None
    """The id of its process."""
    outcome: Outcome | None = None
    """How it ended."""
    exit_code: int | None = None
    """The exit code of its process."""
    exit_signal: int | None = None
    """The signal that ended its process."""
    stop_cause: StopCause | None = None
    """Why it was stopped: `cancel`, `deadline`, `budget`, `parent`, `interrupt` or
    `provider`."""
    stderr_tail: str | None = None
    """The end of its standard error."""
    usage: Usage | None = None
    """What it used."""
    report: WorkerReport | None = None
    """Its claim of completion."""
    report_from: str | None = None
    """`tool`, or `text` when it was read from its result."""
    report_problem: str | None = None
    """Why the report in its result is none."""
    claim: Claim | None = None
    """What its worker claims about its work, in short."""
    verdict: Verdict | None = None
    """What the contract found of it; null = there is none, or it was not asked."""


class DeliveryTry(WireStruct, frozen=True, kw_only=True):
    """One try at telling the requester how a run ended."""

    tried_at: Time | None = None
    """When it was tried."""
    target: str = ""
    """The session that it went to."""
    requester_depth: int = 0
    """How deep that session is; 0 = top level."""
    nested: bool = False
    """It is the session of a run."""
    route_mode: str = ""
    """How it was tried."""
    phases: list[str] = []
    """What was tried, in order."""
    outcome: dict[str, object] = {}
    """What it came to: `{kind, …}`."""
    idempotency_key: str = ""
    """The same in every try of one announcement."""


class Delivery(WireStruct, frozen=True, kw_only=True):
    """How the end of a run was handed over."""

    target: str = ""
    """The session that it goes to."""
    tries: list[DeliveryTry] = []
    """The newest ones."""
    tries_total: int = 0
    """So many there were."""
    failures: int = 0
    """Failed tries in a row."""
    due_at: Time | None = None
    """When it is tried again."""


class Cancellation(WireStruct, frozen=True, kw_only=True):
    """Who asked for the end of a run."""

    by: str = ""
    """The session that asked."""
    reason: str | None = None
    """Its reason, in its own words."""
    requested_at: Time | None = None
    """When it asked."""


class RunDetail(RunRow, frozen=True, kw_only=True):
    """Everything about one run, but at most 8,000 characters of its result."""

    spec: dict[str, object] = {}
    """The spawn parameters, with defaults."""
    original_spawn_params: dict[str, object] = {}
    """The spawn parameters as they were given."""
    resolved: dict[str, object] = {}
    """What they came to; values of the agent's `env` are hidden."""
    attempts: list[Attempt] = []
    """All of them, the oldest first."""
    continues: str | None = None
    """The run whose session it continues."""
    continued_by: str | None = None
    """The newest run that continues its session."""
    thread_id: str | None = None
    """The conversation outside that its session is bound to."""
    native_session: str | None = None
    """What the worker's program calls the session."""
    retries_used: int = 0
    """Retries that are used up, but for the one of `onFailure: retry_once`."""
    retry_due_at: Time | None = None
    """When its next attempt is due."""
    dependencies: list[RunLink] = []
    """The runs it waits for."""
    children: list[RunLink] = []
    """The runs it spawned."""
    requests: list[WorkerRequest] = []
    """What its worker asked."""
    delivery: Delivery | None = None
    """How its end was handed over."""
    verification: Verification | None = None
    """What its contract found; null without a contract, and until it is known."""
    verification_state: VerificationState | None = None
    """Where verifying stands."""
    retry_attempted_at: Time | None = None
    """When the one retry after a failed verification was begun; null = it was not."""
    result: str | None = None
    """What the worker gave, cut."""
    result_bytes: int = 0
    """The size of the whole result."""
    artifacts: list[ResultFile] = []
    """The contract's files, then those reported."""
    last_words: str | None = None
    """The end of its output, when it gave no result."""
    files_left: list[str] = []
    """Files of its contract that exist, when it ended badly."""
    workspace: Workspace | None = None
    """Its worktree, and what it changed there."""
    report: WorkerReport | None = None
    """The worker's claim of completion."""
    budget: BudgetUse | None = None
    """Its own budget; null = none."""
    cancel: Cancellation | None = None
    """Who asked for its end; null = it was not cancelled."""
    paused: bool = False
    """It does not start anything until it is resumed."""
    deadline_at: Time | None = None
    """When its newest attempt is stopped at the latest."""
    wait_deadline_at: Time | None = None
    """How long it waits for its dependencies."""
    announcement_consumed_at: Time | None = None
    """When its requester took the result."""
    dismissed_at: Time | None = None
    """When somebody marked its end as read; its requester may not have the result yet."""
    archived_at: Time | None = None
    """When it was put away."""


class PendingRequest(WireStruct, frozen=True, kw_only=True):
    """An open question, in a status."""

    request_id: str = ""
    """`<runId>:q<n>`."""
    question: str = ""
    """The question, at most 500 characters of it."""
    options: list[str] = []
    """Possible answers."""
    priority: Priority | None = None
    """A notice's priority; null = a question, whose worker waits."""
    asked_at: Time | None = None
    """When it was asked."""
    deadline_at: Time | None = None
    """When it expires."""


class AccessAnswer(WireStruct, frozen=True, kw_only=True):
    """What a worker may do."""

    level: AccessLevel = UNSAID
    """`read`, `write` (below `below`) or `full`."""
    below: str | None = None
    """The directory below which it may write; null = nowhere, or with `full` everywhere."""
    network: bool = True
    """Whether its commands and tools may reach the network."""
    sees: str | None = None
    """The only directory of its user's that it sees in a sandbox; null = all its user does."""
    kept_by: Keeper | None = None
    """`program` (its own sandbox), `bubblewrap` or `tools`; null = nothing enforces it."""
    narrowed: str | None = None
    """Why it is less than its agent has."""
    text: str = ""
    """The same in one line."""


class Granted(WireStruct, frozen=True, kw_only=True):
    """What a run was given to work with; fixed at its spawn."""

    resolved_model: str | None = None
    """The model; null = the program's own choice."""
    effective_tools: list[str] | None = None
    """The tools it was narrowed to; null = what its runtime offers."""
    tools_deny: list[str] = []
    """The tools it was denied."""
    mcp_servers: list[str] | None = None
    """Its MCP servers besides ours; null = those that its program has."""
    access: AccessAnswer | None = None
    """What its worker may do; null = of a run from before there were levels."""
    cwd: str = ""
    """Where it works, absolute."""


class RunStatus(RunRow, frozen=True, kw_only=True):
    """How a run is doing now: its row, and what its worker was last seen at."""

    took: str | None = None
    """How long it has been at work, in words."""
    granted: Granted | None = None
    """What it was given to work with, as in its receipt."""
    state: RunStatusWord = UNSAID
    """The same word as `runStatus`; in the rows of lists it is one of six."""
    session_id: str = ""
    """The same session as `sessionKey`."""
    cost_usd: float | None = None
    """What its own attempts cost, in US dollars."""
    tokens_in: int | None = None
    """Tokens that its own attempts read."""
    tokens_out: int | None = None
    """Tokens that its own attempts wrote."""
    tools_used: int = 0
    """Calls of tools so far."""
    last_activity: str | None = None
    """What its worker was last seen at: `editing src/bridge.py`."""
    last_activity_at: Time | None = None
    """When that was."""
    last_activity_age: str | None = None
    """The same in words: `30s ago`."""
    last_activity_age_ms: int | None = None
    """The same as a duration."""
    context_percent: int | None = None
    """How full its model's context window is."""
    context_tokens: int | None = None
    """Tokens in its context."""
    pending_requests: list[PendingRequest] = []
    """Its open questions."""
    children_active: int = 0
    """Runs it spawned that have not ended."""
    children_total: int = 0
    """Runs it spawned."""
    deadline: Time | None = None
    """When it is stopped at the latest; null = never, or it has ended, or stands still."""
    paused: bool = False
    """It starts nothing until it is resumed; a command at work stands still."""
    waiting: str | None = None
    """What it waits for of its model's provider."""
    budget: BudgetUse | None = None
    """Its own budget; null = none."""


class RunNode(RunHead, frozen=True, kw_only=True):
    """A run in a tree, with those it spawned."""

    verification: VerificationStatus | VerificationState | None = None
    """`passed`, `failed` or `skipped`, or where verifying stands."""
    elapsed_ms: int | None = None
    """How long it worked: since it began, until it ended."""
    children: list["RunNode"] = []
    """The runs it spawned."""
    truncated: Truncated | None = None
    """How many of the runs it spawned are missing here; null = none. `GET /v1/runs?parent=` has
    them page by page."""


class RunForest(Listing, frozen=True, kw_only=True):
    """Trees of runs; an agent's are those of the runs it asked for."""

    roots: list[RunNode] = []
    """The newest `limit` that fit and that no other run spawned, oldest first."""
    hidden: int = 0
    """So many more are archived: `archived=1` shows them. At most 1,000 are counted."""
    hidden_is_bound: bool = False
    """More than `hidden` are archived."""


class StoredResult(Standing, frozen=True, kw_only=True):
    """The result of a run, and what proves it."""

    result: str | None = None
    """What the worker gave; the last 32 KiB of it when it is longer."""
    result_bytes: int = 0
    """The size of the whole result."""
    truncated: bool = False
    """`result` is only the end of it; `GET /v1/runs/{sel}/result/text` has what is kept."""
    kept_bytes: int = 0
    """So much of it can be read; less than `resultBytes` when it is above
    `retention.max_result_mb`: then the end of it."""
    report: WorkerReport | None = None
    """The worker's claim of completion."""
    verification: Verification | None = None
    """What its contract found; null without a contract."""
    retry_attempted_at: Time | None = None
    """When the one retry after a failed verification was begun; null = it was not."""
    usage: Usage | None = None
    """What its attempts used; null when nothing was reported."""
    artifacts: list[ResultFile] = []
    """The contract's files, then those reported."""
    last_words: str | None = None
    """The end of its output, when it gave no result."""
    files_left: list[str] = []
    """Files of its contract that exist, when it ended badly."""
    workspace: Workspace | None = None
    """Its worktree, and what it changed there."""


class RunResult(StoredResult, frozen=True, kw_only=True):
    """How a run ended and what it left behind, as it is handed over."""

    outcome: Outcome = Outcome()
    """How it ended."""
    message_id: str | None = None
    """The id of its announcement, which whoever reads this acknowledges."""
    announcement: str | None = None
    """The announcement's text."""

    @property
    def ok(self) -> bool:
        """Ended with status ``ok``; with a contract this means that every check passed."""
        return self.outcome.is_ok


class WaitError(WireStruct, frozen=True, kw_only=True):
    """A run that cannot be waited for."""

    run_id: str = ""
    """The run, as the caller named it."""
    error: str = ""
    """Why not."""


class WaitResult(WireStruct, frozen=True, kw_only=True):
    """What a wait came to; never an error when the time is up."""

    completed: list[RunResult] = []
    """Those that ended."""
    pending: list[RunState] = []
    """Those that did not."""
    errors: list[WaitError] = []
    """Those that cannot be waited for."""
    needs: list[AttentionItem] = []
    """Questions, blockers and limits of pending runs that no wait brought this session before."""
    messages: list[str] = []
    """Messages that are offered by this answer, to be acknowledged."""


class Receipt(NamedRun, frozen=True, kw_only=True):
    """The run that a call started or sent a message to; it is stored before this is answered."""

    phase: Phase = UNSAID
    """Its place in the life of a run: `queued`, `running`, `completed`, …"""
    status: str = "accepted"
    """`accepted`: stored, or started."""
    continues: str | None = None
    """The run whose session it continues."""
    thread_id: str | None = None
    """The conversation outside that its session is bound to."""
    warnings: list[str] = []
    """What its requester should know."""
    repeated: bool = False
    """The call was made before, with the same key; nothing new was started."""


class SpawnReceipt(Receipt, frozen=True, kw_only=True):
    """What a spawn came to."""

    resolved_model: str | None = None
    """The model; null = the program's own choice."""
    effective_tools: list[str] | None = None
    """The tools it was narrowed to; null = what its runtime offers."""
    tools_deny: list[str] = []
    """The tools it was denied."""
    mcp_servers: list[str] | None = None
    """Its MCP servers besides ours; null = those that its program has."""
    access: AccessAnswer | None = None
    """What its worker may do; null = of a run from before there were levels."""
    cwd: str = ""
    """Where it works, absolute."""

    child_session_key: str = ""
    """The session of its first attempt."""
    mode: Mode = UNSAID
    """`run` or `session`."""
    agent_id: str = ""
    """The configured agent."""
    chosen: str | None = None
    """Why this agent, where `auto` left it to us; null = it was named, or is the default one."""
    runtime: str = ""
    """The runtime that runs it."""
    workspace: Workspace | None = None
    """Its worktree; null = none."""
    overshoot: Overshoot | None = None
    """How far its own worker can overspend a budget of tokens or cost: `none`, `one_request`,
    `one_turn` or `unbounded`; null = it has none."""
    note: str | None = None
    """What happens next."""


class PlanReceipt(WireStruct, frozen=True, kw_only=True):
    """What a plan came to: all of its runs."""

    plan_id: str | None = None
    """Its id: that of its first run."""
    name: str | None = None
    """The name it was given."""
    receipts: list[SpawnReceipt] = []
    """The receipts of its runs, in the order of the plan."""


class LaneQueue(WireStruct, frozen=True, kw_only=True):
    """A lane as it is now, for a run that would want a slot of it."""

    name: str = ""
    """The lane."""
    used: int = 0
    """Slots that are taken."""
    slots: int = 0
    """Slots that there are, as this run counts them."""
    ahead: int = 0
    """Runs that would get one before this one, those of this call included."""
    limit: str | None = None
    """Why none is given to it now, such as a provider that refuses; null = nothing."""


class PlannedCheck(WireStruct, frozen=True, kw_only=True):
    """One thing that a contract will check."""

    type: CheckType = UNSAID
    """`artifact`, `change`, `completion_report`, `command` or `judge`."""
    target: str = ""
    """The file, the path, the command, or the agent that judges."""


class PlannedBudget(WireStruct, frozen=True, kw_only=True):
    """What a run and everything below it may use; a limit that nothing sets is null."""

    max_tokens: int | None = None
    """Uncached tokens, read and written."""
    max_total_tokens: int | None = None
    """Tokens with those that come from a cache."""
    max_cost_usd: float | None = None
    """US dollars."""
    max_runs: int | None = None
    """The run itself and every run below it."""
    max_seconds: float | None = None
    """Seconds since it began."""
    shared: bool = False
    """Some of it is what is left of the budget of a run above, which others use, too."""


class PlannedRun(Granted, frozen=True, kw_only=True):
    """What a spawn would come to."""

    label: str = ""
    """The name it was given, or one made from its task."""
    task: str = ""
    """The beginning of its task, at most 500 characters."""
    environment: list[str] = []
    """Names of the variables brought for its worker; their values are never shown."""
    run_id: str | None = None
    """The run that its idempotency key made before: nothing new would be started; null = it is
    new."""
    phase: Phase = UNSAID
    """Where it would begin: `waiting` (for other runs, or for a person to allow it) or `queued`;
    `completed` when it would end at once, as a run that it waits for has failed."""
    agent_id: str = ""
    """The configured agent."""
    chosen: str | None = None
    """Why this agent, where `auto` leaves it to us; null = it is named, or is the default one."""
    runtime: str = ""
    """The runtime that would run it."""
    mode: Mode = UNSAID
    """`run` or `session`."""
    depth: int = 0
    """1 = spawned by a top-level session."""
    lane: LaneQueue = LaneQueue()
    """Where it would wait for a slot."""
    starts_at_once: bool = False
    """Nothing would keep it from starting now."""
    waits_for: list[NamedRun] = []
    """Runs that have to end before it begins; those of this call have no id yet: ""."""
    question: str | None = None
    """What a person would be asked first; null = nothing."""
    items_max: int | None = None
    """It is for each item of a list that is not there yet, of at most so many; null = it is one."""
    attempts_max: int = 1
    """So many it has at most, the one retry of `onFailure: retry_once` not counted."""
    run_timeout_seconds: float | None = None
    """The deadline of each attempt; null = none."""
    budget: PlannedBudget | None = None
    """What holds for it; null = nothing bounds it."""
    overshoot: Overshoot | None = None
    """How far its own worker can overspend a budget of tokens or cost: `none`, `one_request`,
    `one_turn` or `unbounded`; null = neither is limited."""
    checks: list[PlannedCheck] = []
    """What its contract will check, in this order; none = its word is taken."""
    vacuous: bool = False
    """All of it holds already: that it is met would prove nothing."""
    workspace: Workspace | None = None
    """The worktree that it would get; null = none."""
    warnings: list[str] = []
    """What its requester should know."""


class DryRun(WireStruct, frozen=True, kw_only=True):
    """What a spawn or a plan would come to at this moment; nothing was stored or started.

    What would be refused is refused here, with the same error.
    """

    runs: list[PlannedRun] = []
    """The runs, in the order in which they were given."""
    max_tokens: int | None = None
    """How many uncached tokens all of them together, with everything below them, may use; null =
    nothing bounds them, or some of them report no usage."""
    max_total_tokens: int | None = None
    """The same with those that come from a cache."""
    max_cost_usd: float | None = None
    """The same in US dollars."""
    max_seconds: float | None = None
    """The time of the plan, after which what has not ended is cancelled; null = it has none."""


class PlanStanding(WireStruct, frozen=True, kw_only=True):
    """How a plan stands: the newest run of each step counts."""

    plan_id: str = ""
    """Its id: that of its first run."""
    name: str | None = None
    """The name it was given."""
    status: str = ""
    """`running` while a step has not ended; then `ok` if all ended so, else `failed`."""
    steps: int = 0
    """So many it has."""
    states: dict[str, int] = {}
    """How many steps are in each state, such as `ok`, `error`, `running` or `waiting`."""
    requester: str = ""
    """The session that asked for it."""
    created_at: Time | None = None
    """When it was spawned."""
    ended_at: Time | None = None
    """When the outcome of its last step was known."""
    retried: int = 0
    """Runs of steps that were retried since."""
    jobs: int | None = None
    """How many of its runs work at once at most; null = as many as their lanes have slots."""


class PlanDetail(PlanStanding, frozen=True, kw_only=True):
    """A plan with its steps."""

    runs: list[RunRow] = []
    """The newest run of each step, in the order of the plan."""


class PlanPage(Listing, frozen=True, kw_only=True):
    """Plans, newest first."""

    plans: list[PlanStanding] = []
    """The plans, at most `limit`."""
    total: int = 0
    """So many fit. Counting ends at 1,000, or at the end of the page: see `totalIsBound`."""
    total_is_bound: bool = False
    """More than `total` fit."""


class SentMessage(Receipt, frozen=True, kw_only=True):
    """What became of a message to a session: which run has it, and whether it started that run."""

    status: str = ""
    """`steered` into its live turn, `queued` for its next one, or `accepted`: it started a run."""
    session_key: str = ""
    """The session of that run."""
    is_new: bool = False
    """The message started it."""
