import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.driver import build, simgpu
from tests.driver.conftest import World

MIB = 1 << 20
PAGE = 2 * MIB
OUT_OF_MEMORY = 2
CAPACITY_MIB = 81920

UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child")


def mib_used(world: World) -> int:
    return sum(simgpu.used(world.state).values()) // MIB


# --- what a program sees


@pytest.mark.parametrize(("program", "options"), [("gpuprobe", ()), ("gpuprobe", ("--proc",)), ("gpuprobe-linked", ())])
def test_every_door_shows_the_cards_of_the_file(
    make_world: Callable[..., World], program: str, options: tuple[str, ...]
) -> None:
    cards = tuple(replace(card, memory_mib=1000, reserved_mib=100) for card in simgpu.make_cards(2))
    shown = make_world(cards).probe(*options, "info", program=program)
    assert shown == [
        {
            "cuda": [{"uuid": card.uuid, "total": 900 * MIB, "free": 900 * MIB} for card in cards],
            "nvml": [{"uuid": card.uuid, "total": 1000 * MIB, "free": 900 * MIB, "used": 100 * MIB} for card in cards],
        }
    ]


def test_a_refused_allocation_leaves_room_for_a_smaller_one(world: World) -> None:
    attempts = world.probe("alloc", "4096", "80000", "70000")
    assert [attempt["result"] for attempt in attempts] == [0, OUT_OF_MEMORY, 0]


@pytest.mark.parametrize("kind", ["alloc", "pitch", "vmm", "async"])
def test_each_kind_fills_the_card_and_no_more(world: World, kind: str) -> None:
    assert world.probe("fill", "--kind", kind, "512") == [{"mib": CAPACITY_MIB, "result": OUT_OF_MEMORY}]


def test_managed_memory_takes_nothing_of_the_card(world: World) -> None:
    session = world.session()
    session("start()")
    result, pointer = session(f"alloc({100 * CAPACITY_MIB * MIB}, 'cuMemAllocManaged')")
    assert result == 0
    assert simgpu.used(world.state) == {}
    assert session(f"free({pointer})") == 0


def test_a_context_takes_what_the_card_says(make_world: Callable[..., World]) -> None:
    world = make_world(tuple(replace(card, context_mib=500) for card in simgpu.make_cards(1)))
    assert world.probe("info")[0]["cuda"][0]["free"] == (CAPACITY_MIB - 500) * MIB
    assert mib_used(world) == 0


def test_only_listed_cards_exist_in_a_container(world: World) -> None:
    simgpu.write_visible(world.state / "visible", [world.cards[1].uuid])
    shown = world.probe("info")[0]
    assert [card["uuid"] for card in shown["cuda"]] == [world.cards[1].uuid]
    assert [card["uuid"] for card in shown["nvml"]] == [world.cards[1].uuid]


FIRST, SECOND = (card.uuid for card in simgpu.make_cards(2))


@pytest.mark.parametrize(
    ("listed", "seen"),
    [
        ("1,0", [SECOND, FIRST]),
        ("1", [SECOND]),
        (SECOND, [SECOND]),
        (SECOND[:12], [SECOND]),
        ("0,7,1", [FIRST]),
        ("0 ", [FIRST]),
        ("7,0", 100),
        ("", 100),
        ("-1", 100),
        ("GPU-", 100),
        ("0,0", 101),
    ],
)
def test_cuda_visible_devices_is_read_as_the_real_driver_does(world: World, listed: str, seen: list[str] | int) -> None:
    session = world.session(CUDA_VISIBLE_DEVICES=listed)
    result = session("start()")
    assert (session("uuids()") if result == 0 else result) == seen


