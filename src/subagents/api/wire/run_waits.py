"""Answers about what a run waits for: the cause as data, where the row has it in words."""

from subagents.api.wire.wire_struct import NamedRun, Time, WireStruct
from subagents.api.wire.words import UNSAID, WaitKind


class WaitRoot(NamedRun, frozen=True, kw_only=True):
    """The run at the end of a chain of runs that wait for each other."""

    kind: WaitKind | None = None
    """What it waits for in turn; null = it is at work."""
    name: str | None = None
    """The lane or the provider."""


class Wait(WireStruct, frozen=True, kw_only=True):
    """What a run waits for now."""

    kind: WaitKind = UNSAID
    """`provider` (it refuses for now), `lane` (a slot), `runs` (other runs have to end first),
    `retry` (its next attempt is due later), `answer` (to a question) or `paused`."""
    name: str | None = None
    """The lane or the provider."""
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
