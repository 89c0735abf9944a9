"""Pods that come and go during a fault, and what the API server's audit log says of their Bindings."""

import itertools
import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import httpx

from cluster import accounts, api, command_line, progress, wait
from cluster.cluster import GpuCluster
from vgpu.domain import names

NAMESPACE: Final = "recovery"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
ADDED_MIB: Final = 256

_PERIOD_S: Final = 0.4
_MOST: Final = 24
_END_S: Final = 60.0
_NUMBERS: Final = itertools.count()  # pods of the last fault may be there still: a name is used once
_PAUSE: Final = {"name": "main", "image": "docker.io/local/pause:1", "command": ["/pause"]}
_FAILURES: Final = (api.RequestRefused, httpx.HTTPError, OSError)

Document = dict[str, Any]


def spec(**more: Any) -> Document:
    """Return the spec of a pod with a small share, which ends at once on SIGTERM."""
    limits = {names.GPU_MEM: str(ADDED_MIB), names.GPU_CORES: "1"}
    return {"containers": [_PAUSE | {"resources": {"limits": limits}}], "terminationGracePeriodSeconds": 1} | more


@contextmanager
def come_and_go(cluster: GpuCluster) -> Iterator[None]:
    """Create a small pod every 0.4 s, spread over nodes, and delete the oldest that did not fail.

    At the end all are deleted: pods that stay on one node would make `spread` choose the other node for ever.
    """
    ended = threading.Event()
    thread = threading.Thread(target=_until_ended, args=(cluster, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        cluster.api.delete(PODS)
    wait.until(lambda: not listed(cluster), "the end of the pods of this fault", _END_S)


def _until_ended(cluster: GpuCluster, ended: threading.Event) -> None:
    here: deque[str] = deque()
    while not ended.wait(_PERIOD_S):
        with suppress(*_FAILURES):
            _step(cluster, here, f"s{next(_NUMBERS)}")


def _step(cluster: GpuCluster, here: deque[str], name: str) -> None:
    annotations = {names.NODE_POLICY: "spread", names.GPU_POLICY: "spread"}
    cluster.api.create(PODS, {"metadata": {"name": name, "annotations": annotations}, "spec": spec()})
    here.append(name)
    if len(here) > _MOST:
        oldest = here.popleft()
        if cluster.api.get(f"{PODS}/{oldest}")["status"].get("phase") == "Running":
            cluster.api.delete(f"{PODS}/{oldest}")
        else:
            here.append(oldest)


def listed(cluster: GpuCluster) -> list[Document]:
    """Return every pod of the measurement."""
    found: list[Document] = cluster.api.get(PODS)["items"]
    return found


def readmit(cluster: GpuCluster) -> None:
    """Create the pods again that the webhook did not see, as an admin does after a fault of it."""
    code, printed = command_line.vgpu(cluster, accounts.ADMIN.name, "readmit", "-n", NAMESPACE)
    progress.say(f"vgpu readmit: status {code}, {printed.count('created again')} pods created again")


def failed(cluster: GpuCluster) -> set[str]:
    """Return the pods that a kubelet rejected for good, or that no scheduler of ours will see, by their UIDs."""
    return {pod["metadata"]["uid"] for pod in listed(cluster) if _is_rejected(pod) or _is_unseen(pod)}


def _is_rejected(pod: Document) -> bool:
    return pod["status"].get("phase") == "Failed" and bool(pod["status"].get("reason"))


def _is_unseen(pod: Document) -> bool:
    """Whether the webhook has not given the pod our scheduler's name."""
    return bool(pod["spec"]["schedulerName"] != names.SCHEDULER)


class CarriedOut(NamedTuple):
    """A Binding that the API server carried out.

    Attributes:
        at: when it was received, in seconds since 1970.
        pod: its name.
        node: its name.
    """

    at: float
    pod: str
    node: str


def bindings(cluster: GpuCluster, since: int) -> list[CarriedOut]:
    """Return the Bindings in the audit log from a byte on, in the order in which they were received."""
    return sorted(_bindings(cluster, since))


def _bindings(cluster: GpuCluster, since: int) -> Iterator[CarriedOut]:
    with cluster.control.audit.open("rb") as lines:
        lines.seek(since)
        for line in lines:
            with suppress(ValueError, KeyError):  # the last line may be incomplete; refused requests have no response
                event = json.loads(line)
                about = event["objectRef"]
                is_ours = (about.get("subresource"), about.get("namespace")) == ("binding", NAMESPACE)
                if is_ours and event["responseStatus"]["code"] == HTTPStatus.CREATED:
                    at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
                    yield CarriedOut(at, about["name"], event["requestObject"]["target"]["name"])
