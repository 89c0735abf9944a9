"""What is learned from the pods seen."""

from vgpu.domain.asks.policy import CardSelector
from vgpu.placement import demand
from vgpu.placement.demand import TypicalPods
from vgpu.placement.models import ALL, MAX_MODELS, Models
from vgpu.placement.room import PodAsk
from vgpu.placement.weights import DEFAULTS, Weights


def share(slices: int, cpu: int = 1000) -> PodAsk:
    return PodAsk(1, slices, 0, 0, cpu, 0, ALL)


def test_rare_classes_are_not_typical_but_pods_of_several_cards_are() -> None:
    typical, pair = TypicalPods(), PodAsk(2, 0, 0, 1, 0, 0, ALL)
    for ask in (*[share(1)] * 60, *[share(2)] * 38, pair, share(3)):
        typical.see(ask)
    assert set(typical.asks()) == {share(1), share(2), pair}


def test_earlier_pods_count_less() -> None:
    typical = TypicalPods()
    for ask in (*[share(1)] * 20 * DEFAULTS.half_life, *[share(2)] * 6 * DEFAULTS.half_life):
        typical.see(ask)
    assert typical.asks() == (share(2),)


def test_weights_say_how_fast_is_learned_how_much_is_covered_and_what_scarcity_costs() -> None:
    typical = TypicalPods(Weights(half_life=10, covered=40, scarcity=0))
    for ask in (*[share(1)] * 30, *[share(2)] * 8, *[share(3)] * 5):
        typical.see(ask)
    assert set(typical.asks()) == {share(1), share(2)}
    found = typical.demand(lambda ask: 1000 * ask.slices, 50_000, 8)
    one, two = sorted(found.typical, key=lambda pod_class: pod_class.ask.slices)
    assert abs(one.price / two.price - one.popularity / two.popularity) < 0.001
    assert found.weights == Weights(half_life=10, covered=40, scarcity=0)


def test_the_number_of_classes_is_bounded() -> None:
    typical = TypicalPods()
    for size in range(demand.MAX_CLASSES + 50):
        typical.see(share(size))
    assert len(typical._counts) == demand.MAX_CLASSES
    assert len(typical.asks()) == demand.MAX_TYPICAL


def test_a_class_is_worth_more_where_little_room_is_left_for_it() -> None:
    typical, scarce = TypicalPods(), PodAsk(1, 1, 0, 0, 0, 0, 1)
    typical.see(share(1))
    typical.see(scarce)
    found = typical.demand(lambda ask: 1000 if ask == scarce else 99_000, 50_000, 8)
    prices = {pod_class.ask: pod_class.price for pod_class in found.typical}
    assert prices[scarce] // prices[share(1)] == 50**1.5 // 1
    assert found.version != typical.demand(lambda _: 0, 0, 8).version


def test_models_keep_their_bits_and_the_last_bit_is_shared() -> None:
    models = Models()
    bits = [models.bit(f"M{n}") for n in range(MAX_MODELS + 5)]
    assert bits == [models.bit(f"M{n}") for n in range(MAX_MODELS + 5)]
    assert len(set(bits)) == MAX_MODELS
    assert models.accepted(CardSelector()) == ALL
    assert models.accepted(CardSelector(use_models=("m3",), avoid_models=("m30",))) & models.bit("M3")
    assert not models.accepted(CardSelector(avoid_models=("m3",))) & models.bit("M3")
