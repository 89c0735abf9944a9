"""What makes each alert of manifests/monitoring fire: a fault that really happens, for as long as the block lasts.

A fault yields what must be done again and again meanwhile.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import vgpu
from cluster import accounts, process, wait
from cluster.cluster import GpuCluster
from cluster.parts import ClusterPart
from cluster.programs import binaries
from extender.history import folder
from extender.history.recording import spill
from simgpu import state_directory
from tests.e2e.limits import test_unlimited
from tests.e2e.monitor.part_processes import arbiter_pid
from tests.e2e.node.test_node_files import at
from tests.e2e.pod_namespace import FOREVER, PodNamespace, container, pod
from tests.e2e.prometheus import Prometheus
from vgpu.domain import names
from webhook.certificates import signing

Again = Callable[[], None]
Fault = Callable[[PodNamespace, Prometheus], AbstractContextManager[Again]]

SHORT_LIVED = "127.0.0.1:9875"  # metrics of the webhook whose certificate expires soon
NEW_ADDRESS = "127.0.0.1:9876"  # metrics of an extender that Prometheus has not scraped before
UNREACHABLE_DATABASE = "postgresql://nobody@127.0.0.1:9/none"  # nothing listens on port 9
ON_DISK = 'vgpu_extender_history_waiting_records{where="disk"}'
BEHIND = 1_000  # records, above which the history is behind
GPU_IS_LOST = 15  # of NVML


def _nothing() -> None:
    """Do nothing more while the fault lasts."""


def _second_plugin(cluster: GpuCluster) -> ClusterPart:
    return cluster.plugins[1]


def _stopped(part_of: Callable[[GpuCluster], ClusterPart]) -> Fault:
    @contextmanager
    def fault(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
        part = part_of(namespace.cluster)
        part.stop()
        try:
            yield _nothing
        finally:
            part.start()

    return fault


@contextmanager
def _kubelet_down(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    kubelet = namespace.cluster.nodes[1].kubelet
    kubelet.stop()
    try:
        yield _nothing
    finally:
        kubelet.start()
        namespace.cluster.plugins[1].wait_ready()


def _extender_with(**settings: str) -> Fault:
    @contextmanager
    def fault(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
        with namespace.cluster.extender_with(**settings):
            yield _nothing

    return fault


@contextmanager
def _api_server_hangs(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    apiserver = namespace.cluster.control.apiserver
    apiserver.signal(signal.SIGSTOP)
    try:
        yield _nothing
    finally:
        apiserver.signal(signal.SIGCONT)
        for part in namespace.cluster.parts:
            part.wait_ready()


@contextmanager
def _admin_down(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    def kill() -> None:
        extender = namespace.cluster.extender.process.pid
        for child in Path(f"/proc/{extender}/task/{extender}/children").read_text().split():
            with contextlib.suppress(OSError):
                if b"extender.admin" in Path(f"/proc/{child}/cmdline").read_bytes():
                    os.kill(int(child), signal.SIGKILL)

    yield kill


@contextmanager
def _arbiter_down(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    def kill() -> None:
        with contextlib.suppress(OSError):
            if pid := arbiter_pid(namespace.cluster.nodes[0]):
                os.kill(pid, signal.SIGKILL)

    yield kill


@contextmanager
def _card_lost(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    node = namespace.cluster.nodes[0]
    state_directory.inject_faults(node.driver_state, (f"*@{node.cards[3].uuid}", GPU_IS_LOST))
    try:
        yield _nothing
    finally:
        state_directory.inject_faults(node.driver_state)


@contextmanager
def _card_cordoned(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    node = namespace.cluster.nodes[0]
    path = f"{names.GPUNODES_PATH}/{node.name}"
    namespace.cluster.api.patch(path, {"spec": {"cards": [{"uuid": node.cards[3].uuid, "cordoned": True}]}})
    try:
        yield _nothing
    finally:
        namespace.cluster.api.patch(path, {"spec": {"cards": []}})


@contextmanager
def _pod_that_never_fits(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    namespace.create(pod("never", gpu_mem=900_000))
    yield _nothing


@contextmanager
def _malformed_calls(_: PodNamespace, scraping: Prometheus) -> Iterator[Again]:
    yield lambda: scraping.post("http://127.0.0.1:9870/filter", b"{", times=10)


@contextmanager
def _bindings_of_no_pod(_: PodNamespace, scraping: Prometheus) -> Iterator[Again]:
    body = {"PodName": "gone", "PodNamespace": "default", "PodUID": "gone", "Node": "127.0.0.2"}
    yield lambda: scraping.post("http://127.0.0.1:9870/bind", json.dumps(body).encode(), times=20)


@contextmanager
def _container_without_assignment(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    """A pod that is bound by hand has devices of the kubelet and no assignment."""
    unknown = {names.USE_GPU_UUID: "GPU-00000000-0000-0000-0000-000000000000"}
    namespace.create(pod("by-hand", gpu_mem=1024, annotations=unknown))
    target = {"apiVersion": "v1", "kind": "Node", "name": namespace.cluster.nodes[0].name}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "by-hand"}, "target": target}
    namespace.cluster.api.create(f"{namespace.pods_path}/by-hand/binding", binding)
    yield _nothing


@contextmanager
def _reviews_that_are_none(_: PodNamespace, scraping: Prometheus) -> Iterator[Again]:
    yield lambda: scraping.post("https://127.0.0.1:9443/mutate", b"{")


@contextmanager
def _gpunode_that_cannot_be_read(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    """Cards are reported without the size of a slice, each time in another version."""
    path, count = names.GPUNODES_PATH, iter(range(10_000))
    namespace.cluster.api.create(
        path, {"apiVersion": names.API_VERSION, "kind": "GPUNode", "metadata": {"name": "odd"}}
    )
    card = {"uuid": "GPU-odd", "index": 0, "model": "odd", "memoryMiB": 1024, "healthy": True}

    def write() -> None:
        status = {"cards": [card | {"memoryMiB": 1024 + next(count)}]}
        namespace.cluster.api.patch(f"{path}/odd/status", {"status": status})

    try:
        yield write
    finally:
        namespace.cluster.api.delete(f"{path}/odd")


@contextmanager
def _certificate_of_three_days(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    cluster = namespace.cluster
    now = datetime.now(UTC)
    lasts = signing.issue(signing.new_authority(now), ("localhost",), now).ends - now
    then = now - lasts + timedelta(days=3)
    serving = signing.issue(signing.new_authority(then), ("localhost",), then)
    made = cluster.work / "short-lived"
    made.mkdir(exist_ok=True)
    (made / "tls.crt").write_bytes(serving.certificate)
    (made / "tls.key").write_bytes(serving.key)
    command: list[str | Path] = [
        sys.executable, "-m", "webhook", f"--kubeconfig={accounts.path(cluster.work, 'vgpu-webhook')}",
        "--listen=127.0.0.1:9444", f"--metrics-listen={SHORT_LIVED}", "--certificates=files",
        f"--tls-cert={made}/tls.crt", f"--tls-key={made}/tls.key",
    ]  # fmt: skip
    webhook = process.ClusterProcess(
        "webhook-short-lived", command, cluster.within, cluster.work / "logs", cluster.maker.environment
    )
    webhook.start()
    try:
        yield _nothing
    finally:
        webhook.stop()


def _uninvited(namespace: PodNamespace, name: str, mib: int) -> None:
    """Create a pod that uses card 0 of the first node without a share."""
    settings = {"metadata": {"name": name}, "data": {"NVIDIA_VISIBLE_DEVICES": "all"}}
    namespace.cluster.api.create(f"{namespace.path}/configmaps", settings)
    hold = container(command=("gpuprobe", "alloc", str(mib), "--hold", "0"))
    manifest: dict[str, Any] = pod(name, hold | {"envFrom": [{"configMapRef": {"name": name}}]})
    manifest["spec"]["nodeName"] = namespace.cluster.nodes[0].name
    namespace.create(manifest)


@contextmanager
def _process_without_share(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    _uninvited(namespace, "uninvited", 64)
    yield _nothing


@contextmanager
def _process_without_limiter(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    namespace.create(test_unlimited.covering("covers", namespace.cluster.nodes[0], "/etc/ld.so.preload", ""))
    yield _nothing


@contextmanager
def _card_full(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    """Another pod takes the card's memory, so that a pod with `spill` gets host memory.

    The series begins with what was spilled: a counter that only grew before its first scrape.
    """
    node = namespace.cluster.nodes[0]
    annotations = {**at(node), names.MEMORY_POLICY: "spill"}
    script = "while [ ! -e /go ]; do sleep 0.2; done; exec gpuprobe alloc 1024 --hold 0"
    namespace.create(pod("idle", container(command=("sh", "-c", script), gpu_mem=2048), annotations=annotations))
    namespace.running("idle")
    free = node.cards[0].memory_mib
    _uninvited(namespace, "takes", free - 512)
    namespace.running("takes")
    namespace.run("idle", "touch", "/go")
    yield _nothing


@contextmanager
def _region_cut(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    namespace.create(pod("cuts", container(command=FOREVER, gpu_mem=1024), annotations=at(namespace.cluster.nodes[0])))
    namespace.running("cuts")
    namespace.run("cuts", "dd", "if=/dev/null", "of=/run/vgpu/region", "bs=1", "count=0", "seek=16")
    yield _nothing


@contextmanager
def _many_records_without_database(namespace: PodNamespace, scraping: Prometheus) -> Iterator[Again]:
    """The cards of a GPUNode are cordoned and opened until enough events wait on the disk.

    The alert takes the least number of a quarter of an hour. So the extender serves its metrics at another address
    then, where the series begins with these records.
    """
    cluster, path = namespace.cluster, f"{names.GPUNODES_PATH}/many"
    cards = [
        {"uuid": f"GPU-many-{n}", "index": n, "model": "many", "memoryMiB": 1024, "healthy": True} for n in range(64)
    ]
    with cluster.extender_with(history_url=UNREACHABLE_DATABASE):
        cluster.api.create(
            names.GPUNODES_PATH, {"apiVersion": names.API_VERSION, "kind": "GPUNode", "metadata": {"name": "many"}}
        )
        try:
            cluster.api.patch(f"{path}/status", {"status": {"sliceMiB": 256, "cards": cards}})

            def are_many() -> bool:
                for is_cordoned in (True, False):
                    wanted = [{"uuid": card["uuid"], "cordoned": is_cordoned} for card in cards]
                    cluster.api.patch(path, {"spec": {"cards": wanted}})
                return (scraping.value(ON_DISK) or 0) > BEHIND

            wait.until(are_many, f"{BEHIND} records wait", 60)
            cluster.extender.restart(f"--history-url={UNREACHABLE_DATABASE}", f"--metrics-listen={NEW_ADDRESS}")
            yield _nothing
        finally:
            cluster.api.delete(path)


@contextmanager
def _plugin_of_another_version(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    """The second node's device plugin has the version file of another build, as a wheel of that build has."""
    cluster = namespace.cluster
    folder, own = cluster.work / "another-version", cluster.plugins[1]
    shutil.copytree(binaries.REPOSITORY / "vgpu", folder / "vgpu")
    (folder / "vgpu" / "version.txt").write_text(f"{vgpu.__version__}.another")
    plain = cluster.maker.environment
    modules = os.pathsep.join((str(folder), plain["PYTHONPATH"]))
    cluster.maker.environment = plain | {"PYTHONPATH": modules, "PYTHONSAFEPATH": "1"}
    another = cluster.maker.plugin(cluster.nodes[1], "deviceplugin-another")
    cluster.maker.environment = plain
    own.stop()
    try:
        another.start()
        yield _nothing
    finally:
        another.stop()
        own.start()
        shutil.rmtree(folder)


