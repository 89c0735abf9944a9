"""Admission webhooks of the simulated API server."""

import base64
import ipaddress
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api import admission, http_server, resources
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.api.resources import MUTATING, PODS, VALIDATING, Target

ANY_POD = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}]
Reply = Callable[[JsonObject], JsonObject]


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "webhook")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "tls.crt").write_bytes(signed.public_bytes(pem))
    (folder / "tls.key").write_bytes(key.private_bytes(pem, private, serialization.NoEncryption()))
    return folder / "tls.crt", folder / "tls.key"


class Webhook:
    """A webhook with the responses that a test sets; it records the requests."""

    def __init__(self, url: str, ca: bytes) -> None:
        self.url = url
        self.bundle = base64.b64encode(ca).decode()
        self.requests: list[JsonObject] = []
        self.responses: dict[str, Reply] = {}

    async def configure(
        self, cluster: InMemoryCluster, resource: resources.Resource, name: str, response: Reply, **more: Any
    ) -> None:
        self.responses[name] = response
        client = {"url": f"{self.url}/{name}", "caBundle": self.bundle}
        hook = {"name": f"{name}.test", "clientConfig": client, "rules": ANY_POD, "failurePolicy": "Fail"}
        await cluster.create(Target(resource), {"metadata": {"name": name}, "webhooks": [{**hook, **more}]})

    async def endpoint(self, request: Request) -> Response:
        review = json.loads(await request.body())
        self.requests.append(review["request"] | {"timeout": request.query_params["timeout"]})
        response = {"uid": review["request"]["uid"], **self.responses[request.url.path[1:]](review["request"])}
        return JSONResponse({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})


@pytest.fixture
async def webhook(tmp_path: Path) -> AsyncIterator[Webhook]:
    cert, key = certificate(tmp_path)
    made = Webhook("", cert.read_bytes())
    app = Starlette(routes=[Route("/{name}", made.endpoint, methods=["POST"])])
    async with http_server.serve(app, ssl_certfile=cert, ssl_keyfile=key) as address:
        made.url = f"https://{address}"
        yield made


def allow(_: JsonObject) -> JsonObject:
    return {"allowed": True}


def label(key: str, value: str) -> Reply:
    operation = {"op": "add", "path": f"/metadata/labels/{key}", "value": value}
    return lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": encoded([operation])}


def encoded(operations: list[JsonObject]) -> str:
    return base64.b64encode(json.dumps(operations).encode()).decode()


def pod(name: str = "a", **labels: str) -> JsonObject:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [{"name": "main"}]}}


async def test_mutating_webhooks_change_the_pod_one_after_the_other(cluster: InMemoryCluster, webhook: Webhook) -> None:
    await webhook.configure(cluster, MUTATING, "b", label("b", "2"))
    await webhook.configure(cluster, MUTATING, "a", label("a", "1"))
    made = await cluster.create(Target(PODS, "default"), pod(mine="0"))
    assert made["metadata"]["labels"] == {"mine": "0", "a": "1", "b": "2"}
    assert [request["object"]["metadata"]["labels"] for request in webhook.requests] == [
        {"mine": "0"},
        {"mine": "0", "a": "1"},
    ]


