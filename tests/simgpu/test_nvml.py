"""NVML, read through nvidia-ml-py."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from simgpu import state_directory
from simgpu.world import World

MIB = 1 << 20


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("pynvml.nvmlDeviceGetIndex(card(3))", 3),
        ("pynvml.nvmlDeviceGetName(card(3))", state_directory.MODEL),
        ("pynvml.nvmlDeviceGetMinorNumber(card(3))", 3),
        ("pynvml.nvmlDeviceGetNumaNodeId(card(3))", 1),
        ("pynvml.nvmlDeviceGetMigMode(card(3))", [0, 0]),
        ("pynvml.nvmlDeviceGetMigMode(card(0))", [1, 1]),
        ("[pynvml.nvmlDeviceGetFieldValues(card(i), [230])[0].value.uiVal for i in (0, 3)]", [2, 0]),
        ("pynvml.nvmlDeviceGetFieldValues(card(), [1])[0].nvmlReturn", 3),
        ("pynvml.nvmlDeviceGetComputeMode(card())", 0),
        ("pynvml.nvmlDeviceGetCudaComputeCapability(card())", [9, 0]),
        ("pynvml.nvmlDeviceGetPciInfo(card(1)).busId", "00000000:02:00.0"),
        ("pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByPciBusId(b'0000:02:00.0'))", 1),
        ("nvml('nvmlDeviceGetHandleByUUID', b'GPU-nope')", 6),
        ("nvml('nvmlDeviceGetHandleByIndex', 4)", 2),
        ("[*pynvml.nvmlDeviceGetMemoryAffinity(card(3), 1, 0)]", [2]),
        ("[*pynvml.nvmlDeviceGetCpuAffinity(card(3), 1)]", [0xFFFF0000]),
        ("[pynvml.nvmlDeviceGetNvLinkState(card(), link) for link in (0, 2, 3)]", [1, 1, 0]),
        ("pynvml.nvmlDeviceGetNvLinkRemotePciInfo(card(), 1).bus", 3),
        ("pynvml.nvmlDeviceGetP2PStatus(card(0), card(1), 2)", 0),
        ("pynvml.nvmlDeviceGetTopologyCommonAncestor(card(0), card(1))", 40),
        ("pynvml.nvmlDeviceGetTopologyCommonAncestor(card(0), card(3))", 50),
        ("pynvml.nvmlSystemGetCudaDriverVersion()", 13000),
        ("pynvml.nvmlSystemGetDriverVersion()[:4]", "580."),
        ("nvml('nvmlShutdown') or nvml('nvmlDeviceGetCount')", 1),
    ],
)
def test_nvml_answers_about_the_cards(make_world: Callable[..., World], expression: str, value: object) -> None:
    first, *rest = state_directory.make_cards(4)
    session = make_world((replace(first, mig=True, recovery=2), *rest)).session()
    session("nvml('nvmlInit')")
    assert session(expression) == value


def test_nvml_counts_memory_as_cuda_does(make_world: Callable[..., World]) -> None:
    world = make_world((replace(state_directory.make_cards(1)[0], memory_mib=81559, reserved_mib=551),))
    world.hold(4096)
    session = world.session()
    session("nvml('nvmlInit')")
    assert session("memory()") == {
        "total": 81559 * MIB,
        "reserved": 551 * MIB,
        "free": (81559 - 551 - 4096) * MIB,
        "used": 4096 * MIB,
    }
    assert session("pynvml.nvmlDeviceGetMemoryInfo(card()).used") == (551 + 4096) * MIB


def test_a_launch_keeps_the_card_busy_for_its_time(world: World) -> None:
    session = world.session()
    session("nvml('nvmlInit')")
    session("start()")
    session("globals().update(module=ctypes.c_void_p(), function=ctypes.c_void_p())")
    assert session("cuda.cuModuleLoadData(ctypes.byref(module), b'any')") == 0
    assert session("cuda.cuModuleGetFunction(ctypes.byref(function), module, b'busy_300000')") == 0
    began = time.monotonic()
    launch = "cuda.cuLaunchKernel(function, *[1] * 6, 0, None, None, None)"
    assert session(f"[{launch}, pynvml.nvmlDeviceGetUtilizationRates(card()).gpu]") == [0, 100]
    assert session("cuda.cuCtxSynchronize()") == 0
    assert time.monotonic() - began >= 0.3
    assert session("pynvml.nvmlDeviceGetUtilizationRates(card()).gpu") == 0
