"""What is counted over all nodes of a cluster: slots of lanes, shared caps, refusing providers.

Each node counts what its own runs use. What it may still begin it is given here, in advance, so
that nothing has to be asked for each run: all that was given out together never exceeds a limit.
See docs/decisions/0079.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

LaneKey = tuple[str, int]
"""A lane, and the depth of the runs in it."""


class LaneWanted(NamedTuple):
    """What this node uses of one lane, and what it has use for."""

    limit: int
    """Slots that all nodes may use together, as the run says that is next here."""
    used: int
    """Slots that its runs hold."""
    most: int
    """How many it could use now; at least ``used``."""


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
    """How long nobody may start yet: a duration, since the clocks of nodes differ. Below 0 = it has
    been over for so long, and whoever goes first may try."""
    status: int | None = None
    waits: int = 0
    """See ``domain.rules.provider_limits.Gate``."""
    number: int = 0
    """Grows with each change; who opens a gate says which one it knew."""


class Demand(NamedTuple):
    """What one node uses and has use for, all as of one moment."""

    partitions: Collection[int]
    """The partitions whose runs are counted in it: they are loaded."""
    lanes: Mapping[LaneKey, LaneWanted] = {}
    """One that is missing is not used any more."""
    caps: Mapping[CapKey, CapWanted] = {}
    """One that is missing is as it was."""
    closed: Sequence[SharedGate] = ()
    """Gates that refusals here closed, or for longer."""
    opened: Mapping[str, int] = {}
    """Gates that somebody got through here, with the newest number that was known of each."""


class Settlement(NamedTuple):
    """What the node may do now."""

    lanes: Mapping[LaneKey, int]
    """How many slots the node's runs may hold in each lane of the demand: when they hold as many or
    more, none begins."""
    caps: Mapping[CapKey, CapShare]
    gates: Sequence[SharedGate]
    """Every gate that is not open."""


class Permits(Protocol):
    """Gives out among nodes what has one limit for all of them. Blocking.

    For each lane the slots that all nodes may hold never exceed the limit of the demand that was
    answered last, but by those that runs held already. A node gives back what it does not name
    again. Where more is wanted than there is, the nodes get equal parts, and where there are fewer
    slots than nodes, those first that waited longest.

    What a node held of lanes that is over counts on until its partitions are other nodes', and
    these said so in a demand: their numbers have its runs in them from then on. A node that is not
    over lets no partition go in which a run holds a slot.

    What all nodes keep of a cap never exceeds its limit, but by what runs used that ask nobody
    before. What a node that is over had used and kept stays used and kept.
    """

    def settle(self, demand: Demand) -> Settlement:
        """Say what is used and wanted here, and learn what may be begun.

        From the moment of the demand until the answer is taken over, nothing may be begun that the
        demand does not say: it may be given away.

        Raises:
            StoreUnavailable: Nobody knows whether it was heard. Nothing more may be begun than the
                demand said was used; it can be repeated.
            Fenced: This node is over.
        """
        ...

    def close(self) -> None:
        """Release the connection; safe to repeat."""
        ...
