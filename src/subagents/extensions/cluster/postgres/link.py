"""A connection to PostgreSQL, and what is written over it: one packet for each transaction.

Everything of a transaction is in the server before it answers, so no row is locked while somebody
is waited for; a process that is frozen meanwhile has committed or not begun. Nothing is bound to
the session but what the link itself prepared, and behind a pooler (PgBouncer in transaction mode)
nothing is prepared.
"""

import re
import select
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import psycopg
from psycopg import pq
from psycopg.adapt import Buffer, Dumper, Loader

from subagents.store.rows import Row

CONNECT_S: Final = 5
UNANSWERED_MS: Final = 10_000
"""A server that acknowledges nothing for so long is given up; of the kernel's, see tcp(7)."""

_OPTIONS: Final[Mapping[str, str | int]] = {
    "application_name": "subagents",
    "connect_timeout": CONNECT_S,
    "tcp_user_timeout": UNANSWERED_MS,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
_TYPED: Final = re.compile(r"\$(\d+)::(\w+)(\[\])?")
_BINARY: Final = pq.Format.BINARY
_BIGINT: Final = struct.Struct(">q")


class Lost(Exception):
    """The connection ended before the answer: what was sent was done, or not, or will be."""


def escaped(text: str) -> str:
    """A text without NUL, which PostgreSQL takes in none; ``unescaped`` is the reverse.

    Different texts stay different, and one that begins another still does.
    """
    if "\0" in text or "\x1b" in text:
        return text.replace("\x1b", "\x1b1").replace("\0", "\x1b0")
    return text


def unescaped(text: str) -> str:
    """The reverse of ``escaped``."""
    return text.replace("\x1b0", "\0").replace("\x1b1", "\x1b") if "\x1b" in text else text


class _TextDumper(Dumper):
    def dump(self, obj: str) -> Buffer | None:
        return escaped(obj).encode()


class _TextLoader(Loader):
    format = _BINARY

    def load(self, data: Buffer) -> str:
        return unescaped(bytes(data).decode())


class _Parameter(NamedTuple):
    oid: int
    element: int
    """The type of its elements; 0 = it is no array."""
    encode: Callable[[object], bytes]


def _text(value: object) -> bytes:
    return escaped(str(value)).encode()


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"no bytes: {value!r}")
    return value


_ENCODERS: Final[Mapping[str, tuple[int, int, Callable[[object], bytes]]]] = {
    "bigint": (20, 1016, _BIGINT.pack),
    "text": (25, 1009, _text),
    "bytea": (17, 1001, _bytes),
}
"""The oid of each type, of arrays of it, and how PostgreSQL reads one (pg_type.dat)."""


@cache
def _parameters(sql: str) -> tuple[_Parameter, ...]:
    """What the statement says of its parameters, in their order."""
    found = {}
    for place, name, is_array in _TYPED.findall(sql):
        oid, array, encode = _ENCODERS[name]
        found[int(place)] = _Parameter(array if is_array else oid, oid if is_array else 0, encode)
    return tuple(found[place] for place in sorted(found))


def _array(parameter: _Parameter, column: Sequence[object]) -> bytes:
    """As ``array_recv`` reads it."""
    parts = [struct.pack(">5i", 1, None in column, parameter.element, len(column), 1)]
    for value in column:
        if value is None:
            parts.append(b"\xff\xff\xff\xff")
        else:
            data = parameter.encode(value)
            parts += (struct.pack(">i", len(data)), data)
    return b"".join(parts)


def values_of(sql: str, found: Sequence[Row]) -> list[list[bytes | None]]:
    """The parameters of each execution: one with columns, or one for each row."""
    parameters = _parameters(sql)
    if parameters and parameters[0].element:
        columns = zip(*found, strict=True)
        return [[_array(each, column) for each, column in zip(parameters, columns, strict=True)]]
    return [
        [
            None if value is None else each.encode(value)
            for each, value in zip(parameters, row, strict=True)
        ]
        for row in found
    ]


