"""The right of a node whose daemon is gone, for the process that renews it in its place."""

import psycopg

from subagents.extensions.cluster.postgres.database_url import parse_url
from subagents.extensions.cluster.postgres.link import Link
from subagents.extensions.cluster.postgres.postgres_migrations import statements


class KeptNode:
    """The row of one start of a daemon.

    Args:
        url: Of the database.
        identity: Of that start.
    """

    def __init__(self, url: str, identity: str) -> None:
        self._url, self._identity = parse_url(url), identity
        self._link: Link | None = None

    def renew(self) -> bool:
        """Give it its whole length from now on; False = it is over, or another daemon has it.

        Raises:
            OSError: The database cannot be asked.
        """
        try:
            if self._link is None or self._link.is_lost:
                self._link = Link(self._url.conninfo)
            return bool(
                self._link.ask(statements(self._url.schema)["keep_node"], (self._identity,))
            )
        except psycopg.Error as error:
            raise OSError(f"{self._url.shown} cannot be asked: {error}") from error

    def close(self) -> None:
        """Idempotent."""
        if self._link is not None:
            self._link.close()
