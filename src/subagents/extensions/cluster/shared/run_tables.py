"""Connections to the database of a cluster, for what its nodes keep besides the runs.

Apart from those of the store: whoever looks through a long transcript keeps nobody from deciding.
What is written is one statement, or one packet (``cluster.postgres.link``), and may be repeated: so
whoever lost the connection before the answer writes again.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

import psycopg

from subagents.errors import Fenced, StoreUnavailable
from subagents.extensions.cluster.postgres.database_url import parse_url
from subagents.extensions.cluster.postgres.link import Link, Lost
from subagents.extensions.cluster.postgres.postgres_migrations import statements
from subagents.store.rows import Row

T = TypeVar("T")

LINKS: Final = 3
WAIT_S: Final = 10.0
"""How long one of them is waited for; then the database counts as one that cannot be reached."""
IDLE_MAX: Final = "60s"
"""A snapshot whose reader stands still for so long is ended by the server."""
NODE_OVER: Final = "SUB01"
"""The SQLSTATE that the function ``require_node`` raises."""


class RunTables:
    """The tables of migration 0005, or others, and some connections, made as needed.

    Args:
        url: See ``extensions.cluster.postgres.database_url``; of the store, which made the schema.
        identity: Of this node, once the store is open.
        package: Has the statements about them.
        most: So many connections.
    """

    def __init__(
        self, url: str, identity: Callable[[], str], package: str = __package__, most: int = LINKS
    ) -> None:
        self._url = parse_url(url)
        self._sql = statements(self._url.schema, package)
        self._most = most
        self._identity = identity
        self._idle: queue.LifoQueue[Link] = queue.LifoQueue()
        self._made = 0
        self._is_closed = False
        self._lending = threading.Lock()

    @property
    def identity(self) -> str:
        """Of this node."""
        return self._identity()

    def ask(self, name: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Execute one statement, which may be repeated, and return its rows.

        Raises:
            StoreUnavailable: The database cannot be reached, or refused it.
            Fenced: This node is over.
            psycopg.Error: The statement itself raised a SQLSTATE of ours; not ``NODE_OVER``.
        """
        return self._repeated(lambda link: link.ask(self._sql[name], parameters))

    def write(self, *written: tuple[str, Sequence[Row]]) -> None:
        """Execute statements in one durable transaction, which may be repeated.

        Args:
            written: Names, each with its rows; one without any is left out.

        Raises:
            StoreUnavailable, Fenced: See ``ask``; whether it was done nobody knows.
        """
        fence: Sequence[Row] = [(self.identity,)]
        packet = [("make_durable", [()]), ("require_node", fence), *written]
        statements: list[tuple[str, Sequence[Row]]] = [
            (self._sql[name], rows) for name, rows in packet if rows
        ]
        self._repeated(lambda link: link.send(statements))

    @contextmanager
    def transaction(self, *, is_snapshot: bool = False) -> Iterator["Transaction"]:
        """Several statements in one transaction.

        Args:
            is_snapshot: All of them see the same state, and none writes.

        Raises:
            StoreUnavailable, Fenced: See ``ask``.
        """
        # One that is dead is found out here, where everything can be repeated.
        link = self._repeated(self._begun(is_snapshot=is_snapshot), is_kept=True)
        transaction = Transaction(link, self._sql, self._told)
        try:
            yield transaction
            transaction.ask("commit")
        except BaseException:
            link.close()
            raise
        finally:
            self._give_back(link)

    def close(self) -> None:
        """Close the connections that nobody uses, the others with their use. Idempotent."""
        self._is_closed = True
        with suppress(queue.Empty):
            while True:
                link = self._idle.get_nowait()
                link.close()
                self._give_back(link)

    def _begun(self, *, is_snapshot: bool) -> Callable[[Link], Link]:
        how = "ISOLATION LEVEL REPEATABLE READ, READ ONLY" if is_snapshot else ""

        def begin(link: Link) -> Link:
            link.ask(f"BEGIN {how}")
            link.ask(f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE_MAX}'")
            return link

        return begin

    def _repeated(self, work: Callable[[Link], T], *, is_kept: bool = False) -> T:
        """After a restart of the server every idle connection is dead, which shows when it is used.

        Args:
            work: May be repeated.
            is_kept: Its result is the connection, which whoever called gives back.
        """
        for is_last in (*[False] * self._most, True):
            link = self._borrow()
            try:
                found = work(link)
            except (psycopg.Error, Lost) as error:
                is_dead = link.is_lost and isinstance(error, Lost | psycopg.OperationalError)
                self._give_back(link)
                if is_last or not is_dead:
                    raise self._told(error) from error
                continue
            except BaseException:
                link.close()
                self._give_back(link)
                raise
            if not is_kept:
                self._give_back(link)
            return found
        raise AssertionError  # pragma: no cover  # the last one raised

    def _told(self, error: psycopg.Error | Lost) -> Exception:
        state = getattr(error, "sqlstate", None)
        if state == NODE_OVER:
            return Fenced(f"this node is over: others took its partitions in {self._url.shown}")
        if isinstance(error, psycopg.Error) and state is not None and state.startswith("SUB"):
            return error
        words = " ".join(str(error).split())
        return StoreUnavailable(f"{self._url.shown} cannot be used: {words}")

    def _borrow(self) -> Link:
        with suppress(queue.Empty):
            return self._idle.get_nowait()
        with self._lending:
            is_new = self._made < self._most
            self._made += is_new
        if not is_new:
            try:
                return self._idle.get(timeout=WAIT_S)
            except queue.Empty as error:
                raise StoreUnavailable(f"all connections to {self._url.shown} are busy") from error
        try:
            return Link(self._url.conninfo)
        except BaseException as error:
            with self._lending:
                self._made -= 1
            if isinstance(error, psycopg.Error):
                raise self._told(error) from error
            raise

    def _give_back(self, link: Link) -> None:
        if self._is_closed:
            link.close()
        if link.is_lost:
            with self._lending:
                self._made -= 1
        else:
            self._idle.put(link)


class Transaction:
    """One that is under way, see ``RunTables.transaction``."""

    def __init__(
        self, link: Link, sql: Mapping[str, str], told: Callable[[psycopg.Error], Exception]
    ) -> None:
        self._link = link
        self._sql = sql
        self._told = told

    def ask(self, name: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Execute one statement in it, and return its rows.

        Raises:
            StoreUnavailable, Fenced: See ``RunTables.ask``; the transaction is over.
        """
        try:
            return self._link.ask(self._sql[name], parameters)
        except psycopg.Error as error:
            self._link.close()
            raise self._told(error) from error


def data_of(value: object) -> bytes:
    """What a column of type bytea has."""
    if not isinstance(value, bytes | memoryview):
        raise TypeError(f"no bytes: {type(value).__name__}")
    return bytes(value)


def number_of(value: object) -> int:
    """What a column of type bigint has."""
    if not isinstance(value, int):
        raise TypeError(f"no number: {type(value).__name__}")
    return value
