"""How connections of the store are used: whole transactions, texts that are none, error codes."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All of the block is written, or nothing of it.

    It has the write lock from its beginning: one that begins by reading cannot wait for it later,
    and fails at once when somebody else wrote in between.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        # After some errors, such as a full disk, SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def lenient(connection: sqlite3.Connection) -> Iterator[None]:
    """Texts that are no text any more are read with surrogates for its bytes, not refused.

    One of them would hide all rows that are read along with it.
    """
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    try:
        yield
    finally:
        connection.text_factory = str


def is_corruption(error: sqlite3.DatabaseError) -> bool:
    """Whether the file is damaged, or none of SQLite's."""
    return code_of(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def code_of(error: sqlite3.Error) -> int | None:
    """SQLite's; None = the error is not its."""
    return getattr(error, "sqlite_errorcode", None)
