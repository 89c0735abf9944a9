"""The admin REST and the command line program, through a real API server's service proxy."""

import base64
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from cluster import accounts, api, command_line, parts, wait
from cluster.cluster import GpuCluster
from cluster.command_line import vgpu
from cluster.programs import binaries
from tests.e2e.pod_namespace import PodNamespace, container, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

DIRECT = f"https://{parts.ADMIN}/api/v1"


@contextmanager
def dashboard(cluster: GpuCluster, account: str) -> Iterator[httpx.Client]:
    """Run `vgpu dashboard` in the cluster's network; return a client of the address that it prints."""
    settings = {"KUBECONFIG": str(accounts.path(cluster.work, account)), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-m", "vgpu.cli", "dashboard", "--no-browser"]
    with cluster.within.network():
        process = subprocess.Popen(
            command, env=settings, cwd=binaries.REPOSITORY, stdout=subprocess.PIPE, text=True
        )  # fmt: skip
    assert process.stdout is not None
    with process:
        try:
            url = process.stdout.readline().strip()
            with httpx.Client(base_url=url, transport=api.Transport(cluster.within), timeout=20) as client:
                yield client
        finally:
            process.terminate()
        assert process.wait(20) == 0


@pytest.fixture
def rest(cluster: GpuCluster) -> Iterator[httpx.Client]:
    """A client that reaches the REST without the proxy."""
    with httpx.Client(base_url=DIRECT, transport=api.Transport(cluster.within, verify=False), timeout=20) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def minted(cluster: GpuCluster, account: str, seconds: int, *audiences: str) -> str:
    spec: api.Document = {"expirationSeconds": seconds, **({"audiences": list(audiences)} if audiences else {})}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{names.NAMESPACE}/serviceaccounts/{account}/token"
    token: str = cluster.api.create(path, body)["status"]["token"]
    return token


def test_an_administrator_with_a_token_asks_through_the_proxy(cluster: GpuCluster) -> None:
    cards = command_line.read(cluster, "admin", "get", "gpus")["items"]
    assert len(cards) == sum(len(node.cards) for node in cluster.nodes)
    assert vgpu(cluster, "admin", "doctor")[0] in (0, 1)


def test_an_administrator_with_a_certificate_asks_with_a_minted_token(cluster: GpuCluster) -> None:
    code, output = vgpu(cluster, accounts.OPERATOR, "get", "nodes", "-o", "name")
    assert (code, output.split()) == (0, sorted(f"node/{node.name}" for node in cluster.nodes)), output


def test_a_bundle_for_a_support_case_has_objects_and_logs_and_no_planted_secret(
    cluster: GpuCluster, tmp_path: Path
) -> None:
    path = f"/api/v1/namespaces/{names.NAMESPACE}"
    talking = pod("talking", container(command=("sh", "-c", "echo said token=planted; sleep 1000")))
    talking["spec"] |= {"nodeName": cluster.nodes[0].name, "restartPolicy": "Never"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "with-secret"}}
    cluster.api.create(f"{path}/configmaps", config | {"data": {"PGPASSWORD": "planted", "replicas": "2"}})
    cluster.api.create(f"{path}/pods", talking)
    try:
        wait.until(lambda: cluster.api.get(f"{path}/pods/talking")["status"].get("phase") == "Running", "Running", 60)
        code, output = vgpu(cluster, "admin", "doctor", "--bundle", str(tmp_path / "case.tar.gz"))
    finally:
        cluster.api.delete(f"{path}/pods/talking")
        cluster.api.delete(f"{path}/configmaps/with-secret")
    assert code in (0, 1), output
    with tarfile.open(tmp_path / "case.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.glob("vgpu-bundle-*")
    read = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}
    assert "said token=REMOVED" in read["logs/talking/main.log"]
    assert "PGPASSWORD" in read[f"kubernetes/{names.NAMESPACE}/configmaps.json"]
    assert {row["metadata"]["name"] for row in json.loads(read["kubernetes/gpunodes.json"])} == {
        node.name for node in cluster.nodes
    }
    assert len(json.loads(read["admin/gpus.json"])) == sum(len(node.cards) for node in cluster.nodes)
    assert not [name for name, content in read.items() if "planted" in content]
    assert output.count("not collected") == 0, output


def test_a_tenant_sees_its_own_namespace_and_no_card(cluster: GpuCluster, namespace: PodNamespace) -> None:
    namespace.create(pod("other", gpu_mem=256))
    code, output = vgpu(cluster, "tenant", "get", "pods", "-A", "-o", "name")
    assert (code, output) == (0, ""), output
    for arguments in (["get", "gpus"], ["get", "pods", "-n", namespace.name], ["cordon", "GPU-"], ["doctor"]):
        code, output = vgpu(cluster, "tenant", *arguments)
        assert (code, "may not" in output) == (4, True), output
    code, output = vgpu(cluster, "tenant", "explain", f"{namespace.name}/other")
    assert (code, "may not get pods" in output) == (4, True), output


