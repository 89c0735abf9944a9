"""kubectl against `make run`: what the README and a curious user try. It needs no cluster, only the program."""

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from cluster.programs import binaries
from tests import certificates
from tests.vgpu.simulator.process import Run, running

pytestmark = pytest.mark.e2e

SHARE = {"containers": [{"name": "mine", "image": "x", "resources": {"limits": {"vgpu.io/gpu-mem": "1024"}}}]}
EXAMPLES = binaries.REPOSITORY / "manifests" / "examples"


class Kubectl:
    """kubectl without a kubeconfig, as `make run` advises it."""

    def __init__(self, server: str) -> None:
        with certificates.of_the_machine():
            self._command = [str(binaries.ensure() / "kubectl"), f"--server={server}"]

    def __call__(self, *arguments: str, code: int = 0, stdin: str = "") -> str:
        command, environment = [*self._command, *arguments], os.environ | {"KUBECONFIG": os.devnull}
        done = subprocess.run(
            command, env=environment, input=stdin, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with running("--pods", "2") as started:
        started.until("notebook-b", "Running")
        yield started


@pytest.fixture(scope="module")
def kubectl(run: Run) -> Kubectl:
    return Kubectl(str(run.http.base_url))


def test_lists_are_tables_with_our_columns(kubectl: Kubectl) -> None:
    head, row, *_ = kubectl("get", "pods", "-o", "wide").splitlines()
    assert head.split()[:4] == ["NAME", "READY", "STATUS", "RESTARTS"]
    assert row.split()[:3] == ["notebook-a", "1/1", "Running"]
    head = kubectl("get", "gpunodes").splitlines()[0]
    assert head.split()[:6] == ["NAME", "REGISTERED", "HEALTHY", "CORDONED", "FREE-MEMORY", "FREE-COMPUTE"]
    assert "node-3   Ready" in kubectl("get", "nodes")


def test_fields_are_explained_by_openapi(kubectl: Kubectl) -> None:
    assert "What an admin wants" in kubectl("explain", "gpunode.spec")
    assert "gpunodes" in kubectl("api-resources")


def test_a_pod_is_created_described_changed_and_deleted(kubectl: Kubectl) -> None:
    assert "pod/mine created" in kubectl("run", "mine", "--image=x", f"--overrides={json.dumps({'spec': SHARE})}")
    kubectl("wait", "--for=condition=Ready", "pod/mine", "--timeout=20s")
    assert "vgpu.io/slice:    4" in kubectl("describe", "pod", "mine")
    assert "annotated" in kubectl("annotate", "pod", "mine", "a=b")
    assert "deleted" in kubectl("delete", "pod", "mine")


def test_a_wrong_amount_is_refused_in_the_webhooks_words(kubectl: Kubectl) -> None:
    wrong = json.dumps({"spec": SHARE}).replace("1024", "16Gi")
    assert "for 16Gi write 16384" in kubectl("run", "typo", "--image=x", f"--overrides={wrong}", code=1)


def test_an_example_is_applied_with_the_fields_checked(kubectl: Kubectl) -> None:
    assert "created" in kubectl("apply", "-f", str(EXAMPLES / "two-containers.yaml"))


def test_what_needs_controllers_has_a_hint_or_a_warning(kubectl: Kubectl) -> None:
    """kubectl sends protobuf for a new Deployment."""
    hint = kubectl("create", "deployment", "web", "--image=x", code=1)
    assert "add `--dry-run=client -o yaml | kubectl apply -f -` to the command" in hint
    written = kubectl("create", "deployment", "web", "--image=x", "--dry-run=client", "-o", "yaml")
    assert "only pods run: create them by `kubectl run`" in kubectl("apply", "-f", "-", stdin=written)


def test_the_other_verbs_work(kubectl: Kubectl) -> None:
    team = kubectl("create", "namespace", "team", "--dry-run=client", "-o", "yaml")
    assert "created" in kubectl("apply", "-f", "-", stdin=team)
    assert "cordoned" in kubectl("cordon", "node-2")
    assert "Server Version" in kubectl("version")
    patched = kubectl("patch", "gpunode", "node-1", "--type=merge", "-p", '{"spec": {"cards": []}}')
    assert patched.startswith("gpunode.vgpu.io/node-1 patched")