@contextmanager
def _spill_damaged(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    """Lines before the last one cannot be read; at the end they would be cut off as unfinished."""
    extender = namespace.cluster.extender
    extender.stop()
    newest = spill.segments(folder.spill(namespace.cluster.maker.history))[-1].path
    last = newest.read_bytes().splitlines(keepends=True)[-1]
    with newest.open("ab") as file:
        file.write(b"this is no record\n" * 3 + last)
    extender.start()
    yield _nothing


@contextmanager
def _reports_refused(namespace: PodNamespace, _: Prometheus) -> Iterator[Again]:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/vgpu-deviceplugin"
    rules = namespace.cluster.api.get(path)["rules"]
    kept = [rule for rule in rules if "gpunodes/status" not in rule["resources"]]
    namespace.cluster.api.patch(path, {"rules": kept})
    try:
        yield _nothing
    finally:
        namespace.cluster.api.patch(path, {"rules": rules})


FAULTS: dict[str, Fault] = {
    "VgpuExtenderDown": _stopped(lambda cluster: cluster.extender),
    "VgpuNoLeader": _extender_with(scheduler_lease="of-no-scheduler"),
    "VgpuWatchSilent": _api_server_hangs,
    "VgpuWebhookDown": _stopped(lambda cluster: cluster.webhook),
    "VgpuAdminDown": _admin_down,
    "VgpuDevicePluginDown": _stopped(_second_plugin),
    "VgpuNodeUnusable": _extender_with(slice_mib="512"),
    "VgpuPluginNotRegistered": _kubelet_down,
    "VgpuPluginNotScraped": _stopped(_second_plugin),
    "VgpuArbiterDown": _arbiter_down,
    "VgpuCardUnhealthy": _card_lost,
    "VgpuCardClosedLong": _card_cordoned,
    "VgpuPodsNeedAction": _pod_that_never_fits,
    "VgpuDecisionsFail": _malformed_calls,
    "VgpuBindsRefused": _bindings_of_no_pod,
    "VgpuContainersRefused": _container_without_assignment,
    "VgpuReviewsUnreadable": _reviews_that_are_none,
    "VgpuObjectsUnreadable": _gpunode_that_cannot_be_read,
    "VgpuCertificateNearEnd": _certificate_of_three_days,
    "VgpuUninvitedProcesses": _process_without_share,
    "VgpuLimiterMissing": _process_without_limiter,
    "VgpuMemorySpilled": _card_full,
    "VgpuRegionsUnreadable": _region_cut,
    "VgpuHistoryStoresNothing": _extender_with(history_url=UNREACHABLE_DATABASE),
    "VgpuHistoryBehind": _many_records_without_database,
    "VgpuHistoryLost": _spill_damaged,
    "VgpuReportsLate": _reports_refused,
    "VgpuVersionsDiffer": _plugin_of_another_version,
}
