"""CA rotation and certificates, over simulated time."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509 import verification
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.certificates import ca_rotation, signing
from webhook.certificates.signing import Authority, ServingCertificate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("vgpu-webhook.vgpu-system.svc", "127.0.0.1")


def is_trusted(serving: ServingCertificate, bundle: bytes, now: datetime) -> bool:
    """Whether an API server with this caBundle trusts the certificate."""
    store = verification.Store(x509.load_pem_x509_certificates(bundle))
    verifier = verification.PolicyBuilder().store(store).time(now).build_server_verifier(x509.DNSName(NAMES[0]))
    try:
        verifier.verify(x509.load_pem_x509_certificate(serving.certificate), [])
    except verification.VerificationError:
        return False
    return True


def test_a_certificate_is_trusted_with_its_bundle_only() -> None:
    authority, stranger = signing.new_authority(NOW), signing.new_authority(NOW)
    serving = signing.issue(authority, NAMES, NOW)
    assert is_trusted(serving, ca_rotation.bundle([authority]), NOW)
    assert is_trusted(serving, ca_rotation.bundle([stranger, authority]), NOW)
    assert not is_trusted(serving, ca_rotation.bundle([stranger]), NOW)


def test_openssl_verifies_names_and_ip_addresses(tmp_path: Path) -> None:
    serving = signing.issue(signing.new_authority(NOW), NAMES, NOW)
    (tmp_path / "crt").write_bytes(serving.certificate)
    (tmp_path / "key").write_bytes(serving.key)
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tmp_path / "crt", tmp_path / "key")
    leaf = x509.load_pem_x509_certificate(serving.certificate)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert names.get_values_for_type(x509.DNSName) == [NAMES[0]]


def test_the_first_authority_signs_at_once() -> None:
    (first,) = ca_rotation.rotate((), NOW)
    assert ca_rotation.signer((first,), NOW) is first
    assert ca_rotation.rotate((first,), NOW) == (first,)


def test_the_next_authority_is_trusted_before_it_signs() -> None:
    (first,) = ca_rotation.rotate((), NOW)
    later = first.ends - ca_rotation.AUTHORITY_RENEWAL + timedelta(seconds=1)
    both = ca_rotation.rotate((first,), later)
    assert both[0] is first
    assert len(both) == 2
    assert ca_rotation.signer(both, later) is first
    assert ca_rotation.signer(both, later + ca_rotation.OVERLAP) is both[1]
    assert ca_rotation.rotate(both, later + ca_rotation.OVERLAP) == both


def test_an_expired_authority_is_removed() -> None:
    (first,) = ca_rotation.rotate((), NOW)
    both = ca_rotation.rotate((first,), first.ends - timedelta(days=80))
    assert ca_rotation.rotate(both, first.ends) == both[1:]


def test_after_a_long_pause_all_authorities_are_replaced() -> None:
    (first,) = ca_rotation.rotate((), NOW)
    (fresh,) = ca_rotation.rotate((first,), first.ends + timedelta(days=500))
    assert fresh != first


def test_a_serving_certificate_is_renewed_before_its_end_but_not_early() -> None:
    authority = signing.new_authority(NOW)
    serving = signing.issue(authority, NAMES, NOW)
    assert ca_rotation.is_due(None, authority, NOW)
    assert not ca_rotation.is_due(serving, authority, NOW + timedelta(days=19))
    assert ca_rotation.is_due(serving, authority, NOW + timedelta(days=21))
    assert ca_rotation.is_due(serving, signing.new_authority(NOW), NOW)


def test_a_certificate_ends_with_its_authority() -> None:
    authority = signing.new_authority(NOW)
    late = authority.ends - timedelta(days=1)
    serving = signing.issue(authority, NAMES, late)
    assert serving.ends == authority.ends
    assert not ca_rotation.is_due(serving, authority, late)


def test_an_encoded_secret_decodes_to_itself() -> None:
    both = (signing.new_authority(NOW), signing.new_authority(NOW + timedelta(days=1)))
    read = ca_rotation.decode(ca_rotation.encode(both))
    assert [a.certificate for a in read] == [a.certificate for a in both]
    serving = signing.issue(read[1], NAMES, NOW + timedelta(days=1))
    assert is_trusted(serving, ca_rotation.bundle(both), NOW + timedelta(days=1))
    assert ca_rotation.decode({}) == ()


@pytest.mark.parametrize("damage", ["no key", "swapped", "garbage", "half"])
def test_a_secret_with_other_content_is_malformed(damage: str) -> None:
    data = ca_rotation.encode([signing.new_authority(NOW)])
    other = ca_rotation.encode([signing.new_authority(NOW)])
    damaged = {
        "no key": {**data, ca_rotation.KEYS_KEY: b""},
        "swapped": {**data, ca_rotation.KEYS_KEY: other[ca_rotation.KEYS_KEY]},
        "garbage": {**data, ca_rotation.CERTIFICATES_KEY: b"garbage"},
        "half": {ca_rotation.KEYS_KEY: data[ca_rotation.KEYS_KEY]},
    }
    with pytest.raises(ca_rotation.MalformedAuthorities):
        ca_rotation.decode(damaged[damage])


@given(st.lists(st.integers(1, 40 * 24), min_size=1, max_size=25))
@settings(max_examples=25)
def test_certificates_stay_trusted_whatever_the_pauses_between_renewals(hours: list[int]) -> None:
    """Renewals at random times for years: the served certificate is valid, and its CA trusted for an hour."""
    now = NOW
    known: tuple[Authority, ...] = ca_rotation.rotate((), now)
    serving: ServingCertificate | None = None
    for pause in hours:
        now += timedelta(hours=pause)
        before = known
        known = ca_rotation.rotate(known, now)
        signer = ca_rotation.signer(known, now)
        if ca_rotation.is_due(serving, signer, now):
            serving = signing.issue(signer, NAMES, now)
        assert serving is not None
        assert signer in before
        assert is_trusted(serving, ca_rotation.bundle(known), now) == (serving.ends > now)
        assert len(known) <= 2
