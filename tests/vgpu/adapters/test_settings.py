"""Variables that look like settings and are none."""

import sys

import pytest
from pydantic_settings import BaseSettings

from deviceplugin.settings import PluginSettings
from extender.history.settings import DrainSettings
from extender.settings import ExtenderSettings
from vgpu.adapters import settings
from vgpu.simulator.settings import SimulatorSettings
from webhook.settings import WebhookSettings


@pytest.mark.parametrize(
    ("part", "variable", "instead"),
    [
        (ExtenderSettings, "VGPU_EXTENDER_UNINVITD", "VGPU_EXTENDER_UNINVITED"),
        (ExtenderSettings, "VGPU_EXTENDR_UNINVITED", "VGPU_EXTENDER_UNINVITED"),
        (WebhookSettings, "VGPU_WEBHOOK_SLICEMIB", "VGPU_WEBHOOK_SLICE_MIB"),
        (PluginSettings, "VGPU_PLUGIN_WITHOUT_LIMIT", "VGPU_PLUGIN_WITHOUT_LIMITS"),
        (DrainSettings, "VGPU_HISTORY_EVENT_DAYS", "VGPU_HISTORY_EVENTS_DAYS"),
        (SimulatorSettings, "VGPU_SIMULATOR_NODE", "VGPU_SIMULATOR_NODES"),
    ],
)
def test_a_variable_that_is_no_setting_is_refused(
    part: type[BaseSettings],
    variable: str,
    instead: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A misspelt variable was ignored: with VGPU_EXTENDER_UNINVITD=evict nothing was evicted, and nothing said so."""
    monkeypatch.setattr(sys, "argv", ["part"])
    with pytest.raises(SystemExit) as ended:
        settings.read(part, {"PATH": "/bin", variable: "evict"})
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{variable}: there is no such setting; did you mean {instead}?\n"


@pytest.mark.parametrize(
    "variable",
    [
        "VGPU_EXTENDER_UNINVITED", "vgpu_extender_uninvited", "VGPU_PLUGIN_UNINVITED", "VGPU_WEBHOOK_LISTEN",
        "VGPU_MEMORY_LIMIT", "VGPU_EXTENDER_SERVICE_HOST", "VGPU_EXTENDER_SERVICE_PORT",
        "VGPU_EXTENDER_SERVICE_PORT_HTTPS", "VGPU_EXTENDER_PORT", "VGPU_EXTENDER_PORT_443_TCP",
        "VGPU_EXTENDER_METRICS_PORT_9100_TCP_ADDR",
    ],
)  # fmt: skip
def test_settings_other_parts_variables_and_those_of_services_are_no_mistakes(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet sets variables for each Service of the namespace; crashing by a Service's name would be worse."""
    monkeypatch.setattr(sys, "argv", ["extender"])
    assert settings.read(ExtenderSettings, {variable: "report"}).uninvited == "report"
