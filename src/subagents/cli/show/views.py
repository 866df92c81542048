"""The daemon's answers, as far as people are shown them.

Lenient on purpose: a newer daemon may say more, and ``--json`` passes its documents on unread.
"""

from typing import TypeVar

import msgspec

from subagents.client.client import Document
from subagents.errors import DaemonUnreachable


class View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Part of an answer."""


class OutcomeView(View, frozen=True):
    status: str = ""
    reason: str | None = None
    error: str | None = None


class UsageView(View, frozen=True):
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None


class BudgetView(View, frozen=True):
    text: str = ""
    percent: int | None = None


class SpentView(UsageView, frozen=True):
    """Of a run and everything below it."""

    runs: int = 1


class ProgressView(View, frozen=True):
    phase: str = ""
    percent_complete: float | None = None


class CheckView(View, frozen=True):
    type: str = ""
    target: str = ""
    passed: bool = False
    reason: str | None = None
    evidence: str | None = None


class VerificationView(View, frozen=True):
    status: str = ""
    checks: list[CheckView] = []


class ArtifactView(View, frozen=True):
    path: str = ""
    description: str | None = None


class ReportView(View, frozen=True):
    summary: str = ""
    status: str = "complete"
    confidence: str | None = None
    artifacts: list[ArtifactView] = []
    blockers: list[str] = []
    warnings: list[str] = []


class ChangesView(View, frozen=True):
    """What was changed in a worktree."""

    summary: str = ""
    deleted: list[str] = []
    out_of_scope: list[str] = []
    kept_branches: list[str] = []


class WorkspaceView(View, frozen=True):
    """The worktree of a run."""

    path: str = ""
    branch: str = ""
    kept: bool | None = None
    changes: ChangesView | None = None


class Leftovers(View, frozen=True, kw_only=True):
    """What a run leaves besides its result."""

    last_words: str | None = None
    files_left: list[str] = []
    workspace: WorkspaceView | None = None


class Receipt(View, frozen=True):
    run_id: str
    label: str = ""
    phase: str = ""
    agent_id: str = ""
    warnings: list[str] = []
    note: str | None = None
    repeated: bool = False
    workspace: WorkspaceView | None = None


class SentView(View, frozen=True):
    """What became of a message to a session."""

    run_id: str
    label: str = ""
    status: str = ""
    is_new: bool = False
    continues: str | None = None
    warnings: list[str] = []


class SessionView(View, frozen=True):
    """A run, as far as its session goes."""

    run_id: str
    label: str = ""
    phase: str = ""
    outcome: OutcomeView | None = None
    continued_by: str | None = None


class Receipts(View, frozen=True):
    receipts: list[Receipt] = []


def state_of(outcome: OutcomeView | None, phase: str, pending_requests: int) -> str:
    """What a run is in one word: its outcome once there is one, else its phase."""
    if outcome is not None:
        return "failed" if outcome.reason == "verification_failed" else outcome.status
    return "blocked" if pending_requests else phase


class Row(View, frozen=True):
    """One run in a list."""

    run_id: str
    label: str = ""
    agent_id: str = ""
    requester: str = ""
    depth: int = 0
    phase: str = ""
    run_status: str = ""
    outcome: OutcomeView | None = None
    attempt: int | None = None
    pending_request_count: int = 0
    blocked_reason: str | None = None
    latest_progress: ProgressView | None = None
    usage: UsageView | None = None
    subtree_usage: SpentView | None = None
    created_at: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    why: str | None = None
    task: str | None = None

    @property
    def state(self) -> str:
        return state_of(self.outcome, self.phase, self.pending_request_count)


class StatusView(Row, frozen=True):
    """A run's status: its row, and what its worker was last seen at."""

    runtime: str | None = None
    runtime_ms: int | None = None
    cost_usd: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tools_used: int = 0
    last_activity: str | None = None
    last_activity_at: int | None = None
    last_activity_age: str | None = None
    last_activity_age_ms: int | None = None
    context_percent: int | None = None
    children_active: int = 0
    children_total: int = 0
    requester_run: str | None = None
    deadline: int | None = None
    paused: bool = False
    waiting: str | None = None
    """For its model's provider."""
    budget: BudgetView | None = None


class Rows(View, frozen=True):
    runs: list[Row] = []
    total: int | None = None


class RequestView(View, frozen=True):
    """A worker's question, in a run's details."""

    request_id: str = ""
    question: str = ""
    context: str | None = None
    options: list[str] = []
    answer: str | None = None
    decision: str | None = None
    status: str = "pending"
    by: str | None = None


class AttemptView(View, frozen=True):
    number: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    outcome: OutcomeView | None = None
    retry_reason: str | None = None
    stderr_tail: str | None = None


class DependencyView(View, frozen=True):
    run_id: str = ""
    label: str = ""
    outcome: OutcomeView | None = None


