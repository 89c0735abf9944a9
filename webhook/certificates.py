"""Certificates and the decisions about them; the clock is an argument.

All replicas share a few authorities, newest last. A new one is added long before the last ends, is trusted at once and
signs only `OVERLAP` later, when every API server surely trusts it. So rotation has no phases to keep: who signs and who
is trusted follow from the list and the clock, and every replica comes to the same answer.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from vgpu.errors import MalformedError

AUTHORITY_LIFE: Final = timedelta(days=365)
AUTHORITY_RENEWAL: Final = timedelta(days=90)  # a new authority is added when this much is left of the last
OVERLAP: Final = timedelta(hours=1)  # from being trusted to signing
SERVING_LIFE: Final = timedelta(days=30)
SERVING_RENEWAL: Final = timedelta(days=10)
SKEW: Final = timedelta(minutes=10)  # certificates begin this much earlier, for clocks that are behind
COMMON_NAME: Final = "vgpu-webhook-ca"

CERTIFICATES_KEY: Final = "ca.crt"
KEYS_KEY: Final = "ca.key"
_END: Final = b"-----END PRIVATE KEY-----"


class MalformedAuthorities(MalformedError):
    """The Secret's content is not what `encode` writes."""


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA's certificate and key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def created(self) -> datetime:
        """When it was made."""
        return self.certificate.not_valid_before_utc + SKEW

    @property
    def ends(self) -> datetime:
        """When nobody trusts it any more."""
        return self.certificate.not_valid_after_utc


@dataclass(frozen=True, slots=True)
class Serving:
    """A serving certificate with its key, in PEM, and what decides about its renewal."""

    certificate: bytes
    key: bytes
    ends: datetime
    issuer: x509.Certificate


def new_authority(now: datetime) -> Authority:
    """Make a CA that may sign nothing but leaves."""
    key = ec.generate_private_key(ec.SECP256R1())
    key_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    name = _name(f"{COMMON_NAME}-{key_id.digest.hex()[:12]}")  # no two of one name: who verifies looks them up by it
    certificate = (
        _builder(name, key, name, now, now + AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .add_extension(key_id, critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def advance(authorities: Sequence[Authority], now: datetime) -> tuple[Authority, ...]:
    """Return the authorities as they should be now: those that ended are gone, and a fresh one stands ready in time."""
    alive = tuple(sorted((a for a in authorities if a.ends > now), key=lambda a: a.created))
    if not alive or alive[-1].ends - now < AUTHORITY_RENEWAL:
        return (*alive, new_authority(now))
    return alive


def signer(authorities: Sequence[Authority], now: datetime) -> Authority:
    """Return who signs: the newest that has been trusted for `OVERLAP`, or the oldest where none has."""
    proven = [authority for authority in authorities if authority.created + OVERLAP <= now]
    return proven[-1] if proven else authorities[0]


def bundle(authorities: Iterable[Authority]) -> bytes:
    """Return everything that is to be trusted, in PEM."""
    return b"".join(a.certificate.public_bytes(serialization.Encoding.PEM) for a in authorities)


def issue(authority: Authority, names: Sequence[str], now: datetime) -> Serving:
    """Sign a serving certificate for these DNS names and addresses."""
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
    return Serving(pem, _key_pem(key), certificate.not_valid_after_utc, authority.certificate)


def is_due(serving: Serving | None, authority: Authority, now: datetime) -> bool:
    """Whether a new serving certificate is to be signed."""
    if serving is None or serving.issuer != authority.certificate:
        return True
    return serving.ends - now < SERVING_RENEWAL and serving.ends < authority.ends


def encode(authorities: Iterable[Authority]) -> dict[str, bytes]:
    """Write the Secret's data: certificates and keys, in PEM, in the same order."""
    listed = tuple(authorities)
    return {CERTIFICATES_KEY: bundle(listed), KEYS_KEY: b"".join(_key_pem(a.key) for a in listed)}


def decode(data: dict[str, bytes]) -> tuple[Authority, ...]:
    """Read the Secret's data; empty where it holds nothing.

    Raises:
        MalformedAuthorities: somebody else wrote it.
    """
    if not data.get(CERTIFICATES_KEY) and not data.get(KEYS_KEY):
        return ()
    try:
        certificates = x509.load_pem_x509_certificates(data.get(CERTIFICATES_KEY, b""))
        blocks = [block + _END for block in data.get(KEYS_KEY, b"").split(_END)[:-1]]
        keys = [serialization.load_pem_private_key(block, None) for block in blocks]
        pairs = list(zip(certificates, keys, strict=True))
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise MalformedAuthorities(str(error)) from None
    return tuple(_pair(certificate, key) for certificate, key in pairs)


def _pair(certificate: x509.Certificate, key: object) -> Authority:
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise MalformedAuthorities("a key does not belong to its certificate")
    return Authority(certificate, key)


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


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
