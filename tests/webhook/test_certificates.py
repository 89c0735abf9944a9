import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509 import verification
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook import authorities, certificates
from webhook.certificates import Authority, Serving

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("vgpu-webhook.vgpu-system.svc", "127.0.0.1")


def is_trusted(serving: Serving, bundle: bytes, now: datetime) -> bool:
    """What an API server with this caBundle says."""
    store = verification.Store(x509.load_pem_x509_certificates(bundle))
    verifier = verification.PolicyBuilder().store(store).time(now).build_server_verifier(x509.DNSName(NAMES[0]))
    try:
        verifier.verify(x509.load_pem_x509_certificate(serving.certificate), [])
    except verification.VerificationError:
        return False
    return True


def test_a_certificate_is_trusted_by_who_has_the_bundle_and_by_nobody_else() -> None:
    authority, stranger = certificates.new_authority(NOW), certificates.new_authority(NOW)
    serving = certificates.issue(authority, NAMES, NOW)
    assert is_trusted(serving, authorities.bundle([authority]), NOW)
    assert is_trusted(serving, authorities.bundle([stranger, authority]), NOW)
    assert not is_trusted(serving, authorities.bundle([stranger]), NOW)


def test_openssl_takes_it_and_an_address_is_an_address(tmp_path: Path) -> None:
    serving = certificates.issue(certificates.new_authority(NOW), NAMES, NOW)
    (tmp_path / "crt").write_bytes(serving.certificate)
    (tmp_path / "key").write_bytes(serving.key)
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tmp_path / "crt", tmp_path / "key")
    leaf = x509.load_pem_x509_certificate(serving.certificate)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert names.get_values_for_type(x509.DNSName) == [NAMES[0]]


def test_the_first_authority_signs_at_once() -> None:
    (first,) = authorities.advance((), NOW)
    assert authorities.signer((first,), NOW) is first
    assert authorities.advance((first,), NOW) == (first,)


def test_the_next_authority_is_trusted_before_it_signs() -> None:
    (first,) = authorities.advance((), NOW)
    later = first.ends - authorities.AUTHORITY_RENEWAL + timedelta(seconds=1)
    both = authorities.advance((first,), later)
    assert both[0] is first
    assert len(both) == 2
    assert authorities.signer(both, later) is first
    assert authorities.signer(both, later + authorities.OVERLAP) is both[1]
    assert authorities.advance(both, later + authorities.OVERLAP) == both


def test_an_authority_that_ended_is_forgotten() -> None:
    (first,) = authorities.advance((), NOW)
    both = authorities.advance((first,), first.ends - timedelta(days=80))
    assert authorities.advance(both, first.ends) == both[1:]


def test_all_are_gone_after_a_long_sleep_and_it_begins_anew() -> None:
    (first,) = authorities.advance((), NOW)
    (fresh,) = authorities.advance((first,), first.ends + timedelta(days=500))
    assert fresh != first


def test_a_serving_certificate_is_renewed_in_time_and_not_before() -> None:
    authority = certificates.new_authority(NOW)
    serving = certificates.issue(authority, NAMES, NOW)
    assert authorities.is_due(None, authority, NOW)
    assert not authorities.is_due(serving, authority, NOW + timedelta(days=19))
    assert authorities.is_due(serving, authority, NOW + timedelta(days=21))
    assert authorities.is_due(serving, certificates.new_authority(NOW), NOW)


def test_the_authoritys_end_is_also_the_certificates() -> None:
    authority = certificates.new_authority(NOW)
    late = authority.ends - timedelta(days=1)
    serving = certificates.issue(authority, NAMES, late)
    assert serving.ends == authority.ends
    assert not authorities.is_due(serving, authority, late)


def test_the_secret_reads_back_as_it_was_written() -> None:
    both = (certificates.new_authority(NOW), certificates.new_authority(NOW + timedelta(days=1)))
    read = authorities.decode(authorities.encode(both))
    assert [a.certificate for a in read] == [a.certificate for a in both]
    serving = certificates.issue(read[1], NAMES, NOW + timedelta(days=1))
    assert is_trusted(serving, authorities.bundle(both), NOW + timedelta(days=1))
    assert authorities.decode({}) == ()


@pytest.mark.parametrize("damage", ["no key", "swapped", "garbage", "half"])
def test_a_secret_that_somebody_else_wrote_is_called_so(damage: str) -> None:
    data = authorities.encode([certificates.new_authority(NOW)])
    other = authorities.encode([certificates.new_authority(NOW)])
    damaged = {
        "no key": {**data, authorities.KEYS_KEY: b""},
        "swapped": {**data, authorities.KEYS_KEY: other[authorities.KEYS_KEY]},
        "garbage": {**data, authorities.CERTIFICATES_KEY: b"garbage"},
        "half": {authorities.KEYS_KEY: data[authorities.KEYS_KEY]},
    }
    with pytest.raises(authorities.MalformedAuthorities):
        authorities.decode(damaged[damage])


@given(st.lists(st.integers(1, 40 * 24), min_size=1, max_size=25))
@settings(max_examples=25)
def test_whatever_the_pauses_who_was_served_stays_trusted(hours: list[int]) -> None:
    """Replicas wake at odd times for years: what is served is in date and signed by somebody trusted for an hour."""
    now = NOW
    known: tuple[Authority, ...] = authorities.advance((), now)
    serving: Serving | None = None
    for pause in hours:
        now += timedelta(hours=pause)
        before = known
        known = authorities.advance(known, now)
        signer = authorities.signer(known, now)
        if authorities.is_due(serving, signer, now):
            serving = certificates.issue(signer, NAMES, now)
        assert serving is not None
        assert signer in before
        assert is_trusted(serving, authorities.bundle(known), now) == (serving.ends > now)
        assert len(known) <= 2
