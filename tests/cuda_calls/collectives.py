"""Collectives: kernels on several cards that wait for each other, as NCCL's do. Handles are numbers."""

import ctypes
import threading
import time

from tests.cuda_calls import kernels, launches

cuda = ctypes.CDLL("libcuda.so.1")
P = ctypes.c_void_p


class Rank:
    """A card of this process in a collective of `ranks` cards, each of whose kernels takes `us` once all have begun."""

    def __init__(self, device: int, ranks: int, us: int) -> None:
        self._context = P()
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), device)
        cuda.cuCtxSetCurrent(self._context)
        self._stream, self._other = launches.stream(), launches.stream()
        self._work: dict[int, int] = {}
        self._collective = kernels.load(f"collective{ranks}_{us}")

    def work(self, us: int, *, beside: bool = False) -> int:
        """Result of the launch of a kernel, before the next collective or in another stream."""
        cuda.cuCtxSetCurrent(self._context)
        if us not in self._work:
            self._work[us] = launches.kernel(us)
        return launches.launch(self._work[us], self._other if beside else self._stream)

    def work_after(self, other: "Rank", us: int) -> int:
        """Result of the launch of a kernel that waits on its card for the work of the other rank."""
        done = other.mark()
        cuda.cuCtxSetCurrent(self._context)
        if cuda.cuStreamWaitEvent(P(self._stream), P(done), 0):
            raise RuntimeError("cuStreamWaitEvent")
        result = self.work(us)
        cuda.cuEventDestroy_v2(P(done))
        return result

    def mark(self) -> int:
        """An event recorded in the rank's stream."""
        cuda.cuCtxSetCurrent(self._context)
        return launches.recorded(self._stream)

    def join(self, group: int, number: int) -> int:
        """Result of the launch of this rank's kernel of a collective."""
        cuda.cuCtxSetCurrent(self._context)
        values = ctypes.c_uint64(group), ctypes.c_uint32(number), ctypes.c_uint64()
        parameters = (P * 3)(*(ctypes.addressof(value) for value in values))
        return int(cuda.cuLaunchKernel(P(self._collective), *[1] * 6, 0, P(self._stream), parameters, None))

    def reach(self, other: "Rank") -> int:
        """Result of enabling access to the other card's memory."""
        cuda.cuCtxSetCurrent(self._context)
        return int(cuda.cuCtxEnablePeerAccess(other._context, 0))

    def part(self, other: "Rank") -> int:
        """Result of disabling it."""
        cuda.cuCtxSetCurrent(self._context)
        return int(cuda.cuCtxDisablePeerAccess(other._context))

    def is_done(self) -> bool:
        """Whether the rank's stream has no work left."""
        return int(cuda.cuStreamQuery(P(self._stream))) == 0

    def wait(self) -> float:
        """Wait for the rank's stream, and return CLOCK_MONOTONIC in seconds."""
        cuda.cuStreamSynchronize(P(self._stream))
        return time.monotonic()


_ranks: dict[int, Rank] = {}


def prepare(device: int, ranks: int, us: int) -> None:
    """Make the rank of this device, by which the functions below know it."""
    _ranks[device] = Rank(device, ranks, us)


def rank(device: int) -> Rank:
    """The rank of a device."""
    return _ranks[device]


def link() -> list[int]:
    """Results of enabling access of each rank of this process to the memory of each other one's card."""
    return [one.reach(other) for one in _ranks.values() for other in _ranks.values() if other is not one]


def unlink() -> list[int]:
    """Results of disabling what `link` enables."""
    return [one.part(other) for one in _ranks.values() for other in _ranks.values() if other is not one]


def steps_in_threads(count: int, work_us: int, group: int = 8) -> float:
    """As `steps`, with a thread for each rank."""

    def run(of: Rank) -> None:
        for number in range(count):
            of.work(work_us)
            of.join(group, number)
        of.wait()

    begun = time.monotonic()
    threads = [threading.Thread(target=run, args=(of,)) for of in _ranks.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - begun


def steps(count: int, work_us: int, group: int = 7) -> float:
    """Seconds of that many steps of all ranks of this process: work, and a collective. `group`: of the job's own."""
    begun = time.monotonic()
    for number in range(count):
        for of in _ranks.values():
            of.work(work_us)
            of.join(group, number)
    for of in _ranks.values():
        of.wait()
    return time.monotonic() - begun


def late_launches(count: int, pause_s: float, group: int = 9) -> list[float]:
    """Seconds that each of `count` launches of a collective's kernel on the second of two cards takes.

    It comes `pause_s` after the one on the first card, which spins meanwhile.
    """
    first, second = _ranks.values()
    took = []
    for number in range(count):
        first.join(group, number)
        time.sleep(pause_s)
        begun = time.monotonic()
        second.join(group, number)
        took.append(time.monotonic() - begun)
        second.wait()
    return took


def pipeline(count: int, first_us: int, second_us: int, beside_us: int = 0) -> float:
    """Seconds of that many steps: work on the first of two cards, and then, by an event, work on the second one.

    With `beside_us` the second card has work of that length in another stream, which waits for nothing.
    """
    first, second = _ranks.values()
    begun = time.monotonic()
    for _ in range(count):
        first.work(first_us)
        if beside_us:
            second.work(beside_us, beside=True)
        second.work_after(first, second_us)
    first.wait()
    second.wait()
    return time.monotonic() - begun


def ring(count: int, us: int) -> float:
    """Seconds of that many steps: work on the first of two cards, by an event on the second one, and so on."""
    first, second = _ranks.values()
    begun = time.monotonic()
    for _ in range(count):
        first.work_after(second, us)
        second.work_after(first, us)
    second.wait()
    return time.monotonic() - begun


def new_kernels(seconds: float, us: int) -> float:
    """Share of the time that kernels had on the second of two cards, each of which is launched once and waited for.

    The first one comes 50 ms after other work, when the turn of that is older than turns are.
    """
    second = list(_ranks.values())[1]
    second.mark()  # makes its context current
    time.sleep(0.05)
    count, begun = 0, time.monotonic()
    while time.monotonic() < begun + seconds:
        launches.launch(kernels.load(f"spin_{us}"))
        cuda.cuCtxSynchronize()
        count += 1
    return count * us / 1e6 / (time.monotonic() - begun)


def work_beside_a_spinning_kernel(seconds: float, us: int, group: int = 10) -> float:
    """Share of the time that kernels of `us` had on the second of two cards, each of which is waited for.

    A collective's kernel on the first one spins for the second one meanwhile, and a thread waits for it at the gate.
    """
    first, second = _ranks.values()

    def spin() -> None:
        first.join(group, 0)
        for _ in range(10):
            first.work(100)

    waiting = threading.Thread(target=spin)
    waiting.start()
    count, begun = 0, time.monotonic()
    while time.monotonic() < begun + seconds:
        second.work(us)
        second.wait()
        count += 1
    passed = time.monotonic() - begun
    second.join(group, 0)
    waiting.join()
    return count * us / 1e6 / passed
