"""A call that spawns: who asks and for what, and what each run has come to so far."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

from subagents.config.settings import Settings
from subagents.domain.run.access import Ceiling
from subagents.domain.run.caller_environment import CallerEnvironment
from subagents.domain.run.events import Spawned
from subagents.domain.run.run import Run
from subagents.domain.run.spec import AgentChosen, Budget, Mode, RunSpec, ScheduledTime
from subagents.domain.run.values import SessionKey, Value, replace


class SpawnContext(Value, frozen=True):
    """Who spawns, from where, and under which configuration."""

    session: SessionKey
    """The session that spawns, and is told of the ends."""
    settings: Settings
    """The effective configuration where the caller is."""
    cwd: str = ""
    """Working directory of specs that name none; absolute."""
    is_operator: bool = True
    """A person or their program: may use any agent, and is not capped."""
    ceiling: Ceiling | None = None
    """The most that the caller may do itself; None = a person, or it is not known."""


class RunAsked(Value, frozen=True):
    """A run that is asked for. What the spawner looks up for it comes last."""

    spec: RunSpec
    environment: CallerEnvironment | None = None
    """The variables that an operator brings for its workers; kept in files. A run that continues a
    session also has those that were given to the run before."""
    repeats: Run | None = None
    """The run whose parameters it repeats; None = it is new."""
    previous: Run | None = None
    """The run whose session it continues."""
    mode: Mode = Mode.RUN
    labels: tuple[str, ...] = ()
    """Names of the runs that it waits for, in order."""
    chosen: AgentChosen | None = None
    """The agent that fits it best; None = it names one, or has the default one."""


class PlanAsked(Value, frozen=True):
    """A batch that is a plan."""

    name: str | None = None
    budget: Budget | None = None
    """What all of them, with the runs below them, may use together: tokens, cost and
    time."""
    jobs: int | None = None
    """How many of them may have a slot at once; None = as many as their lanes have."""


class Beside(NamedTuple):
    """What belongs to the step that stores runs; neither waits for anything."""

    check: Callable[[], None]
    """Called before: what it raises refuses the spawn."""
    note: Callable[[Sequence[Run]], None]
    """Called with the runs: what it puts into the ledger is durable with them."""


NOTHING_BESIDE: Final = Beside(lambda: None, lambda _: None)


class Trial(Enum):
    """A spawn that stores nothing."""

    LATER = auto()
    """It refuses what could not be spawned at another time, either."""
    NOW = auto()
    """It refuses what a spawn now would refuse; the receipts say what would be stored."""


class SpawnCall(Value, frozen=True):
    """One call of ``Spawner.spawn_batch``: what was given, and who it turns out to come from."""

    context: SpawnContext
    plan: PlanAsked | None
    scheduled: ScheduledTime | None
    beside: Beside
    trial: Trial | None
    partition: int | None
    """The partition of the caller's session; None = everything is ours."""
    parent: Run | None
    """The run whose agent spawns; None = a top-level session."""
    inbox: SessionKey
    """Which session is told of the ends, and whose children count."""
    is_free: bool
    """An operator asks: any agent may be used, and nothing is capped."""
    digests: Mapping[str, str]
    """The digest of what is asked for under each idempotency key."""


class Draft(Value, frozen=True):
    """A run that passed every guardrail but the counted ones."""

    asked: RunAsked
    spawned: Spawned
    """Its first event; time, budget and dependencies are those of the commit."""
    warnings: tuple[str, ...] = ()
    """What the receipt warns of."""
    question: str | None = None
    """What a person must allow before it begins."""

    def with_resolved(self, **changes: object) -> "Draft":
        """The draft with other values of ``Resolved``."""
        resolved = replace(self.spawned.resolved, **changes)
        return replace(self, spawned=replace(self.spawned, resolved=resolved))
