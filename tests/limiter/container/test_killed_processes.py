"""Readers outside a container no longer count what a killed process used, before another process makes a call."""

import time
from collections.abc import Callable

import pytest

from tests.limiter.conftest import MIB, Container
from vgpu.adapters.slot_owners import SlotOwners
from vgpu.cli.local import allocations
from vgpu.node.processes import share_files

GONE_S = 2.0


@pytest.mark.heavy
def test_the_memory_of_a_killed_process_is_gone_from_top_and_metrics(container: Container) -> None:
    killed, remaining = container.session(), container.session()
    for session, mib in ((killed, 40), (remaining, 4)):
        assert session("start()") == 0
        assert session(f"alloc({mib * MIB})")[0] == 0
    owners = SlotOwners()

    def of_node() -> int:
        account = share_files.read_account(container.folder / "region", owners)
        return sum(card.used_bytes for card in account.cards.values()) // MIB

    def of_top() -> int:
        return sum(card.used_bytes for card in allocations.read_cards(container.folder)) // MIB

    assert (of_node(), of_top()) == (44, 44)
    killed.process.kill()
    assert _within(lambda: (of_node(), of_top()) == (4, 4))
    killed.process.wait()
    assert (of_node(), of_top()) == (4, 4)


def _within(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + GONE_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
