"""GPU pods that were created while the webhook did not run: `vgpu readmit` lists them and creates them again."""

import pytest

from cluster import accounts
from cluster.command_line import vgpu
from tests.e2e.control_plane.test_admission import without_webhook
from tests.e2e.pod_namespace import PodNamespace, container, pod

pytestmark = pytest.mark.e2e

ADMIN = accounts.ADMIN.name


def test_pods_of_a_webhook_outage_run_after_one_command(namespace: PodNamespace) -> None:
    cluster = namespace.cluster
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("", container(gpu_mem=1024))["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    with without_webhook(cluster):
        namespace.create(pod("bare", gpu_mem=1024))
        namespace.create(pod("plain"))
        cluster.api.create(
            f"/apis/apps/v1/namespaces/{namespace.name}/deployments", {"metadata": {"name": "web"}, "spec": spec}
        )
        namespace.until(lambda: len(namespace.all()) == 3, "all pods are created")
        (web,) = namespace.phases().keys() - {"bare", "plain"}
        code, printed = vgpu(cluster, ADMIN, "readmit", "-n", namespace.name)
        assert (code, printed.count("the webhook does not answer yet; nothing was changed")) == (1, 2), printed
        assert set(namespace.phases()) == {"bare", "plain", web}
    code, printed = vgpu(cluster, ADMIN, "readmit", "-n", namespace.name, "--dry-run")
    assert (code, {line.split()[0] for line in printed.splitlines()}) == (0, {"pod/bare", f"pod/{web}"})
    code, printed = vgpu(cluster, ADMIN, "readmit", "-A")
    assert code == 0, printed
    assert f"pod/bare ({namespace.name}) created again" in printed
    assert "creates another" in printed
    namespace.until(lambda: web not in namespace.phases() and len(namespace.all()) == 3, "the Deployment's pod is new")
    namespace.running("bare", *namespace.phases())
    assert vgpu(cluster, ADMIN, "readmit", "-A") == (0, "no pod waits for the webhook\n")
