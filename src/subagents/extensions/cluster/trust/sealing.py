"""What only the nodes of a cluster may read, though it lies in their database."""

import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32


def derived(secret: bytes, purpose: str) -> bytes:
    """The key of 32 bytes that every node makes of the cluster's secret for this purpose."""
    return HKDF(hashes.SHA256(), _KEY_BYTES, salt=None, info=purpose.encode()).derive(secret)


class Seal:
    """AES-256-GCM with a key made of the cluster's secret.

    Args:
        secret: Of the cluster.
        purpose: Of what is encrypted: each has a key of its own.
    """

    def __init__(self, secret: bytes, purpose: str) -> None:
        self._key = AESGCM(derived(secret, purpose))

    def encrypt(self, plain: bytes) -> bytes:
        """Different each time. A key is good for 2³² of them, years of a busy cluster."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._key.encrypt(nonce, plain, None)

    def decrypt(self, sealed: bytes) -> bytes:
        """The reverse of ``encrypt``.

        Raises:
            ValueError: It was encrypted with another key, or changed.
        """
        try:
            return self._key.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        except (InvalidTag, ValueError) as error:
            raise ValueError("it was encrypted by another cluster, or changed since") from error
