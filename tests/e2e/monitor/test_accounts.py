"""The monitor reports what it exists for: each test plants one disagreement. Fast: no cluster."""

import json
from typing import Any

import pytest

from tests.e2e.monitor import accounts, json_depth
from tests.e2e.monitor.snapshot import OnNode, RunningContainer, Snapshot
from vgpu.domain import names
from vgpu.domain.identifiers import ContainerName, Namespace

GPU, OTHER = "GPU-a", "GPU-b"
ID = frozenset({"GPU-a::1"})
SEES = "a container sees cards that it was not assigned"


def pod(gpu: str = GPU, mib: int = 1024, assigned: str | None = GPU) -> dict[str, Any]:
    """A running pod with a share; `assigned` is the card of its assignment."""
    limits = {names.GPU_MEM: str(mib), names.SLICE: str(-(-mib // 256))} if gpu else {}
    granted = {"v": 1, "containers": {"main": [{"gpu": assigned, "mem": mib}]}}
    return {
        "metadata": {
            "name": "p",
            "namespace": "n",
            "uid": "u",
            "annotations": {names.ASSIGNMENT: json.dumps(granted)} if assigned else {},
        },
        "spec": {
            "nodeName": "node",
            "containers": [{"name": "main", "resources": {"limits": limits}}],
            "schedulerName": "x",
        },
        "status": {"phase": "Running"},
    }


def runs(*cards: str) -> tuple[RunningContainer, ...]:
    return (RunningContainer("n", "p", "main", cards, ()),)


def taken(
    *pods: dict[str, Any], ids: frozenset[str] = frozenset(), held: int = 0, running: tuple[RunningContainer, ...] = ()
) -> Snapshot:
    held_ids: dict[str, frozenset[str]] = {names.SLICE: ids, names.CARD: frozenset()}
    listing = {(Namespace("n"), "p"): {ContainerName("main"): held_ids}} if ids else {}
    card = {"uuid": GPU, "index": 0, "model": "m", "memoryMiB": 2048, "heldSlices": held}
    gpunode = {"metadata": {"name": "node"}, "status": {"sliceMiB": 256, "cards": [card]}}
    return Snapshot(pods, (gpunode,), {"node": OnNode(listing, (), running)})


def kinds(snapshot: Snapshot) -> set[str]:
    return {found.kind for found in accounts.wrong(snapshot)}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_card_that_was_moved_counts_where_it_is_now(*, is_first: bool) -> None:
    (here,) = taken(pod(), held=4).gpunodes
    gone = {"uuid": GPU, "index": 0, "model": "m", "memoryMiB": 2048, "healthy": False, "reason": "NotFound"}
    before = {"metadata": {"name": "before"}, "status": {"sliceMiB": 256, "cards": [gone]}}
    snapshot = Snapshot((pod(),), (before, here) if is_first else (here, before), {})
    (_, _, used) = accounts.taken(snapshot)[GPU]
    assert used.memory_mib == 1024


def test_a_pod_as_it_should_be_is_not_reported() -> None:
    assert kinds(taken(pod())) == set()


@pytest.mark.parametrize(
    ("snapshot", "kind"),
    [
        (taken(pod(assigned=None)), "a bound pod has devices and no trusted assignment"),
        (taken(pod(gpu="")), "a pod that asks for no device has an assignment"),
        (taken(pod(mib=1280), pod(mib=1280)), "a card is over its capacity"),
        (taken(pod(gpu="", assigned=None), ids=ID, held=1), "a pod that asks for no device holds some"),
        (taken(pod(), ids=frozenset({"GPU-b::1"})), "a container holds devices of other cards than assigned"),
        (taken(pod(), ids=ID, held=1), "a running container has no allocation record"),
        (taken(held=2), "a plugin reports other slices as held than its kubelet lists"),
        (taken(pod(gpu="", assigned=None), running=runs(GPU)), SEES),
        (taken(pod(), running=runs(GPU, OTHER)), SEES),
    ],
)  # fmt: skip
def test_each_disagreement_is_reported(snapshot: Snapshot, kind: str) -> None:
    assert kind in kinds(snapshot)


@pytest.mark.parametrize("later", ["/run/vgpu", "/run", "/run/vgpu/limits", "/"])
def test_a_mount_after_ours_that_covers_it_is_reported(later: str) -> None:
    ours = ("/run/vgpu/limits", "/var/lib/vgpu/allocations/x/limits")
    assert list(accounts.covered((ours, (later, "/elsewhere")))) == [("/run/vgpu/limits", later)]


@pytest.mark.parametrize("later", ["/run/vgpu2", "/run/vgpu/region", "/etc"])
def test_a_mount_before_ours_or_beside_it_is_not_reported(later: str) -> None:
    ours = ("/run/vgpu/limits", "/var/lib/vgpu/allocations/x/limits")
    assert not list(accounts.covered((ours, (later, "/elsewhere"))))
    assert not list(accounts.covered((("/run", "tmpfs"), ours)))


def test_json_of_any_depth_is_decoded() -> None:
    deep = b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b',"b":"]]}"}'
    assert json_depth.loads(deep)["b"] == "]]}"