def test_without_cards_there_is_no_driver(world: World) -> None:
    (world.state / "cards").unlink()
    session = world.session()
    assert session("start()") == 100
    assert session("nvml('nvmlInit')") == 9


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.one_of(st.binary(max_size=300), st.text(alphabet='uid=GPU-01 "\n,memoryMiBxl', max_size=200)))
def test_no_cards_file_crashes_the_reader(world: World, text: bytes | str) -> None:
    line = simgpu.make_cards(1)[0].line().encode()
    (world.state / "cards").write_bytes(line + b" " + (text.encode() if isinstance(text, str) else text))
    world.probe("info")


@pytest.mark.parametrize(
    "wrong",
    ["uuid=GPU-12", "memoryMiB=-1", "memoryMiB=x", "memoryMiB=1", "healthy=2", "index=", 'model="no end', "colour=red"],
)
def test_a_malformed_card_is_refused_not_guessed(world: World, wrong: str) -> None:
    with (world.state / "cards").open("a") as cards:
        cards.write(f"{simgpu.make_cards(1)[0].line()} reservedMiB=5 {wrong}\n")
    assert world.probe("info") == [{"error": "cuInit", "result": 999}]


# --- who holds what


def test_used_is_the_sum_over_the_living(world: World) -> None:
    """Forty processes, half of them killed, then all."""
    sizes = [random.Random(7).randrange(1, 1500) * 2 for _ in range(40)]
    holders = [world.hold(size) for size in sizes]
    assert mib_used(world) == sum(sizes)
    for process in holders[::2]:
        process.kill()
        process.wait()
    assert mib_used(world) == sum(sizes[1::2])
    assert world.probe("info")[0]["cuda"][0]["free"] == (CAPACITY_MIB - sum(sizes[1::2])) * MIB
    for process in holders[1::2]:
        process.send_signal(signal.SIGTERM)
        process.wait()
    assert simgpu.used(world.state) == {}


def test_what_the_dead_held_can_be_taken(world: World) -> None:
    world.hold(CAPACITY_MIB).kill()
    world.processes[-1].wait()
    assert world.probe("fill", "1024") == [{"mib": CAPACITY_MIB, "result": OUT_OF_MEMORY}]


def test_a_stopped_process_keeps_its_memory(world: World) -> None:
    world.hold(50000).send_signal(signal.SIGSTOP)
    assert world.probe("fill", "10") == [{"mib": CAPACITY_MIB - 50000, "result": OUT_OF_MEMORY}]


def test_processes_racing_for_the_last_bytes_never_both_get_them(make_world: Callable[..., World]) -> None:
    world = make_world(simgpu.make_cards(1, memory_mib=4))
    racers = [world.session() for _ in range(3)]
    for racer in racers:
        assert racer("[start(), nvml('nvmlInit')]") == [0, None]
    for racer in racers:
        racer.tell(f"contend({2 * PAGE}, 3000)")
    wins, most = zip(*(racer.answer() for racer in racers), strict=True)
    assert min(wins) > 0
    assert max(most) == 2 * PAGE
    assert simgpu.used(world.state) == {}


def test_processes_filling_together_take_the_card_exactly(world: World) -> None:
    racers = [world.session() for _ in range(4)]
    for racer in racers:
        assert racer("start()") == 0
    for racer in racers:
        racer.tell(f"fill_card({8 * MIB})")
    assert sum(racer.answer() for racer in racers) * 8 == CAPACITY_MIB
    assert [*simgpu.peak(world.state).values()] == [CAPACITY_MIB * MIB]


def test_killing_in_the_middle_of_allocations_leaves_nothing(world: World) -> None:
    keeper = world.hold(1000)
    chance = random.Random(11)
    for _ in range(30):
        victims = [world.start(str(world.bin / "gpuprobe"), "fill", "1") for _ in range(3)]
        time.sleep(chance.random() * 0.03)
        for victim in victims:
            victim.kill()
            victim.wait()
        assert mib_used(world) == 1000
    assert keeper.poll() is None
    assert max(simgpu.peak(world.state).values()) <= CAPACITY_MIB * MIB


