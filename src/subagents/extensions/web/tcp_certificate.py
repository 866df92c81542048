"""The certificate of the TCP port: read again when its files change, and whose name it has.

Whoever renews it writes two files, one after the other. So what does not fit together yet is not
shown: connections get the certificate before it until they do.
"""

import logging
import os
import re
import ssl
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from subagents.config.settings import DaemonSettings
from subagents.errors import ConfigError

log = logging.getLogger(__name__)

_CERTIFICATE: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL
)
_STEPS_MAX: Final = 10
"""The most steps of a handshake in memory; it takes three."""


def certificate_of(settings: DaemonSettings) -> "TcpCertificate | None":
    """The configured one; None = there is none, and nothing is encrypted.

    Raises:
        ConfigError: A file cannot be read, or they do not belong together.
    """
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return TcpCertificate(Path(settings.tls_cert).expanduser(), Path(settings.tls_key).expanduser())


class TcpCertificate:
    """Both files as they are now.

    Args:
        certificate: In PEM, the port's own first.
        key: In PEM.

    Raises:
        ConfigError: As ``certificate_of``.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._seen = self._identity()
        self._newest = self._read()
        self.names = _names(self._newest, certificate)
        """The names of hosts at the start, without those that stand for several."""
        self.context = self._read()
        """The listener's context; it shows each connection what is in the files then."""
        self.context.sni_callback = self._show_newest

    def _read(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        certificate, key = self._files
        try:
            # Asked for no password: there is nobody to answer.
            context.load_cert_chain(certificate, key, password="")
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"daemon.tls_cert {certificate} and daemon.tls_key {key} cannot be used:"
                f" {error.strerror or error}",
                hint="both must be readable PEM files that belong together, the key without a"
                " password",
                details={"keys": ["daemon.tls_cert", "daemon.tls_key"]},
            ) from error
        return context

    def _show_newest(
        self, connection: ssl.SSLObject, _host: str | None, _context: ssl.SSLContext
    ) -> None:
        """Asked in each handshake, before a certificate is shown."""
        found = self._identity()
        if found != self._seen:
            self._seen = found
            try:
                self._newest = self._read()
                log.info("the certificate of the TCP port was read again")
            except ConfigError as error:
                log.warning("%s; the one from before is still shown", error.message)
        connection.context = self._newest

    def _identity(self) -> list[tuple[int, int, int] | None]:
        found: list[tuple[int, int, int] | None] = []
        for file in self._files:
            try:
                now = os.stat(file)  # noqa: PTH116 - asked in each handshake
                found.append((now.st_ino, now.st_size, now.st_mtime_ns))
            except OSError:
                found.append(None)
        return found


def _names(server: ssl.SSLContext, file: Path) -> frozenset[str]:
    """The hosts in a certificate, as a client would read them: in a handshake in memory."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    # It is ours: whoever issued it is not the question.
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        own = _CERTIFICATE.search(file.read_bytes())
        client.load_verify_locations(cadata="" if own is None else own[0].decode("ascii"))
        certificate = _handshake(server, client)
    except (OSError, ssl.SSLError, ValueError) as error:
        log.warning("nobody will accept the certificate in %s: %s", file, error)
        return frozenset()
    names = certificate.get("subjectAltName", ())
    assert isinstance(names, tuple)  # noqa: S101  documented
    found = [str(value) for _, value in names if "*" not in str(value)]
    return frozenset(f"[{ip_address(each)}]" if ":" in each else each.lower() for each in found)


def _handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> dict[str, object]:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    calling = client.wrap_bio(to_client, to_server)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(_STEPS_MAX):
        is_done = True
        for each in (calling, answering):
            try:
                each.do_handshake()
            except ssl.SSLWantReadError:
                is_done = False
        if is_done:
            break
    return dict(calling.getpeercert() or {})
