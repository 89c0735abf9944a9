"""Kernels of a given duration, and the share of the card's time that they get. Handles are numbers."""

import ctypes
import threading
import time

from tests.cuda_calls import kernels

NON_BLOCKING = 1
PER_THREAD = 2
RING = range(4)

cuda = ctypes.CDLL("libcuda.so.1")
P = ctypes.c_void_p


def _made(function: str, *arguments: object) -> int:
    out = P()
    result = cuda[function](ctypes.byref(out), *arguments)
    if result:
        raise RuntimeError(f"{function}: {result}")
    return out.value or 0


def kernel(us: int) -> int:
    """A kernel of that duration."""
    return kernels.load(f"spin_{us}")


def lazy_kernels(us: int, count: int) -> list[int]:
    """Kernels of that duration, for whose loading the driver takes 2 ms of the host's time."""
    return [kernels.load(f"lazy_{us}") for _ in range(count)]


def cold_kernels(us: int, count: int) -> list[int]:
    """Kernels of that duration, whose first launches take 2 ms more of the card's time."""
    return [kernels.load(f"cold_{us}") for _ in range(count)]


def stream(flags: int = NON_BLOCKING) -> int:
    """A stream; with `flags` 0 one that synchronizes with the legacy default stream."""
    return _made("cuStreamCreate", flags)


def launch(function: int, into: int = 0, twin: str = "") -> int:
    """Result of a launch."""
    return int(cuda["cuLaunchKernel" + twin](P(function), 1, 1, 1, 1, 1, 1, 0, P(into), None, None))


def launch_in_a_thread(us: int) -> None:
    """Launches a kernel in the default stream of a new thread, and waits for its end."""
    function, context = kernel(us), P()
    cuda.cuCtxGetCurrent(ctypes.byref(context))

    def run() -> None:
        cuda.cuCtxSetCurrent(context)
        if launch(function, PER_THREAD) or cuda.cuStreamSynchronize(P(PER_THREAD)):
            raise RuntimeError("cuLaunchKernel")

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def recorded(of: int = 0) -> int:
    """An event recorded in a stream, by default in the default stream."""
    event = _made("cuEventCreate", 0)
    if cuda.cuEventRecord(P(event), P(of)):
        raise RuntimeError("cuEventRecord")
    return event


def between(first: int, last: int) -> float:
    """Milliseconds between two events that have passed."""
    elapsed = ctypes.c_float()
    result = cuda.cuEventElapsedTime(ctypes.byref(elapsed), P(first), P(last))
    return -result if result else elapsed.value


def timed(us: int) -> float:
    """Milliseconds between two events around a kernel of that duration."""
    return timed_launch(kernel(us))


def timed_launch(function: int) -> float:
    """Milliseconds between two events around a launch."""
    first = recorded()
    launch(function)
    last = recorded()
    cuda.cuEventSynchronize(P(last))
    return between(first, last)


def feed_waited_for(us: int, count: int) -> float:
    """Share of the time that kernels took when each was waited for."""
    function, begun = kernel(us), time.monotonic()
    for _ in range(count):
        launch(function)
        cuda.cuCtxSynchronize()
    return count * us / 1e6 / (time.monotonic() - begun)


def serve(first: int, others: int, count: int, requests: int) -> None:
    """Requests of a kernel and then `count` others, each waited for."""
    for _ in range(requests):
        launch(first)
        for _ in range(count):
            launch(others)
        cuda.cuCtxSynchronize()


def end_stream(ended: int) -> int:
    """Result of cuStreamDestroy."""
    return int(cuda.cuStreamDestroy_v2(P(ended)))


def feed(us: int, seconds: float, into: int = 0, twin: str = "") -> float:
    """Share of the time that kernels took when they were launched without waits."""
    return feed_one(kernel(us), us, seconds, into, twin)


def feed_one(function: int, us: int, seconds: float, into: int = 0, twin: str = "") -> float:
    """Share of the time that one kernel, which takes `us`, took when it was launched without waits."""
    count, begun = 0, time.monotonic()
    while time.monotonic() < begun + seconds and launch(function, into, twin) == 0:
        count += 1
    cuda.cuCtxSynchronize()
    return count * us / 1e6 / (time.monotonic() - begun)


