"""The rows about who belongs to a cluster: its CA, and tokens that nobody used yet.

Asked seldom, so each question has a connection of its own; all methods block. Time is the
database's, which all nodes share.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final, NamedTuple

import psycopg
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from subagents.errors import ConfigError, StoreUnavailable
from subagents.extensions.cluster.postgres.database_url import parse_url
from subagents.extensions.cluster.postgres.link import Link
from subagents.extensions.cluster.postgres.postgres_migrations import migrate
from subagents.store.named_statements import named_statements
from subagents.store.rows import Row

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class StoredCa(NamedTuple):
    """What the database has of the CA."""

    certificate: x509.Certificate
    locked_key: bytes
    """See ``Authority.locked``."""


class TrustTables:
    """One schema of a PostgreSQL database.

    Args:
        url: See ``database_url``.

    Raises:
        ConfigError: It is no address of PostgreSQL.
    """

    def __init__(self, url: str) -> None:
        self._url = parse_url(url)
        self._sql = _statements(self._url.schema)

    @property
    def place(self) -> str:
        """For people: without the password."""
        return self._url.shown

    def make(self) -> None:
        """Bring the schema up to date, or make it.

        Raises:
            CorruptState: It is one of a newer version.
            StoreUnavailable: It cannot be reached, or refuses.
        """
        with self._link() as link:
            migrate(link, self._url.schema)

    def now(self) -> datetime:
        """The database's time; raises ``StoreUnavailable``."""
        ((microseconds,),) = self._ask("now")
        return _time(microseconds)

    def ca(self) -> StoredCa | None:
        """The CA; None = this database has no cluster.

        Raises:
            StoreUnavailable: It cannot be asked.
        """
        with self._link() as link:
            if link.ask(self._sql["has_tables"]) != [(True,)]:
                return None
            found = link.ask(self._sql["select_ca"])
        if not found:
            return None
        ((certificate, key),) = found
        return StoredCa(x509.load_der_x509_certificate(_bytes(certificate)), _bytes(key))

    def put_ca(self, found: StoredCa) -> bool:
        """Make this database a cluster's; False = it is one already, and nothing was changed.

        Raises:
            StoreUnavailable: Nothing was changed, or nobody can say.
        """
        row = (found.certificate.public_bytes(Encoding.DER), found.locked_key)
        return bool(self._ask("insert_ca", row))

    def put_token(
        self, digest: bytes, certificate: x509.Certificate, made_by: str, until: datetime
    ) -> None:
        """Keep a new token, and forget those that have expired.

        Raises:
            StoreUnavailable: As ``put_ca``.
        """
        until_us = (until - EPOCH) // timedelta(microseconds=1)
        row = (digest, certificate.public_bytes(Encoding.DER), made_by, float(until_us))
        with self._link() as link:
            link.ask(self._sql["delete_expired_tokens"])
            link.ask(self._sql["insert_token"], row)

    def token(self, digest: bytes) -> x509.Certificate | None:
        """The certificate of a token that can be used; raises ``StoreUnavailable``."""
        found = self._ask("select_token", (digest,))
        return x509.load_der_x509_certificate(_bytes(found[0][0])) if found else None

    def burn(self, digest: bytes) -> bool:
        """Use a token up; False = there is none to be used.

        Raises:
            StoreUnavailable: It may be used up.
        """
        return bool(self._ask("burn_token", (digest,)))

    def _ask(self, name: str, parameters: Sequence[object] = ()) -> list[Row]:
        with self._link() as link:
            return link.ask(self._sql[name], parameters)

    @contextmanager
    def _link(self) -> Iterator[Link]:
        try:
            link = Link(self._url.conninfo)
        except psycopg.OperationalError as error:
            raise StoreUnavailable(f"cannot reach {self.place}: {_words(error)}") from error
        try:
            yield link
        except psycopg.errors.UndefinedTable as error:
            raise ConfigError(
                f"{self.place} has no cluster",
                hint="make it one first: subagents cluster init",
                details={"keys": ["daemon.store"]},
            ) from error
        except psycopg.Error as error:
            raise StoreUnavailable(f"{self.place} refused: {_words(error)}") from error
        finally:
            link.close()


@cache
def _statements(schema: str) -> dict[str, str]:
    found = named_statements(__package__)
    return {name: sql.replace("{schema}", schema) for name, sql in found.items()}


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes | memoryview):
        raise TypeError(f"no bytes: {type(value).__name__}")
    return bytes(value)


def _time(microseconds: object) -> datetime:
    return EPOCH + timedelta(microseconds=int(str(microseconds)))


def _words(error: psycopg.Error) -> str:
    return " ".join(str(error).split())
