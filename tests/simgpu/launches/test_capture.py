"""Stream capture: the calls that become nodes, and the calls that are forbidden (as on an H200, driver 580)."""

import time

import pytest

from simgpu.session import ProbeSession
from simgpu.world import World

pytestmark = pytest.mark.heavy

MIB = 1 << 20
INVALID_VALUE, ILLEGAL_STATE = 1, 401
UNSUPPORTED, INVALIDATED, UNMATCHED, CAPTURED_EVENT, WRONG_THREAD = 900, 901, 903, 907, 908
KERNEL, FILLS, ALLOCATES, FREES = 0, 2, 10, 11
NOT_CAPTURED, CAPTURED, INVALID = range(3)


@pytest.fixture
def stream(session: ProbeSession) -> int:
    return int(session("captures.stream()"))


def kernel(session: ProbeSession, name: str) -> int:
    _, module = session("made('cuModuleLoadData', b'code')")
    return int(session(f"made('cuModuleGetFunction', ctypes.c_void_p({module}), b'{name}')")[1])


def test_what_is_done_in_a_captured_stream_becomes_a_graph(world: World, session: ProbeSession, stream: int) -> None:
    function = kernel(session, "busy_200000")
    began = time.monotonic()
    assert session(f"captures.begin({stream})") == 0
    result, pointer = session(f"captures.alloc({40 * MIB}, {stream})")
    assert result == 0
    assert session(f"captures.fill({pointer}, {40 * MIB}, {stream})") == 0
    assert session(f"captures.launch({function}, {stream})") == 0
    assert session(f"captures.free({pointer}, {stream})") == 0
    assert session(f"captures.status({stream})") == CAPTURED
    status, captured = session(f"captures.told({stream})")
    result, graph = session(f"captures.end({stream})")
    assert (status, result, captured) == (CAPTURED, 0, graph)
    assert session(f"graphs.types({graph})") == [ALLOCATES, FILLS, KERNEL, FREES]
    assert (session(f"captures.status({stream})"), world.mib_used()) == (NOT_CAPTURED, 0)
    assert time.monotonic() - began < 0.2
    _, instance = session(f"graphs.instantiate({graph})")
    assert session(f"graphs.launch({instance})") == 0
    assert world.mib_used() == 64
    assert session("cuda.cuCtxSynchronize()") == 0
    assert time.monotonic() - began >= 0.2


UNSAFE = (
    "alloc(4096)[0]",
    "alloc(4096, 'cuMemAllocManaged')[0]",
    "free(alloc(0)[1] or 4096)",
    "arrays.plain(4, 4)[0]",
    "arrays.cube(4, 4, 4)[0]",
    "arrays.cube(4, 4, 0, levels=2)[0]",
    "pools.trim(pools.of_device(), 0)",
    "cuda.cuMemPoolGetAttribute(ctypes.c_void_p(pools.of_device()), pools.USED, (ctypes.c_uint64 * 1)())",
    "cuda.cuCtxSynchronize()",
    "cuda.cuEventQuery(ctypes.c_void_p(made('cuEventCreate', 0)[1]))",
)


@pytest.mark.parametrize("call", UNSAFE)
def test_an_unsafe_call_is_refused_and_ends_the_capture(session: ProbeSession, stream: int, call: str) -> None:
    session(f"captures.begin({stream})")
    assert session(call) == UNSUPPORTED
    assert session(f"captures.status({stream})") == INVALID
    assert session(f"captures.alloc(4096, {stream})")[0] == INVALIDATED
    assert session(f"captures.end({stream})") == [INVALIDATED, 0]
    assert session("alloc(4096)[0]") == 0


@pytest.mark.parametrize("call", UNSAFE)
def test_a_thread_in_relaxed_mode_may_make_an_unsafe_call(session: ProbeSession, stream: int, call: str) -> None:
    session(f"captures.begin({stream})")
    assert session("captures.exchange(captures.RELAXED)") == 0
    assert session(call) != UNSUPPORTED
    assert session("captures.exchange(captures.GLOBAL)") == 2
    assert session(f"captures.status({stream})") == CAPTURED
    assert session(f"captures.end({stream})")[0] == 0


