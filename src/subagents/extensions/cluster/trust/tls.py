"""TLS between nodes: both sides show a certificate of the cluster's CA, in TLS 1.3."""

import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding


def server_context(ca: x509.Certificate, file: Path) -> ssl.SSLContext:
    """For a listener that takes only clients of the cluster.

    Args:
        ca: Whose certificates clients must have.
        file: Certificate and key to show.
    """
    context = _context(ssl.PROTOCOL_TLS_SERVER, ca, file)
    context.verify_mode = ssl.CERT_REQUIRED
    # Who comes again with a ticket is not asked whether its certificate still holds.
    context.num_tickets = 0
    return context


def client_context(ca: x509.Certificate, file: Path) -> ssl.SSLContext:
    """For connections to nodes of the cluster, by the host in their certificate."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, ca, file)


def _context(protocol: ssl._SSLMethod, ca: x509.Certificate, file: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # As newer versions of Python have it by default.
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_verify_locations(cadata=ca.public_bytes(Encoding.DER))
    context.load_cert_chain(file)
    return context


class NewestContext(ssl.SSLContext):
    """Stays the same for whoever has it, and makes each connection by the newest context.

    One is not changed while it is used: another thread may be about to make a connection of it.
    Whoever gets past this one has a context that trusts nobody and shows nothing.
    """

    newest: ssl.SSLContext

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        return self.newest.wrap_bio(*args, **options)

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        return self.newest.wrap_socket(*args, **options)

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:
        """Clients of HTTP say it before each connection."""
        self.newest.set_alpn_protocols(alpn_protocols)
