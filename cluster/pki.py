"""Keys of a cluster: its authority, certificates of servers and of an administrator, and the accounts' key."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = dt.timedelta(days=30)
_NAMES = [
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    *(x509.IPAddress(ipaddress.ip_address(f"127.0.1.{n}")) for n in range(1, 10)),  # ways through a proxy, in tests
    x509.IPAddress(ipaddress.ip_address("10.0.0.1")),
    x509.DNSName("localhost"),
    x509.DNSName("kubernetes.default.svc"),
]


def write(folder: Path) -> None:
    """Write ca.crt, api.crt, api.key, operator.crt, operator.key, sa.key and sa.pub as PEM into a new folder."""
    folder.mkdir(mode=0o700)
    now = dt.datetime.now(dt.UTC)
    authority, api, accounts, operator = (ec.generate_private_key(ec.SECP256R1()) for _ in range(4))
    root = _authority(authority, now)
    (folder / "ca.crt").write_bytes(_pem(root))
    (folder / "api.crt").write_bytes(_pem(_server(api, authority, root, now)))
    (folder / "api.key").write_bytes(_private(api))
    (folder / "operator.crt").write_bytes(_pem(_operator(operator, authority, root, now)))
    (folder / "operator.key").write_bytes(_private(operator))
    (folder / "sa.key").write_bytes(_private(accounts))
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    (folder / "sa.pub").write_bytes(accounts.public_key().public_bytes(serialization.Encoding.PEM, form))


def write_server(folder: Path) -> bytes:
    """Write tls.crt and tls.key of a server on the loopback device; returns the certificate, which signs itself."""
    folder.mkdir(parents=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("server")
    extensions = [x509.BasicConstraints(ca=False, path_length=None), _usage(signs_certificates=False)]
    builder = _certificate(name, name, key.public_key(), dt.datetime.now(dt.UTC), extensions)
    builder = builder.add_extension(x509.SubjectAlternativeName(_NAMES), critical=False)
    certificate = _pem(builder.sign(key, hashes.SHA256()))
    (folder / "tls.crt").write_bytes(certificate)
    (folder / "tls.key").write_bytes(_private(key))
    return certificate


def _authority(key: ec.EllipticCurvePrivateKey, now: dt.datetime) -> x509.Certificate:
    name = _name("test authority")
    extensions = [x509.BasicConstraints(ca=True, path_length=None), _usage(signs_certificates=True)]
    return _certificate(name, name, key.public_key(), now, extensions).sign(key, hashes.SHA256())


def _server(
    key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey, root: x509.Certificate, now: dt.datetime
) -> x509.Certificate:
    extensions = [x509.BasicConstraints(ca=False, path_length=None), _usage(signs_certificates=False)]
    builder = _certificate(_name("kube-apiserver"), root.subject, key.public_key(), now, extensions)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = builder.add_extension(x509.SubjectAlternativeName(_NAMES), critical=False)
    return builder.add_extension(issuer, critical=False).sign(signer, hashes.SHA256())


def _operator(
    key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey, root: x509.Certificate, now: dt.datetime
) -> x509.Certificate:
    """Sign the certificate of a user in the group system:masters, as kubeadm's admin.conf has one."""
    groups = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters")
    subject = x509.Name([groups, x509.NameAttribute(NameOID.COMMON_NAME, "operator")])
    extensions = [x509.BasicConstraints(ca=False, path_length=None), _usage(signs_certificates=False)]
    builder = _certificate(subject, root.subject, key.public_key(), now, extensions)
    purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    return builder.add_extension(purpose, critical=False).sign(signer, hashes.SHA256())


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: dt.datetime,
    extensions: Sequence[x509.ExtensionType],
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - dt.timedelta(minutes=5)).not_valid_after(now + _VALID)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=True)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    form, sealed = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, sealed)
