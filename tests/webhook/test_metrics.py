"""The webhook's metric of its certificate: with a certificate, and before there is one."""

from datetime import UTC, datetime
from pathlib import Path

from vgpu.adapters.metrics import Registry
from webhook import metrics
from webhook.certificates import signing
from webhook.certificates.renewal import KeyPairFiles


def served(key_pair: KeyPairFiles) -> str:
    registry = Registry()
    registry.add(lambda: metrics.certificate(key_pair.ends))
    return registry.render("text/plain")[0].decode()


def test_the_end_of_the_certificate_is_that_of_the_file(tmp_path: Path) -> None:
    key_pair = KeyPairFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
    name = metrics.CERTIFICATE_END.name
    assert f"\n{name} " not in served(key_pair)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    serving = signing.issue(signing.new_authority(now), ("vgpu-webhook",), now)
    key_pair.write(serving)
    assert float(served(key_pair).rsplit(" ", 1)[1]) == serving.ends.timestamp()
    key_pair.certificate.write_text("no certificate")
    assert f"\n{name} " not in served(key_pair)
