"""Situations that could break a program whose launches wait: each in a new process, under a share of 30 %.

    python -m benchmarks.compute.hazards [NAME ...]

Launches under a fixed share are never queued ahead of their turn: `queue_hazards.py` has the hazards of those that are.
Prints a line for each and exits with 1 when one failed. With SIMGPU_STATE set it runs on the simulated driver.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.container import LimitedContainer
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits

PTX = (
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry {name}()\n{{\n.reg .u64 %t<3>;\n.reg .pred %p;\n"
    "mov.u64 %t0, %globaltimer;\nAGAIN:\nmov.u64 %t1, %globaltimer;\nsub.u64 %t2, %t1, %t0;\n"
    "setp.lt.u64 %p, %t2, {us}000;\n@%p bra AGAIN;\nret;\n}}\n"
)
DEADLINE_S = 40
KERNEL_S = 0.0005
IN_FLIGHT = 64
THREADS = 8
SEEN_S = 0.7  # after which changed limits are in force
STALL_S = 0.1  # goal for the longest launch while other processes of the container die
LAUNCHES = 30
SHARE = 0.3
POINTS = 0.05  # tolerance: shares are measured for a short time
GLOBAL_MODE, NON_BLOCKING = 0, 1


class HazardProgram:
    """CUDA in this process, and a kernel of 0.5 ms."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        self.do("cuInit", 0)
        self.do("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.enter()
        self.function = self.kernel(500)

    def do(self, name: str, *arguments: object) -> None:
        """Call a function of the driver. Raises RuntimeError when it fails."""
        result = getattr(self.cuda, name)(*arguments)
        if result:
            raise RuntimeError(f"{name}: {result}")

    def enter(self) -> None:
        """Make the context current in this thread."""
        self.do("cuCtxSetCurrent", self.context)

    def kernel(self, us: int) -> ctypes.c_void_p:
        """Load a kernel of `us` microseconds into the current context."""
        return self.load(PTX, "spin", us)

    def load(self, code: str, kind: str, us: int) -> ctypes.c_void_p:
        """Load PTX with the places {name} and {us}; the simulated driver takes the duration from the name."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        name = f"{kind}_{us}"
        self.do("cuModuleLoadData", ctypes.byref(module), code.format(name=name, us=us).encode())
        self.do("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def stream(self) -> ctypes.c_void_p:
        """Create a non-blocking stream."""
        made = ctypes.c_void_p()
        self.do("cuStreamCreate", ctypes.byref(made), NON_BLOCKING)
        return made

    def launch(self, stream: ctypes.c_void_p | None, function: ctypes.c_void_p | None = None, twin: str = "") -> None:
        """Launch a kernel, the one of 0.5 ms by default."""
        shape = (132, 1, 1, 256, 1, 1, 0)
        self.do(f"cuLaunchKernel{twin}", function or self.function, *shape, stream, None, None)

    def feed(self, seconds: float, stream: ctypes.c_void_p | None = None, twin: str = "") -> float:
        """Launch for `seconds`; return the share of the time that the kernels took."""
        begun, count = time.monotonic(), 0
        while time.monotonic() < begun + seconds:
            self.launch(stream, None, twin)
            count += 1
            if count % IN_FLIGHT == 0:
                self.do("cuCtxSynchronize")
        self.do("cuCtxSynchronize")
        return count * KERNEL_S / (time.monotonic() - begun)


def streams_end(program: HazardProgram) -> str:
    """Streams are destroyed while their launches are in flight."""
    for _ in range(300):
        stream = program.stream()
        program.launch(stream)
        program.launch(stream)
        program.do("cuStreamDestroy_v2", stream)
    return ""


def contexts_end(program: HazardProgram) -> str:
    """Contexts are destroyed while their launches are in flight."""
    for _ in range(4):
        other = ctypes.c_void_p()
        program.do("cuCtxCreate_v2", ctypes.byref(other), 0, 0)
        kernel, stream = program.kernel(300), program.stream()
        for _ in range(20):
            program.launch(stream, kernel)
            program.enter()
            program.launch(None)
            program.do("cuCtxSetCurrent", other)
        program.do("cuCtxDestroy_v2", other)
        program.enter()
    share = program.feed(1)
    return "" if abs(share - SHARE) < POINTS else f"afterwards {share:.3f}"


def forks(program: HazardProgram) -> str:
    """The process forks during a turn; the child ends, and the parent goes on."""
    program.feed(0.1)
    program.launch(None)
    child = os.fork()
    if child == 0:
        os._exit(0)
    _, status = os.waitpid(child, 0)
    share = program.feed(1)
    return "" if status == 0 and abs(share - SHARE) < POINTS else f"child {status}, afterwards {share:.3f}"


def threads(program: HazardProgram) -> str:
    """Eight threads launch, each into its per-thread default stream."""
    shares: list[float] = []

    def one() -> None:
        program.enter()
        shares.append(program.feed(1.5, None, "_ptsz"))

    every = [threading.Thread(target=one) for _ in range(THREADS)]
    for thread in every:
        thread.start()
    for thread in every:
        thread.join()
    return "" if len(shares) == THREADS else f"{len(shares)} threads ended well"


def captures(program: HazardProgram) -> str:
    """One thread captures in global mode, which forbids unsafe calls in all threads, while another thread launches."""
    stop = threading.Event()

    def other() -> None:
        program.enter()
        stream = program.stream()
        while not stop.is_set():
            program.launch(stream)

    thread = threading.Thread(target=other)
    thread.start()
    stream, graph, ready = program.stream(), ctypes.c_void_p(), ctypes.c_void_p()
    for _ in range(20):
        program.do("cuStreamBeginCapture_v2", stream, GLOBAL_MODE)
        for _ in range(50):
            program.launch(stream)
        time.sleep(0.03)
        program.do("cuStreamEndCapture", stream, ctypes.byref(graph))
    stop.set()
    thread.join()
    program.do("cuGraphInstantiateWithFlags", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
    program.do("cuGraphLaunch", ready, stream)
    program.do("cuStreamSynchronize", stream)
    return ""


def changes(program: HazardProgram) -> str:
    """The share is changed while the program runs, to no limit and back."""
    shares = {}
    for cores in (30, 80, 100, 20):
        set_share(cores)
        time.sleep(SEEN_S)
        shares[cores] = program.feed(0.7)
    wrong = {cores: share for cores, share in shares.items() if abs(share - cores / 100) > POINTS}
    return f"{wrong}" if wrong else ""


def set_share(cores: int) -> None:
    """Rewrite the limits in place, as the device plugin does."""
    path = Path(os.environ["VGPU_LIMITS_FILE"])
    wanted = Limits((CardLimit(ANY_GPU, None, cores),))
    with path.open("r+b") as file:
        for offset, piece in limits.rewrite(path.read_bytes(), wanted):
            file.seek(offset)
            file.write(piece)
            file.flush()


def holders_die(program: HazardProgram) -> str:
    """Other processes of the container are stopped or killed during their turns."""
    longest = 0.0
    for number in range(6):
        with subprocess.Popen([sys.executable, "-m", "benchmarks.compute.hazards", "--feed"]) as other:
            time.sleep(1.2 + number * 0.007)
            other.send_signal(signal.SIGSTOP if number % 2 else signal.SIGKILL)
            begun = time.monotonic()
            for _ in range(LAUNCHES):
                before = time.monotonic()
                program.launch(None)
                longest = max(longest, time.monotonic() - before)
            share = LAUNCHES * KERNEL_S / (time.monotonic() - begun)
            other.kill()
    return "" if longest < STALL_S else f"a launch waited {longest * 1000:.0f} ms, share {share:.2f}"


HAZARDS: dict[str, Callable[[HazardProgram], str]] = {
    hazard.__name__: hazard for hazard in (streams_end, contexts_end, forks, threads, captures, changes, holders_die)
}


def passes(name: str) -> bool:
    """Run one in a new container and print the outcome; return whether there was no fault."""
    begun = time.monotonic()
    with LimitedContainer("64GiB", round(100 * SHARE)) as container:
        command = [sys.executable, "-m", "benchmarks.compute.hazards", "--inside", name]
        try:
            done = subprocess.run(
                command, env=container.env, capture_output=True, text=True, check=False, timeout=DEADLINE_S
            )
        except subprocess.TimeoutExpired:
            print(f"{name}: hangs", flush=True)
            return False
    lines = (done.stdout + done.stderr).strip().splitlines()[-1:] or [f"ended with {done.returncode}"]
    fault = "" if done.returncode == 0 else lines[0]
    print(f"{name}: {fault or 'no fault'} ({time.monotonic() - begun:.1f} s)", flush=True)
    return not fault


def main() -> int:
    """Run the hazards named, all by default; with --inside, be one; with --feed, be another process of a container."""
    if sys.argv[1:2] == ["--feed"]:
        HazardProgram().feed(DEADLINE_S)
        return 0
    if sys.argv[1:2] == ["--inside"]:
        fault = HAZARDS[sys.argv[2]](HazardProgram())
        print(fault)
        return 1 if fault else 0
    good = [passes(name) for name in sys.argv[1:] or HAZARDS]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
