"""A share in a namespace that enforces Pod Security Admission's strictest level: nothing that it adds is refused."""

from typing import Final

import pytest

from tests.e2e.limits.test_limits import OUT_OF_MEMORY, assert_total_memory, results
from tests.e2e.pod_namespace import Document, PodNamespace, container, pod

pytestmark = pytest.mark.e2e

USER: Final = 65534
RESTRICTED: Final[Document] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "runAsUser": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.fixture
def restricted(namespace: PodNamespace) -> PodNamespace:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace.cluster.api.patch(f"/api/v1/namespaces/{namespace.name}", {"metadata": {"labels": labels}})
    return namespace


def test_a_share_runs_in_a_namespace_that_enforces_restricted(restricted: PodNamespace) -> None:
    restricted.create(pod("share", {**container(gpu_mem=2048, gpu_cores=30), "securityContext": RESTRICTED}))
    restricted.running("share")
    assert restricted.run("share", "id", "-u").strip() == str(USER)
    assert_total_memory(restricted, "share", 2048)
    assert results(restricted.probe("share", "alloc", "1024", "2048")) == [0, OUT_OF_MEMORY]


def test_the_level_is_enforced(restricted: PodNamespace) -> None:
    assert "violates PodSecurity" in restricted.refused(pod("share", gpu_mem=2048))
