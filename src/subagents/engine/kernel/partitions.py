"""Which sessions and runs this daemon decides about: all of them, where its store is its own.

Where daemons share a store an extension puts another one in its place. Whoever is about to decide,
or to answer from memory, asks here first; ``Elsewhere`` says whose it is.
"""

from contextlib import AbstractAsyncContextManager, nullcontext

from subagents.domain.run.run import Run
from subagents.domain.run.values import RunId, SessionKey


class Partitions:
    """Everything is ours."""

    is_shared = False
    """Whether others write the store, too."""
    look_ms: int | None = None
    """So long a follower may wait to be woken before it looks for what others wrote."""
    problem: str | None = None
    """Why nothing is started on this machine now; None = all is well, as far as we know."""

    async def load(self) -> None:
        """What is ours in the store is what the engine loads now.

        Raises:
            StoreUnavailable: It cannot be asked.
        """

    async def has(self, session: SessionKey) -> bool:
        """Whether a session is ours."""
        del session
        return True

    def seen(self, number: int) -> int:
        """Up to which event of the feed this daemon knows all, when it wrote that one itself."""
        return number

    @property
    def labels(self) -> frozenset[str]:
        """Of all nodes that were alive when the store was asked last."""
        return frozenset()

    def require(self, partition: int) -> None:
        """Refuse what another daemon decides.

        Raises:
            Elsewhere: It is not ours; says whose it is.
        """

    async def require_session(self, session: SessionKey) -> int | None:
        """The same for whoever decides about a session: what it spawns, and its inbox.

        Returns:
            Its partition; None = there is but one.

        Raises:
            Elsewhere: See ``require``.
            StoreUnavailable: Nobody can say whose it is.
        """
        del session
        return None

    async def require_run(self, run_id: RunId) -> None:
        """The same for a run; one that does not exist passes.

        Raises:
            Elsewhere: See ``require``.
            StoreUnavailable: Nobody can say whose it is.
        """

    async def require_read(self, run: Run | None) -> None:
        """The same for whoever read a run that is not in memory: an open one is as its owner says.

        Raises:
            Elsewhere: See ``require``.
            StoreUnavailable: Nobody can say whose it is.
        """

    async def partition_of_session(self, session: SessionKey) -> int | None:
        """The partition of a session: of the run whose agent speaks under it, else its own.

        None = there is but one.
        """
        del session
        return None

    def exclusively(self, what: str) -> AbstractAsyncContextManager[None]:
        """In the block no other daemon does the same; raises ``StoreUnavailable`` on entering."""
        del what
        return nullcontext()

    def has_run(self, run_id: RunId) -> bool:
        """Whether a run is ours; one that is nowhere is. Blocking."""
        del run_id
        return True

    async def partition_of_run(self, run_id: RunId) -> int | None:
        """The partition of a run; None = there is no such run, or but one partition."""
        del run_id
        return None