async def test_a_webhook_gets_the_fields_of_the_api_servers_request(cluster: InMemoryCluster, webhook: Webhook) -> None:
    await webhook.configure(cluster, VALIDATING, "v", allow, timeoutSeconds=3)
    await cluster.create(Target(PODS, "default"), pod())
    request = webhook.requests[0]
    assert (request["operation"], request["namespace"], request["name"], request["timeout"]) == (
        "CREATE",
        "default",
        "a",
        "3s",
    )
    assert request["kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert request["object"]["spec"]["schedulerName"] == "default-scheduler"
    assert request["oldObject"] is None


async def test_warnings_of_webhooks_are_in_the_answers_headers(
    cluster: InMemoryCluster, webhook: Webhook, http: httpx.AsyncClient
) -> None:
    said = 'limits: "50" is 40448 MiB\n of \\ a card…'
    for configuration in (MUTATING, VALIDATING):
        name = configuration.plural[:3]
        await webhook.configure(cluster, configuration, name, lambda _: {"allowed": True, "warnings": [said]})
    answer = await http.post("/api/v1/namespaces/default/pods", json=pod())
    header = r'299 - "limits: \"50\" is 40448 MiB? of \\ a card?"'
    assert (answer.status_code, answer.headers.get_list("warning")) == (201, [header, header])


async def test_a_denial_reaches_the_client_and_nothing_is_stored(cluster: InMemoryCluster, webhook: Webhook) -> None:
    denied = {"allowed": False, "status": {"message": "no such thing", "code": 422, "reason": "Invalid"}}
    await webhook.configure(cluster, VALIDATING, "v", lambda _: denied)
    with pytest.raises(KubernetesError, match=r'admission webhook "v\.test" denied the request: no such thing') as why:
        await cluster.create(Target(PODS, "default"), pod())
    assert (why.value.status, why.value.reason) == (422, "Invalid")
    assert cluster.find(Target(PODS, "default", "a")) is None


async def test_updates_have_the_old_object(cluster: InMemoryCluster, webhook: Webhook) -> None:
    await cluster.create(Target(PODS, "default"), pod())
    await webhook.configure(cluster, VALIDATING, "v", allow)
    await cluster.update(Target(PODS, "default", "a"), pod(new="1"))
    request = webhook.requests[0]
    assert request["operation"] == "UPDATE"
    assert [request[key]["metadata"].get("labels") for key in ("oldObject", "object")] == [{}, {"new": "1"}]


async def test_subresources_have_rules_of_their_own(cluster: InMemoryCluster, webhook: Webhook) -> None:
    await cluster.create(Target(PODS, "default"), pod())
    binding = [{**ANY_POD[0], "resources": ["pods/binding"]}]
    await webhook.configure(cluster, VALIDATING, "pods", allow)
    await webhook.configure(cluster, VALIDATING, "v", lambda _: {"allowed": False}, rules=binding)
    await cluster.update(Target(PODS, "default", "a", "status"), {"status": {"phase": "Running"}})
    assert webhook.requests == []
    with pytest.raises(KubernetesError, match="denied the request"):
        await cluster.bind(Target(PODS, "default", "a", "binding"), {"target": {"name": "n"}})
    assert webhook.requests[0]["subResource"] == "binding"


async def test_selectors_restrict_webhooks(cluster: InMemoryCluster, webhook: Webhook) -> None:
    key = "kubernetes.io/metadata.name"
    elsewhere = {"matchExpressions": [{"key": key, "operator": "NotIn", "values": ["kube-system"]}]}
    marked = {"matchLabels": {"gpu": "yes"}}
    await webhook.configure(cluster, VALIDATING, "v", allow, namespaceSelector=elsewhere, objectSelector=marked)
    await cluster.create(Target(PODS, "kube-system"), pod(gpu="yes"))
    await cluster.create(Target(PODS, "default"), pod())
    assert webhook.requests == []
    await cluster.create(Target(PODS, "default"), pod("b", gpu="yes"))
    assert len(webhook.requests) == 1


async def test_failure_policy_decides_about_an_unreachable_webhook(cluster: InMemoryCluster, webhook: Webhook) -> None:
    unreachable = {"url": "https://127.0.0.1:1/x", "caBundle": webhook.bundle}
    await webhook.configure(cluster, VALIDATING, "v", allow, clientConfig=unreachable, failurePolicy="Ignore")
    await cluster.create(Target(PODS, "default"), pod())
    await webhook.configure(cluster, VALIDATING, "w", allow, clientConfig=unreachable)
    with pytest.raises(KubernetesError, match=r'failed calling webhook "w\.test"') as why:
        await cluster.create(Target(PODS, "default"), pod("b"))
    assert why.value.status == 500


async def test_a_webhook_is_trusted_only_by_its_ca_bundle(
    cluster: InMemoryCluster, webhook: Webhook, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = base64.b64encode(certificate(tmp_path / "other")[0].read_bytes()).decode()
    strange = {"url": f"{webhook.url}/v", "caBundle": other}
    await webhook.configure(cluster, VALIDATING, "v", allow, clientConfig=strange)
    with pytest.raises(KubernetesError, match="certificate verify failed"):
        await cluster.create(Target(PODS, "default"), pod())
    assert webhook.requests == []


async def test_a_response_with_another_uid_is_a_failure(cluster: InMemoryCluster, webhook: Webhook) -> None:
    await webhook.configure(cluster, VALIDATING, "v", lambda _: {"allowed": True, "uid": "another"})
    with pytest.raises(KubernetesError, match="another request"):
        await cluster.create(Target(PODS, "default"), pod())


@pytest.mark.parametrize(
    ("listed", "subresource", "expected"),
    [
        ("pods", "", True),
        ("pods", "binding", False),
        ("pods/binding", "binding", True),
        ("pods/*", "binding", True),
        ("*/binding", "binding", True),
        ("*/*", "binding", True),
        ("*/*", "", True),
        ("*", "", True),
        ("*", "binding", False),
        ("nodes", "", False),
    ],
)
def test_rules(listed: str, subresource: str, *, expected: bool) -> None:
    rule = {**ANY_POD[0], "resources": [listed]}
    assert admission.rule_matches(rule, "CREATE", Target(PODS, "d", "a", subresource)) is expected
    assert not admission.rule_matches(rule, "DELETE", Target(PODS, "d", "a", subresource))


async def test_an_update_is_checked_as_the_mutating_webhooks_leave_it(
    cluster: InMemoryCluster, webhook: Webhook
) -> None:
    """A webhook may take back what no update may change; the API server compares only afterwards."""
    made = await cluster.create(Target(PODS, "default"), pod())
    changed = {**made, "spec": {**made["spec"], "schedulerName": "other"}}
    with pytest.raises(KubernetesError, match="pod updates may not change"):
        await cluster.update(Target(PODS, "default", "a"), changed)
    back = encoded([{"op": "replace", "path": "/spec/schedulerName", "value": "default-scheduler"}])
    reply = {"allowed": True, "patchType": "JSONPatch", "patch": back}
    await webhook.configure(cluster, MUTATING, "m", lambda _: reply)
    assert await cluster.update(Target(PODS, "default", "a"), changed) == made


@pytest.mark.parametrize(
    ("annotation", "label", "why"),
    [
        ((names.PRIORITY, "50"), (names.MAX_PRIORITY_LABEL, "50"), "above the namespace's limit of 0"),
        (
            (names.SPACE_GROUP, "shared/models"),
            (names.SHARED_SPACE_GROUP_LABEL, "models"),
            "names a group of the cluster that the namespace may not use",
        ),
    ],
)
async def test_what_only_a_label_of_the_namespace_allows_is_refused_without_it(
    cluster: InMemoryCluster, webhook: Webhook, annotation: tuple[str, str], label: tuple[str, str], why: str
) -> None:
    """`make run` admitted what a policy refuses on a real cluster."""
    await cluster.create(Target(resources.NAMESPACES), {"metadata": {"name": "team"}})
    limits = {"limits": {names.GPU_MEM: "256"}}
    pod: JsonObject = {
        "metadata": {"name": "p", "namespace": "team", "annotations": dict([annotation])},
        "spec": {"containers": [{"name": "main", "resources": limits}]},
    }
    webhook.responses["validate"] = lambda _: {"allowed": True}
    client = {"url": f"{webhook.url}/validate", "caBundle": webhook.bundle}
    hook = {"name": f"validate.{names.DOMAIN}", "clientConfig": client, "rules": ANY_POD, "failurePolicy": "Fail"}
    await cluster.create(Target(VALIDATING), {"metadata": {"name": "vgpu-webhook"}, "webhooks": [hook]})
    with pytest.raises(KubernetesError, match=why):
        await cluster.create(Target(PODS, "team"), pod)
    raised = {"labels": dict([label])}
    target = Target(resources.NAMESPACES, name="team")
    await cluster.patch(target, lambda old: {**old, "metadata": {**old["metadata"], **raised}})
    await cluster.create(Target(PODS, "team"), pod)


async def test_another_scheduler_than_ours_is_refused_as_by_the_policy(
    cluster: InMemoryCluster, webhook: Webhook
) -> None:
    """A pod that the webhook had admitted waited for a scheduler that no cluster has."""
    webhook.responses["validate"] = lambda _: {"allowed": True}
    client = {"url": f"{webhook.url}/validate", "caBundle": webhook.bundle}
    hook = {"name": f"validate.{names.DOMAIN}", "clientConfig": client, "rules": ANY_POD, "failurePolicy": "Fail"}
    await cluster.create(Target(VALIDATING), {"metadata": {"name": "vgpu-webhook"}, "webhooks": [hook]})

    def pod(name: str, scheduler: str, resource: str) -> JsonObject:
        container = {"name": "main", "resources": {"limits": {resource: "1"}}}
        spec = {"schedulerName": scheduler, "containers": [container]}
        return {"metadata": {"name": name, "namespace": "team"}, "spec": spec}

    with pytest.raises(KubernetesError, match=r"need spec\.schedulerName vgpu-scheduler"):
        await cluster.create(Target(PODS, "team"), pod("other", "my-scheduler", names.SLICE))
    await cluster.create(Target(PODS, "team"), pod("ours", names.SCHEDULER, names.CARD))
    await cluster.create(Target(PODS, "team"), pod("no-gpu", "my-scheduler", "example.com/other"))


async def test_names_of_other_tools_are_warned_of_in_pods_that_their_author_creates(
    cluster: InMemoryCluster, webhook: Webhook, http: httpx.AsyncClient
) -> None:
    """Such a pod was created without a word, and waited, or ran without a GPU."""
    webhook.responses["validate"] = lambda _: {"allowed": True}
    client = {"url": f"{webhook.url}/validate", "caBundle": webhook.bundle}
    hook = {"name": f"validate.{names.DOMAIN}", "clientConfig": client, "rules": ANY_POD, "failurePolicy": "Fail"}
    await cluster.create(Target(VALIDATING), {"metadata": {"name": "vgpu-webhook"}, "webhooks": [hook]})
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu.shared": "1"}}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}

    async def warned(name: str, **metadata: Any) -> list[str]:
        body = {"metadata": {"name": name, **metadata}, "spec": {"containers": [container]}}
        answer = await http.post("/api/v1/namespaces/default/pods", json=body)
        assert answer.status_code == 201
        return answer.headers.get_list("warning")

    (warning,) = await warned("mine")
    assert (
        "with binding 'vgpu-other-names': resources.limits[nvidia.com/gpu.shared] is given out by NVIDIA's" in warning
    )
    assert await warned("of-a-controller", ownerReferences=[owner]) == []
