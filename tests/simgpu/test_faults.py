"""Injected faults: results, lost cards and XID events."""

from dataclasses import replace

from simgpu import state_directory
from simgpu.world import World

OUT_OF_MEMORY = 2


def test_a_fault_is_returned_as_often_as_asked_over_all_processes(world: World) -> None:
    state_directory.inject_faults(world.state, ("cuMemAlloc_v2", 2, 3))
    results = [line["result"] for _ in range(2) for line in world.probe("alloc", "1", "1")]
    assert results == [OUT_OF_MEMORY, OUT_OF_MEMORY, OUT_OF_MEMORY, 0]
    assert world.probe("alloc", "1") == [{"mib": 1, "result": 0}]
    state_directory.inject_faults(world.state, ("cuMemAlloc_v2", 700), ("nvmlInit_v2", 9))
    assert [line["result"] for line in world.probe("alloc", "1", "1")] == [700, 700]
    assert world.probe("info")[0]["nvml"] == []
    state_directory.inject_faults(world.state)
    assert world.probe("alloc", "1") == [{"mib": 1, "result": 0}]


def test_a_running_process_sees_a_card_get_lost_and_come_back(world: World) -> None:
    session = world.session()
    session("nvml('nvmlInit')")
    session("globals().update(handle=card(0)) or start()")
    lost = (replace(world.cards[0], healthy=False), world.cards[1])
    for cards, nvml, cuda in ((world.cards, 0, 0), (lost, 15, 999), (world.cards, 0, 0)):
        state_directory.write_cards(world.state, cards)
        assert session("nvml('nvmlDeviceGetMinorNumber', handle)") == nvml
        assert session("alloc(4096)[0]") == cuda
    state_directory.write_cards(world.state, lost)
    assert session("nvml('nvmlDeviceGetHandleByIndex', 0)") == 15
    assert session("nvml('nvmlDeviceGetUUID', card(1))") == world.cards[1].uuid
    assert session("nvml('nvmlDeviceGetCount')") == 2


def test_events_reach_the_sets_made_before_them(world: World) -> None:
    session = world.session()
    session("nvml('nvmlInit')")
    state_directory.inject_xid(world.state, world.cards[0].uuid, 1)
    register = "pynvml.nvmlDeviceRegisterEvents(card(1), pynvml.nvmlEventTypeXidCriticalError, events)"
    assert session(f"globals().update(events=pynvml.nvmlEventSetCreate()) or {register}") is None
    assert session("nvml('nvmlEventSetWait_v2', events, 30)") == 10
    state_directory.inject_xid(world.state, world.cards[0].uuid, 48)
    state_directory.inject_xid(world.state, world.cards[1].uuid, 79)
    session("globals().update(event=nvml('nvmlEventSetWait_v2', events, 2000))")
    assert session("[event.eventType, event.eventData, pynvml.nvmlDeviceGetUUID(event.device)]") == [
        8,
        79,
        world.cards[1].uuid,
    ]
    assert session("nvml('nvmlEventSetWait_v2', events, 30)") == 10
    state_directory.write_cards(world.state, (world.cards[0], replace(world.cards[1], healthy=False)))
    assert session("nvml('nvmlEventSetWait_v2', events, 2000)") == 15


def calls_that_fail(world: World, failures: state_directory.NvmlFailures) -> list[int]:
    """Results of 20 calls of NVML in a new process; 0 where the call succeeded."""
    session = world.session()
    session("nvml('nvmlInit')")
    state_directory.inject_nvml_failures(world.state, failures)
    results = session("[nvml('nvmlDeviceGetHandleByIndex', 0) for _ in range(20)].__repr__()")
    state_directory.inject_faults(world.state)
    return [0 if "Device" in result else int(result) for result in results.strip("[]").split(", ")]


def test_all_of_nvml_fails_from_a_call_on_or_by_chance(world: World) -> None:
    assert calls_that_fail(world, state_directory.NvmlFailures(first=5)) == [0] * 5 + [999] * 15
    by_chance = state_directory.NvmlFailures(results=(3, 15), percent=50, seed=1)
    first = calls_that_fail(world, by_chance)
    assert set(first) == {0, 3, 15}
    assert calls_that_fail(world, by_chance) == first
