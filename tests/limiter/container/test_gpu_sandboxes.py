"""The cases of tests.gpu.sandboxes over the simulated driver: they are right here before a GPU machine runs them."""

import pytest

from simgpu.world import World
from tests.gpu import sandboxes

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", sandboxes.CASES)
def test_a_case_is_limited_and_not_natively(name: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in world.environment().items():
        monkeypatch.setenv(variable, value)
    words, status = sandboxes.judge(sandboxes.CASES[name])
    assert (status, "native (0, 0)" in words) == (0, True), words