HARMLESS = (
    "info()[0]",
    "made('cuDeviceGetMemPool', 0)[0]",
    "graphs.read(graphs.USED)",
    "cuda.cuCtxGetDevice((ctypes.c_int * 1)())",
    "cuda.cuStreamGetCtx(None, (ctypes.c_void_p * 1)())",
)


@pytest.mark.parametrize("call", HARMLESS)
def test_a_harmless_call_changes_nothing(session: ProbeSession, stream: int, call: str) -> None:
    session(f"captures.begin({stream})")
    assert session(call) == 0
    assert session(f"captures.end({stream})")[0] == 0


@pytest.mark.parametrize(
    ("mode", "here", "elsewhere"),
    [("GLOBAL", UNSUPPORTED, UNSUPPORTED), ("THREAD_LOCAL", UNSUPPORTED, 0), ("RELAXED", 0, 0)],
)
def test_the_modes_decide_whose_calls_are_refused(
    session: ProbeSession, stream: int, mode: str, here: int, elsewhere: int
) -> None:
    synchronise = "captures.elsewhere('cuCtxSynchronize')"
    for call, result in (("cuda.cuCtxSynchronize()", here), (synchronise, elsewhere)):
        session(f"captures.begin({stream}, captures.{mode})")
        assert session(call) == result
        assert session(f"captures.end({stream})")[0] == (INVALIDATED if result else 0)


def test_a_thread_that_minds_its_own_captures_alone_may_wait(session: ProbeSession, stream: int) -> None:
    session(f"captures.begin({stream})")
    assert session("captures.elsewhere('cuCtxSynchronize', mode=captures.THREAD_LOCAL)") == 0
    assert session(f"captures.end({stream})")[0] == 0


def test_a_captured_allocation_is_no_memory_until_the_launch(session: ProbeSession, stream: int) -> None:
    session(f"captures.begin({stream})")
    _, pointer = session(f"captures.alloc({MIB}, {stream})")
    _, graph = session(f"captures.end({stream})")
    assert session(f"fill({pointer}, 1)") == INVALID_VALUE
    _, instance = session(f"graphs.instantiate({graph})")
    assert session(f"graphs.launch({instance})") == 0
    assert session(f"fill({pointer}, {MIB})") == 0


@pytest.mark.parametrize("call", ["cuStreamSynchronize", "cuStreamQuery"])
def test_a_captured_stream_cannot_be_waited_for(session: ProbeSession, stream: int, call: str) -> None:
    session(f"captures.begin({stream}, captures.RELAXED)")
    assert session(f"cuda.{call}(ctypes.c_void_p({stream}))") == UNSUPPORTED
    assert session(f"captures.end({stream})") == [INVALIDATED, 0]


def test_another_stream_joins_by_an_event(session: ProbeSession, stream: int) -> None:
    other, event = session("captures.stream()"), session("made('cuEventCreate', 0)[1]")
    session(f"captures.begin({stream})")
    assert session(f"cuda.cuEventRecord(ctypes.c_void_p({event}), ctypes.c_void_p({stream}))") == 0
    assert session(f"cuda.cuStreamWaitEvent(ctypes.c_void_p({other}), ctypes.c_void_p({event}), 0)") == 0
    assert session(f"captures.alloc({MIB}, {other})")[0] == 0
    assert session(f"captures.status({other})") == CAPTURED
    assert session(f"cuda.cuEventSynchronize(ctypes.c_void_p({event}))") == CAPTURED_EVENT
    assert session(f"captures.end({other})") == [UNMATCHED, 0]
    result, graph = session(f"captures.end({stream})")
    assert (result, session(f"graphs.types({graph})")) == (0, [ALLOCATES])
    assert session(f"captures.status({other})") == NOT_CAPTURED


def test_a_capture_begins_and_ends_once_and_in_its_thread(session: ProbeSession, stream: int) -> None:
    assert session(f"captures.end({stream})") == [ILLEGAL_STATE, 0]
    assert session("captures.begin(0)") == UNSUPPORTED
    assert session(f"captures.begin({stream})") == 0
    assert session(f"captures.begin({stream})") == ILLEGAL_STATE
    end = f"captures.elsewhere('cuStreamEndCapture', ctypes.c_void_p({stream}), (ctypes.c_void_p * 1)())"
    assert session(end) == WRONG_THREAD
    assert session(f"captures.end({stream})")[0] == 0
