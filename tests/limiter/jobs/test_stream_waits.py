"""Two simulated cards whose streams wait for each other's events, as stages of a pipeline do (ADR 196).

While its only stream waits, a card is idle, and that is not charged. Times are loose, because the machine may be busy.
"""

from collections.abc import Callable

import pytest

from simgpu.session import ProbeSession
from tests.limiter.compute.test_launches import LIMIT, start
from tests.limiter.compute.test_tenants import reached
from tests.limiter.conftest import Container

pytestmark = pytest.mark.slow

Make = Callable[..., Container]
STEPS, WORK_US = 60, 5000
STEP_S = 2 * WORK_US / 1e6  # one card after the other
MORE = 1.2  # a busy machine


def stages(container: Container) -> ProbeSession:
    session = start(container)
    for device in range(2):
        session(f"collectives.prepare({device}, 2, 1000)")
    assert session("collectives.link()") == [0, 0]
    session(f"collectives.ring(10, {WORK_US})")
    return session


def charged_us(container: Container) -> list[float]:
    return [card.gpu_ns / 1000 for card in container.region().cards]


def charged_while(container: Container, session: ProbeSession, load: str) -> tuple[float, list[float]]:
    """Seconds that a load took, and the us that each card was charged for it."""
    before = charged_us(container)
    seconds = session(load)
    return seconds, [after - former for former, after in zip(before, charged_us(container), strict=True)]


@pytest.mark.parametrize(("cores", "slower"), [(50, 1.0), (25, 2.0)])
def test_stages_that_wait_for_each_other_have_a_share_that_covers_their_work(
    make_container: Make, cores: int, slower: float
) -> None:
    """Each card works for half of the time. Before, fixed 50 took 1.3 to 1.9 times as long as alone."""
    container = make_container(LIMIT, cores)
    session = stages(container)

    def is_fast() -> bool:
        seconds, charged = charged_while(container, session, f"collectives.ring({STEPS}, {WORK_US})")
        assert min(charged) >= 0.9 * STEPS * WORK_US
        return seconds <= MORE * slower * STEPS * STEP_S and max(charged) <= MORE * STEPS * WORK_US

    assert reached(is_fast)


def test_a_stage_that_waits_for_a_longer_one_is_charged_for_its_work(make_container: Make) -> None:
    """Before, for 3.5 times as much."""
    container = make_container(LIMIT, 50)
    session = stages(container)

    def is_exact() -> bool:
        load = f"collectives.pipeline({STEPS}, 8000, 2000)"
        _, charged = charged_while(container, session, load)
        return 0.9 * 2000 * STEPS <= charged[1] <= 1.3 * 2000 * STEPS

    assert reached(is_exact)


def test_work_in_another_stream_is_charged_while_one_waits(make_container: Make) -> None:
    """A program whose waits are of no use but to hide work."""
    container = make_container(LIMIT, 50)
    session = stages(container)
    _, charged = charged_while(container, session, "collectives.pipeline(30, 8000, 500, beside_us=6000)")
    assert charged[1] >= 0.9 * 30 * 6000
