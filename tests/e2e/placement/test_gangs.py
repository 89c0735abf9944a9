"""Gangs on the real kube-scheduler, which filters and binds pod by pod: all pods of a gang run, or none."""

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cluster import api, wait
from cluster.cluster import GpuCluster
from tests.e2e.pod_namespace import PodNamespace, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

GIB = 1024
DEADLINE_S = 6
SETTLED_S = 12.0  # that nothing starts is watched for this long: longer than kube-scheduler's back-off and the deadline
STARTED_S = 60.0
NEW_LEADER_S = 120.0  # after a crash: 30 s, and the start on a machine that runs other tests
POLICIES = "/apis/admissionregistration.k8s.io/v1"
Document = dict[str, Any]

log = logging.getLogger(__name__)


def member(name: str, gang: str, size: int, **share: int) -> Document:
    return pod(name, annotations={names.GANG: gang, names.GANG_SIZE: str(size)}, **share)  # type: ignore[arg-type]


def all_cards(cluster: GpuCluster) -> int:
    return sum(len(node.cards) for node in cluster.nodes)


def fill(namespace: PodNamespace, cluster: GpuCluster, *, leave: int) -> None:
    """Hold cards whole until only some are left."""
    fillers = [f"filler-{n}" for n in range(all_cards(cluster) - leave)]
    for name in fillers:
        namespace.create(pod(name, gpu=1))
    namespace.running(*fillers)


