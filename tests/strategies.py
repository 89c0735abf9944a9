"""Pods, cards and hypothesis strategies shared by the tests; small ranges, so that examples often reach the limits."""

from typing import Any

from hypothesis import strategies as st

from vgpu.domain import names
from vgpu.domain.cards.device import Card
from vgpu.domain.cards.share import CardState, NodeState
from vgpu.domain.identifiers import CardUuid, NodeName

SLICE_MIB = 256
REAL_CARD_MIB = (81_008, 143_771, 24_564, 15_360)  # H100 80GB, H200, RTX 4090 and T4, without what the driver reserves


def resources(**amounts: int | str) -> dict[str, Any]:
    """Limits by short names: gpu_mem, gpu_cores, gpu, slice, card."""
    keys = {
        "gpu_mem": names.GPU_MEM,
        "gpu_mem_percentage": names.GPU_MEM_PERCENTAGE,
        "gpu_cores": names.GPU_CORES,
        "gpu": names.GPU,
        "slice": names.SLICE,
        "card": names.CARD,
    }
    return {"limits": {keys[name]: str(value) for name, value in amounts.items()}}


def container(name: str = "main", /, **amounts: int | str) -> dict[str, Any]:
    return {"name": name, "resources": resources(**amounts)}


def pod(
    *containers: dict[str, Any],
    init: tuple[dict[str, Any], ...] = (),
    annotations: dict[str, str] | None = None,
    uid: str = "u1",
    node: str = "",
    phase: str = "Pending",
) -> dict[str, Any]:
    return {
        "metadata": {"name": f"pod-{uid}", "namespace": "default", "uid": uid, "annotations": annotations or {}},
        "spec": {"containers": list(containers), "initContainers": list(init), "nodeName": node or None},
        "status": {"phase": phase},
    }


def admit(obj: dict[str, Any], slice_mib: int = SLICE_MIB) -> dict[str, Any]:
    """Add the slices or cards that the webhook adds for the kubelet, and return the pod."""
    from vgpu.domain.asks import request  # noqa: PLC0415 - keeps this file importable by tests of request itself

    pod_request = request.parse(obj).request
    assert pod_request is not None
    added = {c.name: pod_request.kubelet_resource(c, slice_mib) for c in pod_request.containers}
    for _, _, document in request.containers_of(obj):
        if document["name"] in added:
            resource, amount = added[document["name"]]
            document["resources"]["limits"][resource] = str(amount)
    return obj


def in_mib(obj: dict[str, Any], *cards: Card, slice_mib: int = SLICE_MIB) -> dict[str, Any]:
    """Replace percentages of these cards by MiB, and add slices, as the webhook does."""
    from vgpu.domain.asks import translate  # noqa: PLC0415 - as in `admit`

    translated = translate.translate(obj, lambda: cards, 1, slice_mib)
    assert not translated.problems
    return admit(dict(translated.pod), slice_mib)


def card(index: int, memory_mib: int = 2048, **fields: Any) -> Card:
    return Card(CardUuid(f"GPU-{index}"), index, fields.pop("model", "NVIDIA H100 80GB HBM3"), memory_mib, **fields)


def node_state(*cards: Card, name: str = "n1", slice_mib: int = SLICE_MIB) -> NodeState:
    return NodeState(NodeName(name), slice_mib, tuple(CardState(new_card, slice_mib) for new_card in cards))


@st.composite
def share_pods(draw: st.DrawFn) -> dict[str, Any]:
    """Pods of one to three GPU containers of all kinds that are valid and small."""
    gpus = draw(st.integers(1, 2))

    def one(name: str, memory: int) -> dict[str, Any]:
        amounts: dict[str, int | str] = {"gpu_mem": gpus * memory, "gpu": gpus}
        if draw(st.booleans()):
            amounts["gpu_cores"] = gpus * draw(st.integers(1, 100))
        return container(name, **amounts)

    memory = draw(st.integers(1, 1500))
    apps = [one(f"app{n}", memory if n == 0 else draw(st.integers(1, 900))) for n in range(draw(st.integers(1, 2)))]
    init = [one(f"init{n}", memory) for n in range(draw(st.integers(0, 1)))]
    sidecars = [
        one(f"side{n}", draw(st.integers(1, 500))) | {"restartPolicy": "Always"} for n in range(draw(st.integers(0, 1)))
    ]
    policy = draw(st.sampled_from(["binpack", "spread"]))
    annotations = {names.GPU_POLICY: policy}
    if draw(st.booleans()):
        has_cores = any(names.GPU_CORES in app["resources"]["limits"] for app in (*apps, *init, *sidecars))
        fixed = ["fixed"] if has_cores else []
        annotations[names.COMPUTE_POLICY] = draw(st.sampled_from([*fixed, "burst", "best-effort"]))
    if draw(st.booleans()):
        annotations[names.MEMORY_POLICY] = draw(st.sampled_from(["refuse", "spill"]))
    return pod(*apps, init=(*sidecars, *init), annotations=annotations)
