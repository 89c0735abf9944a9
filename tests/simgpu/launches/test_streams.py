"""Each stream makes progress by itself, but for what the legacy default stream and events make it wait for."""

import threading
import time

import pytest

from simgpu.session import ProbeSession

pytestmark = pytest.mark.slow

NOT_READY = 600
BLOCKING, NON_BLOCKING = 0, 1
LEGACY, PER_THREAD = 0, 2


def stream(session: ProbeSession, flags: int = NON_BLOCKING) -> int:
    return int(session(f"launches.stream({flags})"))


def launch(session: ProbeSession, into: int, twin: str = "") -> None:
    assert session(f"launches.launch(launches.kernel(10), {into}, {twin!r})") == 0


def hold(session: ProbeSession, held: int) -> None:
    """Holds back a stream's later work until `let_go`."""
    kernel = session("kernels.load('await_5')")
    assert session(f"host_functions.launch_waiting({kernel}, 0, 1, {held})") == 0


def let_go(session: ProbeSession) -> None:
    session("host_functions.set_word(0, 1)")


def await_event(session: ProbeSession, waiting: int, event: int) -> None:
    assert session(f"cuda.cuStreamWaitEvent(ctypes.c_void_p({waiting}), ctypes.c_void_p({event}), 0)") == 0


def synchronize(session: ProbeSession, of: int) -> None:
    assert session(f"cuda.cuStreamSynchronize(ctypes.c_void_p({of}))") == 0


def is_done(session: ProbeSession, of: int) -> bool:
    """Whether the stream's work is done soon."""
    end = time.monotonic() + 0.2
    while (result := session(f"cuda.cuStreamQuery(ctypes.c_void_p({of}))")) == NOT_READY and time.monotonic() < end:
        time.sleep(0.01)
    assert result in {0, NOT_READY}
    return bool(result == 0)


def test_a_stream_that_is_held_back_holds_back_no_other(session: ProbeSession) -> None:
    held, other = stream(session), stream(session)
    hold(session, held)
    launch(session, other)
    synchronize(session, other)
    assert not is_done(session, held)
    let_go(session)
    synchronize(session, held)


def test_a_kernel_waits_for_a_kernel_of_another_stream_that_is_launched_later(session: ProbeSession) -> None:
    held, other = stream(session), stream(session)
    hold(session, held)
    launch(session, other)
    assert session(f"host_functions.write(0, 1, {other})") == 0
    synchronize(session, held)
    assert is_done(session, other)


def test_a_stream_waits_for_an_event_and_what_it_waits_for(session: ProbeSession) -> None:
    first, second, third = (stream(session) for _ in range(3))
    hold(session, first)
    await_event(session, second, session(f"launches.recorded({first})"))
    await_event(session, third, session(f"launches.recorded({second})"))
    launch(session, third)
    assert not is_done(session, third)
    let_go(session)
    synchronize(session, third)
    assert is_done(session, first)
    assert is_done(session, second)


def test_the_legacy_default_stream_waits_for_streams_that_are_not_non_blocking(session: ProbeSession) -> None:
    held, later, free = stream(session, BLOCKING), stream(session, BLOCKING), stream(session)
    hold(session, held)
    for into in (LEGACY, later, free):
        launch(session, into)
    assert [is_done(session, of) for of in (LEGACY, later, free)] == [False, False, True]
    let_go(session)
    synchronize(session, later)
    assert is_done(session, LEGACY)


def test_a_non_blocking_stream_neither_waits_for_the_legacy_default_stream_nor_holds_it_back(
    session: ProbeSession,
) -> None:
    held, other = stream(session), stream(session, BLOCKING)
    hold(session, held)
    for into in (LEGACY, other):
        launch(session, into)
    synchronize(session, LEGACY)
    synchronize(session, other)
    assert not is_done(session, held)
    let_go(session)
    assert session("cuda.cuCtxSynchronize()") == 0
    assert is_done(session, held)


@pytest.mark.parametrize("awaited", ["event", "stream"])
def test_what_the_legacy_default_stream_waits_for_is_waited_for_with_it(session: ProbeSession, awaited: str) -> None:
    held = stream(session, BLOCKING)
    hold(session, held)
    event = session("launches.recorded()")
    session("host_functions.set_after(0, 1, 0.2)")
    call = f"cuda.cuEventSynchronize(ctypes.c_void_p({event}))"
    assert session(call if awaited == "event" else "cuda.cuStreamSynchronize(None)") == 0
    assert session(f"cuda.cuStreamQuery(ctypes.c_void_p({held}))") == 0


def test_the_default_stream_of_a_thread_is_its_own(session: ProbeSession) -> None:
    hold(session, PER_THREAD)
    session("launches.launch_in_a_thread(10)")
    launch(session, stream(session))
    assert not is_done(session, PER_THREAD)
    launch(session, LEGACY)  # waits for both
    assert not is_done(session, LEGACY)
    let_go(session)
    synchronize(session, LEGACY)


def test_the_forms_for_the_default_stream_of_a_thread_use_it(session: ProbeSession) -> None:
    free = stream(session)
    hold(session, PER_THREAD)
    launch(session, LEGACY, "_ptsz")
    assert session("cuda.cuStreamQuery_ptsz(None)") == NOT_READY
    assert session("cuda.cuStreamQuery(ctypes.c_void_p(1))") == NOT_READY
    assert is_done(session, free)
    let_go(session)
    assert session("cuda.cuStreamSynchronize_ptsz(None)") == 0


def test_an_event_of_another_card_holds_back_the_stream_and_not_the_host(session: ProbeSession) -> None:
    here = stream(session)
    session("host_functions.context(1)")
    there = stream(session)
    hold(session, there)
    event = session(f"launches.recorded({there})")
    await_event(session, here, event)
    assert session("cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))") == 0
    launch(session, here)
    assert session("alloc(1000)")[0] == 0
    assert not is_done(session, here)
    let_go(session)
    synchronize(session, here)


def test_a_stream_with_as_many_waits_as_it_takes_blocks_the_host_until_one_passes(session: ProbeSession) -> None:
    held, other = stream(session), stream(session)
    hold(session, held)
    events = [session(f"launches.recorded({held})") for _ in range(70)]
    timer = threading.Timer(0.3, lambda: None)
    timer.start()
    session("host_functions.set_after(0, 1, 0.3)")
    for event in events:
        await_event(session, other, event)
    timer.join()
    synchronize(session, other)


def test_more_streams_than_channels_make_progress(session: ProbeSession) -> None:
    streams = [stream(session, number % 2) for number in range(40)]
    for into in (*streams, LEGACY, *streams):
        launch(session, into)
    for of in streams:
        synchronize(session, of)
