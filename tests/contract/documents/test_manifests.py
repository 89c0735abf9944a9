"""A manifest that could not be used is found, also where only a part of it is written."""

import pytest

from tests.contract.documents import manifests, pages

POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: main, image: x, resources: {limits: {vgpu.io/gpu-mem: %s}}}]}
"""
CARD = '{"apiVersion": "vgpu.io/v1alpha1", "kind": "GPUNode", "metadata": {"name": "n"}, "spec": {"cards": [%s]}}'


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (POD % 8192, ""),
        (POD % "8Gi", "must be a plain whole number of MiB"),
        (POD % 4, "vgpu.io/gpu-mem"),
        ("metadata: {annotations: {vgpu.io/gpu-policy: topology}}", ""),
        ("metadata: {annotations: {vgpu.io/gpu-policy: best}}", "vgpu.io/gpu-policy"),
        ("metadata: {annotations: {vgpu.io/policy: best}}", "vgpu.io/policy is not known"),
        ("spec: {template: {metadata: {annotations: {vgpu.io/priority: x}}}}", "vgpu.io/priority"),
        ("resources: {limits: {vgpu.io/gpu-mem: 0}}", "vgpu.io/gpu-mem"),
        ("{kind: ResourceQuota, spec: {hard: {requests.vgpu.io/gpu-mem: 1}}}", ""),
        ("{kind: ResourceQuota, spec: {hard: {requests.vgpu.io/gpu-memory: 1}}}", "vgpu.io/gpu-memory is not known"),
        (CARD % '{"uuid": "GPU-x", "cordoned": true}', ""),
        (CARD % '{"uuid": "GPU-x", "cordon": true}', "'cordon' was unexpected"),
        (CARD % '{"cordoned": true}', '"uuid" is a required property'),
        ("{kind: Kustomization, resources: [../../base], images: [{name: vgpushare-webhook}]}", ""),
        ("{kind: Kustomization, resources: [../base]}", "there is no manifests/overlays/base"),
        ("{kind: Kustomization, components: [../../components/cert-manager, ../../../dist/images]}", ""),
        ("{kind: Kustomization, patches: [{target: {kind: ServiceAccount}, patch: ''}]}", ""),
        ("{kind: Kustomization, components: [../../components/hook]}", "there is no manifests/components/hook"),
        ("{kind: Kustomization, images: [{name: vgpushare-hook}]}", "no manifest has the image vgpushare-hook"),
        ("patches: [{target: {kind: Deployment, name: vgpu-hook}}]", "no manifest has an object vgpu-hook"),
    ],
)
def test_what_is_wrong_with_a_manifest(text: str, wrong: str) -> None:
    found = [problem for document in manifests.documents(text) for problem in manifests.problems(document)]
    assert bool(found) == bool(wrong), found
    assert wrong in "\n".join(found)


def test_a_text_may_have_several_objects() -> None:
    assert len(manifests.documents("a: 1\n---\n---\nb: 2\n")) == 2


def test_only_files_that_are_no_objects_have_no_metadata() -> None:
    """What has none is not judged by an API server in tests/e2e/install/test_documents.py."""
    written = [manifests.documents(text) for page in pages.pages() for _, text in pages.manifests(page)]
    files = {
        document["kind"]
        for documents in written
        for document in documents
        if document.keys() >= {"apiVersion", "kind"} and not manifests.is_complete(document)
    }
    assert files == {"Kustomization", "KubeSchedulerConfiguration"}
