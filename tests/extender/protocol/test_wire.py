"""Decoding of kube-scheduler's calls, and encoding of the responses."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.protocol import wire
from extender.protocol.wire import MalformedCall, MetaVictims
from extender.state.pod_reader import PodReader
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.grants import assignment_trust
from vgpu.domain.grants.assignment_trust import Distrust
from vgpu.domain.identifiers import NodeName, PodUid

POD = {"metadata": {"name": "p"}, "spec": {}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("keys", [("Pod", "NodeNames"), ("pod", "nodenames"), ("POD", "nodeNames")])
def test_keys_are_read_in_any_letter_case(keys: tuple[str, str]) -> None:
    call = wire.call(json.dumps({keys[0]: POD, keys[1]: ["n1"]}).encode())
    assert (call.pod, call.nodes) == (POD, ["n1"])


def test_a_field_that_is_not_known_is_ignored() -> None:
    call = wire.call(json.dumps({"Pod": POD, "Nodes": None, "NodeNames": ["n1"], "More": 1}).encode())
    assert (call.pod, call.nodes, call.full) == (POD, ["n1"], None)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "JSON"), (b"[]", "object"), (b"{}", "Pod"), (b'{"Pod": {}}', "Pod"),
        (json.dumps({"Pod": POD}).encode(), "NodeNames"),
        (json.dumps({"Pod": POD, "NodeNames": [1]}).encode(), "NodeNames"),
        (json.dumps({"Pod": POD, "Nodes": {"items": [{}]}}).encode(), "Nodes"),
    ],
)  # fmt: skip
def test_a_malformed_call_names_its_field(body: bytes, field: str) -> None:
    with pytest.raises(wire.MalformedCall, match=field):
        wire.call(body)


@pytest.mark.parametrize("missing", ["PodName", "PodNamespace", "PodUID", "Node"])
def test_bind_needs_every_field(missing: str) -> None:
    fields = {"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": "n"}
    assert wire.bind_args(json.dumps(fields).encode()).node == "n"
    with pytest.raises(wire.MalformedCall, match=missing):
        wire.bind_args(json.dumps(fields | {missing: ""}).encode())


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_decoded_or_malformed(body: bytes) -> None:
    for read in (wire.call, wire.bind_args):
        with pytest.raises(wire.MalformedCall):
            read(body)


def test_refusals_are_unresolvable_except_on_the_node_that_the_pod_awaits() -> None:
    refused = {Reason.CARD_INSUFFICIENT_MEMORY: [b'"b"'], Reason.CARD_IN_USE: [b'"c"', b'"d"']}
    result = json.loads(wire.filter_result([b'"a"'], refused, NodeName("b")))
    assert (result["NodeNames"], result["Error"]) == (["a"], "")
    assert result["FailedNodes"] == {"b": "CardInsufficientMemory: no card has the GPU memory free"}
    text = "CardInUse: whole cards are asked for and none is empty"
    assert result["FailedAndUnresolvableNodes"] == {"c": text, "d": text}
    assert json.loads(wire.filter_result([b'"a"'], refused))["FailedNodes"] == {}
    assert json.loads(wire.filter_result([], {}))["NodeNames"] == []


def test_preemption_arguments_name_victims_by_uid() -> None:
    victims = {"n1": {"pods": [{"UID": "u1"}, {"uid": "u2"}], "NumPDBViolations": 1}, "n2": {"Pods": None}}
    args = wire.preemption_args(json.dumps({"Pod": POD, "NodeNameToMetaVictims": victims}).encode())
    assert args.victims == {"n1": MetaVictims((PodUid("u1"), PodUid("u2")), 1), "n2": MetaVictims()}
    assert wire.preemption_args(json.dumps({"Pod": POD, "NodeNameToMetaVictims": None}).encode()).victims == {}
    assert json.loads(wire.preemption_result(args.victims))["NodeNameToMetaVictims"]["n1"] == {
        "Pods": [{"UID": "u1"}, {"UID": "u2"}],
        "NumPDBViolations": 1,
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"NodeNameToMetaVictims": []},
        {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": 1}]}}},
        {"NodeNameToMetaVictims": {"n1": {"Pods": {"UID": "u"}}}},
        {"NodeNameToMetaVictims": {"n1": {"Pods": ["u"]}}},
        {"NodeNameToMetaVictims": {"n1": {"Pods": [], "NumPDBViolations": "1"}}},
        {"NodeNameToVictims": {"n1": {"Pods": []}}},
    ],
)
def test_malformed_preemption_arguments_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(MalformedCall, match="NodeNameToMetaVictims"):
        wire.preemption_args(json.dumps({"Pod": POD, **fields}).encode())


def test_scores_are_an_array_of_whole_numbers() -> None:
    scores = {10: [b'"a"'], 0: [b'"b"', b'"c"']}
    expected = b'[{"Host":"a","Score":10},{"Host":"b","Score":0},{"Host":"c","Score":0}]'
    assert wire.host_priorities(scores) == expected
    assert wire.host_priorities({}) == b"[]"


annotation = st.dictionaries(st.sampled_from(["vgpu.io/assignment", "vgpu.io/priority", "x"]), st.text(max_size=10))
limits = st.dictionaries(st.sampled_from(["vgpu.io/gpu-mem", "vgpu.io/slice", "cpu"]), st.text(max_size=6))


@given(annotation, st.lists(limits, max_size=3))
def test_any_pod_is_decoded_for_the_watch(annotations: dict[str, str], amounts: list[dict[str, str]]) -> None:
    containers: list[dict[str, Any]] = [
        {"name": f"c{n}", "resources": {"limits": amount}} for n, amount in enumerate(amounts)
    ]
    decoded = PodReader().decoded(
        {"metadata": {"uid": "u", "annotations": annotations}, "spec": {"containers": containers}}
    )
    assert decoded.uid == "u"
    is_nothing = decoded.assignment == assignment_trust.NOTHING_ASSIGNED and not annotations.get("vgpu.io/assignment")
    assert is_nothing or isinstance(decoded.assignment, Distrust)
