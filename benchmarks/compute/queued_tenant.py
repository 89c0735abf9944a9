"""A program whose launches are queued ahead of their turn, for `queue_hazards.py`.

    python -m benchmarks.compute.queued_tenant KIND

Prints {"ready":...} and waits for a line. Each kind but `streams` then launches 10 ms of work every 16 ms, without
waiting for the last two of these pulses, until another line comes; then it does what its name says. pulses: completes
its work; exit, _exit, exec: ends with queued work, or becomes another program; forks: ends two children while its own
work is queued; streams: does a fixed amount of work in 64 streams. Prints {"wrong":...,"longest_ms":...}: whether the
results are wrong, and the longest time from the first launch of a pulse to the moment the host saw its end.
"""

import ctypes
import json
import os
import select
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from benchmarks.compute.hazards import HazardProgram

# Each kernel waits for its time and then computes word = word * FACTOR + number, so that each order of launches has a
# result of its own. The simulated driver computes nothing.
CHAIN = (
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry {name}(.param .u64 word, .param .u32 number)\n{{\n"
    ".reg .u64 %t<4>;\n.reg .u32 %r<4>;\n.reg .pred %p<2>;\nmov.u64 %t0, %globaltimer;\n"
    "AGAIN:\nmov.u64 %t1, %globaltimer;\nsub.u64 %t2, %t1, %t0;\nsetp.lt.u64 %p0, %t2, {us}000;\n@%p0 bra AGAIN;\n"
    "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nor.b32 %r0, %r0, %r1;\nsetp.ne.u32 %p1, %r0, 0;\n@%p1 bra END;\n"
    "ld.param.u64 %t3, [word];\nld.param.u32 %r2, [number];\nld.volatile.u32 %r3, [%t3];\n"
    "mad.lo.u32 %r3, %r3, 1664525, %r2;\nst.volatile.u32 [%t3], %r3;\nEND:\nret;\n}}\n"
)
FACTOR = 1664525
KERNEL_US = 40  # launches of more than 80 us are not queued
PULSE = 250
PERIOD_S = 0.016
AHEAD = 2  # pulses that the host does not wait for
STREAMS, ROUNDS, LAUNCHES = 64, 10, 2
PORTABLE_AND_MAPPED, BLOCKING_AND_UNTIMED, AT_LEAST = 3, 3, 0
Answer = dict[str, object]


class Chain:
    """Kernels that must run in the order in which they were launched, and the word in which they compute."""

    def __init__(self) -> None:
        self.program = HazardProgram()
        self.function = self.program.load(CHAIN, "chain", KERNEL_US)
        self.stream = self.program.stream()
        self.word = self.words(1)[0]
        self.launched = self.expected = self.pulses = 0
        self.longest_s = 0.0
        self._events = [self.event() for _ in range(AHEAD)]
        self._begun = [0.0] * AHEAD

    def words(self, count: int) -> list[ctypes.c_uint32]:
        """Return words of pinned memory that the card can access, all 0."""
        memory = ctypes.c_void_p()
        size = ctypes.c_size_t(count * ctypes.sizeof(ctypes.c_uint32))
        self.program.do("cuMemHostAlloc", ctypes.byref(memory), size, PORTABLE_AND_MAPPED)
        assert memory.value is not None
        ctypes.memset(memory.value, 0, size.value)
        return [ctypes.c_uint32.from_address(memory.value + 4 * number) for number in range(count)]

    def event(self) -> ctypes.c_void_p:
        """Create an event."""
        made = ctypes.c_void_p()
        self.program.do("cuEventCreate", ctypes.byref(made), BLOCKING_AND_UNTIMED)
        return made

    def launch(self, stream: ctypes.c_void_p) -> None:
        """Launch the next kernel of the chain."""
        word, number = ctypes.c_uint64(ctypes.addressof(self.word)), ctypes.c_uint32(self.launched)
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(word), ctypes.addressof(number))
        self.program.do("cuLaunchKernel", self.function, 132, 1, 1, 256, 1, 1, 0, stream, arguments, None)
        self.expected = (self.expected * FACTOR + self.launched) % (1 << 32)
        self.launched += 1

    def pulse(self) -> None:
        """Launch a pulse, once the one before the last has ended."""
        slot = self.pulses % AHEAD
        if self.pulses >= AHEAD:
            self._await(slot)
        self._begun[slot] = time.monotonic()
        for _ in range(PULSE):
            self.launch(self.stream)
        self.program.do("cuEventRecord", self._events[slot], self.stream)
        self.pulses += 1

    def _await(self, slot: int) -> None:
        self.program.do("cuEventSynchronize", self._events[slot])
        self.longest_s = max(self.longest_s, time.monotonic() - self._begun[slot])

    def feed(self) -> None:
        """Launch pulses until a line comes, or the end of the input; work is queued at the end.

        Late pulses are not made up for: without a pause a best-effort neighbour would get its floor only.
        """
        due = time.monotonic()
        while not select.select([sys.stdin], [], [], 0)[0]:
            self.pulse()
            due = max(due + PERIOD_S, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
        sys.stdin.readline()
        self.pulse()

    def finish(self) -> Answer:
        """Wait for all work and return the answer."""
        for pulse in range(max(0, self.pulses - AHEAD), self.pulses):
            self._await(pulse % AHEAD)
        self.program.do("cuCtxSynchronize")
        is_wrong = "SIMGPU_STATE" not in os.environ and self.word.value != self.expected
        return {"wrong": int(is_wrong), "longest_ms": 1000 * self.longest_s}


def leave() -> NoReturn:
    """End without the handlers of `exit`."""
    os._exit(0)


def become_another() -> NoReturn:
    """Become another program, which ends at once."""
    os.execv("/bin/true", ["true"])


def pulses(chain: Chain) -> Answer:
    """Complete the work."""
    chain.feed()
    return chain.finish()


def forks(chain: Chain) -> Answer:
    """Fork with queued work: one child ends, and one becomes another program."""
    chain.feed()
    begun, statuses = time.monotonic(), []
    for end in (leave, become_another):
        child = os.fork()
        if child == 0:
            end()
        chain.pulse()
        statuses.append(os.waitpid(child, 0)[1])
    children_ms = 1000 * (time.monotonic() - begun)
    return {**chain.finish(), "children_ms": children_ms, "failed": sum(status != 0 for status in statuses)}


def ends(end: Callable[[], object]) -> Callable[[Chain], Answer]:
    """Return a kind that answers with the time and ends with queued work."""

    def kind(chain: Chain) -> Answer:
        chain.feed()
        say({"ns": time.monotonic_ns()})
        end()
        return {}

    return kind


def streams(chain: Chain) -> Answer:
    """Launch the chain in 64 streams, which wait for each other in turn by events and by values in memory.

    Each wait is launched after what it waits for, so that no number of hardware channels can cause a deadlock.
    """
    every = [chain.program.stream() for _ in range(STREAMS)]
    events, words = [chain.event() for _ in every], chain.words(STREAMS)
    for number in range(STREAMS * ROUNDS):
        stream, before = every[number % STREAMS], (number - 1) % STREAMS
        if number % 2:
            chain.program.do("cuStreamWaitEvent", stream, events[before], 0)
        elif number:
            at = ctypes.c_uint64(ctypes.addressof(words[before]))
            chain.program.do("cuStreamWaitValue32_v2", stream, at, number, AT_LEAST)
        for _ in range(LAUNCHES):
            chain.launch(stream)
        if number % 2:
            at = ctypes.c_uint64(ctypes.addressof(words[number % STREAMS]))
            chain.program.do("cuStreamWriteValue32_v2", stream, at, number + 1, 0)
        else:
            chain.program.do("cuEventRecord", events[number % STREAMS], stream)
    return chain.finish()


KINDS: dict[str, Callable[[Chain], Answer]] = {
    "pulses": pulses,
    "forks": forks,
    "streams": streams,
    "exit": ends(sys.exit),
    "_exit": ends(leave),
    "exec": ends(become_another),
}


def say(answer: Answer) -> None:
    """Print an answer, as `Feeder` reads it."""
    print(json.dumps({"result": 0, "function": "", **answer}), flush=True)


def main() -> None:
    """Start, wait for a line, and be of the kind."""
    try:
        chain = Chain()
        for _ in range(PULSE):  # kernels of unknown duration are not queued
            chain.launch(chain.stream)
        chain.program.do("cuCtxSynchronize")
        say({"ready": True})
        if sys.stdin.readline():
            say(KINDS[sys.argv[1]](chain))
    except RuntimeError as error:
        say({"result": -1, "function": str(error)})


if __name__ == "__main__":
    main()
