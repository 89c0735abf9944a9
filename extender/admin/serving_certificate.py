"""A certificate for the admin listener, signed by its own key, which never leaves the process.

The API server's service proxy does not verify the certificates of Services, so a certificate of any CA would protect
its hop no better. Clients that connect without the proxy need a certificate that they can verify: `--admin-tls-cert`.
"""

import hashlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from vgpu.domain import names

VALID: Final = timedelta(days=3650)


def sha256(file: Path) -> str:
    """Return the hash of the first certificate of a PEM file, in DER; in hexadecimal. Raises OSError, ValueError."""
    found = x509.load_pem_x509_certificate(file.read_bytes())
    return hashlib.sha256(found.public_bytes(serialization.Encoding.DER)).hexdigest()


def self_signed(host: str, now: datetime) -> str:
    """Return the path of a new certificate with its key: a file in memory that only this process can open."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names.ADMIN_SERVICE)])
    service = f"{names.ADMIN_SERVICE}.{names.NAMESPACE}.svc"
    known = x509.SubjectAlternativeName([x509.DNSName(name) for name in dict.fromkeys((service, host[:63]))])
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - timedelta(hours=1))
        .not_valid_after(now.astimezone(UTC) + VALID)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(known, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    handle = os.memfd_create("admin-certificate")
    os.write(handle, certificate.public_bytes(pem) + private)
    return f"/proc/self/fd/{handle}"
