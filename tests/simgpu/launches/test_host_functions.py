"""What streams do besides kernels: functions of the host, waits for words, writes of words."""

import time

import pytest

from simgpu.session import ProbeSession

INVALID_VALUE, CAPTURE_UNSUPPORTED = 1, 900
HOST = 3  # CU_GRAPH_NODE_TYPE_HOST
CALLED = "host_functions.called"
SYNCHRONIZE = "cuda.cuStreamSynchronize(ctypes.c_void_p({}))"


@pytest.fixture
def stream(session: ProbeSession) -> int:
    return int(session("captures.stream()"))


def launch(session: ProbeSession, us: int, stream: int) -> None:
    assert session(f"launches.launch(launches.kernel({us}), {stream})") == 0


@pytest.mark.parametrize("twin", ["", "_ptsz"])
def test_a_function_is_called_behind_the_work_before_it(session: ProbeSession, stream: int, twin: str) -> None:
    launch(session, 100_000, stream)
    assert session(f"host_functions.call('first', {stream}, twin={twin!r})") == 0
    assert session(CALLED) == []
    assert session(SYNCHRONIZE.format(stream)) == 0
    assert session(CALLED) == ["first"]


@pytest.mark.heavy
def test_later_work_of_the_stream_waits_for_the_function(session: ProbeSession, stream: int) -> None:
    kernel = session("launches.kernel(10)")
    assert session(f"host_functions.call('first', {stream}, 1)") == 0
    assert session(f"launches.launch({kernel}, {stream})") == 0
    assert session(f"host_functions.write(0, 7, {stream})") == 0
    assert session(f"host_functions.call_back('second', {stream})") == 0
    assert session("[host_functions.word(0), *host_functions.called]") == [0]
    assert session(SYNCHRONIZE.format(stream)) == 0
    assert session(CALLED) == ["first", "second True 0"]
    assert session("host_functions.word(0)") == 7


def test_functions_of_a_stream_are_called_in_its_order(session: ProbeSession, stream: int) -> None:
    names = [str(number) for number in range(300)]  # more than a context takes before it blocks the host
    assert session(f"{{host_functions.call(str(number), {stream}) for number in range(300)}}.pop()") == 0
    assert session(SYNCHRONIZE.format(stream)) == 0
    assert session(CALLED) == names


def test_the_driver_s_functions_work_while_a_function_runs(session: ProbeSession, stream: int) -> None:
    assert session(f"host_functions.call('slow', {stream}, 0.5)") == 0
    assert session("alloc(1000)")[0] == 0
    assert session(CALLED) == []


@pytest.mark.heavy
def test_the_end_of_a_context_waits_for_the_function_that_runs_and_drops_the_next(session: ProbeSession) -> None:
    context = session("host_functions.context(0)")
    stream = session("captures.stream()")
    for name in ("running", "dropped"):
        assert session(f"host_functions.call({name!r}, {stream}, 1)") == 0
    while session("host_functions.begun") == []:
        pass
    assert session(f"cuda.cuCtxDestroy_v2(ctypes.c_void_p({context}))") == 0
    assert session(CALLED) == ["running"]
    time.sleep(0.3)
    assert session("host_functions.begun") == ["running"]


def test_wrong_calls(session: ProbeSession, stream: int) -> None:
    assert session(f"cuda.cuLaunchHostFunc(ctypes.c_void_p({stream}), None, None)") == INVALID_VALUE
    assert session(f"host_functions.call_back('none', {stream}, 1)") == INVALID_VALUE


def test_a_captured_function_becomes_a_node_and_a_callback_ends_the_capture(session: ProbeSession, stream: int) -> None:
    session(f"captures.begin({stream})")
    assert session(f"host_functions.call('captured', {stream})") == 0
    result, graph = session(f"captures.end({stream})")
    assert (result, session(f"graphs.types({graph})"), session(CALLED)) == (0, [HOST], [])
    session(f"captures.begin({stream})")
    assert session(f"host_functions.call_back('none', {stream})") == CAPTURE_UNSUPPORTED


def test_a_graph_calls_its_functions_between_its_kernels(session: ProbeSession) -> None:
    graph, kernel = session("[graphs.create(), launches.kernel(100000)]")
    for name in ("first", "second"):
        assert session(f"graphs.kernel({graph}, {kernel})") == 0
        assert session(f"host_functions.node({graph}, {name!r})") == 0
    instance = session(f"graphs.instantiate({graph})")[1]
    began = time.monotonic()
    assert session(f"graphs.launch({instance})") == 0
    while session(CALLED) == []:
        assert time.monotonic() - began < 10
    assert session("cuda.cuCtxSynchronize()") == 0
    assert time.monotonic() - began > 0.2
    assert session(CALLED) == ["first", "second"]


@pytest.mark.parametrize("synchronize", [SYNCHRONIZE, "cuda.cuCtxSynchronize()"])
def test_a_synchronization_awaits_waits_and_writes_of_words(
    session: ProbeSession, stream: int, synchronize: str
) -> None:
    """A stream without kernels, too."""
    assert session(f"host_functions.wait(0, 1, {stream})") == 0
    assert session(f"host_functions.write(1, 5, {stream})") == 0
    session("host_functions.set_after(0, 1, 0.2)")
    assert session("host_functions.word(1)") == 0
    assert session(f"[{synchronize.format(stream)}, host_functions.word(1)]") == [0, 5]
