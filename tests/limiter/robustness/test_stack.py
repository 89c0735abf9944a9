"""How much stack the limiter takes of the thread that calls the driver, beside the driver's own."""

import json
import subprocess
from pathlib import Path

import pytest

from simgpu.build import OUT
from tests.limiter.conftest import Build, Container

BOUND = 24 << 10  # bytes, of which the simulated NVML takes a part


def used(program: Path, env: dict[str, str]) -> dict[str, int]:
    done = subprocess.run([str(program)], env=env, capture_output=True, text=True, check=True, timeout=30)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("call", ["refused", "load", "grow"])
def test_a_call_takes_little_more_stack_than_the_driver_s(
    container_with_code: Container, built: Build, call: str
) -> None:
    program = built("robustness/stack.c", str(OUT / "libcuda.so.1"), "-lpthread")
    world = container_with_code.world
    native = used(program, world.environment())
    limited = used(program, world.environment(**container_with_code.env))
    assert limited[call] - native[call] <= BOUND, (native, limited)
