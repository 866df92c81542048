"""TLS between nodes: both sides show a certificate that the other one has pinned, in TLS 1.3."""

import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

NO_CHECK_TIME: Final = 0x200000
"""OpenSSL's ``X509_V_FLAG_NO_CHECK_TIME``: a pinned certificate is good as long as it is pinned."""


class _Told(ssl.SSLObject):
    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except ssl.SSLCertVerificationError:
            if isinstance(self.context, _PinningContext):
                self.context.on_unknown()
            raise


class _PinningContext(ssl.SSLContext):
    """Says when somebody comes whom it does not know."""

    sslobject_class = _Told
    on_unknown: Callable[[], None]


def context(
    protocol: ssl._SSLMethod, file: Path, pins: Iterable[bytes], on_unknown: Callable[[], None]
) -> ssl.SSLContext:
    """For a listener, or for calls by the host in a certificate.

    Args:
        protocol: ``PROTOCOL_TLS_SERVER`` or ``PROTOCOL_TLS_CLIENT``.
        file: Certificate and key to show.
        pins: The certificates (DER) of the other end that are taken; what one of them issued is
            not, since none is a CA's.
        on_unknown: Called where the other end shows none of them.
    """
    made = _PinningContext(protocol)
    made.on_unknown = on_unknown
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    # A trusted certificate need not be a root, and its dates are looked at by nobody.
    made.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    made.verify_flags |= ssl.VerifyFlags(NO_CHECK_TIME)
    made.verify_mode = ssl.CERT_REQUIRED
    if protocol is ssl.PROTOCOL_TLS_SERVER:
        # Who comes again with a ticket is not asked whether its certificate still holds.
        made.num_tickets = 0
    if found := b"".join(pins):
        made.load_verify_locations(cadata=found)
    made.load_cert_chain(file)
    return made


class NewestContext(ssl.SSLContext):
    """Stays the same for whoever has it, and makes each connection by the newest context.

    One is not changed while it is used: another thread may be about to make a connection of it.
    Whoever gets past this one has a context that trusts nobody and shows nothing.
    """

    newest: Callable[[], ssl.SSLContext]

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        return self.newest().wrap_bio(*args, **options)

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:
        """Servers of HTTP say it once."""
        self.newest().set_alpn_protocols(alpn_protocols)
