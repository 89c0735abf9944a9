"""Processes that use their share without its limits: an Event that names them within ten seconds, and a condition."""

import base64
import contextlib
import os
import threading
import time

import pytest

from cluster import nodes, wait
from simgpu import usage
from tests.e2e.node.test_node_files import at
from tests.e2e.pod_namespace import FOREVER, Document, PodNamespace, container, pod
from vgpu.domain import names
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import CardLimit, Limits
from vgpu.domain.quantity import MIB

pytestmark = pytest.mark.e2e

WITHIN_S = 10
CHURN_S = int(os.environ.get("VGPU_E2E_CHURN_S", "40"))
MIB_OF_LIMIT = 1024
HOLD = ("gpuprobe", "alloc", str(2 * MIB_OF_LIMIT), "--hold", "0")
HIDDEN = ("unshare", "-Urm", "sh", "-c", 'mount --bind /dev/null /etc/ld.so.preload; exec "$@"', "sh")


def condition(namespace: PodNamespace, node: nodes.ClusterNode) -> Document:
    status = namespace.cluster.api.get(f"{names.GPUNODES_PATH}/{node.name}")["status"]
    (found,) = [condition for condition in status["conditions"] if condition["type"] == "LimitsEnforced"]
    return dict(found)


def until_used(namespace: PodNamespace, node: nodes.ClusterNode, mib: int) -> float:
    """Wait until `mib` MiB of a card of the node are in use; return the time."""
    used = lambda: max(usage.bytes_by_card(node.driver_state).values(), default=0) >= mib * MIB  # noqa: E731
    namespace.until(used, f"{mib} MiB of a card are in use")
    return time.monotonic()


def message(namespace: PodNamespace, name: str, reason: str, since: float) -> str:
    """Wait for the Event about a pod; return its message."""
    events = namespace.until(
        lambda: [e for e in namespace.extender_events(name) if e["reason"] == reason],
        f"an Event {reason} about {name}",
        WITHIN_S,
    )
    assert time.monotonic() - since < wait.allowed(WITHIN_S)
    return str(events[0]["message"])


def found_reasons(namespace: PodNamespace, name: str) -> set[str]:
    """The reasons of Events about a pod that are about its limits."""
    return {str(event["reason"]) for event in namespace.extender_events(name)} & names.WITHOUT_LIMITS


def covering(name: str, node: nodes.ClusterNode, path: str, content: str) -> Document:
    """A pod that mounts a file over one of vgpushare's, through a symbolic link that an init container creates.

    Admission and proof compare paths, and see no such file. The path is one folder deeper than vgpushare's, because
    containerd mounts deeper paths later, and those of one depth in any order.
    """
    folder, _, file = path.rpartition("/")
    script = f"mkdir /work/deep; ln -s {folder} /work/deep/link; printf {content} | base64 -d > /files/{file}"
    link = container("link", ("sh", "-c", script))
    volumes = [{"name": "work", "mountPath": "/work"}, {"name": "files", "mountPath": "/files"}]
    link["volumeMounts"] = volumes
    main = container(command=HOLD, gpu_mem=MIB_OF_LIMIT)
    main["volumeMounts"] = [volumes[0], {"name": "files", "mountPath": f"/work/deep/link/{file}", "subPath": file}]
    made = pod(name, main, init=[link], annotations=at(node))
    made["spec"]["volumes"] = [{"name": volume["name"], "emptyDir": {}} for volume in volumes]
    return made


def test_a_process_without_the_limiter_is_reported(namespace: PodNamespace) -> None:
    node = namespace.cluster.nodes[0]
    honest = container(command=("gpuprobe", "alloc", "512", "--hold", "0"), gpu_mem=MIB_OF_LIMIT)
    namespace.create(pod("honest", honest, annotations=at(node)))
    namespace.create(covering("covers", node, "/etc/ld.so.preload", ""))
    namespace.running("honest", "covers")
    found = message(namespace, "covers", names.LIMITER_NOT_LOADED, until_used(namespace, node, 2 * MIB_OF_LIMIT))
    assert f"card 0 ({node.cards[0].uuid})" in found
    assert f"{namespace.name}/covers container main process" in found
    assert "(gpuprobe)" in found
    assert "2048 MiB of 1024 MiB" in message(namespace, "covers", names.MEMORY_BEYOND_LIMIT, time.monotonic())
    assert condition(namespace, node)["status"] == "False"
    assert not found_reasons(namespace, "honest")
    namespace.delete("covers")
    namespace.until(lambda: condition(namespace, node)["status"] == "True", "the finding ends", WITHIN_S)


