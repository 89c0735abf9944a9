"""The driver's files are found on nodes of many layouts."""

import os
import socket
import time
from pathlib import Path

import pytest

from deviceplugin.driver import discovery
from deviceplugin.driver.discovery import DriverRoot
from tests.deviceplugin.driver.node_root import AARCH64, VERSION, NodeRoot, elf
from vgpu.domain.errors import StateUnusable

DEBIAN = "/usr/lib/x86_64-linux-gnu"


@pytest.fixture(autouse=True)
def x86_64(monkeypatch: pytest.MonkeyPatch) -> None:
    """The made-up libraries are for x86-64, on whatever machine the tests run."""
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


@pytest.fixture
def node(tmp_path: Path) -> NodeRoot:
    return NodeRoot(tmp_path / "host")


def libraries(node: NodeRoot, ldconfig_s: float = 10.0) -> dict[str, str]:
    found = DriverRoot(node.path, ldconfig_s=ldconfig_s).find(VERSION)
    return {soname: str(path) for soname, path in found.libraries.items()}


@pytest.mark.parametrize("folder", [DEBIAN, "/usr/lib64", "/usr/local/nvidia/lib64"])
def test_each_library_has_its_soname_and_its_path_on_the_node(node: NodeRoot, folder: str) -> None:
    node.driver(folder)
    assert libraries(node) == {
        "libcuda.so.1": f"{folder}/libcuda.so.{VERSION}",
        "libnvidia-gpucomp.so.580.95.05": f"{folder}/libnvidia-gpucomp.so.{VERSION}",
        "libnvidia-ml.so.1": f"{folder}/libnvidia-ml.so.{VERSION}",
        "libnvidia-nvvm.so.4": f"{folder}/libnvidia-nvvm.so.{VERSION}",
    }


def test_libraries_of_two_folders_are_one_driver(node: NodeRoot) -> None:
    node.library(f"/usr/local/nvidia/lib/libcuda.so.{VERSION}", "libcuda.so.1")
    node.library(f"/usr/local/nvidia/lib64/libnvidia-ml.so.{VERSION}", "libnvidia-ml.so.1")
    assert set(libraries(node)) == {"libcuda.so.1", "libnvidia-ml.so.1"}


def test_no_link_is_needed(node: NodeRoot) -> None:
    node.library(f"/usr/lib64/libcuda.so.{VERSION}", "libcuda.so.1")
    assert libraries(node) == {"libcuda.so.1": f"/usr/lib64/libcuda.so.{VERSION}"}


def test_links_lead_below_the_root_and_not_out_of_it(node: NodeRoot) -> None:
    node.driver("/opt/driver")
    node.link("/usr/local/nvidia/lib64", "/opt/driver")
    node.link(f"{DEBIAN}/libcuda.so.{VERSION}", "../../../../../../../opt/driver/libcuda.so.1")
    assert libraries(node)["libcuda.so.1"] == f"/opt/driver/libcuda.so.{VERSION}"
    assert libraries(node)["libnvidia-ml.so.1"] == f"/opt/driver/libnvidia-ml.so.{VERSION}"


def test_links_that_go_round_or_nowhere_are_passed_over(node: NodeRoot) -> None:
    node.link(f"{DEBIAN}/libcuda.so.1", "libcuda.so")
    node.link(f"{DEBIAN}/libcuda.so", "libcuda.so.1")
    node.link(f"{DEBIAN}/libnvidia-ml.so.1", "/nowhere")
    node.link("/usr/lib64", "lib64")
    node.driver("/usr/local/nvidia/lib64")
    assert libraries(node)["libcuda.so.1"] == f"/usr/local/nvidia/lib64/libcuda.so.{VERSION}"


