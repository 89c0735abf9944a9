"""CA rotation: which CA signs, which CAs are trusted, and when a certificate is due. Pure decisions for all replicas.

The replicas share one or two CAs, newest last. A new CA is added long before the last one expires. It is trusted at
once and signs only `OVERLAP` later, when every API server trusts it. So rotation has no state: the signing CA and the
trusted CAs follow from the list and the clock, and every replica comes to the same result.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from vgpu.domain.errors import MalformedError
from webhook.certificates import signing
from webhook.certificates.signing import Authority, ServingCertificate

AUTHORITY_RENEWAL: Final = timedelta(days=90)  # a new CA is added when the last one expires within this time
OVERLAP: Final = timedelta(hours=1)  # a CA is trusted for this time before it signs
SERVING_RENEWAL: Final = timedelta(days=10)

CERTIFICATES_KEY: Final = "ca.crt"
KEYS_KEY: Final = "ca.key"
_END: Final = b"-----END PRIVATE KEY-----"


class MalformedAuthorities(MalformedError):
    """The Secret does not contain what `encode` writes."""


def rotate(authorities: Sequence[Authority], now: datetime) -> tuple[Authority, ...]:
    """Return the CAs that should exist now: without those that have expired, and with a new one where it is due.

    One that is not valid yet, because a clock was ahead when it was made, stays, and replaces none.
    """
    alive = tuple(sorted((a for a in authorities if a.ends > now), key=lambda a: a.created))
    valid = [authority for authority in alive if authority.created - signing.SKEW <= now]
    if not valid or valid[-1].ends - now < AUTHORITY_RENEWAL:
        return (*alive, signing.new_authority(now))
    return alive


def signer(authorities: Sequence[Authority], now: datetime) -> Authority:
    """Return the CA that signs: the newest that has been trusted for `OVERLAP`, or the oldest where none has been."""
    by_age = sorted(authorities, key=lambda authority: authority.created)
    proven = [authority for authority in by_age if authority.created + OVERLAP <= now]
    return proven[-1] if proven else by_age[0]


def bundle(authorities: Iterable[Authority]) -> bytes:
    """Return the certificates of all CAs to trust, in PEM."""
    return b"".join(a.certificate.public_bytes(serialization.Encoding.PEM) for a in authorities)


def is_due(serving: ServingCertificate | None, authority: Authority, now: datetime) -> bool:
    """Whether a new serving certificate must be signed."""
    if serving is None or serving.issuer != authority.certificate:
        return True
    if serving.begins > now:
        return True
    return serving.ends - now < SERVING_RENEWAL and serving.ends < authority.ends


def encode(authorities: Iterable[Authority]) -> dict[str, bytes]:
    """Return the Secret's data: certificates and keys, in PEM, in the same order."""
    listed = tuple(authorities)
    return {CERTIFICATES_KEY: bundle(listed), KEYS_KEY: b"".join(signing.key_pem(a.key) for a in listed)}


def decode(data: dict[str, bytes]) -> tuple[Authority, ...]:
    """Read the Secret's data; empty where the Secret is empty.

    Raises:
        MalformedAuthorities: another program wrote the Secret.
    """
    if not data.get(CERTIFICATES_KEY) and not data.get(KEYS_KEY):
        return ()
    try:
        found = x509.load_pem_x509_certificates(data.get(CERTIFICATES_KEY, b""))
        blocks = [block + _END for block in data.get(KEYS_KEY, b"").split(_END)[:-1]]
        keys = [serialization.load_pem_private_key(block, None) for block in blocks]
        pairs = list(zip(found, keys, strict=True))
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise MalformedAuthorities(str(error)) from None
    return tuple(_pair(certificate, key) for certificate, key in pairs)


def _pair(certificate: x509.Certificate, key: object) -> Authority:
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise MalformedAuthorities("a key does not match its certificate")
    return Authority(certificate, key)
