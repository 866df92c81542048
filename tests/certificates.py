"""Certificates that somebody else issued, for tests."""

import ipaddress
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


class Authority:
    """A CA whose certificates are good for a day."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("an organisation")
        basic = x509.BasicConstraints(ca=True, path_length=0)
        self.certificate = self._signed(self._name, self._key, basic, ())
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM)

    def issued(self, name: str, *hosts: str) -> bytes:
        """A certificate and its key (PEM)."""
        key = ec.generate_private_key(ec.SECP256R1())
        basic = x509.BasicConstraints(ca=False, path_length=None)
        made = self._signed(_name(name), key, basic, hosts)
        return made.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        basic: x509.BasicConstraints,
        hosts: tuple[str, ...],
    ) -> x509.Certificate:
        public, ours = key.public_key(), self._key.public_key()
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(ours)
        usage = x509.KeyUsage(
            digital_signature=not basic.ca,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=basic.ca,
            crl_sign=False,
            encipher_only=False,
            decipher_only=False,
        )
        names = [_host(each) for each in hosts]
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.now(UTC) - DAY)
            .not_valid_after(datetime.now(UTC) + DAY)
            .add_extension(basic, critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(identifier, critical=False)
        )
        if names:
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return made.sign(self._key, hashes.SHA256())


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