class Details(Row, frozen=True):
    """Everything about one run."""

    runtime: str = ""
    session_key: str = ""
    continues: str | None = None
    continued_by: str | None = None
    thread_id: str | None = None
    budget: BudgetView | None = None
    resolved: dict[str, object] = {}
    attempts: list[AttemptView] | int = []
    dependencies: list[DependencyView] = []
    children: list[DependencyView] = []
    requests: list[RequestView] = []
    verification: VerificationView | None = None
    result: str | None = None
    result_bytes: int = 0
    report: ReportView | None = None
    paused: bool = False
    vacuous: bool = False
    last_words: str | None = None
    files_left: list[str] = []
    workspace: WorkspaceView | None = None


class Node(View, frozen=True):
    """A run in a tree."""

    run_id: str
    label: str = ""
    agent_id: str = ""
    phase: str = ""
    run_status: str = ""
    outcome: OutcomeView | None = None
    verification: str | None = None
    latest_progress: ProgressView | None = None
    pending_request_count: int = 0
    elapsed_ms: int | None = None
    usage: UsageView | None = None
    subtree_usage: SpentView | None = None
    budget: BudgetView | None = None
    why: str | None = None
    children: list["Node"] = []

    @property
    def state(self) -> str:
        return state_of(self.outcome, self.phase, self.pending_request_count)


class Roots(View, frozen=True):
    roots: list[Node] = []


class Item(Leftovers, frozen=True):
    """A run that ended, as ``wait`` hands it over."""

    run_id: str
    label: str = ""
    outcome: OutcomeView = OutcomeView()
    result: str | None = None
    result_bytes: int = 0
    report: ReportView | None = None
    verification: VerificationView | None = None
    usage: UsageView | None = None
    message_id: str | None = None


class PendingView(View, frozen=True):
    run_id: str
    label: str = ""
    phase: str = ""
    why: str | None = None


class ErrorView(View, frozen=True):
    run_id: str = ""
    error: str | dict[str, object] = ""

    @property
    def text(self) -> str:
        if isinstance(self.error, str):
            return self.error
        return str(self.error.get("message", "")) or "it cannot be waited for"


class Waited(View, frozen=True):
    completed: list[Item] = []
    pending: list[PendingView] = []
    errors: list[ErrorView] = []
    messages: list[str] = []


class MessageView(View, frozen=True):
    id: str
    number: int | None = None
    session_key: str = ""
    run_id: str = ""
    kind: str = ""
    created_at: int | None = None
    text: str = ""
    consumed_at: int | None = None
    consumed_by: str | None = None
    awaited: bool = False


class Messages(View, frozen=True):
    messages: list[MessageView] = []


class AttentionItem(View, frozen=True):
    kind: str = ""
    run_id: str = ""
    label: str = ""
    text: str = ""
    request_id: str | None = None
    since: int | None = None


class Attention(View, frozen=True):
    items: list[AttentionItem] = []


class EventView(View, frozen=True):
    seq: int = 0
    at_ms: int = 0
    type: str = ""
    data: dict[str, object] = {}
    phase: str | None = None
    stale: bool = False


class Timeline(View, frozen=True):
    run_id: str = ""
    events: list[EventView] = []
    next_seq: int | None = None


class Step(View, frozen=True):
    at_ms: int | None = None
    text: str = ""


class Why(View, frozen=True):
    run_id: str = ""
    phase: str = ""
    why: str = ""
    steps: list[Step] = []
    delivery_tries: list[dict[str, object]] = []


class LineView(View, frozen=True):
    """One line of a transcript."""

    seq: int = 0
    ts: int = 0
    type: str = ""
    text: str = ""
    attempt: int = 0


class LogView(View, frozen=True):
    run_id: str = ""
    label: str = ""
    total_lines: int = 0
    returned_lines: int = 0
    offset: int = 0
    dropped_lines: int = 0
    lines: list[LineView] = []
    next_seq: int = 0
    ended: bool = True


class SummaryView(View, frozen=True):
    run_id: str = ""
    label: str = ""
    summary: str = ""
    written_by: str = ""
    summary_run: str | None = None
    note: str | None = None


class Asked(View, frozen=True):
    """A request as its worker sees it."""

    request_id: str = ""
    run_id: str = ""
    question: str = ""
    status: str = "pending"
    answer: str | None = None
    decision: str | None = None
    by: str | None = None


class Ended(Leftovers, frozen=True):
    """What ``result`` shows."""

    run_id: str = ""
    label: str = ""
    outcome: OutcomeView | None = None
    result: str | None = None
    result_bytes: int = 0
    report: ReportView | None = None
    verification: VerificationView | None = None


T = TypeVar("T")


def view(document: Document, kind: type[T]) -> T:
    """Read an answer.

    Raises:
        DaemonUnreachable: It is not what this version expects.
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise DaemonUnreachable(
            f"the daemon's answer is not understood: {error}",
            hint="daemon and command line are of different versions: subagents down, then up",
        ) from error