class Bound:
    """How many pods of each gang are bound and not being deleted, and how long a gang was bound in part at most."""

    def __init__(self, namespace: PodNamespace, size: int) -> None:
        self._namespace = namespace
        self._size = size
        self._since: dict[str, float] = {}
        self.longest_s: dict[str, float] = {}

    def count(self) -> Counter[str]:
        """Look now, and return the bound pods by gang."""
        pods = [member for member in self._namespace.all() if names.GANG in member["metadata"].get("annotations", {})]
        bound = Counter(member["metadata"]["annotations"][names.GANG] for member in pods if is_bound(member))
        for gang in {member["metadata"]["annotations"][names.GANG] for member in pods}:
            if 0 < bound[gang] < self._size:
                began = self._since.setdefault(gang, time.monotonic())
                self.longest_s[gang] = max(self.longest_s.get(gang, 0.0), time.monotonic() - began)
            else:
                self._since.pop(gang, None)
        return bound

    def watch(self, seconds: float) -> Counter[str]:
        """Look for some time, and return the bound pods by gang at its end."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.count()
            time.sleep(0.1)
        return self.count()


def is_bound(item: Document) -> bool:
    return bool(item["spec"].get("nodeName")) and "deletionTimestamp" not in item["metadata"]


def says(namespace: PodNamespace, name: str, *words: str) -> None:
    """Wait for an Event of the extender with these words."""
    namespace.until(
        lambda: (
            any(all(word in event["message"] for word in words) for event in namespace.extender_events(name)) or None
        ),
        f"an Event of {name} with {words}",
    )


def test_of_three_gangs_on_the_cards_of_two_two_run_and_one_waits_whole(
    cluster: GpuCluster, namespace: PodNamespace
) -> None:
    size = all_cards(cluster) // 2
    gangs = ["one", "two", "three"]
    began = time.monotonic()
    for n in range(size):
        for gang in gangs:  # all at once, and mixed
            namespace.create(member(f"{gang}-{n}", gang, size, gpu=1))
    bound = Bound(namespace, size)
    whole = namespace.until(
        lambda: found if len(found := [g for g, n in bound.count().items() if n == size]) == 2 else None,
        "two whole gangs",
        STARTED_S,
    )
    took = time.monotonic() - began
    namespace.running(*(f"{gang}-{n}" for gang in whole for n in range(size)))
    assert bound.watch(SETTLED_S) == dict.fromkeys(whole, size)
    log.info("two gangs of %d whole after %.1f s; longest part %s", size, took, bound.longest_s)
    assert max(bound.longest_s.values(), default=0) < wait.allowed(DEADLINE_S)
    (waiting,) = set(gangs) - set(whole)
    says(namespace, f"{waiting}-0", f"gang {waiting} of {size} pods", "the free cards take 0 of the")
    namespace.delete(*(f"{whole[0]}-{n}" for n in range(size)))
    namespace.running(*(f"{waiting}-{n}" for n in range(size)))


def test_four_members_of_60_percent_do_not_start_on_three_cards_and_three_do(
    cluster: GpuCluster, namespace: PodNamespace
) -> None:
    fill(namespace, cluster, leave=3)
    for n in range(4):
        namespace.create(member(f"four-{n}", "four", 4, gpu_mem=GIB, gpu_cores=60))
    bound = Bound(namespace, 4)
    says(namespace, "four-0", "the free cards take 3 of the 4 pods that are not bound")
    assert bound.watch(SETTLED_S) == {}
    for n in range(3):
        namespace.create(member(f"three-{n}", "three", 3, gpu_mem=GIB, gpu_cores=60))
    namespace.running(*(f"three-{n}" for n in range(3)))
    cards = {card for n in range(3) for card in namespace.assignment(f"three-{n}").gpus()}
    assert len(cards) == 3
    assert bound.count() == {"three": 3}
    assert "four" not in bound.longest_s


def test_ranks_with_half_of_a_card_each_get_cards_of_their_own(namespace: PodNamespace) -> None:
    """Two ranks of NCCL cannot use one card, and the packing policies would give them the same one."""
    for n in range(2):
        made = member(f"rank-{n}", "ranks", 2, gpu_mem=GIB, gpu_cores=50)
        made["metadata"]["annotations"][names.GANG_CARDS] = "own"
        namespace.create(made)
    namespace.running("rank-0", "rank-1")
    assert len({card for n in range(2) for card in namespace.assignment(f"rank-{n}").gpus()}) == 2


def test_a_member_that_never_comes_keeps_the_others_from_starting_and_holds_no_card(
    cluster: GpuCluster, namespace: PodNamespace
) -> None:
    for n in range(3):
        namespace.create(member(f"train-{n}", "train", 4, gpu=1))
    bound = Bound(namespace, 4)
    says(
        namespace,
        "train-2",
        "gang train of 4 pods: 3 exist",
        f"waits for 1 more pod of its namespace with {names.GANG}",
    )
    assert bound.watch(SETTLED_S) == {}
    fill(namespace, cluster, leave=4)
    namespace.create(member("train-3", "train", 4, gpu=1))
    namespace.running(*(f"train-{n}" for n in range(4)))


def test_a_member_that_kube_scheduler_cannot_place_ends_the_plan_at_its_deadline(
    cluster: GpuCluster, namespace: PodNamespace
) -> None:
    """The member exists and fits; kube-scheduler refuses it, and never asks the extender."""
    cards = all_cards(cluster)
    with cluster.extender_with(gang_deadline_s=str(DEADLINE_S)):
        for n in range(cards):
            manifest = member(f"train-{n}", "train", cards, gpu=1)
            if n == 0:
                manifest["spec"]["nodeSelector"] = {"vgpu-test/no-such-label": "true"}
            namespace.create(manifest)
        bound = Bound(namespace, cards)
        bound.watch(1)
        says(namespace, "train-1", f"within {DEADLINE_S} s", "waits for: ", "train-0", "its cards are free again")
        namespace.create(pod("other", gpu=1))
        namespace.running("other")
        assert bound.watch(SETTLED_S) == {}
        assert not bound.longest_s


@contextmanager
def unbindable(cluster: GpuCluster, name: str) -> Iterator[None]:
    """Have the API server refuse the Binding of a pod."""
    policy = {
        "metadata": {"name": "vgpu-test-unbindable"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
                ]
            },
            "validations": [{"expression": f"request.name != '{name}'", "message": "not today"}],
        },
    }
    spec = {"policyName": "vgpu-test-unbindable", "validationActions": ["Deny"]}
    binding = {"metadata": {"name": "vgpu-test-unbindable"}, "spec": spec}
    cluster.api.create(f"{POLICIES}/validatingadmissionpolicies", policy)
    cluster.api.create(f"{POLICIES}/validatingadmissionpolicybindings", binding)
    try:
        wait.until(lambda: "not today" in refusal(cluster, name), "the policy acts", 20)
        yield
    finally:
        cluster.api.delete(f"{POLICIES}/validatingadmissionpolicybindings/vgpu-test-unbindable")
        cluster.api.delete(f"{POLICIES}/validatingadmissionpolicies/vgpu-test-unbindable")


def refusal(cluster: GpuCluster, name: str) -> str:
    """Why the API server refuses a Binding of a pod that does not exist."""
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "none"}}
    try:
        cluster.api.create(f"/api/v1/namespaces/default/pods/{name}/binding", body)
    except api.RequestRefused as refused:
        return refused.message
    return ""


def test_a_part_that_is_bound_is_evicted_at_the_deadline(cluster: GpuCluster, namespace: PodNamespace) -> None:
    with cluster.extender_with(gang_deadline_s=str(DEADLINE_S)), unbindable(cluster, "train-2"):
        for n in range(3):
            namespace.create(member(f"train-{n}", "train", 3, gpu=1))
        bound = Bound(namespace, 3)
        namespace.until(lambda: bound.count()["train"] == 2 or None, "a part of the gang is bound")
        namespace.until(lambda: bound.count()["train"] == 0 or None, "the part is evicted", DEADLINE_S + 10)
        log.info("bound in part for %.1f s", bound.longest_s["train"])
        assert bound.longest_s["train"] < DEADLINE_S + wait.allowed(
            3
        )  # half a second between two looks, and the requests
        namespace.until(lambda: namespace.phases().keys() == {"train-2"} or None, "the part is gone")
        evicted = [event for event in namespace.events() if event["reason"] == "GangEvicted"]
        assert {event["involvedObject"]["name"] for event in evicted} == {"train-0", "train-1"}
        assert "only 2 of them could be bound; waits for: train-2" in evicted[0]["message"]


def crash(cluster: GpuCluster) -> None:
    """Kill the extender, and start it again with the settings of these tests."""
    cluster.extender.kill()
    cluster.extender.stop()  # takes the exit status
    cluster.extender.start(f"--gang-deadline-s={DEADLINE_S}")


def test_a_crash_of_the_extender_changes_nothing_for_members_that_run(
    cluster: GpuCluster, namespace: PodNamespace
) -> None:
    running = [f"train-{n}" for n in range(3)]
    with cluster.extender_with(gang_deadline_s=str(DEADLINE_S)):
        for name in running[:2]:
            namespace.create(member(name, "train", 3, gpu=1))
        says(namespace, "train-1", "2 exist")  # the Event of an earlier pod may count fewer
        crash(cluster)
        namespace.create(member("train-2", "train", 3, gpu=1))
        uids = {found["metadata"]["uid"] for found in namespace.running(*running, within_s=NEW_LEADER_S)}
        crash(cluster)
        namespace.create(pod("later", gpu=1))  # runs when the new leader binds
        namespace.running("later", within_s=NEW_LEADER_S)
        Bound(namespace, 3).watch(2 * DEADLINE_S)
        assert {found["metadata"]["uid"] for found in namespace.running(*running)} == uids
        namespace.delete("train-1")
        namespace.create(member("train-1", "train", 3, gpu=1))
        namespace.running(*running)
