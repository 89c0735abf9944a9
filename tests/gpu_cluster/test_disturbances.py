"""Parts that end, pods that are killed, and programs without a share, beside pods that use a real card."""

import contextlib
import os
import random
import signal
import time
from pathlib import Path

import pytest

from cluster.gpu_machine import image
from tests.e2e.pod_namespace import Document
from tests.gpu_cluster.gpu_namespace import PROGRAMS, GpuNamespace, on_first_card, once, python_pod, used_mib
from vgpu.domain import names

pytestmark = [pytest.mark.gpu_cluster, pytest.mark.timeout(600)]

KILLS = 50
SEED = 20261128


def condition(namespace: GpuNamespace, kind: str) -> Document:
    (node,) = namespace.cluster.api.get(names.GPUNODES_PATH)["items"]
    (found,) = [condition for condition in node["status"]["conditions"] if condition["type"] == kind]
    return dict(found)


def test_a_process_on_the_card_without_a_share_is_found(namespace: GpuNamespace) -> None:
    """A process of the node, outside of every pod."""
    (node,) = namespace.cluster.nodes
    namespace.until(lambda: invited_only(namespace), "no process is uninvited", 30)
    process = node.process("uninvited", [image.interpreter(), PROGRAMS / "fill.py", "cupy", "60"])
    process.start()
    try:
        namespace.until(lambda: not invited_only(namespace), "it is found", 30)
        assert "python" in condition(namespace, "NoUninvitedProcesses")["message"]
    finally:
        process.kill()
    namespace.until(lambda: invited_only(namespace), "the finding ends", 30)


def invited_only(namespace: GpuNamespace) -> bool:
    return bool(condition(namespace, "NoUninvitedProcesses")["status"] == "True")


def test_parts_restart_under_load_and_a_pod_keeps_its_share(namespace: GpuNamespace) -> None:
    cluster = namespace.cluster
    (node,) = cluster.nodes
    where = on_first_card(namespace)
    namespace.create_program("alone", "burn.py", "4", gpu_mem=2048, gpu_cores=100, annotations=where)
    alone = namespace.last("alone", 120)["rate"]
    fixed = where | {names.COMPUTE_POLICY: "fixed"}
    namespace.create_program("burns", "burn.py", "60", gpu_mem=2048, gpu_cores=40, annotations=fixed)
    namespace.has_printed("burns", "ready")
    for part in (cluster.plugins[0], cluster.extender, cluster.webhook):
        part.kill()
        part.start()
    node.containerd.restart()  # a kubelet that starts meanwhile would end, and nothing starts it again here
    node.restart_kubelet()
    namespace.create_program("after", "fill.py", "cupy", gpu_mem=2048, gpu_cores=10)
    assert namespace.last("after", 120)["refused"]
    share = 100 * namespace.last("burns", 120)["rate"] / alone
    assert share == pytest.approx(40, abs=2)


def processes_of(namespace: GpuNamespace, name: str) -> list[int]:
    """PIDs of a pod's processes, as the machine counts them."""
    uid = namespace.get(name)["metadata"]["uid"]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if uid in (folder / "cgroup").read_text():
                found.append(int(folder.name))
    return found


def test_pods_are_killed_at_random_and_nothing_of_them_stays(namespace: GpuNamespace) -> None:
    """Four pods that restart always; each kill is of one of their processes, at any moment of its life."""
    chance = random.Random(SEED)
    victims = [f"victim-{number}" for number in range(4)]
    for name in victims:
        manifest = python_pod(name, "burn.py", "600", gpu_mem=2048, gpu_cores=20, annotations=on_first_card(namespace))
        if name == "victim-3":
            manifest = once(manifest)
        namespace.create(manifest)
    namespace.running(*victims)
    killed = 0
    until = time.monotonic() + 240
    while killed < KILLS and time.monotonic() < until:
        found = processes_of(namespace, chance.choice(victims[:3]))
        for pid in found[:1] if chance.random() < 0.5 else found:
            try:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                continue
        time.sleep(chance.uniform(0, 3))
    assert killed >= KILLS
    assert namespace.phases()["victim-3"] == "Running"
    namespace.delete(*victims)
    namespace.until(lambda: not used_mib(), "nothing is left on the card", 20)
    namespace.create_program("after", "fill.py", "cupy", gpu_mem=8192, gpu_cores=10)
    assert namespace.last("after", 120)["got"] >= 7000
