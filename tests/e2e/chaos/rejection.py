"""Makes the API server answer 429 to the ServiceAccounts of vgpushare, by a priority level without any seats."""

import contextlib
from typing import Final

from cluster import api
from cluster.cluster import GpuCluster
from vgpu.domain import names

_API: Final = "/apis/flowcontrol.apiserver.k8s.io/v1"
_NAME: Final = "chaos-reject"
_LEVEL: Final = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "PriorityLevelConfiguration",
    "metadata": {"name": _NAME},
    "spec": {
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": 0,
            "lendablePercent": 0,
            "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        },
    },
}
_RULE: Final = {
    "subjects": [{"kind": "Group", "group": {"name": f"system:serviceaccounts:{names.NAMESPACE}"}}],
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    ],
}
_SCHEMA: Final = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "FlowSchema",
    "metadata": {"name": _NAME},
    "spec": {"priorityLevelConfiguration": {"name": _NAME}, "matchingPrecedence": 2, "rules": [_RULE]},
}


def begin(cluster: GpuCluster) -> None:
    """Refuse every request of our parts from about now on."""
    cluster.api.create(f"{_API}/prioritylevelconfigurations", dict(_LEVEL))
    cluster.api.create(f"{_API}/flowschemas", dict(_SCHEMA))


def end(cluster: GpuCluster) -> None:
    """Serve them again."""
    for kind in ("flowschemas", "prioritylevelconfigurations"):
        with contextlib.suppress(api.RequestRefused):
            cluster.api.delete(f"{_API}/{kind}/{_NAME}")