def test_wrong_expired_and_foreign_tokens(cluster: GpuCluster, rest: httpx.Client) -> None:
    good = minted(cluster, names.ADMIN_ACCOUNT, 600, names.ADMIN_AUDIENCE)
    assert rest.get("/nodes", headers=bearer(good)).status_code == 200
    assert cluster_refuses(cluster, good)
    for token in (
        "",
        "wrong",
        good[:-4] + "AAAA",
        expired(cluster, good),
        minted(cluster, names.ADMIN_ACCOUNT, 600, "someone-else"),
    ):
        assert rest.get("/nodes", headers=bearer(token) if token else {}).status_code == 401, token
    stranger = minted(cluster, "default", 600)
    assert {rest.get(path, headers=bearer(stranger)).status_code for path in ("/summary", "/pods/default/x")} == {403}
    assert rest.post("/simulate", headers=bearer(stranger), json={"pods": [{"pod": simple()}]}).status_code == 403


def expired(cluster: GpuCluster, token: str) -> str:
    """Return a token with an end in the past, signed with the cluster's own key."""
    head, body, _ = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "==")) | {
        "exp": 1_700_000_000,
        "nbf": 1_600_000_000,
        "iat": 1_600_000_000,
    }
    signed = f"{head}.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}"
    key = serialization.load_pem_private_key((cluster.work / "pki" / "sa.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    r, s = utils.decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def cluster_refuses(cluster: GpuCluster, token: str) -> bool:
    """Whether the API server refuses a token that is for the admin REST."""
    client = api.ClusterApi(cluster.within, token, cluster.work / "pki" / "ca.crt")
    try:
        client.get("/api/v1/nodes")
    except api.RequestRefused as refused:
        return refused.status == httpx.codes.UNAUTHORIZED
    finally:
        client.close()
    return False


def simple() -> api.Document:
    return {"spec": {"containers": [{"name": "main", "resources": {"limits": {names.GPU_MEM: "256"}}}]}}


def test_a_pending_pod_is_explained_and_a_cordon_is_honoured(cluster: GpuCluster, namespace: PodNamespace) -> None:
    _, output = vgpu(cluster, "admin", "get", "gpus", "-o", "name")
    gpus = [line.removeprefix("gpu/") for line in output.split()]
    assert vgpu(cluster, "admin", "cordon", *gpus)[0] == 0
    try:
        namespace.create(pod("waits", gpu_mem=256))
        namespace.until(
            lambda: "CardCordoned" in vgpu(cluster, "admin", "explain", f"{namespace.name}/waits")[1], "the pod waits"
        )
        _, output = vgpu(cluster, "admin", "explain", f"{namespace.name}/waits")
        assert "uncordon card" in output
        spec = cluster.api.get(f"{names.GPUNODES_PATH}/{cluster.nodes[0].name}")["spec"]
        assert all(card["cordoned"] for card in spec["cards"])
        _, output = vgpu(cluster, "admin", "get", "pending", "-n", namespace.name, "-o", "name")
        assert output == f"pod/{namespace.name}/waits\n"
    finally:
        assert vgpu(cluster, "admin", "uncordon", *gpus)[0] == 0
    namespace.running("waits")
    assert "admin action" in Path(cluster.extender.log).read_text()


def test_live_events_come_through_the_proxy(cluster: GpuCluster, namespace: PodNamespace) -> None:
    settings = {"KUBECONFIG": str(accounts.path(cluster.work, "admin")), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-m", "vgpu.cli", "top", "pods", "-c", "2"]
    with cluster.within.network():
        running = subprocess.Popen(command, env=settings, cwd=binaries.REPOSITORY, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline().startswith("NAMESPACE")
    namespace.create(pod("live", gpu_mem=256))
    output, _ = running.communicate(timeout=60)
    assert "live" in output


@pytest.mark.parametrize("account", ["admin", accounts.OPERATOR])
def test_the_dashboard_and_its_live_events_come_through_the_proxy(cluster: GpuCluster, account: str) -> None:
    wait.until(lambda: vgpu(cluster, account, "get", "nodes")[0] == 0, "the admin REST answers", 60)
    with dashboard(cluster, account) as client:
        page = client.get("")
        assert (page.status_code, "web/main.js" in page.text) == (200, True)
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert "export async function follow" in client.get("web/api.js").text
        cards = client.get("api/v1/gpus").json()["items"]
        assert len(cards) == sum(len(node.cards) for node in cluster.nodes)
        with client.stream("GET", "api/v1/events") as events:
            assert next(events.iter_text()).startswith("retry: ")


def test_bodies_and_lists_of_any_size_get_an_answer(cluster: GpuCluster, rest: httpx.Client) -> None:
    headers = bearer(accounts.token(cluster.work, "admin"))
    assert rest.post("/simulate", headers=headers, content=b"x" * (100 << 20)).status_code == 413
    entries = [{"pod": simple(), "count": 1000}]

    def answer() -> dict[str, int] | None:
        """What the simulation says; None while it has too little time, on a machine that is busy with other work."""
        response = rest.post("/simulate", headers=headers, json={"pods": entries})
        assert response.status_code in {200, 503}, response.text
        return response.json() if response.status_code == 200 else None

    found = wait.until(answer, "1,000 pods were simulated", 30)
    assert found["placed"] + found["notPlaced"] == 1000