def until_killed(namespace: PodNamespace, name: str) -> None:
    with contextlib.suppress(AssertionError):  # the end of the test deletes the pod
        namespace.probe(name, *HOLD[1:], prefix=HIDDEN)


def test_a_process_in_a_mount_namespace_of_its_own_is_reported(namespace: PodNamespace) -> None:
    node = namespace.cluster.nodes[0]
    namespace.create(pod("hides", container(command=FOREVER, gpu_mem=MIB_OF_LIMIT), annotations=at(node)))
    namespace.running("hides")
    threading.Thread(target=until_killed, args=(namespace, "hides"), daemon=True).start()
    since = until_used(namespace, node, 2 * MIB_OF_LIMIT)
    assert "(gpuprobe)" in message(namespace, "hides", names.LIMITER_NOT_LOADED, since)


def test_forged_limits_are_reported(namespace: PodNamespace) -> None:
    node = namespace.cluster.nodes[0]
    forged = limits.encode(Limits((CardLimit(limits.ANY_GPU, 64 << 30),)))
    namespace.create(covering("forges", node, "/run/vgpu/limits", base64.b64encode(forged).decode()))
    namespace.running("forges")
    since = until_used(namespace, node, 2 * MIB_OF_LIMIT)
    assert "/run/vgpu/limits" in message(namespace, "forges", names.LIMITER_FILES_COVERED, since)


def test_a_region_set_to_zero_is_reported(namespace: PodNamespace) -> None:
    node = namespace.cluster.nodes[0]
    holds = container(command=("gpuprobe", "alloc", "900", "--hold", "0"), gpu_mem=MIB_OF_LIMIT)
    namespace.create(pod("zeroes", holds, annotations=at(node)))
    namespace.running("zeroes")
    until_used(namespace, node, 900)
    time.sleep(WITHIN_S)
    assert not found_reasons(namespace, "zeroes")
    namespace.run("zeroes", "dd", "if=/dev/zero", "of=/run/vgpu/region", "bs=4096", "count=16", "conv=notrunc")
    assert "NVML counts 9" in message(namespace, "zeroes", names.REGION_BELOW_USE, time.monotonic())


def test_two_settings_have_the_pod_of_a_controller_evicted(namespace: PodNamespace) -> None:
    cluster = namespace.cluster
    node, plugin = cluster.nodes[0], cluster.plugins[0]
    template = covering("evades", node, "/etc/ld.so.preload", "")
    template["metadata"]["labels"] = {"app": "evades"}
    template["spec"]["restartPolicy"] = "Always"
    selector = {"matchLabels": {"app": "evades"}}
    manifest = {"metadata": {"name": "evades"}, "spec": {"replicas": 1, "selector": selector, "template": template}}
    plugin.restart("--without-limits=evict")
    try:
        with cluster.extender_with(uninvited="evict"):
            cluster.api.create(f"/apis/apps/v1/namespaces/{namespace.name}/deployments", manifest)
            (first,) = namespace.until(lambda: list(namespace.phases()), "the pod exists")
            namespace.running(first)
            namespace.until(lambda: first not in namespace.phases(), "the pod is evicted", 40)
    finally:
        plugin.restart()


@pytest.mark.timeout(CHURN_S + 300)
def test_a_churn_of_honest_processes_has_no_finding(namespace: PodNamespace) -> None:
    """Processes that start, allocate, free and end without a pause, in containers that restart and are replaced."""
    node = namespace.cluster.nodes[0]
    once = "gpuprobe alloc 300 --hold 0.05; gpuprobe alloc 500 200 300; gpuprobe spin 200 & sleep 0.1; kill %1"
    loop = f"for i in $(seq 40); do {once}; done"
    namespace.until(lambda: condition(namespace, node)["status"] == "True", "findings of earlier pods end", 60)
    until, number = time.monotonic() + CHURN_S, 0
    while time.monotonic() < until:
        for round_number in range(4):
            works = container(command=("bash", "-c", loop), gpu_mem=MIB_OF_LIMIT)
            namespace.create(pod(f"honest-{number}-{round_number}", works, annotations=at(node, round_number % 2)))
        created = [f"honest-{number}-{index}" for index in range(4)]
        namespace.running(*created)
        for _ in range(10):
            time.sleep(1)
            assert condition(namespace, node)["status"] == "True", condition(namespace, node)["message"]
        namespace.delete(*created)
        number += 1
    log = namespace.cluster.plugins[0].log.read_text(errors="replace")
    assert not [
        line
        for line in log.split("\n")
        if "WARNING vgpu.node.processes.process_watch" in line and namespace.name in line
    ]
