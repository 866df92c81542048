"""How the nodes of a cluster know each other: certificates of a CA that is the cluster's own.

A caller that has none gets no answer at all. Who has one is a node, or holds a token with which a
machine becomes one: that one's certificate is good for ``JOIN_PATH`` and nothing else.
"""

import ssl
from collections.abc import Mapping
from typing import Final, Protocol

JOIN_PATH: Final = "/node/v1/join"
"""Where a listener for nodes answers who wants to become one."""
JOINS: Final = "join:"
"""Begins the name in a token's certificate; no node is called so."""


class ClusterTrust(Protocol):
    """This node's certificate, renewed while it is used, and whom it believes.

    Both contexts speak TLS 1.3 and nothing older, and stay good as long as the process lives: each
    new connection is made with the certificate that is the newest then.
    """

    @property
    def node(self) -> str:
        """The name in our certificate."""
        ...

    @property
    def ends_at_ms(self) -> int:
        """When our certificate ends, if nothing renews it."""
        ...

    def start(self) -> None:
        """Get a certificate, and renew it from now on; everything else comes behind it. Blocking.

        Raises:
            ConfigError: This home belongs to no cluster, or to that of another database.
            CorruptState: The CA's key does not open.
            StoreUnavailable: The database cannot be asked.
        """
        ...

    def close(self) -> None:
        """Renew no more. Idempotent."""
        ...

    def server_context(self) -> ssl.SSLContext:
        """For a listener: takes only clients with a certificate of the cluster."""
        ...

    def client_context(self) -> ssl.SSLContext:
        """For calls: takes only servers with a certificate of the cluster for the host that is
        called.
        """
        ...

    def admit(self, secret: str) -> str:
        """Burn a token, for whoever brought it to ``JOIN_PATH``. Blocking.

        Args:
            secret: The token's.

        Returns:
            What makes its home one of the cluster's (base64url); it can issue certificates.

        Raises:
            Forbidden: It was used, has expired or never was (``guardrail`` "join_token").
            StoreUnavailable: Nobody can say; the token may be used up.
        """
        ...


def peer_node(certificate: Mapping[str, object] | None) -> str | None:
    """The node at the other end; None = it has no certificate, or the one of a token.

    Args:
        certificate: As ``getpeercert()`` of its connection gives it
            (``transport.get_extra_info("peercert")``).
    """
    name = _common_name(certificate or {})
    return None if not name or name.startswith(JOINS) else name


def _common_name(certificate: Mapping[str, object]) -> str:
    subject = certificate.get("subject")
    for part in subject if isinstance(subject, tuple) else ():
        for key, value in part:
            if key == "commonName":
                return str(value)
    return ""
