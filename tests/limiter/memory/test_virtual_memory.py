"""Memory of cuMemCreate is charged until its last handle and its last mapping have ended, in any order."""

from pathlib import Path

from simgpu import usage
from simgpu.session import ProbeSession
from tests.limiter.conftest import MIB, Container

OUT_OF_MEMORY = 2

CALLS = Path(__file__).with_name("vmm_calls.py")


def start(container: Container) -> ProbeSession:
    process = container.session()
    process("start()")
    process(f"exec(open({str(CALLS)!r}).read(), globals())")
    return process


def test_the_limit_holds_for_memory_by_handle(container: Container) -> None:
    lines = container.probe("alloc", "--kind", "vmm", "40", "24", "2")
    assert [line["result"] for line in lines] == [0, 0, OUT_OF_MEMORY]


def test_releasing_a_handle_frees_memory_that_is_not_mapped(container: Container) -> None:
    process = start(container)
    result, handle = process(f"create({20 * MIB})")
    assert (result, container.used_mib()) == (0, 20)
    assert process(f"release({handle})") == 0
    assert container.used_mib() == 0
    assert process(f"release({handle})") != 0
    assert container.used_mib() == 0


def test_mapped_memory_stays_charged_after_its_handle(container: Container) -> None:
    process = start(container)
    _, place = process(f"reserve({40 * MIB})")
    for part in range(2):
        _, handle = process(f"create({20 * MIB})")
        assert process(f"map_memory({place + part * 20 * MIB}, {20 * MIB}, {handle})") == 0
        assert process(f"release({handle})") == 0
    assert container.used_mib() == 40
    result, again = process(f"retain({place + 5 * MIB})")
    assert result == 0
    assert process(f"unmap({place}, {40 * MIB})") == 0
    assert container.used_mib() == 20
    assert usage.bytes_by_card(container.world.state) == {container.world.cards[0].uuid: 20 * MIB}
    assert process(f"release({again})") == 0
    assert container.used_mib() == 0


def test_memory_mapped_twice_lasts_until_both_are_unmapped(container: Container) -> None:
    process = start(container)
    _, place = process(f"reserve({40 * MIB})")
    _, handle = process(f"create({20 * MIB})")
    process(f"map_memory({place}, {20 * MIB}, {handle})")
    process(f"map_memory({place + 20 * MIB}, {20 * MIB}, {handle})")
    process(f"release({handle})")
    process(f"unmap({place}, {20 * MIB})")
    assert container.used_mib() == 20
    process(f"unmap({place + 20 * MIB}, {20 * MIB})")
    assert container.used_mib() == 0
