"""What a home has from the version before, until no node of that one is left.

Its nodes had certificates of a CA of the cluster. One of this version shows its own of those until
all are upgraded, and they count beside the pinned ones; see docs/decisions/0108. To be deleted with
the next minor version.
"""

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from subagents.extensions.cluster.trust.sealing import Seal
from subagents.extensions.cluster.trust.signing import Signer

PURPOSE: Final = "environments of runs"


class FormerTrust:
    """Files that ``cluster join`` and the node wrote; most homes have none.

    Args:
        directory: With them.
        signer: Says when the last node of that version is gone.
    """

    def __init__(self, directory: Path, signer: Signer) -> None:
        self._directory = directory
        self._signer = signer

    @property
    def ca(self) -> bytes | None:
        """The CA's certificate (DER); None = only pinned ones count."""
        file = self._directory / "ca.pem"
        if self._signer.is_required or not file.exists():
            return None
        return x509.load_pem_x509_certificate(file.read_bytes()).public_bytes(Encoding.DER)

    @property
    def node(self) -> bytes | None:
        """The node's certificate and key (PEM), which nodes of both versions believe."""
        file = self._directory / "node.pem"
        return file.read_bytes() if self.ca is not None and file.exists() else None

    @property
    def secret(self) -> bytes | None:
        """With which values were sealed; those of runs that are still open are opened by it."""
        file = self._directory / "secret"
        return urlsafe_b64decode(f"{file.read_text().strip()}=") if file.exists() else None


class RunSeal:
    """Seals values of runs, so that nodes of the version before open them as long as there are any.

    Args:
        secret: Of the cluster.
        former: What there is of that version.
        signer: See ``FormerTrust``.
    """

    def __init__(self, secret: bytes, former: FormerTrust, signer: Signer) -> None:
        self._own, self._signer = Seal(secret, PURPOSE), signer
        self._former = None if former.secret is None else Seal(former.secret, PURPOSE)

    def encrypt(self, plain: bytes) -> bytes:
        """See ``Seal.encrypt``."""
        seal = self._own if self._signer.is_required or not self._former else self._former
        return seal.encrypt(plain)

    def decrypt(self, sealed: bytes) -> bytes:
        """See ``Seal.decrypt``."""
        try:
            return self._own.decrypt(sealed)
        except ValueError:
            if self._former is None:
                raise
            return self._former.decrypt(sealed)


def name_of(certificate: Mapping[str, object] | None) -> str | None:
    """The node that a certificate of that CA names; None = none, as in that of a join token.

    Args:
        certificate: As ``getpeercert()`` of its connection gives it.
    """
    subject = (certificate or {}).get("subject")
    parts = subject if isinstance(subject, tuple) else ()
    name = next((str(value) for part in parts for key, value in part if key == "commonName"), "")
    return None if not name or name.startswith("join:") else name
