"""What a log of NCCL, a data set and the pods of a job show."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain.errors import MalformedError
from vgpu.workloads.diagnose import job, nccl_log, storage
from vgpu.workloads.diagnose.storage import FileSample

PREFIX = "node-1:77:215 [2] NCCL INFO "
GDRDMA = PREFIX + "Channel 02/0 : 3[3] -> 10[2] [receive] via NET/IB/10/GDRDMA"
HEALTHY = [
    "NCCL version 2.27.3+cuda12.9",
    PREFIX + "NCCL_IB_DISABLE set by environment to 0.",
    PREFIX + "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.1.1<0>",
    PREFIX + "Using network IB",
    GDRDMA,
    PREFIX + "Channel 12/0 : 13[5] -> 12[4] via P2P/CUMEM/read",
]


def codes(*lines: str) -> list[str]:
    return [str(finding.code) for finding in nccl_log.check(lines)]


def test_a_healthy_log() -> None:
    assert codes(*HEALTHY) == []


def test_a_job_of_one_node_names_a_network_and_does_not_use_it() -> None:
    assert codes(PREFIX + "NET/IB : No device found.", PREFIX + "Using network Socket") == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (PREFIX + "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0", "nccl-sockets"),
        (PREFIX + "Channel 00 : 1[8a000] -> 2[8b000] [receive] via NET/Socket/1/Shared", "nccl-sockets"),
        (PREFIX + "NCCL_IB_DISABLE set by environment to 1.", "nccl-sockets"),
        (PREFIX + "NCCL_NET set by environment to Socket", "nccl-sockets"),
        (PREFIX + "Channel 03/0 : 5[5] -> 12[4] [send] via NET/IB/3", "nccl-no-gdrdma"),
        (PREFIX + "Channel 03/0 : 5[5] -> 12[4] [send] via NET/IBext_v8/3(4)", "nccl-no-gdrdma"),
        (PREFIX + "NCCL_NET_GDR_LEVEL set by environment to LOC", "nccl-no-gdrdma"),
        (PREFIX + "Channel 00 : 0[1e000] -> 1[3d000] via SHM/direct/direct", "nccl-no-peer-access"),
        (PREFIX + "NCCL_P2P_DISABLE set by environment to 1", "nccl-no-peer-access"),
        ("NCCL version 2.4.7+cuda10.0", "nccl-old"),
        (PREFIX + "AllReduce: opCount 1a sendbuff 0x7f recvbuff 0x7f count 1024", "nccl-debug-cost"),
        ("node-1:77:215 [2] misc/socket.cc:441 NCCL WARN socketFinalizeAccept: wrong type 4 != 3", "nccl-warning"),
    ],
)
def test_a_line_of_a_log(line: str, code: str) -> None:
    (found,) = nccl_log.check([*HEALTHY, line, *HEALTHY])
    assert (found.code, found.lines) == (code, (7,))


def test_many_lines_are_one_finding_that_counts_them() -> None:
    (found,) = nccl_log.check([PREFIX + "Channel 03/0 : 5[5] -> 12[4] [send] via NET/IB/3"] * 100)
    assert len(found.lines) == 20
    assert found.seen == "node-1: a channel via NET/IB/3, without GDRDMA (100 lines)"


@given(st.lists(st.text(alphabet="Channel 0[]:->viaNETWARN/\x1b\x00é", max_size=60), max_size=5))
def test_any_lines_are_read(lines: list[str]) -> None:
    for finding in nccl_log.check([*HEALTHY, *(PREFIX + line for line in lines)]):
        assert finding.seen.isprintable()


@pytest.mark.parametrize(
    "lines",
    [[], ["step 1 loss 0.5"], ["\x00\xff"], ["initialized the NCCL backend", "RuntimeError: NCCL error in: a.cpp"]],
)
def test_what_is_no_log_of_nccl(lines: list[str]) -> None:
    with pytest.raises(MalformedError, match="no line is NCCL's"):
        nccl_log.check(lines)


def storage_codes(sample: FileSample) -> list[str]:
    return [str(finding.code) for finding in storage.check(sample, 100)]


def test_storage() -> None:
    second = 1_000_000_000
    assert storage_codes(FileSample([1 << 30] * 10, is_all=True, read_bytes=200_000_000, read_ns=second)) == []
    assert storage_codes(FileSample([1 << 30] * 10, is_all=True, read_bytes=99_000_000, read_ns=second)) == [
        "slow-storage"
    ]
    assert storage_codes(FileSample([4096] * 999, is_all=True, read_bytes=200_000_000, read_ns=second)) == []
    assert storage_codes(FileSample([4096] * 1000, is_all=False, read_bytes=1, read_ns=second)) == [
        "small-files",
        "slow-storage",
    ]
    assert storage_codes(FileSample([], is_all=True, read_bytes=0, read_ns=0)) == []


def node(name: str, switch: str | None) -> dict[str, object]:
    return {"kind": "Node", "metadata": {"name": name, "labels": {"switch": switch} if switch else {}}}


def pod(node: str, labels: object, phase: str = "Running") -> dict[str, object]:
    metadata = {"name": "p", "namespace": "ml", "labels": labels}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}


def listed(*items: object) -> bytes:
    return json.dumps({"items": [node("a", "s1"), node("b", "s2"), node("c", "s1"), node("d", None), *items]}).encode()


def test_a_job_under_two_switches() -> None:
    of = {"training.kubeflow.org/job-name": "big"}
    (found,) = job.check(listed(pod("a", of), pod("b", of), pod("c", {"job-name": "small"})), "switch")
    assert found.seen == "ml/big: under 2 switches: s1, s2"
    assert job.check(listed(pod("a", of), pod("c", of), pod("d", of), pod("b", of, "Succeeded")), "switch") == []
    assert (
        job.check(listed(pod("a", of), pod("b", {"job-name": "big2"}), pod("b", 5), 7, {"kind": "Pod"}), "switch") == []
    )


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{", "not JSON"),
        (b"[]", "items: missing"),
        (b"[" * 10**6, "not JSON"),
        (listed(), "no node has the label rack"),
    ],
)
def test_a_list_that_cannot_be_read(data: bytes, says: str) -> None:
    with pytest.raises(MalformedError, match=says):
        job.check(data, "rack")
