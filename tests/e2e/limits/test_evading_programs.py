"""Programs that the preloaded limiter does not reach are found from outside within ten seconds; dlmopen is limited."""

import contextlib
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from cluster import process, wait
from simgpu import build
from tests.e2e.limits import test_uninvited, test_unlimited
from tests.e2e.node.test_node_files import at
from tests.e2e.pod_namespace import FOREVER, Document, PodNamespace, container, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

MIB_OF_LIMIT = 1024
BEYOND = 2 * MIB_OF_LIMIT
OUT_OF_MEMORY = 2
WITHIN_S = 10
INSIDE = "/programs"
LOADER = Path(__file__).parents[2] / "limiter" / "preload" / "loader.c"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A static gpuprobe with the simulated driver inside, and a program that loads the driver by dlmopen."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc, which links a static program")
    folder = tmp_path_factory.mktemp("programs")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    command = build.static_command(folder / "static")
    subprocess.run(command, check=True, capture_output=True)
    subprocess.run(["gcc", "-D_GNU_SOURCE", str(LOADER), "-o", str(folder / "loader"), "-ldl"], check=True)
    return folder


def with_programs(name: str, folder: Path, main: Document, node_annotations: dict[str, str]) -> Document:
    """A pod with the folder of programs."""
    main["volumeMounts"] = [{"name": "programs", "mountPath": INSIDE, "readOnly": True}]
    made = pod(name, main, annotations=node_annotations)
    made["spec"]["volumes"] = [{"name": "programs", "hostPath": {"path": str(folder)}}]
    return made


def test_a_static_program_is_reported(namespace: PodNamespace, programs: Path) -> None:
    """The loader's preload file says nothing to a program without a loader."""
    node = namespace.cluster.nodes[0]
    holds = container(command=(f"{INSIDE}/static", "alloc", str(BEYOND), "--hold", "0"), gpu_mem=MIB_OF_LIMIT)
    namespace.create(with_programs("static", programs, holds, at(node)))
    namespace.running("static")
    since = test_unlimited.until_used(namespace, node, BEYOND)
    found = test_unlimited.message(namespace, "static", names.LIMITER_NOT_LOADED, since)
    assert f"{namespace.name}/static container main process" in found
    assert "(static)" in found
    assert f"{BEYOND} MiB" in test_unlimited.message(namespace, "static", names.MEMORY_BEYOND_LIMIT, time.monotonic())


def test_an_empty_environment_with_the_preload_file_hidden_is_reported(namespace: PodNamespace) -> None:
    node = namespace.cluster.nodes[0]
    namespace.create(pod("empties", container(command=FOREVER, gpu_mem=MIB_OF_LIMIT), annotations=at(node)))
    namespace.running("empties")
    program = namespace.run("empties", "sh", "-c", "command -v gpuprobe").strip()
    hide = f'mount --bind /dev/null /etc/ld.so.preload; exec env -i {program} "$@"'
    command = ("unshare", "-Urm", "sh", "-c", hide, "sh", "alloc", str(BEYOND), "--hold", "0")
    threading.Thread(target=until_deleted, args=(namespace, "empties", command), daemon=True).start()
    since = test_unlimited.until_used(namespace, node, BEYOND)
    assert "(gpuprobe)" in test_unlimited.message(namespace, "empties", names.LIMITER_NOT_LOADED, since)


def until_deleted(namespace: PodNamespace, name: str, command: tuple[str, ...]) -> None:
    with contextlib.suppress(AssertionError):  # the end of the test deletes the pod
        namespace.run(name, *command)


def test_a_driver_that_is_loaded_by_dlmopen_has_the_limits(namespace: PodNamespace, programs: Path) -> None:
    """Another namespace of the loader has no preloaded libraries; the limiter loads itself there."""
    node = namespace.cluster.nodes[0]
    idles = container(command=FOREVER, gpu_mem=MIB_OF_LIMIT)
    namespace.create(with_programs("spaces", programs, idles, at(node)))
    namespace.running("spaces")
    for way in ("open", "space"):
        printed = namespace.run("spaces", f"{INSIDE}/loader", way, "libcuda.so.1", "600")
        assert printed.startswith(f"[0, 0, {OUT_OF_MEMORY}]"), (way, printed)
    assert not test_unlimited.found_reasons(namespace, "spaces")


def test_a_host_process_is_reported(namespace: PodNamespace, tmp_path: Path) -> None:
    node = namespace.cluster.nodes[0]
    environment = {"SIMGPU_STATE": str(node.driver_state), "LD_LIBRARY_PATH": str(build.OUT)}
    command: list[str | Path] = [build.OUT / "gpuprobe", "alloc", "64", "--hold", "0"]
    outside = process.ClusterProcess("outside", command, namespace.cluster.within, tmp_path, environment)
    outside.start()
    try:
        since = test_uninvited.until_used(namespace, node, 0)
        found = namespace.until(
            lambda: re.search(r"host process \d+ \(gpuprobe\)", test_uninvited.condition(namespace, node)["message"]),
            "the condition names the process",
            WITHIN_S,
        )
        assert found is not None
        assert time.monotonic() - since < wait.allowed(WITHIN_S)
    finally:
        outside.stop()
    has_ended = lambda: test_uninvited.condition(namespace, node)["status"] == "True"  # noqa: E731
    namespace.until(has_ended, "the finding ends", WITHIN_S)
