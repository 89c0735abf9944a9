"""What is kept of pods that ask for equal things is what each of them asks for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.state.fields import equal_pods
from extender.state.fields.equal_pods import EqualPods
from tests import strategies
from vgpu.domain import names
from vgpu.domain.grants import assignment as codec
from vgpu.domain.grants import assignment_trust
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.grants.assignment_trust import Distrust
from vgpu.domain.identifiers import CardUuid, ContainerName

AMOUNT = st.sampled_from(["1", 1, "2", 2, "256", "1k", "-1", "x", "", "300m"])
RESOURCE = st.sampled_from([*names.USER_RESOURCES, *names.KUBELET_RESOURCES, "cpu", "memory", "vgpu.io/unknown"])
RESOURCES = st.none() | st.fixed_dictionaries(
    {}, optional={side: st.none() | st.dictionaries(RESOURCE, AMOUNT, max_size=4) for side in ("limits", "requests")}
)
CONTAINERS = st.none() | st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "b", "None"])},
        optional={"resources": RESOURCES, "restartPolicy": st.sampled_from([None, "Always", "Never"])},
    ),
    max_size=3,
)
WORD = st.sampled_from(["a", "None", "", "2", "spread", "fixed", "app=a"])
PODS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "annotations": st.dictionaries(st.sampled_from(names.USER_ANNOTATIONS), WORD, max_size=3),
                "labels": st.none() | st.dictionaries(st.just(names.POD_GROUP_LABEL), WORD),
            },
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "containers": CONTAINERS,
                "initContainers": CONTAINERS,
                "overhead": st.none() | st.dictionaries(st.sampled_from(["cpu", "memory"]), AMOUNT),
                names.SCHEDULING_GROUP: st.none() | st.fixed_dictionaries({"podGroupName": st.none() | WORD}),
            },
        ),
    }
)


@pytest.mark.heavy
@given(st.lists(PODS, min_size=2, max_size=20))
def test_a_pod_is_read_as_if_no_other_pod_had_been_read(pods: list[Any]) -> None:
    reader = EqualPods()
    for pod in pods:
        assert reader.read(pod) == equal_pods.asked(pod)


@given(PODS, PODS, st.data())
def test_a_pod_that_differs_in_one_field_is_read_as_it_is(pod: Any, other: Any, data: st.DataObject) -> None:
    """Another pod's part in place of its own: no part that matters is missing in the key."""
    part, field = data.draw(st.sampled_from([(part, field) for part in other for field in other[part]] or [("", "")]))
    changed = {**pod, part: {**pod[part], field: other[part][field]}} if part else pod
    reader = EqualPods()
    reader.read(pod)
    assert reader.read(changed) == equal_pods.asked(changed)


def test_a_sidecar_differs_from_an_init_container() -> None:
    pods = [
        strategies.pod(init=({**strategies.container(gpu_mem=256), "restartPolicy": policy},))
        for policy in ("", "Always")
    ]
    reader = EqualPods()
    assert reader.read(pods[0]).parsed != reader.read(pods[1]).parsed


def test_pods_of_one_controller_share_what_was_read() -> None:
    one, other = (strategies.pod(strategies.container(gpu_mem=256), uid=uid) for uid in ("u1", "u2"))
    other["spec"]["containers"][0]["volumeMounts"] = [{"name": "kube-api-access-x7k2p", "mountPath": "/token"}]
    reader = EqualPods()
    assert reader.read(one) is reader.read(other)


def test_equal_pods_on_one_card_share_what_they_were_granted() -> None:
    reader = EqualPods()
    asked = reader.read(strategies.pod(strategies.container(gpu_mem=256)))
    one, same, other = (
        codec.encode(Assignment({ContainerName("main"): (Grant(card, 256),)}))
        for card in (CardUuid("GPU-a"), CardUuid("GPU-a"), CardUuid("GPU-b"))
    )
    granted = reader.assignment(asked, one)
    assert granted == assignment_trust.judge(asked.parsed, one)
    assert reader.assignment(asked, same) is granted
    assert reader.assignment(asked, other) == assignment_trust.judge(asked.parsed, other)


def test_an_assignment_is_judged_anew_for_another_request_and_where_it_is_long() -> None:
    pods = [strategies.pod(strategies.container(gpu_mem=amount)) for amount in (256, 512)]
    reader = EqualPods()
    asked, other = (reader.read(pod) for pod in pods)
    text = codec.encode(Assignment({ContainerName("main"): (Grant(CardUuid("GPU-a"), 256),)}))
    assert reader.assignment(asked, text) == codec.decode(text)
    assert isinstance(reader.assignment(other, text), Distrust)
    long = text + " " * equal_pods.MAX_ASSIGNMENT
    assert reader.assignment(asked, long) is not reader.assignment(asked, long)


def test_nothing_is_kept_of_the_assignment_of_a_pod_whose_request_is_not_kept() -> None:
    reader = EqualPods()
    asked = reader.read(strategies.pod(*(strategies.container(f"c{n}", gpu_mem=256) for n in range(17))))
    text = codec.encode(Assignment({ContainerName(f"c{n}"): (Grant(CardUuid("GPU-a"), 256),) for n in range(2)}))
    assert reader.assignment(asked, text) == assignment_trust.judge(asked.parsed, text)
    assert reader.assignment(asked, "") == assignment_trust.judge(asked.parsed, "")
    assert not reader._assignments


def test_the_oldest_assignment_is_forgotten_first() -> None:
    reader = EqualPods(max_assignments=2)
    asked = reader.read(strategies.pod(strategies.container(gpu_mem=256)))
    for text in ("a", "b", "c"):
        reader.assignment(asked, text)
    assert [text for _, text in reader._assignments] == ["b", "c"]


def test_long_pods_and_pods_of_many_containers_are_not_kept() -> None:
    long = strategies.pod(strategies.container(gpu_mem=256), annotations={names.USE_GPU_MODEL: "x" * 5_000})
    many = strategies.pod(*(strategies.container(f"c{n}", gpu_mem=256) for n in range(17)))
    reader = EqualPods()
    for pod in (long, many):
        assert reader.read(pod) == equal_pods.asked(pod)
    assert not reader._requests


def test_the_oldest_is_forgotten_first() -> None:
    pods = [strategies.pod(strategies.container(gpu_mem=1 + n)) for n in range(4)]
    reader = EqualPods(max_requests=3)
    read = [reader.read(pod) for pod in pods]
    assert len(reader._requests) == 3
    assert reader.read(pods[-1]) is read[-1]
    assert reader.read(pods[0]) is not read[0]


def test_what_the_containers_of_a_pod_ask_is_computed_once_for_equal_pods() -> None:
    reader, pods = EqualPods(), [strategies.pod(strategies.container(gpu_mem=300), uid=uid) for uid in ("a", "b")]
    one, other = (reader.read(pod) for pod in pods)
    assert one.asks(256) is other.asks(256)
    assert [asked.slices for asked in one.asks(256)] == [2]
    assert [asked.slices for asked in one.asks(512)] == [1]
    assert equal_pods.asked(strategies.pod()).asks(256) == ()
