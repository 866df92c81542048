"""A node's certificate: issued by itself when it starts, and again at half its life."""

import logging
import ssl
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509

from subagents.errors import ConfigError, Forbidden, SubagentsError, UsageError
from subagents.extensions.cluster.trust import tls
from subagents.extensions.cluster.trust.authority import (
    NODE_LIFE,
    Authority,
    certifiable,
    digest,
    fingerprint,
)
from subagents.extensions.cluster.trust.join_token import coded, decoded
from subagents.extensions.cluster.trust.trust_files import TrustFiles
from subagents.extensions.cluster.trust.trust_tables import TrustTables

log = logging.getLogger(__name__)

LOOK_S: Final = 60.0
"""How often the clock on the wall is looked at: a machine that slept has missed what was due."""


class NodeTrust:
    """See ``ports.ClusterTrust``. Between ``start`` and ``close`` a thread renews the certificate.

    Args:
        files: Of this home.
        tables: Of the cluster's database.
        node: The node's name.
        hosts: Names and addresses under which others call it.
        life: Of each certificate.
        look_s: See ``LOOK_S``.
        wall: This machine's time.
    """

    def __init__(
        self,
        files: TrustFiles,
        tables: TrustTables,
        *,
        node: str,
        hosts: Sequence[str],
        life: timedelta = NODE_LIFE,
        look_s: float = LOOK_S,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._files = files
        self._tables = tables
        self._node = node
        self._hosts = certifiable([*hosts, node])
        self._life = life
        self._look_s = look_s
        self._wall = wall
        self._stopping = threading.Event()
        self._renewing: threading.Thread | None = None
        self._certificate: x509.Certificate | None = None
        self._listening = tls.NewestContext(ssl.PROTOCOL_TLS_SERVER)
        self._calling = tls.NewestContext(ssl.PROTOCOL_TLS_CLIENT)

    @property
    def node(self) -> str:
        return self._node

    @property
    def ends_at_ms(self) -> int:
        assert self._certificate is not None  # noqa: S101  it was started
        return round(self._certificate.not_valid_after_utc.timestamp() * 1000)

    def start(self) -> None:
        """See ``ports.ClusterTrust.start``."""
        self.renew()
        self._renewing = threading.Thread(target=self._renew, name="certificate", daemon=True)
        self._renewing.start()

    def close(self) -> None:
        self._stopping.set()
        if self._renewing is not None:
            self._renewing.join()

    def server_context(self) -> ssl.SSLContext:
        return self._listening

    def client_context(self) -> ssl.SSLContext:
        return self._calling

    def admit(self, secret: str) -> str:
        try:
            is_burned = self._tables.burn(digest(decoded(secret)))
        except UsageError:
            is_burned = False
        if not is_burned:
            log.warning("a join token was refused: it was used, has expired or never was")
            raise unusable_token()
        log.info("a machine joined the cluster with a token")
        return coded(self._files.secret())

    def renew(self) -> None:
        """Issue a certificate now; raises as ``start``, and then the one before stays."""
        authority = opened(self._files, self._tables)
        issued = authority.issue_node(self._node, self._hosts, self._tables.now(), self._life)
        self._files.put_node(issued.pem)
        ca, file = authority.certificate, self._files.node_file
        self._listening.newest = tls.server_context(ca, file)
        self._calling.newest = tls.client_context(ca, file)
        self._certificate = issued.certificate
        until = issued.certificate.not_valid_after_utc.isoformat(timespec="seconds")
        log.info("the certificate of node %s is good until %s", self._node, until)

    def _renew(self) -> None:
        failed = ""
        while not self._stopping.wait(self._wait_s()):
            if self._left > self._life / 2:
                continue
            try:
                self.renew()
                failed = ""
            except SubagentsError as error:
                if error.message != failed:
                    log.warning(
                        "the certificate of node %s cannot be renewed, %d minutes before its end:"
                        " %s",
                        self._node,
                        self._left // timedelta(minutes=1),
                        error.message,
                    )
                failed = error.message

    @property
    def _left(self) -> timedelta:
        assert self._certificate is not None  # noqa: S101  it was started
        return self._certificate.not_valid_after_utc - self._wall()

    def _wait_s(self) -> float:
        due_s = (self._left - self._life / 2).total_seconds()
        # What is overdue failed, and is tried again at each look.
        return min(due_s, self._look_s) if due_s > 0 else self._look_s


def opened(files: TrustFiles, tables: TrustTables) -> Authority:
    """The CA of the cluster that this home belongs to.

    Raises:
        ConfigError: It belongs to none, or the database is another cluster's.
        CorruptState: The CA's key does not open.
        StoreUnavailable: The database cannot be asked.
    """
    ours, secret, stored = files.ca(), files.secret(), tables.ca()
    if stored is None or fingerprint(stored.certificate) != fingerprint(ours):
        whose = "has no cluster" if stored is None else "is that of another cluster"
        raise ConfigError(
            f"{tables.place} {whose}, and this home belongs to one",
            hint="correct daemon.store, or leave the cluster: subagents cluster leave",
            details={"keys": ["daemon.store"]},
        )
    return Authority.unlocked(ours, stored.locked_key, secret)


def unusable_token() -> Forbidden:
    """For a token that opens nothing."""
    return Forbidden(
        "this token was used, has expired or never was one of this cluster",
        guardrail="join_token",
        hint="make a new one on a node of the cluster: subagents cluster token",
    )
