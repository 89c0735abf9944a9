"""What users write is bounded in size and count, and the costs are linear in it."""

import re
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


@pytest.mark.parametrize(("asking", "others"), [(1, 127), (32, 96), (1, 128), (32, 97), (33, 0)])
def test_a_refused_pod_breaks_the_bound_that_the_refusal_names(asking: int, others: int) -> None:
    pod = pod_of(asking, gpu_mem=256)
    pod["spec"]["containers"] += [{"name": f"o{n}"} for n in range(others)]
    why = request.TOO_MANY_CONTAINERS.why
    named = re.search(r"may have (\d+) containers in all, init containers included, of which (\d+) may ask", why)
    assert named is not None
    is_admitted = asking + others <= int(named[1]) and asking <= int(named[2])
    assert request.parse(pod).problems == (() if is_admitted else (request.TOO_MANY_CONTAINERS,))


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
    assert problem.value.endswith("… (250000 characters)")
    assert '… (250000 characters)" ' in str(problem)
    assert len(str(problem)) < 500


def test_a_problem_shows_the_beginning_of_a_long_value() -> None:
    assert len(str(Problem("spec", "v" * 1_000_000, "is wrong"))) < 200


def test_models_are_compared_once_each() -> None:
    options, _ = policy.parse({names.USE_GPU_MODEL: "H100,h100,A100"})
    assert options.selector.use_models == ("h100", "a100")
    assert options.selector.refusal(Card(CardUuid("GPU-a"), 0, "NVIDIA A100", 1)) is None