def feed_ahead(us: int, seconds: float, ahead_us: int = 20_000) -> float:
    """Share of the time that kernels took with at most `ahead_us` in flight, as of a program that reads results."""
    return _feed(kernel(us), us, seconds, ahead_us)


def feed_kernel(name: str, us: int, seconds: float, ahead_us: int = 20_000) -> float:
    """Like `feed_ahead`, of kernels whose names begin with `name`."""
    return _feed(kernels.load(f"{name}_{us}"), us, seconds, ahead_us)


def _feed(function: int, us: int, seconds: float, ahead_us: int) -> float:
    count, begun = 0, time.monotonic()
    batch = max(1, ahead_us // (us * len(RING)))
    events = [_made("cuEventCreate", 0) for _ in RING]
    while time.monotonic() < begun + seconds:
        event = P(events[count // batch % len(RING)])
        cuda.cuEventSynchronize(event)
        for _ in range(batch):
            launch(function)
        cuda.cuEventRecord(event, None)
        count += batch
    cuda.cuCtxSynchronize()
    return count * us / 1e6 / (time.monotonic() - begun)


def steady_share(us: int, seconds: float, in_flight: int, skip_s: float) -> float:
    """Share of the time from the end of the first kernel after `skip_s` to the end of the last one; NaN for one kernel.

    `in_flight` kernels are launched ahead; with 1, each is waited for.
    """
    function, ends, count, begun = kernel(us), list[float](), 0, time.monotonic()
    events = [_made("cuEventCreate", 0) for _ in range(in_flight)]
    while time.monotonic() < begun + skip_s + seconds:
        event = P(events[count % in_flight])
        if count >= in_flight:
            cuda.cuEventSynchronize(event)
            ends.append(time.monotonic())
        launch(function)
        cuda.cuEventRecord(event, None)
        count += 1
    counted = [end for end in ends if end >= begun + skip_s]
    return us / 1e6 * (len(counted) - 1) / (counted[-1] - counted[0]) if len(counted) > 1 else float("nan")


def answers(us: int, seconds: float, every_s: float = 0.01) -> list[float]:
    """Seconds of each request: two kernels and a wait for them, started every `every_s`."""
    function, taken, due = kernel(us), list[float](), time.monotonic()
    until = due + seconds
    while due < until:
        time.sleep(max(0, due - time.monotonic()))
        begun = time.monotonic()
        launch(function)
        launch(function)
        cuda.cuCtxSynchronize()
        taken.append(time.monotonic() - begun)
        due = max(due + every_s, begun)
    return taken


def longest(us: int, count: int) -> float:
    """Seconds of the slowest of `count` launches."""
    return longest_of_one(kernel(us), count)


def longest_of_one(function: int, count: int) -> float:
    """Seconds of the slowest of `count` launches of one kernel."""
    worst = 0.0
    for _ in range(count):
        begun = time.monotonic()
        launch(function)
        worst = max(worst, time.monotonic() - begun)
    return worst


def feed_in_threads(us: int, seconds: float, count: int) -> list[float]:
    """Shares of threads of the current context, each with its own default stream."""
    context, shares = P(), list[float]()
    cuda.cuCtxGetCurrent(ctypes.byref(context))

    def one() -> None:
        cuda.cuCtxSetCurrent(context)
        shares.append(feed(us, seconds, 0, "_ptsz"))

    every = [threading.Thread(target=one) for _ in range(count)]
    for thread in every:
        thread.start()
    for thread in every:
        thread.join()
    return shares


def end_context(function: int) -> list[int]:
    """Results of launches in a new context, of destroying it while they are in flight, and of a launch afterwards."""
    context, former = P(), P()
    cuda.cuCtxGetCurrent(ctypes.byref(former))
    results = [cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)]
    other = kernel(300)
    results += [launch(other) for _ in range(5)] + [cuda.cuCtxDestroy_v2(context), cuda.cuCtxSetCurrent(former)]
    return [*results, launch(function)]


def launch_elsewhere(function: int, into: int, count: int) -> list[int]:
    """The distinct results of launches by another thread with the current context."""
    context, results = P(), set[int]()
    cuda.cuCtxGetCurrent(ctypes.byref(context))

    def one() -> None:
        cuda.cuCtxSetCurrent(context)
        results.update(launch(function, into) for _ in range(count))

    thread = threading.Thread(target=one)
    thread.start()
    thread.join()
    return sorted(results)
