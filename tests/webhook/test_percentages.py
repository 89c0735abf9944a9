"""Percentages of a card's memory: what a user gets and is told, or why not and what to write instead."""

import dataclasses

import pytest

from tests.strategies import REAL_CARD_MIB
from tests.webhook import builders
from vgpu.domain import names
from vgpu.domain.cards.device import Card, CardMode
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.json_types import JsonObject
from webhook import admission, mutate, validate, wire
from webhook.rules import AdmissionSettings

LIMITS = "spec.containers[main].resources.limits"
HALF = {names.GPU_MEM_PERCENTAGE: "50"}
USER_NAMES = [names.GPU_MEM_PERCENTAGE, "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"]


def card(memory_mib: int, model: str = "NVIDIA H100 80GB HBM3") -> Card:
    return Card(CardUuid(f"GPU-{memory_mib}"), 0, model, memory_mib)


def amounts(pod: JsonObject, rules: AdmissionSettings) -> tuple[int, int]:
    """Return the MiB and slices that a pod's container gets."""
    mutated = mutate.mutate(pod, rules).pod
    assert validate.on_create(dict(mutated), rules) == []
    (container,) = mutated["spec"]["containers"]
    limits = container["resources"]["limits"]
    return int(limits[names.GPU_MEM]), int(limits[names.SLICE])


def refusal(pod: JsonObject, *cards: Card) -> str:
    (problem,) = validate.on_create(pod, builders.rules(*cards))
    assert mutate.mutate(pod, builders.rules(*cards)).pod is pod
    return str(problem)


def warnings(pod: JsonObject, *cards: Card) -> list[str]:
    review = wire.decode(builders.review("CREATE", pod))
    found: list[str] = builders.response(admission.mutating(review, builders.rules(*cards)).body).get("warnings", [])
    return found


@pytest.mark.parametrize(
    ("memory_mib", "percent", "expected"),
    [
        (81_008, 50, (40_448, 158)), (81_008, 25, (20_224, 79)), (81_008, 100, (81_008, 317)),
        (143_771, 50, (71_885, 281)), (24_564, 10, (2304, 9)), (15_360, 33, (4864, 19)),
    ],
)  # fmt: skip
def test_a_percentage_is_rounded_down_to_slices(memory_mib: int, percent: int, expected: tuple[int, int]) -> None:
    pod = builders.pod({names.GPU_MEM_PERCENTAGE: str(percent)})
    assert amounts(pod, builders.rules(card(memory_mib))) == expected


