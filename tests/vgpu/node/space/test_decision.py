"""What is done for a group, for any processes that may run."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.adapters.mps import MpsProcess
from vgpu.node.space import decision

PIPE = Path("/pipe")
DAEMON = MpsProcess(10, 1, 1, is_server=False, pipe=PIPE)
SERVER = MpsProcess(11, 2, 10, is_server=True, pipe=PIPE)
ORPHAN = MpsProcess(12, 2, 1, is_server=True, pipe=PIPE)
PROCESSES = st.sets(
    st.builds(MpsProcess, st.integers(1, 9), st.just(0), st.integers(0, 9), st.booleans(), st.just(PIPE)), max_size=6
).filter(lambda found: len({process.pid for process in found}) == len(found))


@pytest.mark.parametrize(
    ("processes", "stuck", "kill", "start", "is_served"),
    [
        ([], [], [], True, False),
        ([DAEMON], [], [], False, True),
        ([DAEMON, SERVER], [], [], False, True),
        ([DAEMON, SERVER], [SERVER], [SERVER], False, False),
        ([DAEMON, SERVER], [DAEMON], [DAEMON, SERVER], False, False),
        ([DAEMON, SERVER, ORPHAN], [], [ORPHAN], False, False),
        ([SERVER], [], [SERVER], False, False),
    ],
)
def test_of_a_group_with_members(
    processes: list[MpsProcess], stuck: list[MpsProcess], kill: list[MpsProcess], start: bool, is_served: bool
) -> None:
    verdict = decision.judge(processes, stuck, is_wanted=True)
    assert verdict == decision.Verdict(frozenset(kill), start, is_served)


@given(PROCESSES, st.data())
def test_repeating_the_verdict_ends_with_what_is_wanted(processes: set[MpsProcess], data: st.DataObject) -> None:
    """Killed processes are gone, and a started daemon runs: in three rounds nothing is left to do."""
    is_wanted = data.draw(st.booleans())
    stuck = data.draw(st.sets(st.sampled_from(sorted(processes)))) if processes else set()
    for _ in range(3):
        verdict = decision.judge(processes, stuck, is_wanted=is_wanted)
        assert verdict.kill <= processes
        assert not (verdict.start and processes)
        processes = processes - verdict.kill
        if verdict.start and is_wanted:
            processes = {DAEMON}
    verdict = decision.judge(processes, stuck, is_wanted=is_wanted)
    assert not verdict.kill
    assert verdict.is_served == is_wanted
    assert bool(processes) == is_wanted
    assert not processes & stuck
