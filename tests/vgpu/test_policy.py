import pytest

from vgpu import policy
from vgpu.policy import ComputePolicy


@pytest.mark.parametrize(
    ("cores", "expected"), [(None, ComputePolicy.BURST), (0, ComputePolicy.BURST), (1, ComputePolicy.FIXED)]
)
def test_a_share_of_time_is_a_limit_where_no_policy_is_named(cores: int | None, expected: ComputePolicy) -> None:
    assert policy.default_compute_policy(cores) is expected
