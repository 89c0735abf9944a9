"""The CDI specification, and the file that a container runtime reads."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from deviceplugin.driver import cdi
from deviceplugin.driver.cdi import SpecificationFile
from deviceplugin.driver.discovery import DriverRoot
from deviceplugin.driver.node_driver import DriverWatch, NodeDriver
from deviceplugin.kubelet.messages import Mount
from tests.deviceplugin.driver.node_root import NodeRoot
from tests.vgpu.node.builders import SLICE_MIB, gpu, uuid
from vgpu.domain.errors import NvmlError, StateUnusable
from vgpu.node.cards.inventory import Inventory

MOUNTS = (Mount("/usr/lib64/libcuda.so.1", Path("/d/libcuda.so.580")),)
CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")


def check(specification: dict[str, Any]) -> None:
    """Hold a specification to what CDI's schema demands of the fields that are used; no other field may be there."""
    assert set(specification) == {"cdiVersion", "kind", "devices", "containerEdits"}
    assert specification["cdiVersion"] == "0.5.0"
    assert re.fullmatch(r"[A-Za-z][\w.-]*[A-Za-z0-9]/[A-Za-z][\w-]*[A-Za-z0-9]", specification["kind"])
    assert specification["devices"]
    for device in specification["devices"]:
        assert set(device) == {"name", "containerEdits"}
        assert re.fullmatch(r"[A-Za-z0-9]([\w.:-]*[A-Za-z0-9])?", device["name"])
        assert set(device["containerEdits"]) == {"deviceNodes"}
        _check_nodes(device["containerEdits"]["deviceNodes"])
    assert set(specification["containerEdits"]) == {"deviceNodes", "mounts"}
    _check_nodes(specification["containerEdits"]["deviceNodes"])
    for mount in specification["containerEdits"]["mounts"]:
        assert set(mount) == {"hostPath", "containerPath", "options"}
        assert mount["hostPath"].startswith("/")
        assert mount["containerPath"].startswith("/")
        assert "ro" in mount["options"]


def _check_nodes(nodes: list[dict[str, str]]) -> None:
    assert all(set(node) == {"path"} and node["path"].startswith("/dev/") for node in nodes)


@pytest.fixture
def file(tmp_path: Path) -> SpecificationFile:
    return SpecificationFile(tmp_path / "cdi")


def read(tmp_path: Path) -> dict[str, Any]:
    specification: dict[str, Any] = json.loads((tmp_path / "cdi/vgpu.io-gpu.json").read_bytes())
    check(specification)
    return specification


def test_each_card_is_a_device_and_all_have_the_driver(tmp_path: Path, file: SpecificationFile) -> None:
    file.write([gpu(0), gpu(1)], CONTROL_NODES, MOUNTS)
    specification = read(tmp_path)
    devices = {device["name"]: device["containerEdits"]["deviceNodes"] for device in specification["devices"]}
    assert devices == {uuid(0): [{"path": "/dev/nvidia0"}], uuid(1): [{"path": "/dev/nvidia1"}]}
    edits = specification["containerEdits"]
    assert [node["path"] for node in edits["deviceNodes"]] == list(CONTROL_NODES)
    assert [(mount["hostPath"], mount["containerPath"]) for mount in edits["mounts"]] == [
        ("/d/libcuda.so.580", "/usr/lib64/libcuda.so.1")
    ]