def unshare_works() -> bool:
    return shutil.which("unshare") is not None and not subprocess.run([*UNSHARE, "true"], check=False).returncode


def test_containers_with_their_own_pids_are_told_apart(world: World) -> None:
    if not unshare_works():
        pytest.skip("no private PID namespaces here")
    holders = [world.hold(size, wrapper=UNSHARE) for size in (1000, 2000)]
    outside = world.hold(4000)
    session = world.session()
    session("nvml('nvmlInit')")
    shown = {size // MIB: pid for pid, size in session("processes()")}
    assert mib_used(world) == 7000
    assert shown.keys() == {1000, 2000, 4000}
    assert shown[4000] == outside.pid
    names = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in shown.values()}
    assert names == {"gpuprobe"}
    os.kill(shown[1000], signal.SIGKILL)
    holders[0].wait()
    assert mib_used(world) == 6000


def test_nvml_names_a_process_to_itself_and_to_others(world: World) -> None:
    first, second = world.session(), world.session()
    for session in (first, second):
        session("nvml('nvmlInit')")
        session("start()")
        session(f"alloc({4 * MIB})")
    expected = sorted([[first.process.pid, 4 * MIB], [second.process.pid, 4 * MIB]])
    assert sorted(first("processes()")) == expected
    first("nvml('nvmlShutdown')")
    assert sorted(second("processes()")) == expected


def test_a_forked_child_has_no_driver_and_holds_nothing(world: World) -> None:
    session = world.session()
    session("start()")
    session(f"alloc({100 * MIB})")
    assert session("in_fork('[start(), alloc(4096)[0], info()[0]]')") == [3, 3, 3]
    assert mib_used(world) == 100
    child = session("fork_and_stay()")
    session.kill()
    assert mib_used(world) == 0
    os.kill(child, signal.SIGKILL)


def test_a_child_forked_before_the_start_has_a_driver_of_its_own(world: World) -> None:
    assert world.session()(f"in_fork('[start(), alloc({MIB})[0]]')") == [0, 0]


# --- what an allocation takes (as measured on an H200, driver 580)


@pytest.mark.parametrize(
    ("count", "size", "mib"),
    [(200, 1, 2), (200, 4096, 2), (200, 307200, 68), (200, 716800, 200), (200, MIB, 200), (20, MIB + 1, 40)],
)
def test_small_allocations_share_pages(world: World, count: int, size: int, mib: int) -> None:
    session = world.session()
    session("start()")
    pointers = session(f"[alloc({size})[1] for _ in range({count})]")
    assert len({*pointers}) == count
    assert mib_used(world) == mib
    assert session(f"[free(p) for p in {pointers}]") == [0] * count
    assert mib_used(world) == 0