def test_libraries_for_other_processors_of_other_versions_and_no_libraries_are_passed_over(node: NodeRoot) -> None:
    node.library(f"{DEBIAN}/libcuda.so.{VERSION}", "libcuda.so.1", AARCH64)
    node.library("/usr/lib64/libcuda.so.1", "libcuda.so.1.1")
    node.library("/usr/lib64/libcuda.so.575.57.08", "libcuda.so.1")
    node.seen(f"/usr/lib64/libnvidia-ml.so.{VERSION}").write_text("a text")
    node.seen(f"/usr/lib64/libcuda.so.{VERSION}").write_bytes(elf("libcuda.so.1")[:150])
    os.mkfifo(node.seen(f"/usr/lib64/libnvidia-nvvm.so.{VERSION}"))
    node.driver("/usr/local/nvidia/lib64")
    assert {Path(path).parent for path in libraries(node).values()} == {Path("/usr/local/nvidia/lib64")}


def test_a_driver_copied_under_its_sonames_is_found(node: NodeRoot) -> None:
    node.library("/usr/lib64/libcuda.so.1", "libcuda.so.1")
    node.library("/usr/lib64/libcuda.so", "libcuda.so.1")  # CUDA's stub has this name
    assert libraries(node) == {"libcuda.so.1": "/usr/lib64/libcuda.so.1"}


def test_names_that_are_not_utf_8_do_no_harm(node: NodeRoot) -> None:
    odd = os.fsdecode(b"/opt/\xff\n")
    node.driver(odd)
    node.link("/usr/lib/x86_64-linux-gnu", odd)
    node.seen(os.fsdecode(b"/usr/lib64/libcuda\xff.so." + VERSION.encode())).write_bytes(elf("libcuda.so.1"))
    node.link(f"/usr/lib64/libnvidia-ml.so.{VERSION}", f"{odd}/libnvidia-ml.so.1")
    node.driver("/usr/local/nvidia/lib64")
    found = libraries(node)
    assert all(path.startswith("/usr/local/nvidia/lib64/") for path in found.values())
    assert len(found) == 4


@pytest.mark.heavy
def test_hundreds_of_files_are_read_in_a_moment(node: NodeRoot) -> None:
    node.driver()
    for number in range(1000):
        node.library(f"{DEBIAN}/libnvidia-x{number:04}.so.{VERSION}", f"libnvidia-x{number:04}.so.1")
        node.seen(f"{DEBIAN}/libother{number}.so.1").touch()
    begun = time.monotonic()
    found = libraries(node)
    assert time.monotonic() - begun < 5
    assert len(found) == 200
    assert "libcuda.so.1" in found


@pytest.mark.parametrize("version", ["", "../../etc", "580.95.05\n", "580..05", "\ufffd"])
def test_a_version_that_is_none_is_refused(node: NodeRoot, version: str) -> None:
    node.driver()
    with pytest.raises(StateUnusable, match="version"):
        DriverRoot(node.path).find(version)


def test_without_a_driver_the_message_names_the_setting(node: NodeRoot) -> None:
    node.driver(version="575.57.08")
    with pytest.raises(StateUnusable, match=r"no libcuda\.so\.1 of driver 580\.95\.05 .* --driver-root"):
        libraries(node)


