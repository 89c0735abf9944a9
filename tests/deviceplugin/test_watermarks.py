"""Watermarks in the plugin: its defaults, and what an admin changes while it runs."""

import pytest
from pydantic import ValidationError

from tests.deviceplugin.conftest import World, settings_of
from tests.vgpu.node.builders import NODE, uuid
from vgpu import names


@pytest.mark.parametrize("flags", [{"watermark_high": 70}, {"watermark_low": 90}, {"watermark_high": 101}])
def test_defaults_that_make_no_sense_are_refused(flags: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="0 <= low < high <= 100"):
        settings_of(node_name="n", **flags)


async def test_an_admin_changes_them_while_the_plugin_runs(running: World) -> None:
    path = running.state / "watermarks"
    await running.until(running.cards)
    assert path.read_text() == "* 90 70\n"
    spec = {"cards": [{"uuid": uuid(1), "watermark": {"high": 60, "low": 30}}]}
    await running.client.patch(f"{names.GPUNODES_PATH}/{NODE}", {"spec": spec})
    await running.until(lambda: path.read_text() == f"* 90 70\n{uuid(1)} 60 30\n")
    await running.client.patch(f"{names.GPUNODES_PATH}/{NODE}", {"spec": {"cards": []}})
    await running.until(lambda: path.read_text() == "* 90 70\n")
