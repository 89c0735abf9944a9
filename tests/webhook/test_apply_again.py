"""A manifest that is applied again: what is sent is the live pod with all that the manifest says."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.webhook import builders
from vgpu.domain import names
from vgpu.domain.asks import foreign_annotations
from vgpu.domain.json_types import JsonObject
from webhook import mutate, validate

RULES = builders.rules(builders.H100)
HAMI = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4k"}
TRANSLATED = [
    HAMI,
    {"nvidia.com/gpu": "2", "nvidia.com/gpumem-percentage": "50", "nvidia.com/gpucores": "30"},
    {"nvidia.com/gpucores": "30"},
    {"aliyun.com/gpu-mem": "3"},
    {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1024"},
    {"volcano.sh/vgpu-number": "2"},
    {names.GPU_MEM_PERCENTAGE: "50", names.GPU: "2", names.GPU_CORES: "60"},
]


def defaulted(pod: JsonObject) -> JsonObject:
    """A pod as the API server fills it in before admission: requests from limits."""
    spec = {**pod["spec"]}
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [_with_requests(container) for container in spec[kind]]
    return {**pod, "spec": spec}


def _with_requests(container: JsonObject) -> JsonObject:
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    requests = {**limits, **(resources.get("requests") or {})}
    return {**container, "resources": {"limits": limits, "requests": requests}} if resources else container


def admitted(written: JsonObject) -> JsonObject:
    return dict(mutate.mutate(defaulted(written), RULES).pod)


def applied(live: JsonObject, written: JsonObject) -> JsonObject:
    """The live pod with what `kubectl apply` adds: all that the manifest says, merged by the containers' names."""
    by_name = {container["name"]: container for container in written["spec"]["containers"]}
    containers = [_merged(container, by_name.get(container["name"], {})) for container in live["spec"]["containers"]]
    spec = {**live["spec"], **written["spec"], "containers": containers}
    annotations = {**live["metadata"].get("annotations", {}), **written["metadata"].get("annotations", {})}
    metadata = {**live["metadata"], **({"annotations": annotations} if annotations else {})}
    return defaulted({**live, "metadata": metadata, "spec": spec})


def _merged(live: JsonObject, written: JsonObject) -> JsonObject:
    resources = {
        side: {**live.get("resources", {}).get(side, {}), **written.get("resources", {}).get(side, {})}
        for side in ("limits", "requests")
    }
    return {**live, **{key: value for key, value in written.items() if key != "env"}, "resources": resources}


def changed(old: JsonObject, new: JsonObject) -> JsonObject:
    """The pod after the webhook has seen the change, by its patch."""
    return builders.apply(mutate.patch(new, mutate.mutate_changed(old, new, RULES).pod), new)


@pytest.mark.parametrize("limits", TRANSLATED, ids="+".join)
def test_an_unchanged_manifest_changes_nothing(limits: dict[str, str]) -> None:
    written = builders.pod(limits)
    live = admitted(written)
    sent = applied(live, written)
    assert sent["spec"] != live["spec"], "without the webhook the API server would refuse this"
    assert changed(live, sent) == live
    assert validate.on_update(live, changed(live, sent)) == []


def test_a_percentage_may_be_applied_again_after_the_cards_have_changed() -> None:
    written = builders.pod({"nvidia.com/gpumem-percentage": "50"})
    live = admitted(written)
    other = dataclasses.replace(RULES, cards=lambda: ())
    assert mutate.mutate_changed(live, applied(live, written), other).pod == live


@pytest.mark.parametrize(
    "amounts", [{**HAMI, "nvidia.com/gpumem": "8k"}, {"nvidia.com/gpumem": "4k"}, {"aliyun.com/gpu-mem": "4"}]
)
def test_a_changed_amount_is_left_for_the_api_server_to_refuse(amounts: dict[str, str]) -> None:
    live = admitted(builders.pod(HAMI))
    sent = applied(live, builders.pod(amounts))
    assert changed(live, sent) == sent


@pytest.mark.parametrize("scheduler", ["hami-scheduler", "default-scheduler", "volcano"])
def test_a_scheduler_that_was_replaced_is_replaced_again(scheduler: str) -> None:
    written = builders.pod({names.GPU_MEM: "1024"}, schedulerName=scheduler)
    live = admitted(written)
    assert changed(live, applied(live, written)) == live
    own = admitted(builders.pod({names.GPU_MEM: "1024"}, schedulerName="own"))
    sent = applied(own, written)
    assert changed(own, sent) == sent, "the pod has another scheduler, which cannot change"


@pytest.mark.parametrize("name", [*names.STATE_ANNOTATIONS, *sorted(foreign_annotations.STATE)])
def test_the_manifest_of_a_copy_may_be_applied_again(name: str) -> None:
    written = builders.pod({names.GPU_MEM: "1024"}, {name: "of another pod"})
    live = admitted(written)
    bound = {**live, "metadata": {**live["metadata"], "annotations": {names.ASSIGNMENT: "of this pod"}}}
    for old in (live, bound):
        new = applied(old, written)
        assert changed(old, new)["metadata"].get("annotations") == old["metadata"].get("annotations")
        (said,) = mutate.mutate_changed(old, new, RULES).said
        assert said.field == f"metadata.annotations[{name}]"


@pytest.mark.parametrize(
    "record",
    ["", "x", "{}", '{"v":2,"containers":{}}', '{"v":1,"containers":[]}', '{"v":1,"containers":{"main":{"a":{}}}}'],
)
def test_a_record_that_cannot_be_read_says_nothing(record: str) -> None:
    live = admitted(builders.pod(HAMI))
    forged = {**live, "metadata": {**live["metadata"], "annotations": {names.AS_WRITTEN: record}}}
    sent = applied(forged, builders.pod(HAMI))
    assert changed(forged, sent) == sent


def test_a_forged_record_hides_no_amount_that_the_pod_has() -> None:
    record = {"v": 1, "containers": {"main": {names.GPU_MEM: "8192"}}}
    live = admitted(builders.pod({names.GPU_MEM: "1024"}, {names.AS_WRITTEN: json.dumps(record)}))
    sent = applied(live, builders.pod({names.GPU_MEM: "8192"}))
    assert changed(live, sent) == sent


@given(builders.pods(), st.booleans())
def test_any_admitted_manifest_may_be_applied_again(written: dict[str, Any], is_bound: bool) -> None:
    live = admitted(written)
    if validate.on_create(live, RULES):
        return
    if is_bound:
        bound = {**live["metadata"].get("annotations", {}), names.ASSIGNMENT: "{}"}
        live = {**live, "metadata": {**live["metadata"], "annotations": bound}}
    sent = applied(live, written)
    event("translated" if sent["spec"] != live["spec"] else "sent as it is")
    after = changed(live, sent)
    resources = [container.get("resources") or {} for container in after["spec"]["containers"]]
    for mine, container in zip(resources, live["spec"]["containers"], strict=True):
        known = container.get("resources") or {}
        assert all(mine.get(side, {}) == known.get(side, {}) for side in ("limits", "requests"))
    assert validate.on_update(live, after) == []
