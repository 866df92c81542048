"""TLS between nodes: both sides show a certificate of the cluster's CA, in TLS 1.3."""

import ssl
from pathlib import Path

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
