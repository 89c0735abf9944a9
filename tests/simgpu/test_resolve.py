"""cuGetProcAddress, compared with NVIDIA's typedefs and with the answers of a 580 driver."""

import re

import pytest

from limiter.build import headers
from simgpu import build
from simgpu.world import World


def entries() -> list[tuple[str, int, str, str, int]]:
    """Rows of entry_points.h: base name, version, symbol; suffix and version of the per-thread form, or "" and 0."""
    text = (build.SOURCES / "cuda" / "driver" / "entry_points.h").read_text()
    found = [
        (name, int(v), symbol, "", 0)
        for name, v, symbol in re.findall(r"^ENTRY\((\w+), (\d+), (\w+)\)", text, re.MULTILINE)
    ]
    for name, version, per_thread, symbol, suffix in re.findall(
        r"^PER_THREAD_ENTRY\((\w+), (\d+), (\d+), (\w+), (\w+)\)", text, re.MULTILINE
    ):
        found.append((name, int(version), symbol, suffix, int(per_thread)))
    return found


def test_versions_are_those_of_nvidias_typedefs() -> None:
    typedefs = (headers.folder() / "cudaTypedefs.h").read_text()
    known = {*re.findall(r"\*PFN_(\w+)\)", typedefs)}
    asked = {f"{name}_v{version}" for name, version, *_ in entries()}
    asked |= {f"{name}_v{per_thread}{suffix}" for name, _, _, suffix, per_thread in entries() if suffix}
    assert asked - known == set()


def test_the_pointer_is_the_exported_symbols(world: World) -> None:
    session = world.session()
    for name, version, symbol, suffix, per_thread in entries():
        assert session(f"proc('{name}', {version}) == (0, symbol('{symbol}'), 0)"), symbol
        if suffix:
            assert session(f"proc('{name}', {per_thread}, 2) == (0, symbol('{symbol}{suffix}'), 0)"), symbol
            assert session(f"symbol('{symbol}') != symbol('{symbol}{suffix}')"), symbol


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ("'cuNope', 13000", [0, None, 1]),
        ("'cuMemAlloc_v2', 13000", [0, None, 1]),
        ("'cuMemAllocAsync_ptsz', 13000", [0, None, 1]),
        ("'cuMemAllocAsync', 11000", [0, None, 2]),
        ("'cuMemcpyHtoD', 6000, 2", [0, None, 2]),
        ("'cuMemAlloc', 99000", [1, None, -1]),
        ("'cuMemAlloc', 13000, 8", [1, None, -1]),
    ],
)
def test_a_name_that_is_not_found_is_a_status(world: World, arguments: str, answer: list[int]) -> None:
    assert world.session()(f"proc({arguments})") == answer
