"""Everything from images: `kubectl apply -k manifests/base`, where no part runs as a process of the harness."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cluster import accounts, wait
from cluster.bare import BareCluster
from cluster.command_line import vgpu
from cluster.pod_cluster import BASE, NAMESPACE, PodCluster
from cluster.programs import binaries
from tests.e2e.install.pod_clusters import make_with_logs
from tests.e2e.limits.test_limits import OUT_OF_MEMORY, assert_total_memory, results
from tests.e2e.made_cluster import RUNTIME
from tests.e2e.pod_namespace import Document, PodNamespace, container, pod
from vgpu.adapters.kubernetes import lease
from vgpu.domain import names
from vgpu.domain.identifiers import NodeName
from vgpu.domain.quantity import MIB

pytestmark = [pytest.mark.e2e, pytest.mark.images, pytest.mark.timeout(600, func_only=True)]

TRANSCRIPT = binaries.REPOSITORY / "build" / "uninstall.txt"
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# With kustomize, with Helm, and with Helm in a namespace that stays.
UNINSTALL = COMMANDS.findall((BASE.parent / "README.md").read_text().split("\n## 8 Uninstall\n")[1].split("\n## ")[0])
CARDS = 2
LAST_RENEWAL = timedelta(seconds=1)  # what a plugin that is killed may still write
PARTS = ("extender", "webhook", "deviceplugin")


@pytest.fixture(scope="module")
def pods(pytestconfig: pytest.Config) -> Iterator[PodCluster]:
    """A cluster with the images and nothing of vgpushare."""
    with make_with_logs(pytestconfig, "images", lambda: PodCluster(cards=CARDS, runtime=RUNTIME)) as made:
        yield made


def test_installed_used_and_removed(pods: PodCluster) -> None:
    """One test, because its steps build on each other and tests run in any order."""
    pods.install()
    assert_parts_are_unprivileged(pods)
    namespace = PodNamespace(pods, "users")  # type: ignore[arg-type] # it needs no process of the harness
    namespace.create(pod("share", gpu_mem=8192, gpu_cores=30))
    namespace.running("share")
    assert_total_memory(namespace, "share", 8192)
    assert results(namespace.probe("share", "alloc", "4096", "4096", "2")) == [0, 0, OUT_OF_MEMORY]
    assert_a_pod_has_parts_of_several_cards(namespace)
    assert_a_pod_is_diagnosed(namespace)
    assert_a_full_cluster_refuses_with_reasons(namespace)
    for part in PARTS:
        assert_comes_back(namespace, part)
    assert_nothing_is_left(pods, namespace)


def assert_parts_are_unprivileged(cluster: PodCluster) -> None:
    """No shell in the images; a read-only root and another user than root, except for the device plugin."""
    script = "import os; print(os.getuid(), os.path.exists('/bin/sh'), os.access('/usr', os.W_OK))"
    for target, user in (("deployment/vgpu-webhook", 65532), ("deployment/vgpu-scheduler", 65532)):
        container = "webhook" if "webhook" in target else "extender"
        command = ["exec", "-n", NAMESPACE, target, "-c", container, "--", "python", "-c", script]
        assert cluster.kubectl(*command).split() == [str(user), "False", "False"]
    with pytest.raises(AssertionError, match="executable file not found"):
        cluster.kubectl("exec", "-n", NAMESPACE, "daemonset/vgpu-deviceplugin", "--", "sh")


def assert_a_pod_has_parts_of_several_cards(namespace: PodNamespace) -> None:
    """Two cards of one node, 4 GiB of each; the limits hold on each card by itself."""
    namespace.create(pod("several", gpu=2, gpu_mem=8192, gpu_cores=60))
    namespace.running("several")
    (line,) = namespace.probe("several", "info")
    assert [card["total"] for card in line["cuda"]] == [4096 * MIB] * 2
    assert len({card["uuid"] for card in line["cuda"]} & set(namespace.assignment("several").gpus())) == 2
    for card in ("0", "1"):
        assert results(namespace.probe("several", "alloc", "--device", card, "3000", "2000")) == [0, OUT_OF_MEMORY]
    namespace.delete("several")


def assert_a_pod_is_diagnosed(namespace: PodNamespace) -> None:
    """`vgpu diagnose POD` finds the device plugin's pod, and says there what keeps a program from its card."""
    spins = container(command=("gpuprobe", "spin", "500"), gpu_mem=1024, gpu_cores=20)
    namespace.create(pod("spins", spins))
    namespace.running("spins")
    asked = ("diagnose", "spins", "-n", namespace.name, "--seconds", "5", "-o", "json")
    code, output = vgpu(namespace.cluster, accounts.ADMIN.name, *asked)
    (found,) = [json.loads(line) for line in output.splitlines()]
    assert (code, found["findings"][0]["code"]) == (1, "share-used-up"), output
    assert found["subject"].startswith(f"{namespace.name}/spins/main on GPU-")
    code, output = vgpu(namespace.cluster, accounts.ADMIN.name, "diagnose", "nobody", "-n", namespace.name)
    assert (code, "not found" in output) == (3, True), output
    namespace.delete("spins")


def assert_a_full_cluster_refuses_with_reasons(namespace: PodNamespace) -> None:
    """With "share" on one card, all other cards are taken as a whole; one pod waits until another leaves."""
    whole = [f"whole-{n}" for n in range(2 * CARDS - 1)]
    for name in whole:
        namespace.create(pod(name, gpu=1))
    namespace.running(*whole)
    namespace.create(pod("waits", gpu=1))
    namespace.until(lambda: "CardInUse" in messages(namespace, "waits"), "an event with the reason")
    namespace.delete(whole[0])
    namespace.running("waits")
    namespace.delete(*whole[1:], "waits")


