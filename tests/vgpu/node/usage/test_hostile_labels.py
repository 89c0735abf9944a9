"""Names that tenants and programs choose stay in their labels, each pod has series of its own, and all can be read."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics

from tests.hostile_pods import tenants
from tests.vgpu.node.builders import gpu, uuid
from vgpu.adapters.metrics import MAX_LABEL, Registry
from vgpu.domain.identifiers import ContainerName, Namespace, NodeName, PodUid
from vgpu.node.containers.allocations import Holder
from vgpu.node.usage import dcgm_metrics, metrics
from vgpu.node.usage.metrics import CardReading, ContainerState, NodeReading

PLAIN, OPEN = "text/plain", "application/openmetrics-text; version=1.0.0"
SERIES = 30  # of a container, at most
PARSERS: dict[str, Any] = {
    PLAIN: parser.text_string_to_metric_families,
    OPEN: openmetrics.text_string_to_metric_families,
}


def rendered(names: Iterable[tuple[str, str, str]], form: str, model: str = "NVIDIA H100") -> str:
    holders = [Holder(PodUid(str(n)), Namespace(a), b, ContainerName(c)) for n, (a, b, c) in enumerate(names)]
    parts = tuple(ContainerState(holder, uuid(0), 1 << 20, 30) for holder in holders)
    card = gpu(0)
    hostile = replace(card, card=replace(card.card, model=model))
    state = NodeReading(NodeName("n1"), "0.2", (CardReading(hostile),), parts)
    registry = Registry()
    registry.add(lambda: [*metrics.families(state), *dcgm_metrics.families(state)])
    return registry.render(form)[0].decode()


def pods_in(text: str, form: str) -> list[tuple[str, str, str]]:
    families = {family.name: family for family in PARSERS[form](text)}
    found = [sample.labels for sample in families["vgpu_container_memory_limit_bytes"].samples]
    return [(label["namespace"], label["pod"], label["container"]) for label in found]


NAMES = st.tuples(tenants.label_names, tenants.dns_names, tenants.label_names)


@pytest.mark.heavy
@pytest.mark.parametrize("form", PARSERS)
@settings(max_examples=40, deadline=None)
@given(names=st.sets(NAMES, min_size=1, max_size=8))
def test_each_container_has_series_of_its_own_with_its_whole_name(form: str, names: set[tuple[str, str, str]]) -> None:
    assert sorted(pods_in(rendered(sorted(names), form), form)) == sorted(names)


def test_pods_whose_longest_names_differ_at_the_end_have_series_of_their_own() -> None:
    names = {("team", "a" * 63 + "." + "b" * 188 + end, "main") for end in "xy"}
    assert set(pods_in(rendered(names, PLAIN), PLAIN)) == names


@pytest.mark.parametrize("form", PARSERS)
@settings(max_examples=60, deadline=None)
@given(text=st.one_of(tenants.texts, st.just("\ud800"), st.just("x" * 262_144)), model=tenants.texts)
def test_no_text_breaks_the_page_or_adds_a_series(form: str, text: str, model: str) -> None:
    page = rendered([(text, text, text), ("other", "neighbour", "main")], form, model)
    assert ("other", "neighbour", "main") in pods_in(page, form)
    lines = page.splitlines()
    assert len([line for line in lines if not line.startswith("#")]) < 3 * SERIES
    assert [line for line in lines if not line.isprintable()] == []
    assert max(map(len, lines)) < 12 * MAX_LABEL
