"""A node's certificate, made anew at each start, and whom it believes: the nodes of its survey."""

import ipaddress
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from subagents.durable_files import replace_file
from subagents.extensions.cluster.shared_store import Survey
from subagents.extensions.cluster.trust import tls
from subagents.extensions.cluster.trust.former_trust import FormerTrust, name_of

# RFC 5280, 4.1.2.5: the end of a certificate that has none. No node looks at either.
VALID_FROM: Final = datetime(2000, 1, 1, tzinfo=UTC)
VALID_UNTIL: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
# Names of containers have an underscore, and are called by it.
_DNS_NAME: Final = re.compile(r"\w([\w.-]{0,251}\w)?", re.ASCII)


class NodeTrust:
    """Both contexts stay good as long as the process lives: each new connection is made with those
    certificates pinned that the newest survey has. Used by one event loop.

    Args:
        file: For certificate and key, of this user alone. OpenSSL reads a key from a file only, and
            whoever reads this home has the secret and the operator's token anyway.
        node: The node's name.
        hosts: Names and addresses under which others call it.
        survey: The newest look at who is there; a node's certificate is in it while its row is not
            over, and only where it is signed.
        former: From the version before; None = a new home.
    """

    def __init__(
        self,
        file: Path,
        *,
        node: str,
        hosts: Iterable[str],
        survey: Callable[[], Survey],
        former: FormerTrust | None = None,
    ) -> None:
        self.node = node
        self.refused = self._unsure = 0
        """Connections of whoever had no certificate that counts, at the next look either."""
        self.on_unknown: Callable[[], None] = lambda: None
        """Called for each that is not known: there may be a node that was not seen yet."""
        self._file = file
        self._former = former
        kept = None if former is None else former.node
        self._pem = kept or _made(node, [*hosts, node])
        found = x509.load_pem_x509_certificate(self._pem)
        self.certificate = found.public_bytes(serialization.Encoding.DER)
        """Ours, in DER, for our row."""
        self._survey = survey
        self._seen: Survey | None = None
        self._names: Mapping[bytes, str] = {}
        self._pins: frozenset[bytes] | None = None
        self._newest: Mapping[ssl._SSLMethod, ssl.SSLContext] = {}
        self.server_context = self._context(ssl.PROTOCOL_TLS_SERVER)
        """What a listener uses: it takes only clients that are nodes."""
        self.client_context = self._context(ssl.PROTOCOL_TLS_CLIENT)
        """What calls use: it takes only servers that are nodes, by the host that is called."""

    def start(self) -> None:
        """Put certificate and key where OpenSSL reads them; before any connection. Blocking."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self._file, self._pem)

    def node_of(self, shown: ssl.SSLObject | None) -> str | None:
        """The node at the other end of a connection, as of now; None = none whose row counts."""
        certificate = None if shown is None else shown.getpeercert(binary_form=True)
        if shown is None or certificate is None:
            return None
        self.look()
        name = self._names.get(certificate)
        if name is None and self._ca is not None:
            name = name_of(shown.getpeercert())
            return name if name in self._older else None
        return name

    @property
    def _ca(self) -> bytes | None:
        """Of the version before, as long as one of its nodes is there."""
        return self._former.ca if self._former is not None and self._older else None

    @property
    def _older(self) -> frozenset[str]:
        nodes = self._survey().nodes.values()
        return frozenset(e.name for e in nodes if e.certificate is None and e.left_s > 0)

    def look(self) -> None:
        """Take over what the newest survey says."""
        survey = self._survey()
        if survey is self._seen:
            return
        self._names = {e.certificate: e.name for e in survey.nodes.values() if e.certificate}
        ca = self._ca
        pins = frozenset(self._names) | (set() if ca is None else {ca})
        if pins != self._pins:
            # It came before it was seen.
            self._unsure = 0 if pins - (self._pins or set()) else self._unsure
            self._newest = {
                each: tls.context(each, self._file, pins, self._met_unknown)
                for each in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT)
            }
            self._pins = pins
        self.refused, self._unsure = self.refused + self._unsure, 0
        self._seen = survey

    def _met_unknown(self) -> None:
        self._unsure += 1
        self.on_unknown()

    def _context(self, protocol: ssl._SSLMethod) -> tls.NewestContext:
        def newest() -> ssl.SSLContext:
            self.look()
            return self._newest[protocol]

        made = tls.NewestContext(protocol)
        made.newest = newest
        return made


def _made(node: str, hosts: Iterable[str]) -> bytes:
    """A new key and its self-signed certificate, of a server and a client (PEM)."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, node)])
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    public = key.public_key()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(VALID_FROM)
        .not_valid_after(VALID_UNTIL)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.SubjectAlternativeName([*_named(hosts)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _named(hosts: Iterable[str]) -> Iterable[x509.GeneralName]:
    """Those of the names that a certificate can have: addresses and names of hosts."""
    for each in dict.fromkeys(hosts):
        try:
            yield x509.IPAddress(ipaddress.ip_address(each))
        except ValueError:
            if _DNS_NAME.fullmatch(each):
                yield x509.DNSName(each)
