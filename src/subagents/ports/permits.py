"""What is counted over all nodes of a cluster: slots of lanes, shared caps, refusing providers.

Each node counts what its own runs use. What it may still begin it is given here, in advance, so
that nothing has to be asked for each run: all that was given out together never exceeds a limit.
See docs/decisions/0079.
"""

from typing import NamedTuple

LaneKey = tuple[str, int]
"""A lane, and the depth of the runs in it."""


class CapKey(NamedTuple):
    """A cap over several runs, of one day where it is one of a day."""

    key: str
    """Where it is configured: ``budgets.daily``."""
    day: str
    """``2026-11-26``, where the daemon is; empty = it is of no day."""


class Amount(NamedTuple):
    """Tokens, and US dollars."""

    tokens: int = 0
    usd: float = 0.0


class CapWanted(NamedTuple):
    """What this start of a node saw runs use of one cap, and what it has use for."""

    limit_tokens: int | None
    limit_usd: float | None
    """None = the cap does not limit them."""
    used: Amount
    held: Amount
    """What is held for requests that are not answered yet. Below 0 where requests were answered
    here, and began on a node that is over."""
    more: Amount
    """What requests that wait here could use besides."""
    cost_unknown: int = 0
    """Runs of which not all cost is known."""
    before: Amount = Amount()
    """What all stored runs had used when this node began to see: that counts once, if no node
    counted towards this cap before."""
    before_unknown: int = 0


class CapShare(NamedTuple):
    """What this node may use of one cap, and what the others did."""

    kept: Amount
    """Used and held of this node's own runs may grow up to it; they may be above it already."""
    others_used: Amount = Amount()
    others_held: Amount = Amount()
    others_cost_unknown: int = 0


class SharedGate(NamedTuple):
    """What one node learned from a provider's refusals, for all of them."""

    key: str
    """The provider and its key, as ``domain.rules.provider_limits.Provider`` has them."""
    provider: str
    """The provider's name for people."""
    left_ms: int
    """How long no run may start yet: a duration, since the clocks of nodes differ. Below 0 = it has
    been over for so long, and the first one may try."""
    status: int | None = None
    waits: int = 0
    """See ``domain.rules.provider_limits.Gate``."""
    number: int = 0
    """Grows with each change; who opens a gate says which one it knew."""
