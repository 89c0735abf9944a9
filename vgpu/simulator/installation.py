"""Creates what an administrator installs: namespaces, the webhook's objects, and credentials for the parts."""

import json
from pathlib import Path
from typing import Final

import yaml

from vgpu.domain import names
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api import resources
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.api.resources import Target

CA_OBJECT: Final = "vgpu-webhook-ca"  # empty: the webhook may not create Secrets, only write this one
WEBHOOK: Final = "vgpu-webhook"  # name of both configurations; the webhook writes its CA into them
DEFINITION: Final = Path(__file__).parents[2] / "manifests" / "base" / "crd.yaml"
NAMESPACES: Final = ("default", "kube-system", names.NAMESPACE)


async def install(cluster: InMemoryCluster, webhook_url: str) -> None:
    """Create the objects that must exist before the parts start."""
    if DEFINITION.is_file():  # a checkout has it, and an installed distribution does not
        await cluster.create(Target(resources.CRDS), yaml.safe_load(DEFINITION.read_text()))
    for name in NAMESPACES:
        labels = {"kubernetes.io/metadata.name": name}
        await cluster.create(Target(resources.NAMESPACES), {"metadata": {"name": name, "labels": labels}})
    await cluster.create(
        Target(resources.SECRETS, names.NAMESPACE), {"metadata": {"name": CA_OBJECT}, "type": "Opaque"}
    )
    mutate = _hook("mutate.vgpu.io", f"{webhook_url}/mutate", ["CREATE"])
    validate = _hook("validate.vgpu.io", f"{webhook_url}/validate", ["CREATE", "UPDATE"])
    for resource, hook in ((resources.MUTATING, mutate), (resources.VALIDATING, validate)):
        await cluster.create(Target(resource), {"metadata": {"name": WEBHOOK}, "webhooks": [hook]})


def ca_bundle(cluster: InMemoryCluster) -> str:
    """Return the webhook's CA in base64 where both configurations contain it; empty before."""
    found = []
    for resource in (resources.MUTATING, resources.VALIDATING):
        configuration = cluster.get(Target(resource, name=WEBHOOK))
        found += [str(hook["clientConfig"].get("caBundle", "")) for hook in configuration["webhooks"]]
    return found[0] if all(found) else ""


def write_kubeconfig(path: Path, server: str) -> None:
    """Write a kubeconfig file for a server without authentication, as JSON, which is valid YAML."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "simulator", "cluster": {"server": server}}],
        "users": [{"name": "simulator", "user": {}}],
        "contexts": [{"name": "simulator", "context": {"cluster": "simulator", "user": "simulator"}}],
        "current-context": "simulator",
    }
    path.write_text(json.dumps(config, indent=1))


def _hook(name: str, url: str, operations: list[str]) -> JsonObject:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": ["pods"]}
    elsewhere = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", names.NAMESPACE]}
    return {
        "name": name,
        "clientConfig": {"url": url},
        "rules": [rule],
        "namespaceSelector": {"matchExpressions": [elsewhere]},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 3,
    }
