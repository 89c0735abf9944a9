"""Arrays: the memory they take of a card, and sparse and deferred arrays, which take none."""

import pytest

from simgpu.session import ProbeSession
from simgpu.world import World

MIB = 1 << 20
OUT_OF_MEMORY, INVALID_VALUE, INVALID_HANDLE = 2, 1, 400
DEFERRED, SPARSE, LAYERED = 0x80, 0x40, 0x01


@pytest.mark.parametrize(
    ("call", "mib"),
    [
        ("arrays.plain(65536, 64)", 64),
        ("arrays.plain(131072, 0)", 2),
        ("arrays.cube(256, 256, 10)", 10),
        ("arrays.cube(256, 256, 10, arrays.LAYERED)", 10),
        ("arrays.cube(4, 4, 0)", 2),
    ],
)
def test_an_array_takes_its_texels(world: World, session: ProbeSession, call: str, mib: int) -> None:
    result, array = session(call)
    assert (result, world.mib_used()) == (0, mib)
    assert session(f"arrays.destroy({array})") == 0
    assert world.mib_used() == 0
    assert session(f"arrays.destroy({array})") == INVALID_HANDLE


def test_an_array_that_does_not_fit_is_out_of_memory(world: World, session: ProbeSession) -> None:
    assert session("arrays.plain(131072, 65536)") == [OUT_OF_MEMORY, 0]
    assert session("arrays.cube(16384, 16384, 0, levels=9)[0]") == 0
    assert world.mib_used() == 5462


@pytest.mark.parametrize(
    "call",
    [
        "arrays.plain(0, 4)",
        "arrays.cube(16385, 1, 1)",
        "arrays.cube(16, 0, 4)",
        "arrays.cube(16, 16, 0, arrays.LAYERED)",
        "arrays.cube(4, 4, 4, texel=7)",
        "arrays.cube(0, 4, 4, levels=3)",
    ],
)
def test_an_extent_no_card_has_is_an_invalid_value(session: ProbeSession, call: str) -> None:
    assert session(call) == [INVALID_VALUE, 0]


def test_an_array_says_what_it_is(session: ProbeSession) -> None:
    _, array = session("arrays.plain(640, 480)")
    assert session(f"arrays.described({array})") == [640, 480]


def test_a_mipmapped_array_is_one_memory_of_all_levels(world: World, session: ProbeSession) -> None:
    result, mipmap = session("arrays.cube(4096, 1024, 0, levels=3)")
    assert (result, world.mib_used()) == (0, 64 + 16 + 4)
    assert session(f"arrays.level({mipmap}, 2)") == [0, [1024, 256, 0]]
    assert session(f"arrays.level({mipmap}, 3)")[0] == INVALID_VALUE
    assert session(f"arrays.destroy({mipmap}, mipmapped=True)") == 0
    assert world.mib_used() == 0
    assert session(f"arrays.level({mipmap}, 0)")[0] == INVALID_HANDLE


def test_no_more_levels_than_there_are(session: ProbeSession) -> None:
    _, mipmap = session("arrays.cube(16, 4, 0, levels=99)")
    assert session(f"arrays.level({mipmap}, 4)") == [0, [1, 1, 0]]
    assert session(f"arrays.level({mipmap}, 5)")[0] == INVALID_VALUE


@pytest.mark.parametrize("flags", [DEFERRED, SPARSE])
@pytest.mark.parametrize("levels", [0, 1])
def test_a_sparse_or_deferred_array_takes_nothing_until_memory_is_mapped(
    world: World, session: ProbeSession, flags: int, levels: int
) -> None:
    mipmapped = f"mipmapped={bool(levels)}"
    _, array = session(f"arrays.cube(512, 512, 0, {flags}, {levels})")
    assert world.mib_used() == 0
    _, handle = session(f"vmm.create({4 * MIB}, usage=arrays.TILE_POOL)")
    assert session(f"arrays.map_memory({array}, {handle}, {mipmapped})") == 0
    assert session(f"vmm.release({handle})") == 0
    assert world.mib_used() == 4
    assert session(f"arrays.map_memory({array}, 0, {mipmapped})") == 0
    assert world.mib_used() == 0


def test_mapped_memory_goes_with_the_last_of_its_arrays(world: World, session: ProbeSession) -> None:
    made = [session(f"arrays.cube(512, 512, 0, {SPARSE})")[1] for _ in range(2)]
    _, handle = session(f"vmm.create({4 * MIB}, usage=arrays.TILE_POOL)")
    for array in made:
        assert [session(f"arrays.map_memory({array}, {handle}, tile={tile})") for tile in (0, 1)] == [0, 0]
    assert session(f"vmm.release({handle})") == 0
    assert session(f"arrays.destroy({made[0]})") == 0
    assert world.mib_used() == 4
    assert session(f"arrays.map_memory({made[1]}, 0, tile=1)") == 0
    assert world.mib_used() == 4
    assert session(f"arrays.destroy({made[1]})") == 0
    assert world.mib_used() == 0


@pytest.mark.parametrize("levels", [0, 3])
def test_only_a_deferred_array_tells_its_requirements(session: ProbeSession, levels: int) -> None:
    mipmapped = f"mipmapped={bool(levels)}"
    for flags, answer in ((0, [INVALID_VALUE, 0]), (SPARSE, [INVALID_VALUE, 0])):
        _, array = session(f"arrays.cube(512, 256, 0, {flags}, {levels})")
        assert session(f"arrays.requirements({array}, {mipmapped})") == answer
    _, array = session(f"arrays.cube(512, 256, 0, {DEFERRED}, {levels})")
    kib = 2048 + 512 + 128 if levels else 2048
    assert session(f"arrays.requirements({array}, {mipmapped})") == [0, kib << 10]


@pytest.mark.parametrize(("flags", "usage"), [(0, "arrays.TILE_POOL"), (SPARSE, "0")])
def test_memory_is_mapped_from_a_tile_pool_to_an_array_without(session: ProbeSession, flags: int, usage: str) -> None:
    _, array = session(f"arrays.cube(512, 512, 0, {flags})")
    _, handle = session(f"vmm.create({4 * MIB}, usage={usage})")
    assert session(f"arrays.map_memory({array}, {handle})") == INVALID_VALUE


def test_small_arrays_share_chunks_of_their_own(world: World, session: ProbeSession) -> None:
    session("alloc(4096)")
    made = session("[arrays.plain(256, 4)[1] for _ in range(40)]")
    assert world.mib_used() == 4
    session(f"[arrays.destroy(array) for array in {made}]")
    assert world.mib_used() == 2


def test_arrays_go_with_their_context(world: World, session: ProbeSession) -> None:
    session("[arrays.plain(65536, 8), arrays.cube(512, 512, 0, levels=3)]")
    _, sparse = session(f"arrays.cube(512, 512, 0, {SPARSE})")
    _, handle = session(f"vmm.create({4 * MIB}, usage=arrays.TILE_POOL)")
    assert session(f"arrays.map_memory({sparse}, {handle})") == 0
    assert session(f"vmm.release({handle})") == 0
    assert session("cuda.cuDevicePrimaryCtxRelease_v2(0)") == 0
    assert world.mib_used() == 0
