"""A Kubernetes namespace for one test: it creates pods by their share, waits for them, and deletes them all at the end.

namespace.create(pod("a", gpu_mem=8192, gpu_cores=30))
namespace.running("a")
namespace.run("a", "gpuprobe", "info")
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack

from cluster import api, images, wait
from cluster.cluster import GpuCluster
from vgpu.domain import names
from vgpu.domain.grants import assignment
from vgpu.domain.grants.assignment import Assignment

Document = dict[str, Any]
T = TypeVar("T")

_STARTED_S = 60
_GONE_S = 180  # one test deletes three hundred containers
_RESOURCES: Final[Mapping[Literal["gpu_mem", "gpu_cores", "gpu"], str]] = {
    "gpu_mem": names.GPU_MEM,
    "gpu_cores": names.GPU_CORES,
    "gpu": names.GPU,
}
# A first process without a handler ignores SIGTERM, and every deletion would take 2 s longer.
FOREVER = ("sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait")


class Share(TypedDict, total=False):
    """A container's share of GPUs, by short names."""

    gpu_mem: int | str
    gpu_cores: int | str
    gpu: int | str


def container(
    name: str = "main",
    command: Sequence[str] = FOREVER,
    limits: Mapping[str, Any] | None = None,
    **share: Unpack[Share],
) -> Document:
    """A container of the base image; `share` by short names (gpu_mem, ...), other resources in `limits`."""
    amounts = {resource: str(share[short]) for short, resource in _RESOURCES.items() if short in share}
    amounts |= dict(limits or {})
    return {"name": name, "image": images.BASE, "command": list(command), "resources": {"limits": amounts}}


def pod(
    name: str,
    *containers: Document,
    init: Sequence[Document] = (),
    annotations: Mapping[str, str] | None = None,
    **share: Unpack[Share],
) -> Document:
    """A pod with a grace period of 1 s; without `containers`, it has one container, `main`, with the share."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {
            "containers": list(containers) or [container(**share)],
            "initContainers": list(init),
            "terminationGracePeriodSeconds": 1,
            "restartPolicy": "Always",
        },
    }


class PodNamespace:
    """One Kubernetes namespace of a cluster."""

    def __init__(self, cluster: GpuCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.path = f"/api/v1/namespaces/{name}"
        self.pods_path = f"{self.path}/pods"
        cluster.create_namespace(name)

    def create(self, manifest: Document) -> Document:
        """Create a pod."""
        return self.cluster.api.create(self.pods_path, manifest)

    def refused(self, manifest: Document) -> str:
        """Create a pod that must be refused, and return the API server's message."""
        try:
            self.create(manifest)
        except api.RequestRefused as refused:
            return refused.message
        raise AssertionError(f"pod {manifest['metadata']['name']} was admitted")

    def get(self, name: str) -> Document:
        """Read a pod."""
        return self.cluster.api.get(f"{self.pods_path}/{name}")

    def all(self) -> list[Document]:
        """Read every pod."""
        items: list[Document] = self.cluster.api.get(self.pods_path)["items"]
        return items

    def phases(self) -> dict[str, str]:
        """Each pod's phase."""
        return {item["metadata"]["name"]: item["status"].get("phase", "") for item in self.all()}

    def running(self, *wanted: str, within_s: float = _STARTED_S) -> list[Document]:
        """Wait until these pods run with all containers ready, and return them; a Failed pod fails the test at once."""

        def check() -> list[Document] | None:
            found = [self.get(name) for name in wanted]
            failed = [item["metadata"]["name"] for item in found if item["status"].get("phase") == "Failed"]
            assert not failed, f"Failed: {failed}: {[self.get(name)['status'] for name in failed]}"
            return found if all(is_running(item) for item in found) else None

        return self.until(check, f"{', '.join(wanted)} Running", within_s)

    def until(self, check: Callable[[], T | None], what: str, within_s: float = _STARTED_S) -> T:
        """Wait until `check` returns something true, and return it; a timeout reports every pod's status."""
        try:
            return wait.until(check, what, within_s)
        except wait.Overdue as overdue:
            raise AssertionError(f"{overdue}\n{self.describe()}") from None

    def describe(self) -> str:
        """Every pod's phase and node, and the events."""
        lines = [
            f"{item['metadata']['name']}: {item['status'].get('phase')} {_why(item)} {item['spec'].get('nodeName', '')}"
            for item in self.all()
        ]
        lines += [
            f"  {event['involvedObject']['name']}: {event['reason']}: {event['message']}" for event in self.events()
        ]
        return "\n".join(lines)

    def events(self, name: str = "") -> list[Document]:
        """Events of the namespace, or of one pod."""
        items: list[Document] = self.cluster.api.get(f"{self.path}/events")["items"]
        return [event for event in items if name in ("", event["involvedObject"]["name"])]

    def extender_events(self, name: str) -> list[Document]:
        """A pod's events that the extender wrote."""
        return [event for event in self.events(name) if event["source"].get("component") == "vgpu-extender"]

    def assignment(self, name: str) -> Assignment:
        """What a pod was assigned."""
        return assignment.decode(self.get(name)["metadata"]["annotations"][names.ASSIGNMENT])

    def run(self, name: str, *command: str, container: str = "main") -> str:
        """Run a command in a container, and return what it printed."""
        return self.cluster.kubectl("exec", "-n", self.name, name, "-c", container, "--", *command)

    def probe(self, name: str, *arguments: str, container: str = "main", prefix: Sequence[str] = ()) -> list[Document]:
        """Run gpuprobe in a container, and return the lines it printed."""
        printed = self.run(name, *prefix, "gpuprobe", *arguments, container=container)
        return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]

    def delete(self, *gone: str) -> None:
        """Delete pods; returns when their containers are gone too."""
        for name in gone:
            self.cluster.api.delete(f"{self.pods_path}/{name}")
        self.until(lambda: not set(gone) & self.phases().keys(), f"{', '.join(gone)} gone", _GONE_S)

    def close(self) -> None:
        """Delete everything in the namespace; returns when the cards are free again."""
        for kind in ("apis/apps/v1/namespaces/{}/deployments", "api/v1/namespaces/{}/pods"):
            self.cluster.api.delete("/" + kind.format(self.name))
        self.until(lambda: not self.all(), f"namespace {self.name} empty", _GONE_S)
        self.until(lambda: not held_slices(self.cluster), "no slice held", _GONE_S)
        self.cluster.api.delete(self.path)


def held_slices(cluster: GpuCluster) -> dict[str, int]:
    """Held slices by card UUID, as the device plugins report them; cards without held slices are left out."""
    cards = [card for node in cluster.api.get(names.GPUNODES_PATH)["items"] for card in node["status"]["cards"]]
    return {card["uuid"]: card["heldSlices"] for card in cards if card.get("heldSlices") or card.get("heldWhole")}


def is_running(item: Document) -> bool:
    """Whether all containers of a pod run."""
    statuses = item["status"].get("containerStatuses", [])
    return item["status"].get("phase") == "Running" and bool(statuses) and all(status["ready"] for status in statuses)


def _why(item: Document) -> str:
    states = item["status"].get("containerStatuses", []) + item["status"].get("initContainerStatuses", [])
    waiting = [state["state"]["waiting"] for state in states if "waiting" in state.get("state", {})]
    return "; ".join(f"{state.get('reason')}: {state.get('message', '')}" for state in waiting) or item["status"].get(
        "message", ""
    )
