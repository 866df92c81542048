"""What one node of a cluster asks of the others: calls, and a place for an attempt.

Who decides about a run (the owner of its partition) is not where its worker runs (its place).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Final, NamedTuple, Protocol

from subagents.domain.run.values import AttemptId, RunId
from subagents.ports.workers import OfAttempt, Runtime

LACK: Final = "lack"
"""The detail of an error that a node answers that says which of ``errors.LACKS`` it comes from."""
SURE: Final = "nothingStarted"
"""The detail of a start that failed for one that says whether nothing of it is there for sure, so
that it may be started elsewhere."""


class NodeAnswer(NamedTuple):
    """What a node answered to one call, whatever its status."""

    status: int
    body: bytes


class NodeStream(NamedTuple):
    """An answer that is read as it comes."""

    status: int
    pieces: AsyncIterator[bytes]
    """Pieces of the body, cut anywhere. Raises NodeUnreachable when it ends before its end."""


class NodeClient(Protocol):
    """Calls nodes by their names, over connections that are kept and mutually authenticated.

    A name means whatever start of that node is alive. It is looked up at each call, so that a node
    that was started again is reached at once.
    """

    async def request(
        self, node: str, method: str, path: str, body: bytes | None = None, *, timeout_s: float
    ) -> NodeAnswer:
        """Call once; nothing is repeated here, not even what was not sent.

        Args:
            node: Its name.
            method: ``GET``, ``POST`` or ``DELETE``.
            path: On its node door, with its query, escaped: ``/node/v1/…``.
            body: JSON; None = there is none.
            timeout_s: For the whole answer, in seconds.

        Raises:
            NodeUnreachable: No answer came; it may have been done.
            NodeOver: No start of that node is alive, as the store says now.
        """
        ...

    def stream(
        self, node: str, method: str, path: str, body: bytes | None = None, *, idle_s: float
    ) -> AbstractAsyncContextManager[NodeStream]:
        """The same for an answer without end; leaving the context ends it.

        Args:
            node: Its name.
            method: See ``request``.
            path: See ``request``.
            body: See ``request``.
            idle_s: Nothing for so long, in seconds, and it counts as cut off.

        Raises:
            NodeUnreachable, NodeOver: As ``request``, on entering.
        """
        ...


class AttemptHost(Protocol):
    """What a node's door hands calls about attempts to: ``POST /node/v1/attempts/<name>``."""

    async def call(self, name: str, body: bytes) -> NodeAnswer:
        """Answer one call; an error is answered, too, as its document."""
        ...

    async def watch(self, body: bytes) -> NodeAnswer | AsyncGenerator[bytes, None]:
        """The answer of the call ``watch``, in pieces as they come; or why there is none.

        Whoever reads it closes it when its connection ends.
        """
        ...


class WorkplaceHost(Protocol):
    """What a node's door hands calls about files to: ``POST /node/v1/files/<name>``."""

    async def call(self, name: str, body: bytes) -> NodeAnswer:
        """Answer one call; an error is answered, too, as its document."""
        ...


class Offer(NamedTuple):
    """An attempt that needs a place: no more than a node needs to know to take it."""

    attempt_id: AttemptId
    run_id: RunId
    epoch: int
    """The epoch of whoever offers it: an offer that was made by an owner before is replaced."""
    label: str | None
    """Only a node with this label takes it; None = any node in which ``cwd`` is a directory."""
    priority: int
    """Higher ones are taken first."""
    cwd: str


class Offers(Protocol):
    """Where offers are kept, and who took them: the truth, whatever found the taker.

    Blocking. All of it can be repeated, and raises StoreUnavailable when nobody can say.
    """

    def put(self, offer: Offer) -> str | None:
        """Offer an attempt, if it is not offered already; returns who has taken it, if anybody."""
        ...

    def takers(self, attempts: Collection[AttemptId]) -> Mapping[AttemptId, str]:
        """Who has taken which of these; those that nobody has taken are missing."""
        ...

    def open(self, labels: Collection[str], most: int) -> Sequence[Offer]:
        """What nobody has taken and a node with these labels may take, the next ones first."""
        ...

    def take(self, attempts: Collection[AttemptId], node: str, most: int) -> Sequence[AttemptId]:
        """Take at most so many of these for a node; which of them it has now, and nobody else.

        Raises:
            StoreUnavailable: Some may be taken; ``takers`` says it.
        """
        ...

    def find(self, attempt: AttemptId) -> tuple[Offer, str | None] | None:
        """The offer of an attempt and its taker; None = there is none (any more)."""
        ...

    def drop(self, attempt: AttemptId) -> None:
        """Delete the offer."""
        ...

    def sweep(self) -> None:
        """Delete what was left behind: taken long ago, and settled by nobody."""
        ...


class FreeSlots(Protocol):
    """What is free at a node. For any thread."""

    @property
    def free(self) -> int | None:
        """How many more workers; None = as many as anybody likes."""
        ...

    def keep(self, attempt: AttemptId) -> bool:
        """Keep a slot for an attempt that will be started; False = there is none. Idempotent."""
        ...

    def give_up(self, attempt: AttemptId) -> None:
        """It is not started here. Idempotent."""
        ...

    def starting(self, of: OfAttempt) -> AbstractContextManager[None]:
        """Use a slot for an attempt that is started in the block, its own where one is kept.

        Raises:
            RuntimeUnavailable: All are in use, or the machine lacks something to start it with.
        """
        ...


class RemoteRuntimes(Protocol):
    """Attempts on other nodes."""

    def at(self, node: str, runtime: Runtime) -> Runtime:
        """The runtime of that name there; freezes and tidies as that one does."""
        ...


class Places(Protocol):
    """Finds a node for an attempt. Whether a node is alive, the store says, and not the finder."""

    async def place(self, offer: Offer) -> str:
        """Offer the attempt, and wait, however long, until a node has taken it.

        An attempt has one taker until ``settle``, whoever asks and however often. Cancelled, the
        offer stays.

        Returns:
            The name of the node, which keeps a slot for it for a while.

        Raises:
            StoreUnavailable: Nobody can say; repeat it.
        """
        ...

    async def settle(self, attempt_id: AttemptId) -> None:
        """Nobody needs the offer any more: its taker is on record, or it is not to start.

        Idempotent.

        Raises:
            StoreUnavailable: Nobody can say; repeat it, or leave it: it is deleted some time.
        """
        ...


class Taking(Protocol):
    """A node's side of ``Places``: takes offers while slots are free."""

    async def run(self) -> None:
        """Take until cancelled."""
        ...
