"""The offers of a cluster in its PostgreSQL, and who took them."""

from collections.abc import Collection

from subagents.domain.run.values import AttemptId, RunId
from subagents.extensions.cluster.node_ports import Offer
from subagents.extensions.cluster.shared.run_tables import RunTables
from subagents.store.rows import Row


class PostgresOffers:
    """The truth about offers, whatever found the taker. For any thread, one at a time.

    All of it can be repeated, and raises StoreUnavailable when nobody can say.

    Args:
        url: Of the store, whose schema has the table.
    """

    def __init__(self, url: str) -> None:
        self._tables = tables = RunTables(url, lambda: "", __package__, most=1)
        self._ask, self.close = tables.ask, tables.close

    def put(self, offer: Offer) -> str | None:
        """Offer an attempt, if it is not offered already; who has taken it, if anybody has."""
        ((taker,),) = self._ask("put_offer", offer)
        return _text(taker)

    def takers(self, attempts: Collection[AttemptId]) -> dict[AttemptId, str]:
        """Who has taken which of these; those that nobody has taken are missing."""
        return {
            AttemptId(str(attempt)): str(taker)
            for attempt, taker in self._ask("select_takers", (list(attempts),))
        }

    def open(self, labels: Collection[str], most: int) -> list[Offer]:
        """What nobody has taken and a node with these labels may take, the next ones first."""
        return [_offer(row) for row in self._ask("select_open", (list(labels), most))]

    def take(self, attempts: Collection[AttemptId], node: str, most: int) -> list[AttemptId]:
        """Take at most so many for a node; which it has now, and nobody else. See ``takers``."""
        found = self._ask("take_offers", (list(attempts), node, most))
        return [AttemptId(str(attempt)) for (attempt,) in found]

    def find(self, attempt: AttemptId) -> tuple[Offer, str | None] | None:
        """The offer of an attempt and its taker; None = there is none (any more)."""
        for row in self._ask("select_offer", (attempt,)):
            return _offer(row[:-1]), _text(row[-1])
        return None

    def drop(self, attempt: AttemptId) -> None:
        """Delete the offer."""
        self._ask("delete_offer", (attempt,))

    def sweep(self) -> None:
        """Delete what was left behind: taken long ago, and settled by nobody."""
        self._ask("delete_left", ())


def _offer(row: Row) -> Offer:
    attempt, run_id, epoch, label, priority, cwd = row
    return Offer(
        attempt_id=AttemptId(str(attempt)),
        run_id=RunId(str(run_id)),
        epoch=int(str(epoch)),
        label=_text(label),
        priority=int(str(priority)),
        cwd=str(cwd),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