def test_a_reader_sees_whole_files_only_and_nothing_else_is_left(tmp_path: Path, file: SpecificationFile) -> None:
    file.write([gpu(0)], CONTROL_NODES, MOUNTS)
    path = tmp_path / "cdi/vgpu.io-gpu.json"
    with path.open() as before:
        file.write([gpu(1)], CONTROL_NODES, MOUNTS)
        assert json.load(before)["devices"][0]["name"] == uuid(0)
    assert read(tmp_path)["devices"][0]["name"] == uuid(1)
    assert [entry.name for entry in path.parent.iterdir()] == ["vgpu.io-gpu.json"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_the_file_is_written_at_changes_and_when_it_is_gone(tmp_path: Path, file: SpecificationFile) -> None:
    path = tmp_path / "cdi/vgpu.io-gpu.json"
    file.write([], CONTROL_NODES, MOUNTS)
    assert not path.exists()
    file.write([gpu(0)], CONTROL_NODES, MOUNTS)
    first = path.stat().st_ino
    file.write([gpu(0)], CONTROL_NODES, MOUNTS)
    assert path.stat().st_ino == first
    path.unlink()
    file.write([gpu(0)], CONTROL_NODES, MOUNTS)
    assert read(tmp_path)


def test_removing_leaves_the_specifications_of_others(tmp_path: Path, file: SpecificationFile) -> None:
    file.write([gpu(0)], CONTROL_NODES, MOUNTS)
    (tmp_path / "cdi/nvidia.yaml").touch()
    cdi.remove(tmp_path / "cdi")
    cdi.remove(tmp_path / "cdi")
    assert [entry.name for entry in (tmp_path / "cdi").iterdir()] == ["nvidia.yaml"]


class NodeWithDriver:
    """A node with a driver, whose version a test changes."""

    def __init__(self, folder: Path) -> None:
        self.version, self.fails = "580.95.05", False
        self.root = NodeRoot(folder / "host")
        self.root.driver()

    def ask(self) -> str:
        if self.fails:
            raise NvmlError(999, "Unknown")
        return self.version

    def driver(self) -> NodeDriver:
        return NodeDriver(DriverRoot(self.root.path), self.ask)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeWithDriver:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    return NodeWithDriver(tmp_path)


async def test_cards_and_a_new_driver_are_in_the_file_soon(
    tmp_path: Path, file: SpecificationFile, node: NodeWithDriver
) -> None:
    inventory = Inventory(SLICE_MIB)
    inventory.set_gpus((gpu(0),), {})
    watch = DriverWatch(node.driver(), inventory, lambda: CONTROL_NODES, file, period_s=0.05)
    running = asyncio.create_task(watch.run())
    await asyncio.sleep(0)
    assert [device["name"] for device in read(tmp_path)["devices"]] == [uuid(0)]
    inventory.set_gpus((gpu(0), gpu(1)), {})
    await until(lambda: len(read(tmp_path)["devices"]) == 2)
    node.root.driver(version="590.10", folder="/usr/lib64")
    node.version = "590.10"
    await until(lambda: "/usr/lib64/libcuda.so.590.10" in str(read(tmp_path)))
    running.cancel()


def test_the_last_files_stay_while_the_driver_is_replaced(
    node: NodeWithDriver, caplog: pytest.LogCaptureFixture
) -> None:
    driver = node.driver()
    before = driver.mounts()
    node.version = "590.10"
    driver.refresh()
    driver.refresh()
    node.fails = True
    driver.refresh()
    assert driver.mounts() == before
    assert [record.message.partition(": ")[2][:15] for record in caplog.records if "before" in record.message] == [
        "no libcuda.so.1",
        "the driver's ve",
    ]


def test_a_node_whose_driver_does_not_answer_offers_no_card(node: NodeWithDriver) -> None:
    node.fails = True
    with pytest.raises(StateUnusable, match="version"):
        node.driver()


async def test_a_file_that_cannot_be_written_is_reported_and_written_later(
    tmp_path: Path, file: SpecificationFile, node: NodeWithDriver, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cdi").touch()
    inventory = Inventory(SLICE_MIB)
    inventory.set_gpus((gpu(0),), {})
    running = asyncio.create_task(DriverWatch(node.driver(), inventory, lambda: (), file, period_s=0.05).run())
    await until(lambda: "no CDI specification" in caplog.text)
    (tmp_path / "cdi").unlink()
    await until((tmp_path / "cdi/vgpu.io-gpu.json").exists)
    running.cancel()


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)
