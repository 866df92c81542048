"""A store that several nodes write, and what they say of themselves in it."""

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple, Protocol

from subagents.domain.run.values import RunId, SessionKey
from subagents.ports import Loaded, Store

WENT_BACK_FIX: Final = (
    "runs of its last moments may be missing, or work again: compare with what you know, and let"
    " commits wait for the replica (synchronous_standby_names of PostgreSQL)"
)


class Member(NamedTuple):
    """What a daemon says of itself to the cluster that it belongs to."""

    name: str
    url: str | None
    labels: tuple[str, ...]
    slots: int | None
    lease_s: float
    certificate: bytes | None = None
    """What other nodes know it by, in DER."""


class SeenNode(NamedTuple):
    """One start of a node, as the store knows it."""

    identity: str
    """Random, of this start: a node that was started again is another one."""
    home: str
    """The same for all of its starts."""
    name: str
    url: str | None
    """Where other nodes reach it; None = they cannot."""
    labels: tuple[str, ...]
    slots: int | None
    """The most workers of the node; None = none was set."""
    version: str
    left_s: float
    """How long its lease holds, in seconds; 0 or less = it ended so long ago."""
    is_draining: bool
    """It takes no more partitions and gives back those that it has."""
    certificate: bytes | None = None
    """The one that counts (DER); None = the node is over, nobody with the cluster's secret signed
    the row, or it is of the version before."""
    degraded: str | None = None
    """What its machine lacks, in words; it begins nothing, and others take what it has."""
    is_over: bool = False
    """It is no more, whatever becomes of its lease."""

    @property
    def takes(self) -> bool:
        """Whether it takes partitions, as long as its lease holds."""
        return not self.is_draining and self.degraded is None


class Survey(NamedTuple):
    """Who has what, in one look."""

    nodes: Mapping[str, SeenNode]
    """The nodes by identity; those that are over only while something is still theirs."""
    owners: Mapping[int, str]
    """The identity of the node that has a partition; one that nobody has is missing."""
    forged: int = 0
    """Rows of nodes with a certificate that nobody signed who has the cluster's secret."""
    has_offers: bool = False
    """Whether some attempt has no taker yet."""
    went_back: str | None = None
    """How we know that the database lacks what was stored in it; None = we know of nothing."""


class SharedStore(Store, Protocol):
    """A store that other nodes write, too, each the runs of its own partitions.

    What reads reads everybody's. ``load_open``, ``load_outbox``, ``load_leases`` and ``load_keys``
    are about our partitions; ``open`` gives us none but those that this home had when it was
    killed, so long as nobody else has them.
    """

    has_workers: Callable[[], bool]
    """Whether something works on this machine: only where not, it is over with ``close``."""

    @property
    def identity(self) -> str:
        """Ours, once it is open."""
        ...

    @property
    def seen_number(self) -> int:
        """``newest_number`` as it was found last, by a renewal at least; asks nobody."""
        ...

    @property
    def has_unsigned(self) -> bool:
        """Whether rows may be there that a node of the version before wrote; see ``sign_all``."""
        ...

    def sign_all(self) -> None:
        """Sign what is there once no such node is at work, and refuse what is not from then on.

        Raises:
            StoreUnavailable: Some may be signed; repeat it.
        """
        ...

    def survey(self) -> Survey:
        """Who has what now.

        Raises:
            StoreUnavailable: It cannot be asked.
        """
        ...

    @property
    def home(self) -> str:
        """The id of ours, which its starts have in common."""
        ...

    def tell_peers(self, names: Collection[str]) -> None:
        """Say in our row whom we ask for their promise while the store is away: homes, any start of
        which answers where the one that we know was, or single starts by their identities.

        Raises:
            StoreUnavailable: It may be said, or not.
            Fenced: We are over.
        """
        ...

    def claim(self, partitions: Collection[int]) -> frozenset[int]:
        """Take partitions over that nobody has, or whose node is over; which of them are ours now.

        A node whose right is over is fenced by it for good: nothing it writes is taken any more.
        The caller has renewed its own right without a break for as long as that right lasts: what
        seems over is not so only because nobody could renew. And that node said that it knows us
        (``tell_peers``), or is over for so long that its workers have ended in any case.

        Raises:
            StoreUnavailable: None was taken, or nobody can say yet.
            Fenced: We are over ourselves.
        """
        ...

    def release(self, partitions: Collection[int]) -> None:
        """Give partitions back: others may claim them at once. Nothing of them is written after.

        Raises:
            StoreUnavailable: They are still ours, or nobody can say yet; repeat it.
            Fenced: All of them are another's.
        """
        ...

    def load_partitions(self, partitions: Collection[int]) -> Loaded:
        """What partitions that were claimed have open, as the load methods give it of all."""
        ...

    def partition(self, run_id: RunId) -> int | None:
        """The partition of a run; None = there is no such run."""
        ...

    def partition_of_worker(self, session: SessionKey) -> int | None:
        """The partition of the run whose agent speaks under this session; None = no run's."""
        ...

    def lock(self, what: str) -> Callable[[], None]:
        """Wait until no other node has this, and have it until what is returned is called.

        Raises:
            StoreUnavailable: One has it for too long, or nobody can say.
        """
        ...

    def forget(self, node: str) -> None:
        """Say that a node whose right is over has no workers left; raises as ``drain``."""
        ...

    def degrade(self, why: str | None) -> None:
        """Say in our row what our machine lacks; None = nothing any more. Raises as ``drain``."""
        ...

    def drain(self, *, is_on: bool) -> None:
        """Say in our row whether we take no more partitions.

        Raises:
            StoreUnavailable, Fenced: As ``release``.
        """
        ...
