"""On a real GPU: frameworks under a limit, with every choice of cards, and while the limit changes."""

import pytest

from tests.gpu import frameworks, trial
from tests.gpu.test_load_paths import python

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

__all__ = ["python"]  # the fixture


@pytest.mark.parametrize("name", frameworks.TRIALS)
def test_a_framework_gets_equal_results_and_raises_its_own_error(python: str, name: str) -> None:
    output = trial.run("frameworks", name, python=python)
    if "left out" in output:
        pytest.skip(output.strip())


def test_each_card_has_its_own_limit_under_any_cuda_visible_devices(python: str) -> None:
    trial.run("visible_cards", python=python)


def test_a_changed_limit_holds_at_the_next_allocation(python: str) -> None:
    trial.run("resize", python=python)
