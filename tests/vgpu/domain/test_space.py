"""Groups in space: names, caps and bounds, and what is refused."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vgpu.domain import names, object_names
from vgpu.domain.asks import request, space
from vgpu.domain.asks.space import SpaceGroup, SpaceOptions, SpaceWish
from vgpu.domain.identifiers import NO_NAMESPACE, Namespace

TEAM = Namespace("team")
LABELS = st.from_regex(object_names.LABEL, fullmatch=True)
GROUPS = st.one_of(
    st.builds(SpaceGroup, LABELS.map(Namespace), LABELS | st.just("")),
    st.builds(SpaceGroup, st.just(NO_NAMESPACE), LABELS),
)
POLICY = {names.COMPUTE_POLICY: space.SPACE}
NO_NAMES = ("", "A", "a.b", "a/b", "shared/", "-a", "a" * 64, "shared/shared/a", "a\n", "../a")
NO_PERCENTAGES = ("", "0", "101", "050", "5.5", "50%", "-1", "\N{ARABIC-INDIC DIGIT FIVE}", "1e1")


@pytest.mark.parametrize(
    ("annotations", "group", "percentage"),
    [
        ({}, SpaceGroup(TEAM, ""), None),
        ({names.SPACE_GROUP: "models"}, SpaceGroup(TEAM, "models"), None),
        ({names.SPACE_GROUP: "shared/models"}, SpaceGroup(NO_NAMESPACE, "models"), None),
        ({names.SM_PERCENTAGE: "50"}, SpaceGroup(TEAM, ""), 50),
        ({names.SM_PERCENTAGE: "100"}, SpaceGroup(TEAM, ""), 100),
    ],
)
def test_a_pods_annotations_name_its_group_and_cap(
    annotations: dict[str, str], group: SpaceGroup, percentage: int | None
) -> None:
    assert space.parse(TEAM, POLICY | annotations) == (SpaceOptions(group, percentage), [])


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        *((names.SPACE_GROUP, bad, "must be a DNS label") for bad in NO_NAMES),
        *((names.SM_PERCENTAGE, bad, "1 to 100") for bad in NO_PERCENTAGES),
    ],
)
def test_what_cannot_be_read_is_refused_by_the_name_of_its_annotation(name: str, value: str, why: str) -> None:
    options, (problem,) = space.parse(TEAM, POLICY | {name: value})
    assert options is None
    assert problem.field == f"metadata.annotations[{name}]"
    assert why in problem.why


@pytest.mark.parametrize("policy", [{}, {names.COMPUTE_POLICY: "burst"}])
def test_group_and_cap_need_the_policy(policy: dict[str, str]) -> None:
    options, problems = space.parse(TEAM, policy | {names.SPACE_GROUP: "a", names.SM_PERCENTAGE: "7"})
    assert options is None
    assert [problem.why for problem in problems] == [f"needs {names.COMPUTE_POLICY}: space too"] * 2
    assert space.parse(TEAM, policy) == (None, [])


@given(st.text(), st.text())
def test_any_text_is_read_or_refused(group: str, percentage: str) -> None:
    options, problems = space.parse(TEAM, POLICY | {names.SPACE_GROUP: group, names.SM_PERCENTAGE: percentage})
    assert (options is None) == bool(problems)


@given(LABELS, LABELS, LABELS)
def test_no_name_leads_into_another_namespaces_group(namespace: str, name: str, other: str) -> None:
    options, _ = space.parse(Namespace(namespace), POLICY | {names.SPACE_GROUP: name})
    assert options is not None
    assert options.group.namespace == namespace
    theirs, _ = space.parse(Namespace(other), POLICY | {names.SPACE_GROUP: name})
    assert theirs is not None
    assert (options.group == theirs.group) == (namespace == other)


@given(LABELS, LABELS)
def test_a_group_of_the_cluster_is_the_same_one_in_every_namespace(name: str, other: str) -> None:
    wished, _ = space.wish(POLICY | {names.SPACE_GROUP: f"shared/{name}"})
    assert wished is not None
    assert wished.group(TEAM) == wished.group(Namespace(other)) != SpaceGroup(TEAM, name)


@given(GROUPS, GROUPS)
@example(SpaceGroup(Namespace("shared"), "a"), SpaceGroup(NO_NAMESPACE, "a"))
def test_groups_that_differ_have_different_names_everywhere(one: SpaceGroup, two: SpaceGroup) -> None:
    same = one == two
    assert (one.fingerprint == two.fingerprint) == same
    assert (one.directory == two.directory) == same
    assert (str(one) == str(two)) == same
    assert len(one.directory) == 16
    assert len(one.fingerprint) == space.FINGERPRINT_SIZE


def asked(*containers: dict[str, str], **annotations: str) -> request.Parsed:
    listed = [{"name": f"c{i}", "resources": {"limits": limits}} for i, limits in enumerate(containers)]
    metadata = {"annotations": POLICY | {f"{names.DOMAIN}/{key}": value for key, value in annotations.items()}}
    return request.parse({"metadata": metadata, "spec": {"containers": listed}})


SHARE = {names.GPU_MEM: "1024", names.GPU_CORES: "10"}


def test_a_pod_in_space_is_read_with_its_wish_and_counts_its_cores() -> None:
    parsed = asked(SHARE, SHARE)
    assert parsed.problems == ()
    assert parsed.request is not None
    options = parsed.request.options
    assert (options.space, options.compute_policy_name) == (SpaceWish(), "space")
    assert options.selector.in_space
    assert [parsed.request.counted_cores(container) for container in parsed.request.containers] == [10, 10]


@pytest.mark.parametrize(
    ("containers", "annotations", "field", "why"),
    [
        (
            [SHARE, {**SHARE, names.GPU: "2"}],
            {},
            names.COMPUTE_POLICY,
            "cannot be combined with 2 GPUs in container c1",
        ),
        ([{names.GPU: "1"}], {}, names.COMPUTE_POLICY, "cannot be combined with whole cards in container c0"),
        ([SHARE], {"memory-policy": "spill"}, names.MEMORY_POLICY, "cannot be combined with vgpu.io/compute-policy"),
        ([SHARE], {"space-group": "a/b"}, names.SPACE_GROUP, "must be a DNS label"),
        ([SHARE], {"sm-percentage": "0"}, names.SM_PERCENTAGE, "1 to 100"),
        (
            [SHARE],
            {"compute-policy": "burst", "space-group": "a"},
            names.SPACE_GROUP,
            "needs vgpu.io/compute-policy: space",
        ),
        ([SHARE], {"compute-policy": "spaces"}, names.COMPUTE_POLICY, "one of fixed, burst, best-effort, space"),
    ],
)
def test_what_does_not_go_with_the_policy_is_refused_by_its_field(
    containers: list[dict[str, str]], annotations: dict[str, str], field: str, why: str
) -> None:
    (problem,) = asked(*containers, **annotations).problems
    assert problem.field == f"metadata.annotations[{field}]"
    assert why in str(problem)


def test_memory_that_is_refused_when_the_card_is_full_goes_with_the_policy() -> None:
    assert asked(SHARE, **{"memory-policy": "refuse"}).problems == ()


@given(st.lists(st.integers(0, 100), max_size=60))
def test_a_group_has_the_sum_of_its_members_and_never_more_than_the_card(cores: list[int]) -> None:
    total = sum(cores)
    assert space.guarantee(cores) in {total, 100}
    assert space.guarantee(cores) <= total
    assert space.guarantee(cores) <= 100


@pytest.mark.heavy
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
