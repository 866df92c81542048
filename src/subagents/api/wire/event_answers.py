"""Answers about what happened: the timeline of a run, why it is where it is, the event stream."""

from msgspec import UNSET, UnsetType

from subagents.api.wire.listing import Listing
from subagents.api.wire.run_answers import DeliveryTry, RunRow
from subagents.api.wire.wire_struct import NamedRun, Time, WireStruct
from subagents.api.wire.words import UNSAID, AlertFate, AlertName, OutcomeReason, Phase, Priority


class TimelineEvent(WireStruct, frozen=True, kw_only=True):
    """One event of a run, and the phase it was in afterwards."""

    seq: int = 0
    """Its number in the run, from 1."""
    occurred_at: Time | None = None
    """When it happened."""
    type: str = ""
    """Its name: `Spawned`, `AttemptStarted`, …"""
    text: str = ""
    """What it says, in a sentence."""
    data: dict[str, object] = {}
    """Its own fields; long texts are cut."""
    key: str | None = None
    """The same event with the same key happens once."""
    phase: Phase | None = None
    """The run's phase after it."""
    stale: bool = False
    """It came late or twice, and changed nothing."""


class Timeline(WireStruct, frozen=True, kw_only=True):
    """A page of a run's events, in order."""

    run_id: str = ""
    """The run whose events they are."""
    events: list[TimelineEvent] = []
    """The events, at most `limit`."""
    next_seq: int | None = None
    """The `afterSeq` of the next page; null = there is none."""


class WhyStep(WireStruct, frozen=True, kw_only=True):
    """One line of a run's history."""

    occurred_at: Time | None = None
    """When it happened."""
    text: str = ""
    """What happened."""
    detail: bool = False
    """Whether the story of the run is told without it."""


class Why(NamedRun, frozen=True, kw_only=True):
    """Why a run is where it is."""

    phase: Phase = UNSAID
    """Its place in the life of a run: `queued`, `running`, `completed`, …"""
    why: str = ""
    """One sentence for now."""
    steps: list[WhyStep] = []
    """One line for each event and what it led to, the newest ones."""
    delivery_tries: list[DeliveryTry] = []
    """Every attempt to deliver the result to its requester."""


class StreamEvent(WireStruct, frozen=True, kw_only=True):
    """An event of the stream: `run` for each entry of a journal, or a structured one, with its own
    fields and no others.
    """

    seq: int
    """Its number in the order of all runs' events."""
    type: str = ""
    """`event` for a structured one, `row` with `rows=1`, else the name of the journal's entry."""
    event: str | UnsetType = UNSET
    """The name of a structured event: `completion`, `stuck`, …"""
    run_id: str = ""
    """The run that it is about."""
    label: str = ""
    """The run's label."""
    agent_id: str = ""
    """The run's label in a structured event, its configured agent in `run`."""
    occurred_at: Time | None = None
    """When it happened."""
    requester: str | UnsetType = UNSET
    """`run`: the session that asked for the run."""
    phase: Phase | UnsetType = UNSET
    """`run`: the run's phase now, not then."""
    status: str | UnsetType = UNSET
    """`completion`: how it ended; `task_milestone`: `started` or `completed`."""
    reason: OutcomeReason | UnsetType | None = UNSET
    """`completion`: why it is not plain `ok`."""
    error: str | UnsetType | None = UNSET
    """`completion`: the same in words."""
    result: str | UnsetType | None = UNSET
    """`completion`: what the worker gave, cut."""
    result_bytes: int | UnsetType = UNSET
    """`completion`: of the whole result."""
    message: str | UnsetType = UNSET
    """`api_error`: the provider's answer; `git_commit`: its message; `same_path`: the line."""
    retry: int | bool | UnsetType | None = UNSET
    """`api_error`: which try of the program it was."""
    silent_ms: int | UnsetType = UNSET
    """`stuck`: how long the worker has given no sign of life."""
    last_activity: str | UnsetType | None = UNSET
    """`stuck`: what was seen last."""
    cost_usd: float | UnsetType | None = UNSET
    """`budget_alert`: used so far."""
    budget_usd: float | UnsetType | None = UNSET
    """`budget_alert`: the limit."""
    task: str | UnsetType = UNSET
    """`task_milestone`: the item of its plan."""
    progress: str | UnsetType | None = UNSET
    """`task_milestone`: `2/5`."""
    command: str | UnsetType = UNSET
    """`build_result`: what was run."""
    passed: bool | UnsetType = UNSET
    """`build_result`: whether it passed."""
    errors: int | UnsetType | None = UNSET
    """`build_result`: how many."""
    summary: str | UnsetType | None = UNSET
    """`build_result`: the last words of its output."""
    percent: int | float | UnsetType = UNSET
    """`context_pressure`: of the context window."""
    tokens: int | UnsetType | None = UNSET
    """`context_pressure`: in the context."""
    count: int | UnsetType = UNSET
    """`subagent_spawn`, `git_commit`: how many."""
    team_name: str | UnsetType | None = UNSET
    """`subagent_spawn`: their team."""
    consecutive_failures: int | UnsetType = UNSET
    """`failure_loop`: one after the other."""
    last_tool: str | UnsetType | None = UNSET
    """`failure_loop`: the tool that failed."""
    last_error: str | UnsetType | None = UNSET
    """`failure_loop`: how."""
    path: str | UnsetType = UNSET
    """`same_path`: the first of the files."""
    other_run: str | UnsetType = UNSET
    """`same_path`: the other run's id."""
    text: str | UnsetType = UNSET
    """`cc_message`: what the worker wrote to its requester."""
    priority: Priority | UnsetType = UNSET
    """`cc_message`: `info`, `question` or `blocker`."""
    row: RunRow | UnsetType = UNSET
    """`row`: the run as it is now."""

    @property
    def name(self) -> str:
        """``run``, ``row``, or the name of the structured event."""
        if isinstance(self.row, RunRow):
            return "row"
        return self.event if isinstance(self.event, str) else "run"


class RaisedAlert(NamedRun, frozen=True, kw_only=True):
    """An alert that was raised, and what became of it."""

    seq: int = 0
    """Its number in the order of all events."""
    kind: AlertName = UNSAID
    """`stuck`, `budget_alert`, …: see the alerts' page."""
    text: str = ""
    """What it says, in one line."""
    occurred_at: Time | None = None
    """When it was raised."""
    agent_id: str = ""
    """The configured agent."""
    fate: AlertFate = UNSAID
    """`sent`, `held` (the hour's allowance was used up), `off` (its kind is switched off),
    `escalated` (a blocker was sent in its place) or `late` (its run had ended)."""
    why: str = ""
    """The same in words, and what follows from it."""
    message_id: str | None = None
    """The message that reported it: its own, or the digest in which it is counted; null = none."""
    told_at: Time | None = None
    """When that was sent."""
    read_at: Time | None = None
    """When that was read, or marked as read; null = it was not."""
    stands: bool = False
    """Its cause is still there."""
    event: StreamEvent
    """The event of the stream, with its own fields."""


class AlertHistory(Listing, frozen=True, kw_only=True):
    """Alerts that were raised, newest first; `nextCursor` goes on behind the last one visited, also
    where a filter left few of them, or none.
    """

    alerts: list[RaisedAlert] = []
    """The alerts, at most `limit`."""


class EventPage(WireStruct, frozen=True, kw_only=True):
    """What happened behind a number."""

    events: list[StreamEvent] = []
    """The events in their order."""
    seq: int = 0
    """Where to go on, also when there are no events."""
    reset: bool = False
    """The number that was given is of another database."""
