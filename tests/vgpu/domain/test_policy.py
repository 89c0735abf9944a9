"""The default compute policy."""

import pytest

from vgpu.domain.asks import policy
from vgpu.domain.asks.policy import ComputePolicy


@pytest.mark.parametrize(
    ("cores", "expected"), [(None, ComputePolicy.BURST), (0, ComputePolicy.BURST), (1, ComputePolicy.FIXED)]
)
def test_the_default_policy_is_fixed_with_cores_and_burst_without(cores: int | None, expected: ComputePolicy) -> None:
    assert policy.default_compute_policy(cores) is expected
