"""The CA of a cluster: its key, and the certificates that are made with it. No I/O.

The key lies in the database, encrypted with a secret that only the homes of the nodes have. So each
node renews its own certificate whichever others are off, and whoever reads the database, or a copy
of it, makes none.
"""

import hashlib
import ipaddress
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from subagents.errors import CorruptState
from subagents.extensions.cluster.trust.cluster_trust import JOINS

CA_LIFE: Final = timedelta(days=3650)
NODE_LIFE: Final = timedelta(hours=24)
EARLIER: Final = timedelta(minutes=5)
"""A certificate is good so long before it was made: other machines' clocks are behind."""
SECRET_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_DNS_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


def new_secret() -> bytes:
    """256 random bits."""
    return os.urandom(SECRET_BYTES)


def fingerprint(ca: x509.Certificate) -> bytes:
    """By which a CA is known: SHA-256 of its certificate."""
    return ca.fingerprint(hashes.SHA256())


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its key."""

    certificate: x509.Certificate
    pem: bytes
    """Both, as OpenSSL reads them from a file."""


class Authority:
    """A CA's certificate with its key; lives as long as something is issued.

    Args:
        certificate: Of the CA.
        key: The one that the certificate is for.
    """

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self._key = key

    @classmethod
    def new(cls, name: str, now: datetime) -> "Authority":
        """A new CA.

        Args:
            name: For people who look at certificates: the cluster's.
            now: With its time zone.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - EARLIER)
            .not_valid_after(now + CA_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
        )
        return cls(made.sign(key, hashes.SHA256()), key)

    def locked(self, secret: bytes) -> bytes:
        """The key, for the database: AES-256-GCM, bound to the certificate."""
        nonce = os.urandom(_NONCE_BYTES)
        plain = self._key.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return nonce + AESGCM(secret).encrypt(nonce, plain, fingerprint(self.certificate))

    @classmethod
    def unlocked(cls, certificate: x509.Certificate, locked: bytes, secret: bytes) -> "Authority":
        """The reverse of ``locked``.

        Raises:
            CorruptState: The secret is another one's, or the key was changed.
        """
        nonce, sealed = locked[:_NONCE_BYTES], locked[_NONCE_BYTES:]
        try:
            plain = AESGCM(secret).decrypt(nonce, sealed, fingerprint(certificate))
        except InvalidTag as error:
            raise CorruptState(
                "the cluster's CA key in the database does not open with this home's secret",
                hint="the database is another cluster's, or was changed: leave and join again"
                " (subagents cluster leave)",
            ) from error
        key = serialization.load_der_private_key(plain, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise CorruptState("the cluster's CA key is of a kind that this version does not know")
        return cls(certificate, key)

    def issue_node(
        self, name: str, hosts: Iterable[str], now: datetime, life: timedelta = NODE_LIFE
    ) -> Issued:
        """A certificate for a node, as a server and as a client.

        Args:
            name: The node's.
            hosts: Names and addresses under which others call it.
            now: With its time zone.
            life: From now on.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = self._builder(name, key.public_key(), now, life, usages).add_extension(
            x509.SubjectAlternativeName([*map(_host, dict.fromkeys(hosts))]), critical=False
        )
        return _issued(builder.sign(self._key, hashes.SHA256()), key)

    def issue_join(self, secret: bytes, now: datetime, life: timedelta) -> x509.Certificate:
        """A certificate with which the holder of a token may call and ask to join."""
        name = f"{JOINS}{digest(secret).hex()[:16]}"
        public = join_key(secret).public_key()
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._builder(name, public, now, life, usages).sign(self._key, hashes.SHA256())

    def _builder(
        self,
        name: str,
        public: CertificatePublicKeyTypes,
        now: datetime,
        life: timedelta,
        usages: list[x509.ObjectIdentifier],
    ) -> x509.CertificateBuilder:
        ours = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ours)
        return (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(self.certificate.subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - EARLIER)
            .not_valid_after(now + life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(identifier, critical=False)
        )


def digest(secret: bytes) -> bytes:
    """What the database knows of a token."""
    return hashlib.sha256(secret).digest()


def join_key(secret: bytes) -> ed25519.Ed25519PrivateKey:
    """The key that whoever has a token has without being given it."""
    derived = HKDF(hashes.SHA256(), 32, salt=None, info=b"subagents cluster join").derive(secret)
    return ed25519.Ed25519PrivateKey.from_private_bytes(derived)


def with_join_key(certificate: x509.Certificate, secret: bytes) -> bytes:
    """A token's certificate and key, as OpenSSL reads them from a file."""
    return _issued(certificate, join_key(secret)).pem


def _issued(
    certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
) -> Issued:
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return Issued(certificate, certificate.public_bytes(serialization.Encoding.PEM) + pem)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def certifiable(hosts: Iterable[str]) -> list[str]:
    """Those of the names that a certificate can have: addresses and names of hosts."""
    return [each for each in hosts if ":" in each or _DNS_NAME.fullmatch(each)]
