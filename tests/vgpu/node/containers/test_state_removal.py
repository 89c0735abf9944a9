"""The state directory's removal: what containers use stays until they end."""

import asyncio
from pathlib import Path

import pytest

from vgpu.domain.formats import mounted
from vgpu.node.containers import state_removal
from vgpu.node.containers.state_files import StateFiles

MOUNTINFO = """22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
90 22 254:0 /var/lib/vgpu/allocations/{}/limits /run/vgpu/limits ro,nosuid - ext4 /dev/vda rw
91 22 0:52 /region /run/vgpu/region rw - tmpfs vgpu rw
92 22 254:0 /var/lib/vgpu /var/lib/vgpu rw shared:1 - ext4 /dev/vda rw
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    files = StateFiles(tmp_path / "vgpu")
    for allocation in ("used", "unused"):
        files.prepare(allocation)
    return files.state


def test_an_allocation_is_in_use_by_the_processes_that_have_its_limits_mounted() -> None:
    mountinfos = {7: MOUNTINFO.format("a"), 5: MOUNTINFO.format("a"), 9: MOUNTINFO.format("b"), 1: ""}
    assert mounted.in_use(mountinfos) == {"a": 5, "b": 9}


def test_what_a_container_uses_stays(state: Path) -> None:
    assert state_removal.remove(state, {"used": 5, "of another": 6}) == {"used": 5}
    assert [path.name for path in (state / "allocations").iterdir()] == ["used"]
    assert not state_removal.remove(state, {})
    assert not state.exists()


async def test_the_rest_is_removed_when_containers_have_ended(state: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    answers = [{5: MOUNTINFO.format("used")}, {5: MOUNTINFO.format("used")}, {}]
    removing = asyncio.create_task(state_removal.run(state, lambda: answers.pop(0), period_s=0.01))
    while len(caplog.messages) < 2:
        await asyncio.sleep(0.01)
    assert caplog.messages[0] == "1 allocations are in use, by processes 5: delete their pods"
    assert caplog.messages[-1] == f"nothing of {state} is left"
    removing.cancel()
    assert not await asyncio.to_thread(state.exists)


async def test_a_node_without_state_is_done_at_once(tmp_path: Path) -> None:
    removing = asyncio.create_task(state_removal.run(tmp_path / "none", dict))
    await asyncio.sleep(0.05)
    assert not removing.done()
    removing.cancel()
