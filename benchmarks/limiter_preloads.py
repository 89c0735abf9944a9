"""Shares of a GPU's time beside a false clock, and the memory limit over two copies of the driver.

    python -m benchmarks.limiter_preloads build      # where there is a compiler: what it runs, into build/bench
    python -m benchmarks.limiter_preloads [SECONDS]  # prints a table; the exit status is 1 if a limit is missed

Needs `limiter/libvgpushare.so`, `limiter/vgpu-arbiter` and `build/bench`. Takes about half a minute. With SIMGPU_STATE
set it runs on the simulated GPU.
"""

import ctypes
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.compute.load import FeederLoad, feed, feed_together
from benchmarks.compute.node import BenchmarkNode, Env
from benchmarks.container import LimitedContainer
from benchmarks.programs import build as programs
from benchmarks.programs.build import OUT
from limiter.build import toolchain

TESTS = Path(__file__).parents[1] / "tests" / "limiter"
SOURCES = {
    "libfalse-clock.so": (TESTS / "robustness" / "false_clock.c", "-shared"),
    "two_drivers": (TESTS / "preload" / "two_drivers.c", "-fPIE"),
}
LOAD = FeederLoad("kernel", 500)
WAYS = (None, "fast", "frozen", "ahead", "behind")
POINTS = 2.0
LEAST_OF_80 = 70.0  # handovers between the two take the rest
LIMIT_MIB, TAKEN_MIB = 1600, 900  # with a context of some 500 MiB one of two allocations fits, as without
OUT_OF_MEMORY = 2

Row = tuple[str, str, str, bool]


def build() -> None:
    """Compile what this script runs. Raises CalledProcessError."""
    programs.build("feed")
    for name, (source, option) in SOURCES.items():
        command = [
            *toolchain.compiler(platform.machine()),
            "-O1",
            "-D_GNU_SOURCE",
            "-fPIC",
            option,
            str(source),
            "-ldl",
        ]
        subprocess.run([*command, "-o", str(OUT / name)], check=True)


def beside_clock(env: Env, way: str | None) -> Env:
    """Return the environment with a clock that lies to the limiter alone, so that the load measures true time."""
    lie = {"FALSE_CLOCK": way, "FALSE_CLOCK_TO": "libvgpushare"} if way else {}
    return {**env, **lie, "LD_PRELOAD": f"{OUT / 'libfalse-clock.so'}:{env['LD_PRELOAD']}"}


def share_rows(seconds: float) -> Iterator[Row]:
    """Measure 20 % alone, and 20 beside 80; the container with 20 has the false clock."""
    for way in WAYS:
        with BenchmarkNode() as node:
            alone = 100 * feed(LOAD, seconds, beside_clock(node.container(20), way)).share
        with BenchmarkNode() as node:
            small, large = beside_clock(node.container(20), way), node.container(80)
            both = [100 * fed.share for fed in feed_together([(LOAD, small), (LOAD, large)], seconds)]
        clock = f"clock {way or 'true'}"
        yield clock, "20 % alone", f"{alone:.1f} %", abs(alone - 20) <= POINTS
        are_kept = both[0] <= 20 + POINTS and both[1] >= LEAST_OF_80
        yield clock, "20 beside 80", f"{both[0]:.1f} / {both[1]:.1f} %", are_kept


def driver_path() -> Path:
    """Return the file of the driver that this machine's loader finds."""
    ctypes.CDLL("libcuda.so.1")
    lines = Path("/proc/self/maps").read_text().splitlines()
    return Path(next(line.split()[-1] for line in lines if "libcuda" in line))


def memory_rows() -> Iterator[Row]:
    """Allocate more than half of the limit by each of two copies of the driver, in both orders."""
    with tempfile.TemporaryDirectory() as folder:
        copy = str(shutil.copy(driver_path(), Path(folder) / "libcuda.so.1"))
        for order in (("libcuda.so.1", copy), (copy, "libcuda.so.1")):
            for way in ("open", "address"):
                yield memory_row(order, way)


def memory_row(order: tuple[str, str], way: str) -> Row:
    """Use the two copies in one process."""
    with LimitedContainer(f"{LIMIT_MIB}MiB", 100) as container:
        command = [str(OUT / "two_drivers"), str(TAKEN_MIB), *(f"{way}:{path}" for path in order)]
        done = subprocess.run(command, env=dict(container.env), capture_output=True, text=True, check=False, timeout=60)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    is_limited = [row[1:3] for row in results] == [[0, LIMIT_MIB], [OUT_OF_MEMORY, LIMIT_MIB]]
    names = " then ".join("copy" if "/" in path else "system's" for path in order)
    return (
        names,
        f"{TAKEN_MIB} + {TAKEN_MIB} of {LIMIT_MIB} MiB, {way}",
        str(results or done.stderr.strip()[-200:]),
        is_limited,
    )


def main(arguments: list[str]) -> int:
    """Print a row for each measurement; return 1 if one misses its limit."""
    if arguments == ["build"]:
        build()
        return 0
    print("| what | limit | got | right |\n|---|---|---|---|", flush=True)
    are_right = True
    for rows in (share_rows(float(arguments[0]) if arguments else 2.0), memory_rows()):
        for what, limit, got, is_right in rows:
            print(f"| {what} | {limit} | {got} | {'yes' if is_right else 'NO'} |", flush=True)
            are_right &= is_right
    return 0 if are_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