class Link:
    """One connection, used by one thread at a time.

    Args:
        conninfo: For libpq; what it says itself is stronger than our options.

    Raises:
        psycopg.OperationalError: There is no connection to be had.
    """

    def __init__(self, conninfo: str) -> None:
        given = psycopg.conninfo.conninfo_to_dict(conninfo)
        ours = {name: value for name, value in _OPTIONS.items() if name not in given}
        self.connection: psycopg.Connection[Row] = psycopg.connect(
            psycopg.conninfo.make_conninfo(conninfo, client_encoding="utf8", **ours),
            autocommit=True,
            prepare_threshold=None,
        )
        self.connection.cursor_factory = psycopg.RawCursor
        self.connection.adapters.register_dumper(str, _TextDumper)
        self.connection.adapters.register_loader("text", _TextLoader)
        try:
            (pid,) = self.ask("SELECT pg_backend_pid()")[0]
        except BaseException:
            self.close()
            raise
        # A pooler answers with a number of its own: another backend may have the next transaction.
        self._may_prepare = pid == self.connection.pgconn.backend_pid
        self._prepared: dict[str, bytes] = {}
        if self._may_prepare:
            self.connection.prepare_threshold = 1

    def ask(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Execute a statement by itself, and return its rows, if it has any."""
        cursor = self.connection.execute(sql, parameters or None, binary=True)
        return cursor.fetchall() if cursor.description is not None else []

    def run_script(self, script: str) -> None:
        """Execute several statements, which take no parameters."""
        with psycopg.ClientCursor(self.connection) as cursor:
            cursor.execute(script.encode(), prepare=False)

    def stream(self) -> "psycopg.RawServerCursor[Row]":
        """For an answer of any size; used in a transaction, and closed."""
        return psycopg.RawServerCursor(self.connection, "subagents_stream")

    @property
    def is_lost(self) -> bool:
        return self.connection.closed

    def close(self) -> None:
        self.connection.close()

    def send(self, statements: Iterable[tuple[str, Sequence[Row]]]) -> int | None:
        """Execute all of them in one transaction.

        Args:
            statements: Each with its rows, of which there is one at least.

        Returns:
            The number that the first one that returns a row gave; None = it is none.

        Raises:
            psycopg.Error: The server refused it; nothing was done.
            Lost: The connection is no more.
        """
        queued = [(sql, values) for sql, rows in statements for values in values_of(sql, rows)]
        pgconn = self.connection.pgconn
        try:
            pgconn.enter_pipeline_mode()
            pgconn.send_query_params(b"BEGIN", None)
            for sql, values in queued:
                self._queue(pgconn, sql, values)
            pgconn.send_query_params(b"COMMIT", None)
            pgconn.pipeline_sync()
            refused, told = _answered(pgconn)
            pgconn.exit_pipeline_mode()
        except psycopg.OperationalError as error:
            self.close()
            raise Lost(str(error)) from error
        except BaseException:
            self.close()
            raise
        if refused is not None:
            self.close()  # what was to be prepared in it may not be
            raise refused
        return _BIGINT.unpack(told)[0] if told is not None and len(told) == _BIGINT.size else None

    def _queue(self, pgconn: pq.abc.PGconn, sql: str, values: Sequence[bytes | None]) -> None:
        formats = [_BINARY] * len(values)
        if not self._may_prepare:
            oids = [each.oid for each in _parameters(sql)]
            pgconn.send_query_params(sql.encode(), values, oids, formats, _BINARY)
            return
        name = self._prepared.get(sql)
        if name is None:
            name = self._prepared[sql] = f"subagents_{len(self._prepared)}".encode()
            pgconn.send_prepare(name, sql.encode(), [each.oid for each in _parameters(sql)])
        pgconn.send_query_prepared(name, values, formats, _BINARY)


def _answered(pgconn: pq.abc.PGconn) -> tuple[psycopg.Error | None, bytes | None]:
    """Send what is queued and wait for all answers.

    Returns:
        The first error, None = there was none; and the first value of all.

    Raises:
        psycopg.OperationalError: The connection ended before.
    """
    poll = select.poll()
    while pgconn.flush():
        # Answers are taken meanwhile, or both sides would wait for the other one to read.
        poll.register(pgconn.socket, select.POLLIN | select.POLLOUT)
        if any(event & select.POLLIN for _, event in poll.poll()):
            pgconn.consume_input()
    poll.register(pgconn.socket, select.POLLIN)
    refused: psycopg.Error | None = None
    told: bytes | None = None
    while True:
        while pgconn.is_busy():
            poll.poll()
            pgconn.consume_input()
        result = pgconn.get_result()
        if pgconn.status == pq.ConnStatus.BAD:
            raise psycopg.OperationalError(pgconn.get_error_message())
        if result is None:
            continue
        if result.status == pq.ExecStatus.PIPELINE_SYNC:
            return refused, told
        if result.status == pq.ExecStatus.TUPLES_OK and told is None and result.ntuples:
            told = result.get_value(0, 0)
        if result.status == pq.ExecStatus.FATAL_ERROR and refused is None:
            refused = _refusal(result)


def _refusal(result: pq.abc.PGresult) -> psycopg.Error:
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    try:
        kind: type[psycopg.Error] = psycopg.errors.lookup(state)
    except KeyError:  # ours
        kind = psycopg.DatabaseError
    words = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""
    error = kind(words.decode("utf-8", "replace"))
    error.sqlstate = state
    return error
