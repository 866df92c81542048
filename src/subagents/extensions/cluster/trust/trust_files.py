"""What a home keeps of the cluster that it belongs to: three files that nobody else may read."""

import os
import stat
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from subagents.durable_files import replace_file
from subagents.errors import ConfigError, UsageError
from subagents.extensions.cluster.trust.join_token import coded, decoded

OTHERS: Final = 0o077


class TrustFiles:
    """A directory, which is made when there is something to keep.

    Args:
        directory: Of this home alone.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ca_file = directory / "ca.pem"
        """The CA's certificate: whom this home believes."""
        self.secret_file = directory / "secret"
        """The secret with which any home makes certificates of the cluster."""
        self.node_file = directory / "node.pem"
        """The node's certificate and its key."""

    @property
    def has_joined(self) -> bool:
        return self.secret_file.exists()

    def put(self, ca: x509.Certificate, secret: bytes) -> None:
        """Belong to a cluster."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        replace_file(self.ca_file, ca.public_bytes(Encoding.PEM))
        replace_file(self.secret_file, f"{coded(secret)}\n".encode())

    def put_node(self, pem: bytes) -> None:
        """Replace the node's certificate and key."""
        replace_file(self.node_file, pem)

    def ca(self) -> x509.Certificate:
        """Whom this home believes.

        Raises:
            ConfigError: It has not joined, or the file cannot be read.
        """
        try:
            return x509.load_pem_x509_certificate(self._read(self.ca_file))
        except ValueError as error:
            raise self._broken(self.ca_file, error) from error

    def secret(self) -> bytes:
        """The cluster's; raises ``ConfigError`` as ``ca``, and where others can read it."""
        try:
            return decoded(self._read(self.secret_file).decode("ascii", "replace").strip())
        except UsageError as error:
            raise self._broken(self.secret_file, error) from error

    def node_certificate(self) -> x509.Certificate | None:
        """The node's; None = it made none yet. Raises ``ConfigError`` as ``ca``."""
        if not self.node_file.exists():
            return None
        try:
            return x509.load_pem_x509_certificate(self._read(self.node_file))
        except ValueError as error:
            raise self._broken(self.node_file, error) from error

    def remove(self) -> None:
        """Belong to none. Idempotent."""
        for file in (self.secret_file, self.node_file, self.ca_file):
            file.unlink(missing_ok=True)

    def _read(self, file: Path) -> bytes:
        try:
            with file.open("rb") as opened:
                found = os.fstat(opened.fileno())
                content = opened.read()
        except FileNotFoundError as error:
            raise ConfigError(
                f"this home belongs to no cluster: there is no {file}",
                hint="on a node: subagents cluster token; here: subagents cluster join TOKEN; for a"
                " new cluster: subagents cluster init",
                details={"keys": ["cluster.listen"]},
            ) from error
        except OSError as error:
            raise self._broken(file, error) from error
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & OTHERS:
            raise ConfigError(
                f"{file} is open to others: what is in it is no secret any more",
                hint=f"chmod 600 {file}; if somebody may have read it, make the cluster anew",
            )
        return content

    def _broken(self, file: Path, error: Exception) -> ConfigError:
        return ConfigError(
            f"{file} cannot be read: {error}",
            hint="leave and join again: subagents cluster leave",
        )
