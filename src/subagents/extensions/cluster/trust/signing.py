"""Signatures of rows that start work: who writes the database is no node by that alone.

A signature says that somebody who has the cluster's secret wrote the row, and not when: a row of
ours that is put back later is ours.
"""

import hmac
from pathlib import Path
from typing import Final

import msgspec

from subagents.durable_files import replace_file
from subagents.extensions.cluster.trust.sealing import derived

UNSIGNED: Final = "it is not signed with this cluster's secret"
_pack: Final = msgspec.msgpack.Encoder().encode


class Signer:
    """HMAC-SHA256 with a key made of the cluster's secret.

    Args:
        secret: Of the cluster.
        marker: A file of this home. It is there from when every row has to be signed, and then no
            database can say otherwise.
    """

    def __init__(self, secret: bytes, marker: Path) -> None:
        self._key = derived(secret, "rows that start work")
        self.marker = marker
        self.is_required = marker.exists()
        """Whether what is not signed is refused; False = nodes of the version before wrote some."""

    @property
    def check(self) -> bytes:
        """By which a node knows whether its secret is that of the others."""
        return self.sign("secret")

    def sign(self, kind: str, *columns: object) -> bytes:
        """The signature of a row: integers, texts, blobs and NULL, of a kind of its own."""
        # Packed, since texts that merely follow each other could be divided elsewhere.
        return hmac.digest(self._key, _pack((kind, *columns)), "sha256")

    def is_ours(self, signature: object, kind: str, *columns: object) -> bool:
        """Whether it is the signature of that row, compared in constant time."""
        return isinstance(signature, bytes) and hmac.compare_digest(
            signature, self.sign(kind, *columns)
        )

    def prove(self, signature: object, kind: str, *columns: object) -> None:
        """Raise ``ValueError`` for a row that nobody with the secret signed, once that counts."""
        if self.is_required and not self.is_ours(signature, kind, *columns):
            raise ValueError(UNSIGNED)

    def require(self) -> None:
        """From now on, at this home, for good. Idempotent."""
        if not self.is_required:
            replace_file(self.marker, b"Rows that are not signed are refused.\n")
        self.is_required = True
