"""The resources of the API, and the paths of their objects."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object.

    Attributes:
        group: API group, empty for the core.
        version: API version in the group.
        plural: the resource's name in URLs.
        kind: the resource's name in objects.
        namespaced: whether the objects are in namespaces.
        status: whether `/status` is a subresource, so that other writes do not change the status.
        short: the short name that kubectl accepts; empty where there is none.
        fields: dotted paths that field selectors may use, besides `metadata.name` and `metadata.namespace`.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    status: bool = False
    fields: frozenset[str] = field(default=frozenset(), repr=False)
    short: str = ""

    @property
    def name(self) -> str:
        """The name in errors and RBAC, the same for all versions: `pods`, `gpunodes.vgpu.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """The value of `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_custom(self) -> bool:
        """Whether a CustomResourceDefinition defines the resource: then updates must have a resourceVersion."""
        return "." in self.group and not self.group.endswith(".k8s.io")


@dataclass(frozen=True, slots=True)
class Target:
    """What a request's path names. `name` is empty for a collection, `namespace` for all namespaces."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


_POD_FIELDS = frozenset(
    {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase"}
)
_EVENT_FIELDS = frozenset(
    {f"involvedObject.{key}" for key in ("kind", "namespace", "name", "uid")} | {"reason", "type"}
)
_INVOLVED = frozenset(f"involvedObject.{key}" for key in ("kind", "namespace", "name", "uid"))
_ADMISSION: Final = "admissionregistration.k8s.io"

PODS: Final = Resource("", "v1", "pods", "Pod", status=True, fields=_POD_FIELDS, short="po")
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False, status=True, short="no")
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False, status=True, short="ns")
EVENTS: Final = Resource("", "v1", "events", "Event", fields=_INVOLVED | {"reason", "type"}, short="ev")
SECRETS: Final = Resource("", "v1", "secrets", "Secret", fields=frozenset({"type"}))
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CRDS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
    status=True,
    short="crd",
)
MUTATING: Final = Resource(
    _ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)
VALIDATING: Final = Resource(
    _ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)
GPUNODES: Final = Resource(
    names.DOMAIN, names.API_VERSION.rpartition("/")[2], "gpunodes", "GPUNode", namespaced=False, status=True
)
BUILTIN: Final = (
    PODS,
    NODES,
    NAMESPACES,
    EVENTS,
    SECRETS,
    Resource("", "v1", "configmaps", "ConfigMap", short="cm"),
    Resource("", "v1", "services", "Service", status=True, short="svc"),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", short="sa"),
    Resource("apps", "v1", "deployments", "Deployment", status=True, short="deploy"),
    Resource("apps", "v1", "replicasets", "ReplicaSet", status=True, short="rs"),
    Resource("apps", "v1", "statefulsets", "StatefulSet", status=True, short="sts"),
    Resource("apps", "v1", "daemonsets", "DaemonSet", status=True, short="ds"),
    Resource("batch", "v1", "jobs", "Job", status=True),
    Resource("batch", "v1", "cronjobs", "CronJob", status=True, short="cj"),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False, short="pc"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", status=True, short="pdb"),
    LEASES,
    CRDS,
    MUTATING,
    VALIDATING,
    GPUNODES,
)

Lookup = Callable[[str, str, str], Resource | None]


def defined(crd: JsonObject) -> tuple[Resource, ...]:
    """Return the resources that a CustomResourceDefinition defines, one for each served version."""
    spec = crd["spec"]
    return tuple(
        Resource(
            group=spec["group"],
            version=version["name"],
            plural=spec["names"]["plural"],
            kind=spec["names"]["kind"],
            namespaced=spec.get("scope") != "Cluster",
            status="status" in (version.get("subresources") or {}),
        )
        for version in spec["versions"]
        if version.get("served", True)
    )


def parse(path: str, lookup: Lookup) -> Target:
    """Read a path such as `/api/v1/namespaces/default/pods/a/status`.

    Raises:
        KubernetesError: 404, there is no such resource.
    """
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        group, rest = "", parts[1:]
    else:
        group, rest = "".join(parts[1:2]), parts[2:]
    version, rest = "".join(rest[:1]), rest[1:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in ("status", "finalize"):  # noqa: PLR2004
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    resource = lookup(group, version, plural)
    if resource is None or (namespace and not resource.namespaced) or len(rest) > 3:  # noqa: PLR2004
        raise KubernetesError(404, "NotFound", "the server could not find the requested resource")
    return Target(resource, namespace, name, subresource)
