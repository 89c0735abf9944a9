"""What users write is bounded in size and count, and the costs are linear in it."""

from typing import Any

import pytest

from tests import strategies
from vgpu.domain import names
from vgpu.domain.asks import policy, request
from vgpu.domain.cards.device import Card
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.problem import Problem


def pod_of(count: int, **limits: str | int) -> dict[str, Any]:
    return strategies.pod(*(strategies.container(f"c{n}", **limits) for n in range(count)))


def test_at_most_32_containers_of_a_pod_ask_for_gpus() -> None:
    assert request.parse(pod_of(32, gpu_mem=256)).problems == ()
    parsed = request.parse(pod_of(6000, gpu_mem=256))
    assert parsed.request is None
    assert [problem.field for problem in parsed.problems] == ["spec.containers"]
    assert "32" in parsed.problems[0].why


def test_a_pod_with_a_gpu_has_at_most_128_containers() -> None:
    def problems(others: int) -> tuple[Problem, ...]:
        pod = pod_of(1, gpu_mem=256)
        pod["spec"]["initContainers"] = [{"name": f"i{n}"} for n in range(others)]
        return request.parse(pod).problems

    assert problems(127) == ()
    assert problems(128) == (request.TOO_MANY_CONTAINERS,)
    assert request.parse(strategies.pod(*({"name": f"c{n}"} for n in range(6000)))).problems == ()


@pytest.mark.parametrize("name", [names.USE_GPU_MODEL, names.AVOID_GPU_MODEL])
def test_at_most_16_models_of_64_characters_are_read(name: str) -> None:
    most = ",".join(f"{n:064}" for n in range(16))
    assert policy.parse({name: most})[1] == []
    for value in (most + ",x", "x" * 65, ",".join("x" * 125_000)):
        options, problems = policy.parse({name: value})
        assert options.selector == policy.CardSelector()
        assert [problem.field for problem in problems] == [f"metadata.annotations[{name}]"]


def test_at_most_64_uuids_are_read() -> None:
    uuids = [f"GPU-{n:036}" for n in range(65)]
    assert policy.parse({names.USE_GPU_UUID: ",".join(uuids[:64])})[0].selector.use_uuids == frozenset(uuids[:64])
    assert policy.parse({names.AVOID_GPU_UUID: ",".join(uuids)})[1]


@pytest.mark.parametrize("name", names.USER_ANNOTATIONS)
def test_of_a_long_value_little_is_kept(name: str) -> None:
    """A pod's problems stay in the extender's memory while the pod exists."""
    parsed = request.parse(strategies.pod(strategies.container(gpu_mem=256), annotations={name: "x" * 250_000}))
    (problem,) = parsed.problems
    assert len(problem.value) < 200
    assert "250000 characters" in problem.value
    assert len(str(problem)) < 500


def test_a_problem_shows_the_beginning_of_a_long_value() -> None:
    assert len(str(Problem("spec", "v" * 1_000_000, "is wrong"))) < 200


def test_models_are_compared_once_each() -> None:
    options, _ = policy.parse({names.USE_GPU_MODEL: "H100,h100,A100"})
    assert options.selector.use_models == ("h100", "a100")
    assert options.selector.refusal(Card(CardUuid("GPU-a"), 0, "NVIDIA A100", 1)) is None
