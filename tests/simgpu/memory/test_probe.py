"""The probe: its kinds of allocation, export and import, and its load."""

import json
import re
import signal
import time

import pytest

from simgpu import build, usage
from simgpu.world import World

pytestmark = pytest.mark.heavy

MIB = 1 << 20
OUT_OF_MEMORY, INVALID_VALUE, NO_DEVICE = 2, 1, 100
CAPACITY_MIB = 81920
PROGRAMS = (("gpuprobe", ()), ("gpuprobe", ("--proc",)), ("gpuprobe-linked", ()))
KINDS = tuple(re.findall(r'KINDS\s+"(.*)"', (build.SOURCES / "probe" / "kinds.h").read_text())[0].split())


@pytest.mark.parametrize(
    ("kind", "mib"), [(kind, 1024) for kind in ("pool", "graph", "array", "array3d")] + [("mipmap", 1366)]
)
def test_each_kind_fills_the_card_and_no_more(world: World, kind: str, mib: int) -> None:
    assert world.probe("fill", "--kind", kind, "1024") == [
        {"mib": CAPACITY_MIB // mib * 1024, "result": OUT_OF_MEMORY},
    ]


@pytest.mark.parametrize(("program", "options"), PROGRAMS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_taken_by_every_program(world: World, program: str, options: tuple[str, ...], kind: str) -> None:
    assert world.probe("alloc", *options, "--kind", kind, "64", program=program) == [{"mib": 64, "result": 0}]


def test_memory_is_handed_to_another_probe(world: World) -> None:
    exporter = world.start(str(world.bin / "gpuprobe"), "--hold", "0", "export", "64")
    assert exporter.stdout is not None
    line = json.loads(exporter.stdout.readline())
    assert line["result"] == 0
    assert world.probe("import", line["handle"]) == [{"result": 0}]
    assert sum(usage.bytes_by_card(world.state).values()) == 64 * MIB
    assert world.probe("import", "nonsense") == [{"result": INVALID_VALUE}]
    exporter.kill()
    exporter.wait()
    assert world.probe("import", line["handle"]) == [{"result": INVALID_VALUE}]


def test_a_card_is_kept_at_work_until_told_to_stop(world: World) -> None:
    spinning = world.start(str(world.bin / "gpuprobe"), "spin", "500")
    time.sleep(0.3)
    assert spinning.poll() is None
    spinning.terminate()
    assert spinning.wait(5) == -signal.SIGTERM
    (line,) = world.probe("spin", "500", CUDA_VISIBLE_DEVICES="")
    assert line["result"] == NO_DEVICE


def test_a_kernel_with_an_illegal_access(world: World) -> None:
    assert world.probe("fault") == [{"error": "fault", "result": 700}]