sizes = st.one_of(st.integers(1, 5000), st.integers(1, 6 * MIB))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=st.lists(st.tuples(st.booleans(), sizes, st.integers(0, 20)), max_size=15))
def test_allocations_never_overlap_and_all_comes_back(world: World, steps: list[tuple[bool, int, int]]) -> None:
    session = world.only_session()
    live: dict[int, int] = {}
    for give, size, which in steps:
        if give and live:
            pointer = sorted(live)[which % len(live)]
            assert session(f"free({pointer})") == 0
            del live[pointer]
            continue
        result, pointer = session(f"alloc({size})")
        assert result == 0
        assert session(f"[fill({pointer}, {size}), fill({pointer}, {size + 1})]") == [0, 1]
        assert all(pointer + size <= other or other + live[other] <= pointer for other in live)
        live[pointer] = size
    taken = sum(simgpu.used(world.state).values())
    assert taken % PAGE == 0
    assert sum(live.values()) <= taken <= sum(-(-size // PAGE) * PAGE for size in live.values())
    assert session(f"[free(p) for p in {[*live]}]") == [0] * len(live)
    assert simgpu.used(world.state) == {}


def test_a_pool_holds_what_it_reserved_until_a_synchronisation(world: World) -> None:
    session = world.session()
    session("start()")
    small = session(f"alloc({MIB}, 'cuMemAllocAsync')")[1]
    large = session(f"alloc({40 * MIB}, 'cuMemAllocAsync')")[1]
    assert mib_used(world) == 64
    assert session(f"[free({small}, 'cuMemFreeAsync'), free({large}, 'cuMemFreeAsync')]") == [0, 0]
    assert mib_used(world) == 64
    session("cuda.cuCtxSynchronize()")
    assert mib_used(world) == 0


def test_releasing_the_context_frees_its_memory(world: World) -> None:
    session = world.session()
    session("start()")
    session(f"[alloc({MIB}), alloc({9 * MIB}), alloc({MIB}, 'cuMemAllocAsync')]")
    assert mib_used(world) == 2 + 10 + 32
    assert session("cuda.cuDevicePrimaryCtxRelease_v2(0)") == 0
    assert mib_used(world) == 0
    assert session("alloc(4096)")[0] == 709


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("alloc(0)[0]", 1),
        ("alloc(2**45)[0]", OUT_OF_MEMORY),
        ("alloc(2**64 - 1)[0]", OUT_OF_MEMORY),
        ("alloc(0, 'cuMemAllocAsync')[0]", 0),
        ("free(0)", 0),
        ("free(4096)", 1),
        ("free(4096, 'cuMemFreeAsync')", 1),
        ("fill(4096, 1)", 1),
        ("alloc(4096, 'cuMemAlloc')[0]", 201),
        ("cuda.cuCtxPopCurrent_v2(None) or info()[0]", 201),
    ],
)
def test_odd_calls_return_what_a_real_driver_returns(world: World, expression: str, result: int) -> None:
    session = world.session()
    assert session("start()") == 0
    assert session(expression) == result


# --- cuGetProcAddress


def entries() -> list[tuple[str, int, str, str, int]]:
    """Of cuda_entries.h: base name, version, symbol, and the twin's suffix and version ("" and 0 without one)."""
    text = (Path(build.__file__).parent / "cuda_entries.h").read_text()
    found = [
        (name, int(v), symbol, "", 0)
        for name, v, symbol in re.findall(r"^ENTRY\((\w+), (\d+), (\w+)\)", text, re.MULTILINE)
    ]
    for name, version, twin, symbol, suffix in re.findall(
        r"^TWIN\((\w+), (\d+), (\d+), (\w+), (\w+)\)", text, re.MULTILINE
    ):
        found.append((name, int(version), symbol, suffix, int(twin)))
    return found


def test_versions_are_those_of_nvidias_typedefs() -> None:
    typedefs = (build.cuda_include() / "cudaTypedefs.h").read_text()
    known = {*re.findall(r"\*PFN_(\w+)\)", typedefs)}
    asked = {f"{name}_v{version}" for name, version, *_ in entries()}
    asked |= {f"{name}_v{twin}{suffix}" for name, _, _, suffix, twin in entries() if suffix}
    assert asked - known == set()


def test_the_pointer_is_the_exported_symbols(world: World) -> None:
    session = world.session()
    for name, version, symbol, suffix, twin in entries():
        assert session(f"proc('{name}', {version}) == (0, symbol('{symbol}'), 0)"), symbol
        if suffix:
            assert session(f"proc('{name}', {twin}, 2) == (0, symbol('{symbol}{suffix}'), 0)"), symbol
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


# --- failures


def test_a_fault_is_returned_as_often_as_asked_over_all_processes(world: World) -> None:
    simgpu.fail(world.state, ("cuMemAlloc_v2", 2, 3))
    results = [line["result"] for _ in range(2) for line in world.probe("alloc", "1", "1")]
    assert results == [OUT_OF_MEMORY, OUT_OF_MEMORY, OUT_OF_MEMORY, 0]
    assert world.probe("alloc", "1") == [{"mib": 1, "result": 0}]
    simgpu.fail(world.state, ("cuMemAlloc_v2", 700), ("nvmlInit_v2", 9))
    assert [line["result"] for line in world.probe("alloc", "1", "1")] == [700, 700]
    assert world.probe("info")[0]["nvml"] == []
    simgpu.fail(world.state)
    assert world.probe("alloc", "1") == [{"mib": 1, "result": 0}]


