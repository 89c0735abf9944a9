"""The webhook's endpoints, and its decisions on reviews."""

import asyncio
import dataclasses
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook import builders
from vgpu.adapters.metrics import Registry
from vgpu.domain import names
from webhook import admission, app, metrics, mutate, wire

RULES = builders.rules(builders.H100)
SHARE = {names.GPU_MEM: "8192"}
NODE = ("system:nodes", "system:authenticated")


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app.create(RULES, lambda: True, builders.metrics()))
    async with httpx.AsyncClient(transport=transport, base_url="https://webhook") as found:
        yield found


async def test_a_share_is_mutated_and_then_admitted(client: httpx.AsyncClient) -> None:
    """The API server adds a timeout parameter to the path."""
    pod = builders.pod(SHARE)
    reply = await client.post("/mutate?timeout=3s", content=builders.review("CREATE", pod))
    assert builders.response(reply.content)["patchType"] == "JSONPatch"
    mutated = builders.apply(builders.patch_of(reply.content), pod)
    assert mutated["spec"]["schedulerName"] == names.SCHEDULER
    reply = await client.post("/validate?timeout=3s", content=builders.review("CREATE", mutated))
    assert builders.response(reply.content) == {"uid": "u1", "allowed": True}


async def test_an_amount_that_is_most_likely_in_gib_has_a_warning(client: httpx.AsyncClient) -> None:
    for amount, warned in (("4", True), ("4096", False)):
        pod = builders.pod({names.GPU_MEM: amount})
        reply = await client.post("/mutate", content=builders.review("CREATE", pod))
        mutated = builders.apply(builders.patch_of(reply.content), pod)
        reply = await client.post("/validate", content=builders.review("CREATE", mutated))
        response = builders.response(reply.content)
        warnings = response.get("warnings", [])
        assert (response["allowed"], any("for 4 GiB write 4096" in warning for warning in warnings)) == (True, warned)


async def test_a_pod_that_may_be_meant_for_another_plugin_is_admitted_with_a_warning(client: httpx.AsyncClient) -> None:
    pod = builders.pod({**SHARE, "vgpushare.io/gpu-cores": "30"})
    reply = await client.post("/mutate", content=builders.review("CREATE", pod))
    mutated = builders.apply(builders.patch_of(reply.content), pod)
    reply = await client.post("/validate", content=builders.review("CREATE", mutated))
    (warning,) = builders.response(reply.content)["warnings"]
    assert "limits[vgpushare.io/gpu-cores]" in warning
    assert warning.endswith("did you mean vgpu.io/gpu-cores?")


async def test_a_refusal_has_a_message(client: httpx.AsyncClient) -> None:
    reply = await client.post("/validate", content=builders.review("CREATE", builders.pod({names.GPU_MEM: "16Gi"})))
    response = builders.response(reply.content)
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["reason"]) == (422, "Invalid")
    assert "write 16384" in response["status"]["message"]


def with_text(text: bytes, in_place_of: bytes = b'"image": "x"') -> bytes:
    return builders.review("CREATE", builders.pod(SHARE)).replace(in_place_of, text)


UNREADABLE = [
    (b"", ""),
    (b"{}", ""),
    (b"\xff", ""),
    (b"[" * 5000, ""),
    (builders.review("CREATE", {"spec": {"containers": "x"}}), "u1"),
    (builders.review("CREATE", builders.pod(SHARE)).replace(b"k8s.io/v1", b"k8s.io/v2"), "u1"),
    (builders.review("CREATE", builders.pod()).replace(b'"name": "p"', b'"annotations": {"a": 1}'), "u1"),
    (with_text(b'"env": [{"name": "\\ud800"}]'), "u1"),
    (with_text(b'"env": 1'), "u1"),
    (with_text(b'"a": "' + b" " * app.MAX_BODY + b'"'), "u1"),
    (b'{"request": {"uid": "u1", "object": ' + b"[" * 100_000, "u1"),
]


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(("body", "uid"), UNREADABLE, ids=range(len(UNREADABLE)))
async def test_a_review_that_cannot_be_read_is_denied_with_a_reason(
    client: httpx.AsyncClient, path: str, body: bytes, uid: str
) -> None:
    """Any other status, and failurePolicy Ignore lets the pod in unchecked."""
    reply = await client.post(path, content=body)
    assert reply.status_code == 200
    response = json.loads(reply.content)["response"]
    assert (response["uid"], response["allowed"]) == (uid, False)
    assert response["status"]["message"]


