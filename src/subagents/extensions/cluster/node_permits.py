"""What a node is given of what is counted over all nodes. See docs/decisions/0079."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from subagents.ports import CapKey, CapShare, CapWanted, LaneKey, SharedGate


class LaneWanted(NamedTuple):
    """What this node uses of one lane, and what it has use for."""

    limit: int
    """Slots that all nodes may use together, as the run says that is next here."""
    used: int
    """Slots that its runs hold."""
    most: int
    """How many it could use now; at least ``used``."""


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
    handed: Collection[int] = ()
    """Partitions that were given back with slots that ``lanes`` has among those in use."""


class Settlement(NamedTuple):
    """What the node may do now."""

    lanes: Mapping[LaneKey, int]
    """How many slots the node's runs may hold in each lane of the demand: when they hold as many or
    more, none begins."""
    caps: Mapping[CapKey, CapShare]
    gates: Sequence[SharedGate]
    """Every gate that is not open."""
    handed: frozenset[int] = frozenset()
    """Those of the demand whose runs nobody else counts yet."""


class Permits(Protocol):
    """Gives out among nodes what has one limit for all of them. Blocking.

    For each lane the slots that all nodes may hold never exceed the limit of the demand that was
    answered last, but by those that runs held already. A node gives back what it does not name
    again. Where more is wanted than there is, the nodes get equal parts, and where there are fewer
    slots than nodes, those first that waited longest.

    What a node held of lanes that is over counts on until its partitions are other nodes', and
    these said so in a demand: their numbers have its runs in them from then on. A node that is not
    over, and gave a partition back in which runs hold slots, counts those itself until then.

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
