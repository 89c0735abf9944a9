"""A card without memory of its own, such as GB10: NVML has no figures of it, and in a container it has the limit."""

import pytest

from simgpu import state_directory
from simgpu.session import ProbeSession
from tests.limiter.conftest import MIB, Container

NOT_SUPPORTED, VERSION_MISMATCH = 3, 25
LIMIT = 64 * MIB
V1 = "(lambda m: [m.total, m.free, m.used])(pynvml.nvmlDeviceGetMemoryInfo(card()))"


@pytest.fixture
def unified(container: Container) -> ProbeSession:
    """A process with 6 MiB of a card of which NVML has no figures."""
    state_directory.inject_faults(
        container.world.state, ("nvmlDeviceGetMemoryInfo", NOT_SUPPORTED), ("nvmlDeviceGetMemoryInfo_v2", NOT_SUPPORTED)
    )
    session = container.session()
    assert session("start()") == 0
    session("nvml('nvmlInit')")
    assert session(f"alloc({6 * MIB})")[0] == 0
    return session


def test_nvml_tells_the_limit_and_what_is_left_of_it(unified: ProbeSession) -> None:
    assert unified(V1) == [LIMIT, LIMIT - 6 * MIB, 6 * MIB]
    assert unified("memory()") == {"total": LIMIT, "reserved": 0, "free": LIMIT - 6 * MIB, "used": 6 * MIB}


def test_invalid_calls_stay_errors(unified: ProbeSession) -> None:
    unified("globals().update(raw=ctypes.CDLL('libnvidia-ml.so.1'))")
    assert unified("raw.nvmlDeviceGetMemoryInfo(card(), None)") == NOT_SUPPORTED
    assert unified("raw.nvmlDeviceGetMemoryInfo_v2(card(), ctypes.byref((ctypes.c_uint64 * 5)()))") == VERSION_MISMATCH
