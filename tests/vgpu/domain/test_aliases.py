"""Translation of other projects' resource names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain import names, quantity
from vgpu.domain.asks import aliases, request

PATH = "spec.containers[main].resources.limits"


@pytest.mark.parametrize(
    ("resources", "ours"),
    [
        ({"aliyun.com/gpu-mem": "3"}, {names.GPU_MEM: "3072"}),
        ({"nvidia.com/gpumem": "3000"}, {names.GPU_MEM: "3000"}),
        (
            {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3k", "nvidia.com/gpucores": "30"},
            {names.GPU: "2", names.GPU_MEM: "6000", names.GPU_CORES: "60"},
        ),
        (
            {"nvidia.com/gpu": "2", "nvidia.com/gpumem-percentage": "50"},
            {names.GPU: "2", names.GPU_MEM_PERCENTAGE: "50"},
        ),
        (
            {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "30"},
            {names.GPU: "1", names.GPU_CORES: "30", names.GPU_MEM_PERCENTAGE: "100"},
        ),
        ({"nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "0"}, {names.GPU_MEM: "3000"}),
        (
            {"volcano.sh/vgpu-number": "3", "volcano.sh/vgpu-memory": "1024", "volcano.sh/vgpu-cores": "50"},
            {names.GPU: "3", names.GPU_MEM: "3072", names.GPU_CORES: "150"},
        ),
        ({"volcano.sh/vgpu-number": "2"}, {names.GPU: "2"}),
        (
            {"volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory-percentage": "25"},
            {names.GPU: "2", names.GPU_MEM_PERCENTAGE: "25"},
        ),
    ],
)
def test_each_projects_names_are_translated(resources: dict[str, str], ours: dict[str, str]) -> None:
    translation = aliases.translate(PATH, resources)
    assert translation.ours == ours
    assert translation.removed == resources.keys()
    assert translation.problems == ()


@pytest.mark.parametrize("resources", [{}, {"cpu": "2"}, {"nvidia.com/gpu": "1"}, {names.GPU_MEM: "8192", "cpu": "1"}])
def test_other_resources_are_not_translated(resources: dict[str, str]) -> None:
    """`nvidia.com/gpu` by itself belongs to NVIDIA's own device plugin."""
    assert aliases.translate(PATH, resources) == aliases.NOT_TRANSLATED


def test_gpushares_unit_may_be_mib() -> None:
    translation = aliases.translate(PATH, {"aliyun.com/gpu-mem": "3000"}, gpushare_unit_mib=1)
    assert translation.ours == {names.GPU_MEM: "3000"}


@pytest.mark.parametrize("text", ["16Gi", "-1", "1500m", "1e9", "0", "", "x"])
@pytest.mark.parametrize("name", ["aliyun.com/gpu-mem", "nvidia.com/gpumem", "volcano.sh/vgpu-memory"])
def test_an_invalid_amount_is_refused_by_the_name_that_the_user_wrote(name: str, text: str) -> None:
    translation = aliases.translate(PATH, {name: text})
    assert [problem.field for problem in translation.problems] == [f"{PATH}[{name}]"]
    assert (translation.ours, translation.removed) == ({}, frozenset())


@pytest.mark.parametrize("other", [names.GPU_MEM, names.GPU, "nvidia.com/gpumem"])
def test_names_of_two_projects_in_one_container_are_refused(other: str) -> None:
    translation = aliases.translate(PATH, {"volcano.sh/vgpu-memory": "1000", other: "1"})
    assert translation.problems
    assert translation.ours == {}


AMOUNTS = st.one_of(st.integers(-5, 200).map(str), st.text(alphabet="0123456789-+.eEkMGim x", max_size=6))
NAMES = sorted(aliases.MARKER_NAMES | {"nvidia.com/gpu", "cpu"})


@given(st.dictionaries(st.sampled_from(NAMES), AMOUNTS))
def test_resources_are_translated_completely_or_refused(resources: dict[str, str]) -> None:
    translation = aliases.translate(PATH, resources)
    assert not (translation.ours and translation.problems)
    if not translation.problems:
        rest = {name: text for name, text in resources.items() if name not in translation.removed}
        rest |= dict(translation.ours)
        assert aliases.translate(PATH, rest) == aliases.NOT_TRANSLATED
        assert bool(translation.ours) == bool(resources.keys() & aliases.MARKER_NAMES)


@given(st.integers(1, request.MAX_GPUS), st.integers(1, quantity.MAX_MIB // request.MAX_GPUS), st.integers(1, 100))
def test_amounts_per_card_become_totals(cards: int, memory: int, cores: int) -> None:
    resources = {"nvidia.com/gpu": str(cards), "nvidia.com/gpumem": str(memory), "nvidia.com/gpucores": str(cores)}
    ours = aliases.translate(PATH, resources).ours
    pod = {"metadata": {}, "spec": {"containers": [{"name": "main", "resources": {"limits": ours}}]}}
    parsed = request.parse(pod)
    assert parsed.problems == ()
    assert parsed.request is not None
    (container,) = parsed.request.containers
    assert (container.gpus, container.memory_mib, container.cores, container.whole) == (cards, memory, cores, False)
