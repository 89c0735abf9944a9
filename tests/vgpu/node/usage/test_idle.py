"""For how long the containers of pods have been idle: a synthetic load is, whatever it runs."""

import json
from dataclasses import replace

import pytest

from tests.vgpu.node.builders import bound, manifest, uuid
from vgpu.adapters.nvml.records import BusySamples
from vgpu.domain import names
from vgpu.domain.formats.region import Activity, CardUse
from vgpu.domain.identifiers import ContainerName, KubeletPodUid
from vgpu.node.containers import bound_pod
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.usage.gpu_time import Use
from vgpu.node.usage.idle import IdleTimes

S = 1_000_000_000
GPU = uuid(0)
PODS = {pod.kubelet_uid: pod for pod in (bound("job"), replace(bound("load"), is_synthetic=True))}
JOB, LOAD = ((pod.uid, ContainerName("main"), GPU) for pod in PODS.values())


def ms_after(
    seconds: int, *, names_processes: bool = True, known: dict[KubeletPodUid, BoundPod] = PODS
) -> dict[Use, int]:
    """The idle times after a time in which both pods launch, use GPU seconds, and are seen by NVML."""
    now_ns = 100 * S
    times = IdleTimes(lambda: now_ns)
    for second in range(seconds + 1):
        now_ns += S
        account = CardUse(GPU, 0, None, 0, 0, 0, activity=Activity(last_launch_at_ns=now_ns))
        samples = BusySamples(names_processes=names_processes, active=dict.fromkeys((1, 2, 3), second * 1_000_000))
        held = dict.fromkeys((JOB, LOAD), account)
        times.look(held, dict.fromkeys(held, second), {GPU: samples}, {(GPU, 1): JOB, (GPU, 2): LOAD}, known)
    return dict(times.ms)


def test_kernels_of_a_synthetic_load_are_no_use() -> None:
    assert ms_after(60) == {JOB: 0, LOAD: 60_000}


def test_what_is_not_known_of_a_card_is_not_known_of_a_synthetic_load_either() -> None:
    assert ms_after(60, names_processes=False) == {}


def test_the_label_may_be_taken_away() -> None:
    assert ms_after(60, known={uid: replace(pod, is_synthetic=False) for uid, pod in PODS.items()})[LOAD] == 0


@pytest.mark.parametrize(
    ("labels", "is_synthetic"), [({names.SYNTHETIC: "true"}, True), ({names.SYNTHETIC: "false"}, False), (None, False)]
)
def test_a_pod_is_synthetic_by_its_label(labels: dict[str, str] | None, *, is_synthetic: bool) -> None:
    made = manifest("load")
    made["metadata"]["labels"] = labels
    assert bound_pod.decode(json.dumps(made).encode()).is_synthetic is is_synthetic
