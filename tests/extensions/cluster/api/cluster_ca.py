"""Certificates of a cluster for tests: an authority of its own, and nodes that it vouches for."""

import datetime as dt
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = dt.timedelta(days=1)


class Authority:
    """Signs certificates for 127.0.0.1; its files are in ``folder``."""

    def __init__(self, folder: Path, name: str = "cluster") -> None:
        self._folder = folder / name
        self._folder.mkdir()
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        basic = x509.BasicConstraints(ca=True, path_length=0)
        self.certificate = self._signed(self._name, self._key, basic)
        self.file = self._folder / "ca.pem"
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def trust(self, node: str) -> "NodeTrust":
        """What a node of that name shows and believes."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, node)])
        basic = x509.BasicConstraints(ca=False, path_length=None)
        own = self._signed(subject, key, basic)
        file = self._folder / f"{node}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + own.public_bytes(serialization.Encoding.PEM)
        )
        return NodeTrust(node, file, self.file)

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, basic: x509.BasicConstraints
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        own = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + DAY)
            .add_extension(basic, critical=True)
            .add_extension(own, critical=False)
            # Python 3.13 believes no chain without these.
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .add_extension(_usage(is_authority=basic.ca), critical=True)
        )
        return builder.sign(self._key, hashes.SHA256())


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


class NodeTrust:
    """A ``ClusterTrust`` made of two files, which nothing renews."""

    ends_at_ms = 0

    def __init__(self, node: str, own: Path, authority: Path) -> None:
        self.node = node
        self._own = own
        self._authority = authority

    def start(self) -> None:
        """Both files are there."""

    def close(self) -> None:
        """Nothing runs."""

    def admit(self, secret: str) -> str:
        raise NotImplementedError(secret)

    def server_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self._authority))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self._own)
        return context

    def client_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._authority))
        context.load_cert_chain(self._own)
        return context