def test_a_running_process_sees_a_card_get_lost_and_come_back(world: World) -> None:
    session = world.session()
    session("nvml('nvmlInit')")
    session("globals().update(handle=card(0)) or start()")
    lost = (replace(world.cards[0], healthy=False), world.cards[1])
    for cards, nvml, cuda in ((world.cards, 0, 0), (lost, 15, 999), (world.cards, 0, 0)):
        simgpu.write_cards(world.state, cards)
        assert session("nvml('nvmlDeviceGetMinorNumber', handle)") == nvml
        assert session("alloc(4096)[0]") == cuda
    simgpu.write_cards(world.state, lost)
    assert session("nvml('nvmlDeviceGetHandleByIndex', 0)") == 15
    assert session("nvml('nvmlDeviceGetUUID', card(1))") == world.cards[1].uuid
    assert session("nvml('nvmlDeviceGetCount')") == 2


def test_events_reach_the_sets_made_before_them(world: World) -> None:
    session = world.session()
    session("nvml('nvmlInit')")
    simgpu.inject_xid(world.state, world.cards[0].uuid, 1)
    register = "pynvml.nvmlDeviceRegisterEvents(card(1), pynvml.nvmlEventTypeXidCriticalError, events)"
    assert session(f"globals().update(events=pynvml.nvmlEventSetCreate()) or {register}") is None
    assert session("nvml('nvmlEventSetWait_v2', events, 30)") == 10
    simgpu.inject_xid(world.state, world.cards[0].uuid, 48)
    simgpu.inject_xid(world.state, world.cards[1].uuid, 79)
    session("globals().update(event=nvml('nvmlEventSetWait_v2', events, 2000))")
    assert session("[event.eventType, event.eventData, pynvml.nvmlDeviceGetUUID(event.device)]") == [
        8,
        79,
        world.cards[1].uuid,
    ]
    assert session("nvml('nvmlEventSetWait_v2', events, 30)") == 10
    simgpu.write_cards(world.state, (world.cards[0], replace(world.cards[1], healthy=False)))
    assert session("nvml('nvmlEventSetWait_v2', events, 2000)") == 15


# --- NVML


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("pynvml.nvmlDeviceGetIndex(card(3))", 3),
        ("pynvml.nvmlDeviceGetName(card(3))", simgpu.MODEL),
        ("pynvml.nvmlDeviceGetMinorNumber(card(3))", 3),
        ("pynvml.nvmlDeviceGetNumaNodeId(card(3))", 1),
        ("pynvml.nvmlDeviceGetMigMode(card(3))", [0, 0]),
        ("pynvml.nvmlDeviceGetMigMode(card(0))", [1, 1]),
        ("pynvml.nvmlDeviceGetComputeMode(card())", 0),
        ("pynvml.nvmlDeviceGetCudaComputeCapability(card())", [9, 0]),
        ("pynvml.nvmlDeviceGetPciInfo(card(1)).busId", "00000000:02:00.0"),
        ("pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByPciBusId(b'0000:02:00.0'))", 1),
        ("nvml('nvmlDeviceGetHandleByUUID', b'GPU-nope')", 6),
        ("nvml('nvmlDeviceGetHandleByIndex', 4)", 2),
        ("[*pynvml.nvmlDeviceGetMemoryAffinity(card(3), 1, 0)]", [2]),
        ("[*pynvml.nvmlDeviceGetCpuAffinity(card(3), 1)]", [0xFFFF0000]),
        ("[pynvml.nvmlDeviceGetNvLinkState(card(), link) for link in (0, 2, 3)]", [1, 1, 0]),
        ("pynvml.nvmlDeviceGetNvLinkRemotePciInfo(card(), 1).bus", 3),
        ("pynvml.nvmlDeviceGetP2PStatus(card(0), card(1), 2)", 0),
        ("pynvml.nvmlDeviceGetTopologyCommonAncestor(card(0), card(1))", 40),
        ("pynvml.nvmlDeviceGetTopologyCommonAncestor(card(0), card(3))", 50),
        ("pynvml.nvmlSystemGetCudaDriverVersion()", 13000),
        ("pynvml.nvmlSystemGetDriverVersion()[:4]", "580."),
        ("nvml('nvmlShutdown') or nvml('nvmlDeviceGetCount')", 1),
    ],
)
def test_nvml_answers_about_the_cards(make_world: Callable[..., World], expression: str, value: object) -> None:
    first, *rest = simgpu.make_cards(4)
    session = make_world((replace(first, mig=True), *rest)).session()
    session("nvml('nvmlInit')")
    assert session(expression) == value