@pytest.mark.parametrize("levels", [1_200, 10_000])
async def test_a_deep_pod_is_mutated_and_validated(client: httpx.AsyncClient, levels: int) -> None:
    fields = b'{"f:a":' * levels + b"{}" + b"}" * levels
    body = with_text(b'"name": "p", "managedFields": [{"fieldsV1": ' + fields + b"}]", b'"name": "p"')
    assert builders.patch_of((await client.post("/mutate", content=body)).content)
    bad = body.replace(b'"8192"', b'"0"')
    response = builders.response((await client.post("/validate", content=bad)).content)
    assert names.GPU_MEM in response["status"]["message"]


@pytest.mark.heavy
@pytest.mark.parametrize("limits", [SHARE, {"nvidia.com/gpumem": "1"}, {"cpu": "1"}])
async def test_a_pod_of_6000_containers_is_refused_at_once(client: httpx.AsyncClient, limits: dict[str, str]) -> None:
    """A review holds the event loop, and so every other user's pods: the time must not grow with the square."""
    pod = builders.pod(SHARE)
    pod["spec"]["containers"] += [builders.container(f"c{n}", limits) for n in range(6000)]
    body = builders.review("CREATE", pod)
    async with asyncio.timeout(1):
        assert builders.patch_of((await client.post("/mutate", content=body)).content) == []
        reply = await client.post("/validate", content=body)
    assert "use several pods" in builders.response(reply.content)["status"]["message"]


async def test_a_failure_of_the_webhook_itself_denies_the_pod(caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> Any:
        raise ZeroDivisionError

    pod = builders.pod({names.GPU_MEM_PERCENTAGE: "50"})
    transport = httpx.ASGITransport(
        app.create(dataclasses.replace(RULES, cards=failing), lambda: True, builders.metrics())
    )
    async with httpx.AsyncClient(transport=transport, base_url="https://webhook") as client:
        reply = await client.post("/validate", content=builders.review("CREATE", pod))
    assert "ZeroDivisionError" in builders.response(reply.content)["status"]["message"]
    assert "ZeroDivisionError" in caplog.text


async def test_health_and_readiness_are_separate() -> None:
    transport = httpx.ASGITransport(app.create(RULES, lambda: False, builders.metrics()))
    async with httpx.AsyncClient(transport=transport, base_url="https://webhook") as client:
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/readyz")).status_code == 503


class TestMirrorPods:
    """Mirror pods: the kubelet creates them in the API for its static pods, which already run."""

    POD = builders.pod(SHARE, {"kubernetes.io/config.mirror": "x"}, nodeName="n1")

    def decide(self, pod: dict[str, Any], groups: tuple[str, ...]) -> tuple[list[Any], bool]:
        review = wire.decode(builders.review("CREATE", pod, groups=groups))
        patch = builders.patch_of(admission.mutating(review, RULES).body)
        return patch, builders.response(admission.validating(review, RULES).body)["allowed"]

    def test_a_kubelets_mirror_pod_is_admitted_unchanged(self) -> None:
        assert self.decide(self.POD, NODE) == ([], True)

    def test_the_annotation_of_a_user_does_not_make_a_mirror_pod(self) -> None:
        patch, is_allowed = self.decide(self.POD, ("system:authenticated",))
        assert patch
        assert not is_allowed

    @pytest.mark.parametrize("name", names.STATE_ANNOTATIONS)
    def test_a_mirror_pod_with_what_only_a_binding_writes_is_refused(self, name: str) -> None:
        pod = builders.pod(SHARE, {"kubernetes.io/config.mirror": "x", name: "{}"}, nodeName="n1")
        assert self.decide(pod, NODE) == ([], False)


@pytest.mark.parametrize("name", names.STATE_ANNOTATIONS)
@pytest.mark.parametrize("annotation", ['{"v":1}', "", "[" * 1000, "x" * 200_000])
def test_a_pod_that_was_restored_from_its_live_copy_is_admitted(annotation: str, name: str) -> None:
    """What Velero restores, and what `kubectl debug --copy-to --keep-annotations` makes."""
    live = mutate.mutate(builders.pod(SHARE), RULES).pod
    copy = {**live, "metadata": {**live["metadata"], "annotations": {name: annotation}}}
    answer = admission.mutating(wire.decode(builders.review("CREATE", copy)), RULES)
    (warning,) = builders.response(answer.body)["warnings"]
    assert name in warning
    admitted = builders.apply(builders.patch_of(answer.body), copy)
    assert name not in admitted["metadata"]["annotations"]
    review = wire.decode(builders.review("CREATE", admitted))
    assert builders.response(admission.validating(review, RULES).body)["allowed"]


def test_a_copy_that_names_its_node_is_refused_without_trust_in_its_assignment() -> None:
    copy = builders.pod(SHARE, {names.ASSIGNMENT: '{"v":1}'}, nodeName="n1")
    answer = admission.mutating(wire.decode(builders.review("CREATE", copy)), RULES)
    admitted = builders.apply(builders.patch_of(answer.body), copy)
    assert names.ASSIGNMENT not in admitted["metadata"]["annotations"]
    review = wire.decode(builders.review("CREATE", admitted))
    said = builders.response(admission.validating(review, RULES).body)["status"]["message"]
    assert "bypass the scheduler" in said


def test_an_update_that_changes_nothing_is_not_mutated() -> None:
    pod = builders.pod(SHARE)
    review = wire.decode(builders.review("UPDATE", pod, pod))
    assert builders.patch_of(admission.mutating(review, RULES).body) == []
    assert builders.response(admission.validating(review, RULES).body)["allowed"]


def test_a_debug_container_gets_no_card_whatever_its_image_sets() -> None:
    old = builders.pod(SHARE, ephemeralContainers=[{"name": "first"}])
    new = builders.pod(SHARE, ephemeralContainers=[{"name": "first"}, {"name": "second"}])
    review = wire.decode(builders.review("UPDATE", new, old, sub_resource="ephemeralcontainers"))
    assert not builders.response(admission.validating(review, RULES).body)["allowed"]
    changed = builders.apply(builders.patch_of(admission.mutating(review, RULES).body), new)
    first, second = changed["spec"]["ephemeralContainers"]
    assert (first, second["env"]) == ({"name": "first"}, [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}])
    review = wire.decode(builders.review("UPDATE", changed, old, sub_resource="ephemeralcontainers"))
    assert builders.response(admission.validating(review, RULES).body)["allowed"]


