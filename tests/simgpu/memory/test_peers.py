"""Access of a context to another device's memory, and copies between contexts."""

import pytest

from simgpu.session import ProbeSession
from simgpu.world import World

pytestmark = pytest.mark.heavy

INVALID_VALUE, INVALID_CONTEXT = 1, 201
ALREADY_ENABLED, NOT_ENABLED, UNSUPPORTED = 704, 705, 217
ENABLE = "host_functions.change_peer('cuCtxEnablePeerAccess', {}, 0)"
DISABLE = "host_functions.change_peer('cuCtxDisablePeerAccess', {})"


def test_access_is_enabled_once_and_takes_no_memory(world: World, session: ProbeSession) -> None:
    mine, other = session("[host_functions.context(device) for device in (0, 1)]")
    session(f"cuda.cuCtxSetCurrent(ctypes.c_void_p({mine}))")
    assert session(DISABLE.format(other)) == NOT_ENABLED
    assert [session(ENABLE.format(other)) for _ in range(2)] == [0, ALREADY_ENABLED]
    assert [session(DISABLE.format(other)) for _ in range(2)] == [0, NOT_ENABLED]
    assert world.mib_used() == 0


def test_what_is_no_peer(session: ProbeSession) -> None:
    mine = session("host_functions.context(0)")
    assert session(ENABLE.format(mine)) == UNSUPPORTED
    assert session(ENABLE.format(77)) == INVALID_CONTEXT
    assert session(f"host_functions.change_peer('cuCtxEnablePeerAccess', {mine}, 1)") == INVALID_VALUE


def test_copies_between_contexts_check_both_addresses(session: ProbeSession) -> None:
    first = session("host_functions.context(0)")
    source = session("alloc(1000)")[1]
    second = session("host_functions.context(1)")
    to = session("alloc(1000)")[1]
    for stream in ("", ", 0"):
        copy = f"host_functions.copy_peer({to}, {second}, {source}, {first}, {{}}{stream}"
        assert session(copy.format(1000) + ")") == 0
        assert session(copy.format(1 << 30) + ")") == INVALID_VALUE
    assert session(f"host_functions.copy_peer({to}, 77, {source}, {first}, 10)") == INVALID_CONTEXT