def test_nvml_counts_memory_as_cuda_does(make_world: Callable[..., World]) -> None:
    world = make_world((replace(simgpu.make_cards(1)[0], memory_mib=81559, reserved_mib=551),))
    world.hold(4096)
    session = world.session()
    session("nvml('nvmlInit')")
    assert session("memory()") == {
        "total": 81559 * MIB,
        "reserved": 551 * MIB,
        "free": (81559 - 551 - 4096) * MIB,
        "used": 4096 * MIB,
    }
    assert session("pynvml.nvmlDeviceGetMemoryInfo(card()).used") == (551 + 4096) * MIB


def test_a_launch_keeps_the_card_busy_for_its_time(world: World) -> None:
    session = world.session()
    session("nvml('nvmlInit')")
    session("start()")
    session("globals().update(module=ctypes.c_void_p(), function=ctypes.c_void_p())")
    assert session("cuda.cuModuleLoadData(ctypes.byref(module), b'any')") == 0
    assert session("cuda.cuModuleGetFunction(ctypes.byref(function), module, b'busy_300000')") == 0
    began = time.monotonic()
    assert session("cuda.cuLaunchKernel(function, *[1] * 6, 0, None, None, None)") == 0
    assert session("pynvml.nvmlDeviceGetUtilizationRates(card()).gpu") == 100
    assert session("cuda.cuCtxSynchronize()") == 0
    assert time.monotonic() - began >= 0.3
    assert session("pynvml.nvmlDeviceGetUtilizationRates(card()).gpu") == 0


# --- what was built


def test_the_binaries_load_on_old_systems(built_driver: Path) -> None:
    for name in ("libcuda.so.1", "libnvidia-ml.so.1", "gpuprobe", "gpuprobe-linked"):
        versions = re.findall(rb"GLIBC_2\.(\d+)", (built_driver / name).read_bytes())
        assert max(map(int, versions)) <= 17, name


def test_the_python_reader_knows_the_layout(built_driver: Path, world: World) -> None:
    """An empty ledger, and one whose process holds memory on both cards."""
    assert simgpu.used(world.state) == {}
    assert simgpu.peak(world.state) == {}
    session = world.session()
    session(f"[start(1), alloc({6 * MIB}), start(0), alloc({4 * MIB})]")
    first, second = (card.uuid for card in world.cards)
    assert list(simgpu.holders(world.state)) == [{first: 4 * MIB, second: 6 * MIB}]
    session.kill()
    assert list(simgpu.holders(world.state)) == []
    assert simgpu.peak(world.state) == {first: 4 * MIB, second: 6 * MIB}
    assert ctypes.CDLL(str(built_driver / "libnvidia-ml.so.1")) is not None


def test_too_many_cards_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="17 cards"):
        simgpu.write_cards(tmp_path, simgpu.make_cards(17))
