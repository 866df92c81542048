"""The offers of a cluster in its PostgreSQL, and who took them."""

import threading
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Final, TypeVar

import psycopg

from subagents.domain.run.values import AttemptId, RunId
from subagents.errors import StoreUnavailable
from subagents.extensions.cluster.node_ports import Offer
from subagents.extensions.cluster.postgres.database_url import DatabaseUrl
from subagents.extensions.cluster.postgres.link import Link
from subagents.store.named_statements import named_statements
from subagents.store.rows import Row

T = TypeVar("T")

TRIES: Final = 2
"""A connection that ended since it was used last is made again once."""


@cache
def statements(schema: str) -> dict[str, str]:
    """Every named statement, about this schema."""
    found = named_statements(__package__)
    return {name: sql.replace("{schema}", schema) for name, sql in found.items()}


class PostgresOffers:
    """The truth about offers, whatever found the taker. For any thread, one at a time.

    One connection, made when it is first needed. All of it can be repeated, and raises
    StoreUnavailable when nobody can say.

    Args:
        url: Of the store, whose schema has the table.
    """

    def __init__(self, url: DatabaseUrl) -> None:
        self._url = url
        self._sql = statements(url.schema)
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._is_closed = False
        """Who still asks leaves no connection behind."""

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

    def close(self) -> None:
        """End the connection; whoever asks still has one of its own for that."""
        with self._lock:
            self._is_closed = True
            self._close()

    def _ask(self, name: str, parameters: Sequence[object]) -> list[Row]:
        with self._lock:
            try:
                return self._tried(lambda link: link.ask(self._sql[name], parameters))
            finally:
                if self._is_closed:
                    self._close()

    def _tried(self, work: Callable[[Link], T]) -> T:
        for again in range(TRIES):
            is_new = self._link is None
            try:
                self._link = self._link or Link(self._url.conninfo)
                return work(self._link)
            except psycopg.OperationalError as error:
                # Each statement may be repeated: done twice, it comes to the same.
                self._close()
                if is_new or again == TRIES - 1:
                    raise StoreUnavailable(f"the offers cannot be read or made: {error}") from error
            except psycopg.Error as error:
                self._close()
                raise StoreUnavailable(f"the offers cannot be read or made: {error}") from error
        raise AssertionError

    def _close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()


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
