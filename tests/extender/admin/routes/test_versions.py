"""`/versions`: what each part runs."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

import vgpu
from extender.admin.routes import installed_pods
from tests.extender.admin.conftest import Admin, Opened
from vgpu.domain.errors import KubernetesError

BASE = Path(__file__).parents[4] / "manifests/base"


class Pods:
    """An API server with these pods, each of one container, or one that fails."""

    def __init__(self, *pods: tuple[dict[str, str], str, str], error: KubernetesError | None = None) -> None:
        self.pods = pods
        self.error = error
        self.asked: set[str] = set()

    async def get(self, path: str, params: Mapping[str, str] | None = None, *, timeout: float) -> bytes:  # noqa: ARG002
        self.asked.add(path)
        if self.error:
            raise self.error
        selector = (params or {})["labelSelector"]
        items = [
            {"metadata": {"name": f"pod-{n}"}, "spec": {"containers": [{"name": container, "image": image}]}}
            for n, (labels, container, image) in enumerate(self.pods)
            if selects(selector, labels)
        ]
        return json.dumps({"items": items}).encode()


def selects(selector: str, labels: Mapping[str, str]) -> bool:
    """Whether a selector of the form `key=value` or `key in (a, b)` selects these labels."""
    if " in " not in selector:
        key, value = selector.split("=")
        return labels.get(key) == value
    key, values = selector.split(" in ")
    return labels.get(key) in values.strip("()").split(", ")


def labels_of(workload: str) -> dict[str, str]:
    """Return the labels of the pods of an installed Deployment."""
    objects = [found for file in BASE.glob("*.yaml") for found in yaml.safe_load_all(file.read_text()) if found]
    (deployment,) = (o for o in objects if o["kind"] == "Deployment" and o["metadata"]["name"] == workload)
    found: dict[str, str] = deployment["spec"]["template"]["metadata"]["labels"]
    return found


@pytest.mark.heavy
async def test_versions_of_all_parts(opened: Opened) -> None:
    webhook = labels_of("vgpu-webhook")
    pods = Pods(
        (webhook, "webhook", "vgpushare-webhook:0.2.0"),
        (webhook, "webhook", "vgpushare-webhook:0.2.0"),
        (labels_of("vgpu-scheduler"), "extender", "x@sha256:ab"),
    )
    async with opened(client=pods, namespace="gpu-sharing", extender_version="0.2.0") as admin:
        found, nodes = await admin.get("/versions"), await admin.get("/nodes")
    assert (found["admin"], found["extender"]) == (vgpu.__version__, "0.2.0")
    assert sum(len(version["nodes"]) for version in found["devicePlugins"]) == len(nodes["items"])
    assert found["images"] == [
        {"container": "extender", "image": "x@sha256:ab", "tag": "sha256:ab", "pods": 1},
        {"container": "webhook", "image": "vgpushare-webhook:0.2.0", "tag": "0.2.0", "pods": 2},
    ]
    assert pods.asked == {"/api/v1/namespaces/gpu-sharing/pods"}


async def test_an_extender_beside_the_clusters_own_scheduler_is_listed(opened: Opened) -> None:
    """Its pod has the label by which the Service selects it, and no name of ours (chart: scheduler.mode cluster)."""
    own = {"app.kubernetes.io/component": "extender", "app.kubernetes.io/name": "static-extender"}
    of_0_1_0 = {"app.kubernetes.io/name": "vgpu-scheduler"}  # an upgrade may have left such a pod behind
    pods = Pods((own, "extender", "vgpushare-extender:0.2.0"), (of_0_1_0, "extender", "vgpushare-extender:0.1.0"))
    async with opened(client=pods) as admin:
        images = (await admin.get("/versions"))["images"]
    assert [(image["tag"], image["pods"]) for image in images] == [("0.1.0", 1), ("0.2.0", 1)]


async def test_without_pods_the_rest_is_told(opened: Opened) -> None:
    async with opened(client=Pods(error=KubernetesError(403, "Forbidden", "no"))) as admin:
        assert (await admin.get("/versions"))["images"] == []


async def test_unknown_parameters_are_refused(admin: Admin) -> None:
    await admin.get("/versions", status=422, part="webhook")


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("vgpushare-webhook:0.2.0", "0.2.0"),
        ("registry.example.com:5000/a/vgpushare-webhook:0.2.0-dev.1.gab", "0.2.0-dev.1.gab"),
        ("registry.example.com:5000/vgpushare-webhook", ""),
        ("registry.example.com:5000/vgpushare-webhook:0.2.0@sha256:ab", "sha256:ab"),
    ],
)
def test_tags(image: str, tag: str) -> None:
    assert installed_pods.tag(image) == tag
