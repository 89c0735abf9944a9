"""The built files, and the Python that reads and writes the state directory."""

import re
from pathlib import Path

import pytest

from simgpu import build, state_directory, usage
from simgpu.world import World

MIB = 1 << 20


def test_the_binaries_load_on_old_systems(built_simgpu: Path) -> None:
    for name in build.OUTPUTS:
        versions = re.findall(rb"GLIBC_2\.(\d+)", (built_simgpu / name).read_bytes())
        assert max(map(int, versions)) <= 17, name


def test_the_python_reader_knows_the_layout(world: World) -> None:
    """An empty ledger, and one whose process holds memory on both cards."""
    assert usage.bytes_by_card(world.state) == {}
    assert usage.peak_bytes_by_card(world.state) == {}
    session = world.session()
    session(f"[start(1), alloc({6 * MIB}), start(0), alloc({4 * MIB})]")
    first, second = (card.uuid for card in world.cards)
    assert list(usage.bytes_by_process(world.state)) == [{first: 4 * MIB, second: 6 * MIB}]
    session.kill()
    assert list(usage.bytes_by_process(world.state)) == []
    assert usage.peak_bytes_by_card(world.state) == {first: 4 * MIB, second: 6 * MIB}


def test_too_many_cards_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="17 cards"):
        state_directory.write_cards(tmp_path, state_directory.make_cards(17))
