"""A seed gives one sequence of requests, which holds every action and stays within its bounds."""

import itertools
import json
from collections.abc import Iterator

from tests.e2e.walk import actions, plan
from tests.e2e.walk.plan import ApiRequest, NewLimits, Step


def steps(seed: int, count: int) -> Iterator[Step]:
    made = plan.rounds(seed, actions.ACTIONS, actions.delete)
    return itertools.chain.from_iterable(itertools.islice(made, count))


def as_text(seed: int, count: int) -> str:
    return json.dumps(list(steps(seed, count)))


def test_a_seed_gives_one_sequence_of_requests_in_a_run_of_any_length() -> None:
    long = as_text(3, 40)
    assert long == as_text(3, 40)
    assert long.startswith(as_text(3, 7).removesuffix("]"))
    assert long != as_text(4, 40)


def test_a_walk_takes_every_action_and_deletes_what_it_creates() -> None:
    taken = list(steps(1, 60))
    assert {step.action for step in taken} == {action.__name__ for _, action in actions.ACTIONS}
    requests = [effect for step in taken for effect in step.effects if isinstance(effect, ApiRequest)]
    created = {
        f"{asked.path}/{asked.body['metadata']['name']}" for asked in requests if asked.method == "POST" and asked.body
    }
    deleted = [asked.path for asked in requests if asked.method == "DELETE"]
    assert len(set(deleted)) == len(deleted)
    assert set(deleted) < created
    assert len(created) - len(deleted) < plan.MOST_PODS + plan.STEPS * 6 + sum(step.action == "short" for step in taken)


def test_new_limits_are_those_of_a_pod_that_was_created() -> None:
    changed = [effect for step in steps(1, 40) for effect in step.effects if isinstance(effect, NewLimits)]
    assert changed
    for effect in changed:
        namespace, name = effect.pod.split("/")
        assert namespace.startswith(plan.NAMESPACE)
        assert name
