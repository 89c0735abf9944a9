"""What a bundle contains: the answers of the admin REST, and objects, logs and metrics by the API server. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from vgpu.domain import names
from vgpu.domain.identifiers import Namespace

MAX_EXPLAINED: Final = 50  # pods that wait
MAX_PODS: Final = 60  # of the installation, whose logs and metrics are read; each node has one
LOG_LINES: Final = 5000
LOG_BYTES: Final = 4 << 20
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Source:
    """One answer.

    Attributes:
        file: where it goes in the archive.
        path: of the request, without the admin REST's prefix.
        query: of the request.
        is_list: it comes in pages.
    """

    file: str
    path: str
    query: Mapping[str, str | int | Sequence[str]] = field(default_factory=dict)
    is_list: bool = False


REST: Final = (
    Source("admin/summary.json", "/summary"),
    Source("admin/nodes.json", "/nodes", is_list=True),
    Source("admin/gpus.json", "/gpus", is_list=True),
    Source("admin/pods.json", "/pods", is_list=True),
    Source("admin/pending.json", "/pending", is_list=True),
    Source("admin/groups.json", "/groups", is_list=True),
    Source("admin/history.json", "/history", {"limit": 1000}),
    Source("admin/usage.json", "/usage", {"by": ("namespace", "day"), "since": "7d"}),
    Source("admin/rightsize.json", "/rightsize", {"since": "7d"}),
)


def explanations(pending: Iterable[Mapping[str, Any]]) -> Iterator[Source]:
    """Yield why each of the first pods waits."""
    for row, _ in zip(pending, range(MAX_EXPLAINED), strict=False):
        pod = f"{row.get('namespace')}/{row.get('name')}"
        yield Source(f"admin/explain/{pod}.json", f"/pods/{pod}/explain")


def objects(namespace: Namespace | str) -> Iterator[Source]:
    """Yield the objects of the installation, and those of the cluster that decide about its pods. No Secret."""
    yield Source("kubernetes/version.json", "/version")
    for api, kinds in (
        ("/api/v1", ("pods", "services", "configmaps", "events", "serviceaccounts", "resourcequotas", "limitranges")),
        ("/apis/apps/v1", ("deployments", "daemonsets", "replicasets")),
        ("/apis/policy/v1", ("poddisruptionbudgets",)),
        ("/apis/networking.k8s.io/v1", ("networkpolicies",)),
        ("/apis/coordination.k8s.io/v1", ("leases",)),
        ("/apis/discovery.k8s.io/v1", ("endpointslices",)),
    ):
        for kind in kinds:
            yield Source(f"kubernetes/{namespace}/{kind}.json", f"{api}/namespaces/{namespace}/{kind}", is_list=True)
    yield Source("kubernetes/nodes.json", "/api/v1/nodes", is_list=True)
    yield Source("kubernetes/gpunodes.json", names.GPUNODES_PATH, is_list=True)
    yield Source(
        "kubernetes/crds.json", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gpunodes.{names.DOMAIN}"
    )
    for kind in ("mutatingwebhookconfigurations", "validatingadmissionpolicies"):
        yield Source(f"kubernetes/{kind}.json", f"{_WEBHOOKS}/{kind}", is_list=True)
    selector = {"fieldSelector": "involvedObject.kind=GPUNode"}
    yield Source("kubernetes/events-of-gpunodes.json", "/api/v1/events", selector, is_list=True)


def chosen(pods: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the pods whose logs and metrics are read: those that are not ready first, those of DaemonSets last."""
    return sorted(pods, key=lambda pod: (_is_ready(pod), _is_of_daemonset(pod)))[:MAX_PODS]


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


def _is_of_daemonset(pod: Mapping[str, Any]) -> bool:
    owners = (pod.get("metadata") or {}).get("ownerReferences") or ()
    return any(owner.get("kind") == "DaemonSet" for owner in owners)


def logs(pods: Iterable[Mapping[str, Any]]) -> Iterator[Source]:
    """Yield the log of each container, and of the one before it where it was restarted."""
    for pod in pods:
        metadata, statuses = pod.get("metadata") or {}, pod.get("status") or {}
        path = f"/api/v1/namespaces/{metadata.get('namespace')}/pods/{metadata.get('name')}/log"
        for status in [*(statuses.get("initContainerStatuses") or ()), *(statuses.get("containerStatuses") or ())]:
            asked = {"container": status["name"], "timestamps": "true", "tailLines": LOG_LINES, "limitBytes": LOG_BYTES}
            file = f"logs/{metadata.get('name')}/{status['name']}"
            yield Source(f"{file}.log", path, asked)
            if status.get("restartCount"):
                yield Source(f"{file}.previous.log", path, {**asked, "previous": "true"})


def metrics(pods: Iterable[Mapping[str, Any]]) -> Iterator[Source]:
    """Yield what each container with a port called `metrics` serves, through the API server."""
    for pod in pods:
        metadata = pod.get("metadata") or {}
        for container in (pod.get("spec") or {}).get("containers") or ():
            for port in container.get("ports") or ():
                if port.get("name") == "metrics":
                    name = f"{metadata.get('name')}:{port['containerPort']}"
                    path = f"/api/v1/namespaces/{metadata.get('namespace')}/pods/{name}/proxy/metrics"
                    yield Source(f"metrics/{metadata.get('name')}/{container['name']}.txt", path)
