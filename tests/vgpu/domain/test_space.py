"""Groups in space: names, caps and bounds; and that no user can ask for one yet."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vgpu.domain import names, object_names
from vgpu.domain.asks import request, space
from vgpu.domain.asks.policy import MemoryPolicy
from vgpu.domain.asks.request import ContainerKind, ContainerRequest
from vgpu.domain.asks.space import SpaceGroup, SpaceOptions
from vgpu.domain.identifiers import NO_NAMESPACE, ContainerName, Namespace

TEAM = Namespace("team")
LABELS = st.from_regex(object_names.LABEL, fullmatch=True)
GROUPS = st.one_of(
    st.builds(SpaceGroup, LABELS.map(Namespace), LABELS | st.just("")),
    st.builds(SpaceGroup, st.just(NO_NAMESPACE), LABELS),
)
POLICY = {names.COMPUTE_POLICY: space.SPACE}
NO_NAMES = ("", "A", "a.b", "a/b", "shared/", "-a", "a" * 64, "shared/shared/a", "a\n", "../a")
NO_PERCENTAGES = ("", "0", "101", "050", "5.5", "50%", "-1", "\N{ARABIC-INDIC DIGIT FIVE}", "1e1")
MAIN = ContainerRequest(ContainerName("main"), ContainerKind.APP, 1, 1024, 10)


def test_admission_refuses_the_policy_as_any_unknown_value() -> None:
    """Remove this test with the commit that offers `space`."""
    container = {"name": "main", "resources": {"limits": {names.GPU_MEM: "1024"}}}
    pod = {"metadata": {"annotations": POLICY}, "spec": {"containers": [container]}}
    (problem,) = request.parse(pod).problems
    assert str(problem).endswith('"space" must be one of fixed, burst, best-effort')


@pytest.mark.parametrize(
    ("annotations", "group", "percentage"),
    [
        ({}, SpaceGroup(TEAM, ""), None),
        ({space.SPACE_GROUP: "models"}, SpaceGroup(TEAM, "models"), None),
        ({space.SPACE_GROUP: "shared/models"}, SpaceGroup(NO_NAMESPACE, "models"), None),
        ({space.SM_PERCENTAGE: "50"}, SpaceGroup(TEAM, ""), 50),
        ({space.SM_PERCENTAGE: "100"}, SpaceGroup(TEAM, ""), 100),
    ],
)
def test_a_pods_annotations_name_its_group_and_cap(
    annotations: dict[str, str], group: SpaceGroup, percentage: int | None
) -> None:
    assert space.parse(TEAM, POLICY | annotations) == (SpaceOptions(group, percentage), [])


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        *((space.SPACE_GROUP, bad, "must be a DNS label") for bad in NO_NAMES),
        *((space.SM_PERCENTAGE, bad, "1 to 100") for bad in NO_PERCENTAGES),
    ],
)
def test_what_cannot_be_read_is_refused_by_the_name_of_its_annotation(name: str, value: str, why: str) -> None:
    options, (problem,) = space.parse(TEAM, POLICY | {name: value})
    assert options is None
    assert problem.field == f"metadata.annotations[{name}]"
    assert why in problem.why


@pytest.mark.parametrize("policy", [{}, {names.COMPUTE_POLICY: "burst"}])
def test_group_and_cap_need_the_policy(policy: dict[str, str]) -> None:
    options, problems = space.parse(TEAM, policy | {space.SPACE_GROUP: "a", space.SM_PERCENTAGE: "7"})
    assert options is None
    assert [problem.why for problem in problems] == [f"needs {names.COMPUTE_POLICY}: space too"] * 2
    assert space.parse(TEAM, policy) == (None, [])


@given(st.text(), st.text())
def test_any_text_is_read_or_refused(group: str, percentage: str) -> None:
    options, problems = space.parse(TEAM, POLICY | {space.SPACE_GROUP: group, space.SM_PERCENTAGE: percentage})
    assert (options is None) == bool(problems)


@given(LABELS, LABELS, LABELS)
def test_no_name_leads_into_another_namespaces_group(namespace: str, name: str, other: str) -> None:
    options, _ = space.parse(Namespace(namespace), POLICY | {space.SPACE_GROUP: name})
    assert options is not None
    assert options.group.namespace == namespace
    theirs, _ = space.parse(Namespace(other), POLICY | {space.SPACE_GROUP: name})
    assert theirs is not None
    assert (options.group == theirs.group) == (namespace == other)


@given(LABELS, LABELS | st.none())
def test_a_group_of_the_cluster_needs_the_label_of_the_namespace(name: str, allowed: str | None) -> None:
    options, _ = space.parse(TEAM, POLICY | {space.SPACE_GROUP: f"shared/{name}"})
    assert options is not None
    assert space.may_use_shared(options.group, allowed) == (allowed == name)
    assert space.may_use_shared(SpaceGroup(TEAM, name), allowed)


@given(GROUPS, GROUPS)
@example(SpaceGroup(Namespace("shared"), "a"), SpaceGroup(NO_NAMESPACE, "a"))
def test_groups_that_differ_have_different_names_everywhere(one: SpaceGroup, two: SpaceGroup) -> None:
    same = one == two
    assert (one.fingerprint == two.fingerprint) == same
    assert (one.directory == two.directory) == same
    assert (str(one) == str(two)) == same
    assert len(one.directory) == 16
    assert len(one.fingerprint) == space.FINGERPRINT_SIZE


@pytest.mark.parametrize(
    ("container", "why"),
    [
        (MAIN, None),
        (ContainerRequest(ContainerName("main"), ContainerKind.APP, 2, 1024, 10), "2 GPUs in container main"),
        (ContainerRequest(ContainerName("main"), ContainerKind.APP, 1, whole=True), "whole cards in container main"),
    ],
)
def test_a_member_is_on_one_shared_card(container: ContainerRequest, why: str | None) -> None:
    problems = list(space.conflicts([container, MAIN], None))
    assert [why in problem.why for problem in problems if why] == ([True] if why else [])


def test_memory_that_moves_to_the_host_is_refused() -> None:
    (problem,) = space.conflicts([MAIN], MemoryPolicy.SPILL)
    assert problem.field == f"metadata.annotations[{names.MEMORY_POLICY}]"
    assert not list(space.conflicts([MAIN], MemoryPolicy.REFUSE))


@given(st.lists(st.integers(0, 100), max_size=60))
def test_a_group_has_the_sum_of_its_members_and_never_more_than_the_card(cores: list[int]) -> None:
    total = sum(cores)
    assert space.guarantee(cores) in {total, 100}
    assert space.guarantee(cores) <= total
    assert space.guarantee(cores) <= 100


@given(st.integers(0, 200))
def test_a_group_has_room_for_48_containers_on_a_card(members: int) -> None:
    assert (space.clients_left(members) > 0) == (members < 48)
    assert space.clients_left(members) >= 0


@given(st.integers(1, 100) | st.none(), st.integers(1, 100) | st.none(), st.integers(1, 48))
def test_a_programs_own_percentage_tightens_its_cap_and_never_loosens_it(
    cap: int | None, own: int | None, processes: int
) -> None:
    percent = space.percentage_of_process(cap, own, processes)
    if percent is None:
        assert cap is None
        assert own is None
        return
    assert percent >= 1
    if own is not None:
        assert percent <= own
    if cap is not None:
        assert percent <= cap
        assert percent * processes <= max(cap, processes)
