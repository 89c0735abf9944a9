"""`/versions`: what each part runs."""

import json
from collections.abc import Mapping

import pytest

import vgpu
from extender.admin.routes import installed_pods
from tests.extender.admin.conftest import Admin, Opened
from vgpu.domain.errors import KubernetesError


class Pods:
    """An API server with these pods, or one that fails."""

    def __init__(self, *images: tuple[str, str], error: KubernetesError | None = None) -> None:
        self.items = [{"spec": {"containers": [{"name": name, "image": image}]}} for name, image in images]
        self.error = error
        self.asked: list[tuple[str, Mapping[str, str] | None]] = []

    async def get(self, path: str, params: Mapping[str, str] | None = None, *, timeout: float) -> bytes:  # noqa: ARG002
        self.asked.append((path, params))
        if self.error:
            raise self.error
        return json.dumps({"items": self.items}).encode()


async def test_versions_of_all_parts(opened: Opened) -> None:
    pods = Pods(
        ("webhook", "vgpushare-webhook:0.2.0"), ("webhook", "vgpushare-webhook:0.2.0"), ("extender", "x@sha256:ab")
    )
    async with opened(client=pods, namespace="gpu-sharing", extender_version="0.2.0") as admin:
        found, nodes = await admin.get("/versions"), await admin.get("/nodes")
    assert (found["admin"], found["extender"]) == (vgpu.__version__, "0.2.0")
    assert sum(len(version["nodes"]) for version in found["devicePlugins"]) == len(nodes["items"])
    assert found["images"] == [
        {"container": "extender", "image": "x@sha256:ab", "tag": "sha256:ab", "pods": 1},
        {"container": "webhook", "image": "vgpushare-webhook:0.2.0", "tag": "0.2.0", "pods": 2},
    ]
    assert [path for path, _ in pods.asked] == ["/api/v1/namespaces/gpu-sharing/pods"]


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