@pytest.mark.parametrize("memory_mib", REAL_CARD_MIB)
def test_the_size_of_a_slice_is_the_clusters(memory_mib: int) -> None:
    rules = dataclasses.replace(builders.rules(card(memory_mib)), slice_mib=1)
    assert amounts(builders.pod(HALF), rules) == (memory_mib // 2, memory_mib // 2)


def test_kubectl_prints_what_a_percentage_is() -> None:
    (said,) = warnings(builders.pod(HALF), builders.H100)
    amount = "is 40448 MiB on each card: 158 of the 317 memory slices of a card of 81008 MiB"
    assert said == f'{LIMITS}[{names.GPU_MEM_PERCENTAGE}]: "50" {amount}'
    (said,) = warnings(builders.pod({"nvidia.com/gpucores": "30"}), builders.H100)
    assert said.startswith(f'{LIMITS}[nvidia.com/gpucores]: "30" asks for all memory too, which is 81008 MiB')
    assert warnings(builders.pod({names.GPU_MEM: "1024"}), builders.H100) == []
    assert warnings(builders.pod(HALF)) == []


@pytest.mark.parametrize("name", USER_NAMES)
def test_without_known_cards_a_percentage_is_refused_by_the_users_name(name: str) -> None:
    said = refusal(builders.pod({name: "50"}))
    assert said.startswith(f"{LIMITS}[{name}]: ")
    assert "no card of the cluster is known yet" in said
    assert f"ask for {names.GPU_MEM} in MiB" in said


@pytest.mark.parametrize("name", USER_NAMES)
def test_on_cards_of_different_sizes_the_amounts_are_told(name: str) -> None:
    said = refusal(builders.pod({name: "50"}), builders.H100, builders.A30)
    of = {"nvidia.com/gpucores": (81_008, 24_576)}.get(name, (40_448, 12_288))
    assert f"({of[0]} MiB on {builders.H100.model}, {of[1]} MiB on {builders.A30.model})" in said
    assert names.USE_GPU_MODEL in said


def test_of_many_sizes_some_are_told() -> None:
    said = refusal(builders.pod(HALF), *(card(1000 * 2**n, f"model {n}") for n in range(6)))
    assert "(15872 MiB on model 5, 7936 MiB on model 4, 4000 MiB on model 3, 2000 MiB on model 2, 2 more sizes)" in said


def test_a_cluster_without_a_card_for_the_pod_says_so() -> None:
    pod = builders.pod(HALF, {names.USE_GPU_MODEL: "B200"})
    assert "no card of the cluster takes shares of this pod" in refusal(pod, builders.H100)


def test_the_cards_that_a_pod_accepts_decide() -> None:
    pod = builders.pod(HALF, {names.USE_GPU_MODEL: "a30"})
    assert amounts(pod, builders.rules(builders.H100, builders.A30)) == (12_288, 48)


@pytest.mark.parametrize(
    "other",
    [dataclasses.replace(builders.A30, mode=CardMode.EXCLUSIVE), dataclasses.replace(builders.A30, memory_mib=0)],
)
def test_cards_that_take_no_shares_do_not_count(other: Card) -> None:
    assert amounts(builders.pod(HALF), builders.rules(builders.H100, other)) == (40_448, 158)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [(81_008, 81_037), (23_028, 24_564), (81_008, 81_289)],
    ids=["another driver", "ECC", "another model of 80 GB"],
)
def test_sizes_that_differ_by_what_is_reserved_count_as_the_smallest(smaller: int, larger: int) -> None:
    cards = card(larger, "a"), card(smaller, "b")
    pod = builders.pod(HALF)
    assert amounts(pod, builders.rules(*cards)) == amounts(pod, builders.rules(card(smaller)))
    (said,) = warnings(pod, *cards)
    assert f"of a card of {smaller} MiB; the cards that the pod accepts have up to {larger} MiB" in said


def test_less_than_a_slice_is_refused_with_the_least_percentage() -> None:
    said = refusal(builders.pod({names.GPU_MEM_PERCENTAGE: "1"}), card(15_360))
    assert "is less than a memory slice of 256 MiB on a card of 15 GiB; write 2 or more" in said
    assert amounts(builders.pod({names.GPU_MEM_PERCENTAGE: "2"}), builders.rules(card(15_360))) == (256, 1)


def test_each_container_is_told_its_own_amount() -> None:
    containers = [
        builders.container("a", HALF),
        builders.container("b", {names.GPU_MEM_PERCENTAGE: "25", names.GPU: "2"}),
    ]
    said = warnings(builders.pod(containers=containers), builders.H100)
    assert [text.partition(" of the")[0].rpartition(" ")[0].partition('" ')[2] for text in said] == [
        "is 40448 MiB on each card:", "is 20224 MiB on each card:",
    ]  # fmt: skip


def test_of_two_containers_of_one_name_only_the_one_with_a_percentage_is_changed() -> None:
    """The API server refuses such a pod after the webhooks have changed it."""
    containers = [builders.container("a", {"cpu": "1"}), builders.container("a", HALF)]
    first, second = mutate.mutate(builders.pod(containers=containers), builders.rules(builders.H100)).pod["spec"][
        "containers"
    ]
    assert names.GPU_MEM not in first["resources"]["limits"]
    assert second["resources"]["limits"][names.GPU_MEM] == "40448"