def test_a_deletion_is_admitted() -> None:
    review = wire.decode(builders.review("DELETE", None, builders.pod(SHARE, {names.ASSIGNMENT: "{}"})))
    assert builders.response(admission.mutating(review, RULES).body)["allowed"]
    assert builders.response(admission.validating(review, RULES).body)["allowed"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "name", names.GPU_MEM]),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "metadata",
                    "annotations",
                    "spec",
                    "containers",
                    "initContainers",
                    "resources",
                    "limits",
                    "env",
                    "name",
                ]
            ),
            children,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from(["CREATE", "UPDATE"]))
def test_any_json_is_answered_or_malformed(obj: Any, operation: str) -> None:
    body = json.dumps(json.loads(builders.review(operation, obj, obj))).encode()
    try:
        review = wire.decode(body)
    except wire.UnreadableReview:
        return
    builders.response(admission.mutating(review, RULES).body)
    builders.response(admission.validating(review, RULES).body)


async def test_a_client_that_disconnects_before_its_body_is_complete_is_no_error() -> None:
    """Starlette raises ClientDisconnect from the body's stream."""
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    async def send(_: Any) -> None:
        return

    scope = {"type": "http", "method": "POST", "path": "/mutate", "raw_path": b"/mutate", "root_path": ""}
    scope |= {"query_string": b"", "headers": [], "http_version": "1.1", "scheme": "https"}
    await app.create(RULES, lambda: True, builders.metrics())(scope, receive, send)


async def test_reviews_are_counted_by_outcome_and_timed_by_path() -> None:
    registry = Registry()
    clock = itertools.count(0.0, 0.25)
    reviews = metrics.ReviewMetrics(registry, lambda: next(clock))
    transport = httpx.ASGITransport(app.create(RULES, lambda: True, reviews))
    async with httpx.AsyncClient(transport=transport, base_url="https://webhook") as client:
        share = builders.review("CREATE", builders.pod(SHARE))
        for path, body in (
            ("mutate", share),
            ("validate", builders.review("CREATE", builders.pod({}))),
            ("validate", builders.review("CREATE", builders.pod({names.GPU_MEM: "16Gi"}))),
            ("validate", b"{"),
        ):
            await client.post(f"/{path}", content=body)
    text = registry.render("text/plain")[0].decode()
    for outcome in ("changed", "allowed", "denied", "unreadable"):
        assert f'vgpu_webhook_reviews_total{{outcome="{outcome}"}} 1.0' in text
    assert 'vgpu_webhook_review_seconds_sum{path="validate"} 0.75' in text
    assert 'vgpu_webhook_review_seconds_bucket{le="0.2",path="mutate"} 0.0' in text
    assert 'vgpu_webhook_review_seconds_bucket{le="0.5",path="mutate"} 1.0' in text