class TestLdconfig:
    """The folders that the node's loader knows."""

    def test_a_folder_of_the_cache_comes_first(self, node: NodeRoot) -> None:
        node.driver("/opt/driver")
        node.driver()
        self._prints(node, "echo '\tlibcuda.so.1 (libc6,x86-64) => /opt/driver/libcuda.so.1'")
        assert libraries(node)["libcuda.so.1"] == f"/opt/driver/libcuda.so.{VERSION}"

    def test_the_nodes_own_cache_is_asked_for(self, node: NodeRoot) -> None:
        node.driver("/opt/driver")
        cache = node.seen("/etc/ld.so.cache")
        self._prints(node, f'test "$1 $2 $3" = "-p -C {cache}" && echo "libcuda.so.1 (libc6) => /opt/driver/x"')
        assert libraries(node)["libcuda.so.1"] == f"/opt/driver/libcuda.so.{VERSION}"

    @pytest.mark.parametrize(
        "garbage",
        [
            r"printf 'libcuda.so.1 => \377\n => \nlibcuda.so.1 (libc6,x86-64) => relative\n\0'",
            "echo 'libcuda.so.1 (libc6,x86-64) => /nowhere/libcuda.so.1'",
            "exit 1",
            "kill -9 $$",
        ],
    )
    def test_garbage_is_no_folder(self, node: NodeRoot, garbage: str) -> None:
        node.driver()
        self._prints(node, garbage)
        assert libraries(node)["libcuda.so.1"].startswith(DEBIAN)

    @pytest.mark.parametrize("endless", ["sleep 60", "sleep 60 & sleep 60", "trap '' TERM; sleep 60", "exec yes"])
    def test_a_program_that_hangs_or_prints_for_ever_is_killed(
        self, node: NodeRoot, endless: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(discovery, "_MAX_CACHE", 100_000)
        node.driver()
        self._prints(node, endless)
        begun = time.monotonic()
        assert libraries(node, ldconfig_s=0.3)["libcuda.so.1"].startswith(DEBIAN)
        assert time.monotonic() - begun < 10

    def test_a_failure_is_logged_once(self, node: NodeRoot, caplog: pytest.LogCaptureFixture) -> None:
        node.driver()
        self._prints(node, "exit 7")
        root = DriverRoot(node.path)
        for _ in range(3):
            root.find(VERSION)
        assert caplog.text.count("exit status 7") == 1

    def _prints(self, node: NodeRoot, script: str) -> None:
        node.program("/sbin/ldconfig", f"#!/bin/sh\n{script}\n")


def test_the_environment_counts_for_a_process_of_the_node_only(node: NodeRoot) -> None:
    node.driver("/opt/driver")
    environment = {"LD_LIBRARY_PATH": f"relative::{node.path}/opt/driver"}
    with pytest.raises(StateUnusable):
        DriverRoot(node.path, environment).find(VERSION)
    found = DriverRoot(Path("/"), environment).find(VERSION)
    assert found.libraries["libcuda.so.1"] == node.path / f"opt/driver/libcuda.so.{VERSION}"


def test_programs_firmware_and_sockets_are_taken_where_they_are(node: NodeRoot) -> None:
    node.driver("/usr/local/nvidia/lib64")
    node.library("/usr/local/nvidia/bin/nvidia-smi", "")
    node.seen("/usr/local/nvidia/bin/nvidia-smi").chmod(0o755)
    node.program("/usr/bin/nvidia-smi")  # a script that may need what containers lack
    node.seen("/usr/bin/nvidia-debugdump").write_text("not executable")
    node.seen(f"/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin").touch()
    node.seen("/run/nvidia-fabricmanager/socket").write_text("no socket")
    node.link("/var/run", "/run")
    here = Path.cwd()
    node.seen("/run/nvidia-persistenced/socket")
    os.chdir(node.path / "run/nvidia-persistenced")  # a socket's path has 107 bytes at most
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("socket")
    finally:
        os.chdir(here)
    found = DriverRoot(node.path).find(VERSION)
    assert found.programs == {"nvidia-smi": Path("/usr/local/nvidia/bin/nvidia-smi")}
    assert {name: str(path) for name, path in found.others.items()} == {
        name: name for name in (f"/lib/firmware/nvidia/{VERSION}", "/run/nvidia-persistenced/socket")
    }


def test_nvml_is_found_by_the_path_at_which_this_process_sees_it(node: NodeRoot) -> None:
    assert DriverRoot(node.path).nvml() is None
    node.driver("/usr/lib64")
    found = node.path / f"usr/lib64/libnvidia-ml.so.{VERSION}"
    assert DriverRoot(node.path).nvml() == found
    node.seen("/usr/lib64/libnvidia-ml.so.1").unlink()
    assert DriverRoot(node.path).nvml() == found
