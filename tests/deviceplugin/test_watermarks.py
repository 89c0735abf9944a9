"""The plugin's watermarks: its settings, and those of the GPUNode while the plugin runs."""

import pytest
from pydantic import ValidationError

from tests.deviceplugin.conftest import World, settings_of
from tests.vgpu.node.builders import NODE, uuid
from vgpu.domain import names


@pytest.mark.parametrize("flags", [{"watermark_high": 70}, {"watermark_low": 90}, {"watermark_high": 101}])
def test_invalid_default_watermarks_are_refused(flags: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="0 <= low < high <= 100"):
        settings_of(node_name="n", **flags)


async def test_watermarks_of_the_gpunode_apply_while_the_plugin_runs(world: World) -> None:
    path = world.state / "watermarks"
    await world.until(world.cards)
    assert path.read_text() == "* 90 70\n"
    spec = {"cards": [{"uuid": uuid(1), "watermark": {"high": 60, "low": 30}}]}
    await world.client.patch(f"{names.GPUNODES_PATH}/{NODE}", {"spec": spec})
    await world.until(lambda: path.read_text() == f"* 90 70\n{uuid(1)} 60 30\n")
    await world.client.patch(f"{names.GPUNODES_PATH}/{NODE}", {"spec": {"cards": []}})
    await world.until(lambda: path.read_text() == "* 90 70\n")
