"""Pods on two real cards: whole cards beside shares, and NCCL in one pod and in two."""

import json
from typing import Unpack

import pytest

from tests.e2e.pod_namespace import Document, Share, pod
from tests.gpu_cluster.gpu_namespace import GpuNamespace, cards, once, python_pod
from vgpu.domain import names

pytestmark = [pytest.mark.gpu_cluster, pytest.mark.timeout(600)]

# Multicast over NVLink can put the cards of a shared host out of service.
WITHOUT_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}


@pytest.fixture(autouse=True)
def two_cards(namespace: GpuNamespace) -> None:
    if len(cards(namespace)) < 2:
        pytest.skip("this machine has one card")


def test_a_whole_card_beside_shares(namespace: GpuNamespace) -> None:
    namespace.create(pod("shared", gpu_mem=8192, gpu_cores=30))
    namespace.running("shared")
    namespace.create(pod("whole", gpu=1))
    namespace.create(pod("beside", gpu_mem=4096, gpu_cores=30))
    namespace.running("whole", "beside")
    (whole,), (shared,), (beside,) = (namespace.assignment(name).gpus() for name in ("whole", "shared", "beside"))
    assert whole != shared == beside
    totals = {card["uuid"]: card["memoryMiB"] for card in cards(namespace)}
    (line,) = namespace.probe("whole", "info")
    (seen,) = line["cuda"]
    assert seen["uuid"] == whole
    assert seen["total"] >= 0.97 * totals[whole] * 2**20  # what the driver keeps for itself
    (line,) = namespace.probe("beside", "info")
    assert [shown["total"] for shown in line["cuda"]] == [4096 * 2**20]


def test_a_pod_over_both_cards(namespace: GpuNamespace) -> None:
    namespace.create(pod("both", gpu=2, gpu_mem=16384, gpu_cores=60))
    namespace.running("both")
    (line,) = namespace.probe("both", "info")
    assert [shown["total"] for shown in line["cuda"]] == [8192 * 2**20] * 2
    assert {shown["uuid"] for shown in line["cuda"]} == {card["uuid"] for card in cards(namespace)}


def with_nccl(name: str, *arguments: str, **share: Unpack[Share]) -> Document:
    manifest = once(python_pod(name, "all_reduce.py", *arguments, **share))
    (made,) = manifest["spec"]["containers"]
    made["env"] += [{"name": variable, "value": value} for variable, value in WITHOUT_MULTICAST.items()]
    memory = {"name": "shm", "emptyDir": {"medium": "Memory"}}
    manifest["spec"]["volumes"].append(memory)
    made["volumeMounts"].append({"name": "shm", "mountPath": "/dev/shm"})
    return manifest


def test_nccl_in_one_pod_over_two_cards(namespace: GpuNamespace) -> None:
    namespace.create(with_nccl("job", "2", gpu=2, gpu_mem=16384, gpu_cores=100))
    results = namespace.printed("job", 180)
    assert [result["sum_is_right"] for result in results] == [True, True], results
    assert {result["device_count"] for result in results} == {2}
    assert {transport for result in results for transport in result["transports"]} == {"P2P"}, results


def test_nccl_in_two_pods(namespace: GpuNamespace) -> None:
    """They share the machine's network and IPC namespace, since pods of this cluster have a loopback device only."""
    for rank, card in enumerate(cards(namespace)):
        manifest = with_nccl(f"rank-{rank}", "2", str(rank), gpu_mem=8192, gpu_cores=50)
        manifest["metadata"]["annotations"] |= {names.USE_GPU_UUID: card["uuid"]}
        manifest["spec"] |= {"hostNetwork": True, "hostIPC": True}
        namespace.create(manifest)
    results = [namespace.last(f"rank-{rank}", 180) for rank in range(2)]
    assert all(result["sum_is_right"] for result in results), json.dumps(results)
    assert {transport for result in results for transport in result["transports"]} & {"P2P", "SHM", "NET"}, results
