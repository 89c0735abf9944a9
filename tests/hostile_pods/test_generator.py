"""A seed always makes the same pod, a finding's names make it again, and every mutation is in the corpus."""

from tests.hostile_pods import corpus, generator
from tests.hostile_pods.mutations import MUTATIONS
from tests.hostile_pods.valid import PODS


def test_a_seed_makes_the_same_bytes_again() -> None:
    for seed in range(50):
        made = generator.make(seed)
        assert made.body(name="p") == generator.make(seed).body(name="p")
        assert made.body(name="p") == generator.compose(seed, *made.changes).body(name="p")


def test_the_corpus_has_every_valid_pod_and_every_mutation() -> None:
    used = {name for case in corpus.cases() for name in case.changes}
    assert used >= {mutation.name for mutation in MUTATIONS}
    assert used >= {valid.__name__.strip("_").replace("_", "-") for valid in PODS}
