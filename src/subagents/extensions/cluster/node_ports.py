"""What one node of a cluster asks of the others: calls, and a place for an attempt.

Who decides about a run (the owner of its partition) is not where its worker runs (its place).
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, Protocol

from subagents.domain.run.values import AttemptId, RunId

LACK: Final = "lack"
"""The detail of an error that a node answers that says which of ``errors.LACKS`` it comes from."""
SURE: Final = "nothingStarted"
"""The detail of a start that failed for one, and of a call that came to nothing, that says whether
nothing of it is there for sure, so that it may be started elsewhere."""


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

        On entering it raises as ``request``; nothing for ``idle_s`` seconds counts as cut off.
        """
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


class Places(Protocol):
    """Finds a node for an attempt. Whether a node is alive, the store says, and not the finder."""

    async def place(self, offer: Offer) -> str:
        """Offer the attempt, and wait, however long, until a node has taken it.

        Several may keep a slot for it, as where an answer was lost: which of them starts it, its
        owner writes down before. A row has one taker until ``settle``, and outlives its call.

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
