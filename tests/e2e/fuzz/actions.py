"""What a user does with a pod: creates it, and changes, binds, evicts or deletes it: requests made from a seed."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.e2e.fuzz.tenant import NAMESPACE, PODS, Request
from tests.hostile_pods import values
from tests.hostile_pods.case import Case
from vgpu.domain import names

APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"

_PATCH_DEPTHS: Final = (50, 900, 1200, 2000)  # the API server takes 34 s for a deeper patch

Followup = Callable[[random.Random, str], Iterator[Request]]


def creation(case: Case, name: str) -> Request:
    """Create the pod of a case: one in five by server-side apply."""
    body = case.body(name=name, namespace=NAMESPACE)
    if case.seed % 5 == 0:
        return Request("PATCH", f"{PODS}/{name}?fieldManager=fuzz&force=true", body, APPLY)
    return Request("POST", PODS, body)


def followups(seed: int, name: str) -> Iterator[Request]:
    """Yield what happens to an accepted pod afterwards: nothing in half of all cases."""
    chance = random.Random(seed + 1)
    if chance.random() < 0.5:
        return
    for _ in range(chance.randint(1, 3)):
        yield from chance.choice(_FOLLOWUPS)(chance, name)


def deletion(name: str, grace_s: int = 1) -> Request:
    return Request("DELETE", f"{PODS}/{name}?gracePeriodSeconds={grace_s}")


def _patch(path: str, body: Any, kind: str) -> Request:
    return Request("PATCH", path, json.dumps(body).encode(), kind)


def _annotate(chance: random.Random, name: str) -> Iterator[Request]:
    value = chance.choice((None, values.text(chance), values.nested_assignment(chance), "spread"))
    body = {"metadata": {"annotations": {chance.choice(values.ANNOTATIONS): value}}}
    yield _patch(f"{PODS}/{name}", body, MERGE)


def _deepen(chance: random.Random, name: str) -> Iterator[Request]:
    text = '{"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1",'
    text += '"fieldsType":"FieldsV1","fieldsV1":' + values.deep(chance, _PATCH_DEPTHS) + "}]}}"
    yield Request("PATCH", f"{PODS}/{name}", text.encode(), MERGE)


def _resize(chance: random.Random, name: str) -> Iterator[Request]:
    resource = chance.choice((names.GPU_MEM, names.SLICE, names.GPU, "cpu", "memory", *values.RESOURCES))
    resources = {chance.choice(("limits", "requests")): {resource: chance.choice(values.AMOUNTS)}}
    yield _patch(
        f"{PODS}/{name}/resize", {"spec": {"containers": [{"name": "main", "resources": resources}]}}, STRATEGIC
    )


def _debug(chance: random.Random, name: str) -> Iterator[Request]:
    """Add an ephemeral container that reaches for cards or for the limiter's files."""
    added: dict[str, Any] = {"name": f"debug{chance.randrange(1000)}", "image": "docker.io/local/pause:1"}
    match chance.randrange(4):
        case 0:
            added["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": chance.choice(values.VISIBLE)}]
        case 1:
            added["volumeMounts"] = [{"name": "over", "mountPath": chance.choice(values.PATHS)}]
        case 2:
            added["targetContainerName"] = "main"
        case _:
            added["env"] = [{"name": f"V{n}", "value": "x" * 100} for n in range(1000)]
    yield _patch(f"{PODS}/{name}/ephemeralcontainers", {"spec": {"ephemeralContainers": [added]}}, STRATEGIC)


def _bind(chance: random.Random, name: str) -> Iterator[Request]:
    annotations = {names.ASSIGNMENT: values.nested_assignment(chance)} if chance.random() < 0.5 else {}
    target = {"apiVersion": "v1", "kind": "Node", "name": chance.choice(("127.0.0.2", "127.0.0.3", "nobody"))}
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": annotations},
        "target": target,
    }
    path = chance.choice((f"{PODS}/{name}/binding", f"/api/v1/namespaces/{NAMESPACE}/bindings"))
    yield Request("POST", path, json.dumps(body).encode())


def _evict(_: random.Random, name: str) -> Iterator[Request]:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
    yield Request("POST", f"{PODS}/{name}/eviction", json.dumps(body).encode())


def _delete_at_once(_: random.Random, name: str) -> Iterator[Request]:
    """Remove the object while its containers may still run."""
    yield deletion(name, 0)


def _delete_with_another_grace(chance: random.Random, name: str) -> Iterator[Request]:
    yield deletion(name, chance.choice((0, 1, 5)))
    yield deletion(name, 0)


_FOLLOWUPS: Final[tuple[Followup, ...]] = (
    _annotate,
    _annotate,
    _deepen,
    _resize,
    _debug,
    _bind,
    _evict,
    _delete_at_once,
    _delete_with_another_grace,
)
