"""Pods, cards and AdmissionReviews for the tests of the webhook."""

import base64
import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from vgpu.adapters.metrics import Registry
from vgpu.domain import names
from vgpu.domain.asks import aliases
from vgpu.domain.cards.device import Card
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.json_types import JsonObject
from webhook.metrics import ReviewMetrics
from webhook.rules import AdmissionSettings

H100 = Card(CardUuid("GPU-a"), 0, "NVIDIA H100 80GB HBM3", 81008)
A30 = Card(CardUuid("GPU-b"), 1, "NVIDIA A30", 24576)


def rules(*cards: Card) -> AdmissionSettings:
    return AdmissionSettings(cards=lambda: cards)


def kubeconfig(path: Path, server: str) -> Path:
    path.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],"
        f" clusters: [{{name: c, cluster: {{server: '{server}'}}}}], users: [{{name: u, user: {{token: t}}}}]}}"
    )
    return path


def container(name: str = "main", limits: JsonObject | None = None, **more: Any) -> JsonObject:
    return {"name": name, "image": "x", **({"resources": {"limits": limits}} if limits else {}), **more}


def pod(limits: JsonObject | None = None, annotations: dict[str, str] | None = None, **spec: Any) -> JsonObject:
    return {
        "metadata": {"name": "p", **({"annotations": annotations} if annotations is not None else {})},
        "spec": {"containers": [container(limits=limits)], **spec},
    }


def review(
    operation: str,
    obj: JsonObject | None,
    old: JsonObject | None = None,
    groups: tuple[str, ...] = (),
    sub_resource: str = "",
) -> bytes:
    request = {
        "uid": "u1",
        "operation": operation,
        "subResource": sub_resource,
        "object": obj,
        "oldObject": old,
        "userInfo": {"username": "someone", "groups": list(groups)},
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def response(body: bytes) -> JsonObject:
    decoded = json.loads(body)
    assert (decoded["apiVersion"], decoded["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    found: JsonObject = decoded["response"]
    assert found["uid"] == "u1"
    return found


def patch_of(body: bytes) -> list[JsonObject]:
    found: list[JsonObject] = json.loads(base64.b64decode(response(body).get("patch", base64.b64encode(b"[]"))))
    return found


def apply(patch: list[JsonObject], obj: JsonObject) -> JsonObject:
    """Apply a JSON patch (RFC 6902), as the API server does."""
    result = copy.deepcopy(obj)
    for step in patch:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        at: Any = result
        for part in parents:
            at = at[int(part)] if isinstance(at, list) else at[part]
        _apply_one(at, last, step)
    return result


def _apply_one(at: Any, last: str, step: JsonObject) -> None:
    if step["op"] == "remove":
        del at[last]
    elif isinstance(at, list):
        assert (step["op"], last) == ("add", "-")
        at.append(step["value"])
    else:
        assert step["op"] == "add" or last in at
        at[last] = step["value"]


_AMOUNTS = st.one_of(
    st.integers(-2, 40_000).map(str),
    st.sampled_from(["16Gi", "1500m", "1e9", "2k", "", "100", "24576"]),
)
_RESOURCES = st.dictionaries(
    st.sampled_from(
        [*names.USER_RESOURCES, *names.KUBELET_RESOURCES, *sorted(aliases.MARKER_NAMES), "nvidia.com/gpu", "cpu"]
    ),
    _AMOUNTS,
    max_size=4,
)
_GOOD = st.fixed_dictionaries(
    {names.GPU_MEM: st.integers(1, 20_000).map(lambda mib: str(mib * 6))},
    optional={names.GPU: st.sampled_from("123"), names.GPU_CORES: st.integers(1, 16).map(lambda n: str(n * 6))},
)
_FOREIGN = st.fixed_dictionaries(
    {"nvidia.com/gpumem": st.integers(1, 20_000).map(str)},
    optional={"nvidia.com/gpu": st.sampled_from("123"), "nvidia.com/gpucores": st.integers(0, 100).map(str)},
)
_PERCENTAGE = st.fixed_dictionaries({names.GPU_MEM_PERCENTAGE: st.integers(1, 100).map(str)})
_LIMITS: st.SearchStrategy[dict[str, str]] = st.one_of(st.just({}), _GOOD, _FOREIGN, _PERCENTAGE, _RESOURCES)
_VARIABLES = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["A", names.MEMORY_ENV, "NVIDIA_VISIBLE_DEVICES"])}, optional={
        "value": st.sampled_from(["", "1", "void"]),
    }),
    max_size=2,
)  # fmt: skip


@st.composite
def containers(draw: st.DrawFn, prefix: str) -> list[JsonObject]:
    found = []
    for index in range(draw(st.integers(0, 3))):
        built: JsonObject = {"name": f"{prefix}{index}"}
        if draw(st.booleans()):
            limits = draw(_LIMITS)
            built["resources"] = {"limits": limits} | ({"requests": dict(limits)} if draw(st.booleans()) else {})
        if draw(st.booleans()):
            built["env"] = draw(st.one_of(st.none(), _VARIABLES))
        if draw(st.booleans()):
            built["restartPolicy"] = "Always"
        found.append(built)
    return found


@st.composite
def pods(draw: st.DrawFn) -> JsonObject:
    """Random pods, most of them invalid."""
    metadata: JsonObject = {"name": "p"}
    if draw(st.booleans()):
        metadata["annotations"] = draw(
            st.dictionaries(
                st.sampled_from(
                    [
                        *names.USER_ANNOTATIONS,
                        *names.LIVE_ANNOTATIONS,
                        *names.STATE_ANNOTATIONS,
                        f"{names.DOMAIN}/typo",
                        "a",
                    ]
                ),
                st.sampled_from(["binpack", "fixed", "5", "GPU-a", "H100", ""]),
                max_size=3,
            )
        )
    spec: JsonObject = {"containers": draw(containers("c")), "initContainers": draw(containers("i"))}
    if draw(st.booleans()):
        spec["ephemeralContainers"] = draw(containers("e"))
    if draw(st.booleans()):
        spec["schedulerName"] = draw(st.sampled_from(["", "default-scheduler", "volcano", "own"]))
    if draw(st.booleans()):
        spec["nodeName"] = draw(st.sampled_from(["", "n1"]))
    return {"metadata": metadata, "spec": spec}


def metrics() -> ReviewMetrics:
    """Metrics that nobody reads."""
    return ReviewMetrics(Registry(), lambda: 0.0)
