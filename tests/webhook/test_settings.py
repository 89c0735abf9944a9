"""The webhook's settings."""

import pytest
from pydantic import ValidationError
from pydantic_settings import CliApp

from webhook.settings import WebhookSettings


def settings(*flags: str) -> WebhookSettings:
    return CliApp.run(WebhookSettings, cli_args=list(flags))


def test_the_certificate_has_the_names_of_the_service_the_address_and_the_setting() -> None:
    found = settings("--listen", "127.0.0.1:1", "--dns-names", "host.example, 10.0.0.1")
    service = "vgpu-webhook.vgpu-system.svc"
    assert found.serving_names == (service, f"{service}.cluster.local", "127.0.0.1", "host.example", "10.0.0.1")


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_the_wildcard_address_is_not_in_the_certificate(host: str) -> None:
    service = "vgpu-webhook.vgpu-system.svc"
    assert settings("--listen", f"{host}:9443").serving_names == (service, f"{service}.cluster.local")


def test_an_ipv6_address_may_be_listened_on() -> None:
    found = settings("--listen", "[::1]:9443")
    assert (found.host, found.port) == ("::1", 9443)


@pytest.mark.parametrize(("unit", "mib"), [("GiB", 1024), ("MiB", 1)])
def test_gpushares_unit_is_a_setting(unit: str, mib: int) -> None:
    assert settings("--gpushare-unit", unit).gpushare_unit_mib == mib


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VGPU_WEBHOOK_SLICE_MIB", "512")
    assert settings().slice_mib == 512


@pytest.mark.parametrize(
    "listen",
    [
        "localhost:1",
        "127.0.0.1",
        "127.0.0.1:x",
        "127.0.0.1:70000",
        "::1:9443",
        "[127.0.0.1]:1",
        "[::1]",
        "]::1[:1",
        "127.0.0.1:²",
    ],
)
def test_a_wrong_address_is_refused(listen: str) -> None:
    with pytest.raises(ValidationError, match="IP:PORT"):
        settings("--listen", listen)
