"""Creates CAs, and signs serving certificates with them. The clock is an argument."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE: Final = timedelta(days=365)
SERVING_LIFE: Final = timedelta(days=30)
SKEW: Final = timedelta(minutes=10)  # certificates are valid this much earlier, for clocks that are slow
COMMON_NAME: Final = "vgpu-webhook-ca"


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA's certificate and key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def created(self) -> datetime:
        """When the CA was created."""
        return self.certificate.not_valid_before_utc + SKEW

    @property
    def ends(self) -> datetime:
        """When the CA expires."""
        return self.certificate.not_valid_after_utc


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """A serving certificate with its key, in PEM, and what its renewal depends on."""

    certificate: bytes
    key: bytes
    begins: datetime
    ends: datetime
    issuer: x509.Certificate


def new_authority(now: datetime) -> Authority:
    """Create a CA that can sign leaf certificates only."""
    key = ec.generate_private_key(ec.SECP256R1())
    key_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    name = _name(f"{COMMON_NAME}-{key_id.digest.hex()[:12]}")  # unique: clients look a CA up by its name
    certificate = (
        _builder(name, key, name, now, now + AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .add_extension(key_id, critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def issue(authority: Authority, names: Sequence[str], now: datetime) -> ServingCertificate:
    """Sign a serving certificate for these DNS names and IP addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    ends = min(now + SERVING_LIFE, authority.ends)
    issuer_id = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    certificate = (
        _builder(_name(names[0][:64]), key, authority.certificate.subject, now, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_id), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return ServingCertificate(pem, key_pem(key), begins, ends, authority.certificate)


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, issuer: x509.Name, now: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(ends)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key in PEM, unencrypted."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