def messages(namespace: PodNamespace, name: str) -> str:
    return " ".join(event["message"] for event in namespace.events(name))


def assert_comes_back(namespace: PodNamespace, part: str) -> None:
    """Every process of a part is killed; "share" runs on, and a new pod gets its share."""
    cluster = namespace.cluster
    share = namespace.get("share")["status"]["containerStatuses"][0]["containerID"]
    killed, restarts = processes(cluster.work.name, part), restarts_of(cluster, part)
    assert len(killed) == 2, part
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    since = datetime.now(UTC)
    wait.until(lambda: restarts_of(cluster, part) == restarts + 2, f"both replicas of {part} are ready again", 90)
    if part == "deviceplugin":  # a pod that is bound before the dead plugin's Lease ends is refused by the kubelet
        wait.until(lambda: min(renewals(cluster)) > since + LAST_RENEWAL, "the Leases of the next plugins", 90)
    namespace.until(lambda: is_created_with_share(namespace, f"after-{part}"), f"a pod is admitted after {part}")
    namespace.running(f"after-{part}")
    assert_total_memory(namespace, f"after-{part}", 1024)
    assert namespace.get("share")["status"]["containerStatuses"][0]["containerID"] == share
    namespace.delete(f"after-{part}")


def renewals(cluster: BareCluster) -> list[datetime]:
    """When the device plugin of each node last renewed the node's Lease."""
    paths = (lease.path(NAMESPACE, names.node_lease(NodeName(node.name))) for node in cluster.nodes)
    return [lease.decode(cluster.api.get(path)).renewed for path in paths]


def restarts_of(cluster: BareCluster, part: str) -> int:
    """How often containers of a part were started again; -1 while one is not ready."""
    items = cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    statuses = [
        status for item in items for status in item["status"].get("containerStatuses", ()) if status["name"] == part
    ]
    return sum(status["restartCount"] for status in statuses) if all(status["ready"] for status in statuses) else -1


def is_created_with_share(namespace: PodNamespace, name: str) -> bool:
    """Create a pod; without the webhook it is created unchanged, so it is deleted again."""
    limits = namespace.create(pod(name, gpu_mem=1024))["spec"]["containers"][0]["resources"]["limits"]
    if names.SLICE in limits:
        return True
    namespace.delete(name)
    return False


def processes(cluster: str, part: str) -> list[int]:
    """Pids of `python -m PART` in containers of a cluster, as the harness sees them."""
    command = f"python3.11\0-m\0{part}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if command in (entry / "cmdline").read_bytes() and cluster in (entry / "cgroup").read_text():
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


def with_overlays(commands: str, cluster: PodCluster) -> str:
    """The documented commands for an installation without an overlay, and for a cleanup that names our images."""
    cleanup = str(cluster.overlay(BASE.parent / "cleanup"))
    return commands.replace("manifests/overlays/OVERLAY", "manifests/base").replace(
        "manifests/overlays/CLEANUP", cleanup
    )


def uninstall_commands(cluster: PodCluster, first: int = 0) -> Iterator[str]:
    """Run the documented commands from the `first` on, one by one; each is yielded when it has ended."""
    TRANSCRIPT.unlink(missing_ok=True)
    for line in with_overlays(UNINSTALL[0], cluster).splitlines()[first:]:
        done = subprocess.run(
            ["bash", "-e", "-c", line], cwd=binaries.REPOSITORY, timeout=180, check=False, text=True,
            env=os.environ | {"PATH": f"{cluster.work}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        with TRANSCRIPT.open("a") as file:
            file.write(f"$ {line}\n{done.stdout}\n")
        assert done.returncode == 0, f"{line}\n{done.stdout}"
        yield line


def assert_nothing_is_left(cluster: PodCluster, namespace: PodNamespace) -> None:
    """`kubectl delete -k` leaves running pods alone; cleanup removes the nodes' files when their pods have ended."""
    steps = uninstall_commands(cluster)
    assert next(steps).startswith("kubectl delete -k")
    assert_total_memory(namespace, "share", 8192)
    assert results(namespace.probe("share", "alloc", "8194")) == [OUT_OF_MEMORY]
    assert next(steps).startswith("kubectl apply -k")
    (used,) = [node for node in cluster.nodes if node.name == namespace.get("share")["spec"]["nodeName"]]
    (other,) = [node for node in cluster.nodes if node is not used]
    wait.until(lambda: not other.state.exists(), "the state directory of a node without GPU pods is gone", 60)
    assert_total_memory(namespace, "share", 8192)
    namespace.delete("share")
    assert len(list(steps)) == 3
    assert not [node.name for node in cluster.nodes if node.state.exists()]
    assert not list(leftovers(cluster))


def leftovers(cluster: BareCluster) -> Iterator[str]:
    """Objects of the API server that vgpushare made: by kind, and by the names in them."""
    kinds = cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    for kind in kinds:
        if kind.partition(".")[0] in ("events", "componentstatuses"):
            continue
        items: list[Document] = _json(cluster.kubectl("get", kind, "-A", "-o", "json"))["items"]
        yield from (f"{kind} {item['metadata']['name']}" for item in items if "vgpu" in item["metadata"]["name"])
    for node in _json(cluster.kubectl("get", "nodes", "-o", "json"))["items"]:
        yield from (label for label in node["metadata"]["labels"] if "vgpu" in label)


def _json(text: str) -> Document:
    """Read the JSON document that a text begins with: warnings of the API server follow it."""
    found: Document = json.JSONDecoder().raw_decode(text)[0]
    return found
