"""`GET /groups`: groups in space, a row for each card that a group has members on."""

from typing import Any

from extender.admin.answers.listed import placed_groups
from tests.extender.admin.answers.test_space_groups import placed
from tests.extender.admin.conftest import Admin, CopiedSnapshots, shown
from vgpu.domain import names
from vgpu.domain.identifiers import NodeName

SPACE = {names.COMPUTE_POLICY: "space"}
MODELS = {**SPACE, names.SPACE_GROUP: "models"}
SHARED = {**SPACE, names.SPACE_GROUP: "shared/models"}


async def report(admin: Admin, node: str, *reports: tuple[dict[str, Any], str]) -> None:
    """Have the device plugin of a node report pods with these reasons."""
    entries = [
        {"podUID": pod["uid"], "pod": f"default/{pod['name']}", "reason": reason, "message": "m", "evict": False}
        for pod, reason in reports
    ]
    await admin.world.client.patch(f"{names.GPUNODES_PATH}/{node}/status", {"status": {"refusals": entries}})
    gpunodes, reasons = admin.world.cluster.objects.gpunodes, [reason for _, reason in reports]
    await admin.world.until(lambda: [told.reason for told in gpunodes[NodeName(node)].refusals] == reasons)
    await admin.fresh()


async def test_a_group_has_its_card_its_sums_and_its_members(admin: Admin) -> None:
    await admin.world.serve_space("n1")
    pods = [await placed(admin, MODELS, cores) for cores in (10, 15)]
    await placed(admin, {})
    (row,) = (await admin.get("/groups"))["items"]
    (grant,) = pods[0]["gpus"]
    listed = [(tenant["namespace"], tenant["pod"], tenant["cores"]) for tenant in row.pop("pods")]
    assert listed == [("default", pods[0]["name"], 10), ("default", pods[1]["name"], 15)]
    assert row == {
        "node": "n1", "index": grant["index"], "uuid": grant["uuid"], "spaceGroup": "default/models",
        "namespace": "default", "name": "models", "members": 2, "cores": 25, "memoryMiB": 512, "usedMiB": None,
        "usedCores": None, "usedAt": "", "state": "Serving", "faults": [], "staleSince": "",
    }  # fmt: skip
    (of_card,) = (await admin.get(f"/gpus/{grant['uuid']}"))["spaceGroups"]
    assert of_card == {name: row[name] for name in of_card}, "both lists say the same of a group"


async def test_groups_are_filtered_sorted_and_paged(admin: Admin) -> None:
    await admin.world.serve_space("n1")
    for annotations, cores in ((SPACE, 10), (MODELS, 30), (MODELS, 5), (SHARED, 20)):
        await placed(admin, annotations, cores)

    async def found(**query: Any) -> list[str]:
        return [row["spaceGroup"] for row in (await admin.get("/groups", **query))["items"]]

    assert sorted(await found()) == ["*/models", "default", "default/models"]
    assert await found(sort="-cores") == ["default/models", "*/models", "default"]
    assert await found(sort="-members,spaceGroup", limit=1) == ["default/models"]
    assert await found(spaceGroup=["default", "*/models"], sort="spaceGroup") == ["*/models", "default"]
    assert await found(node="n2") == await found(uuid="GPU-none") == await found(state="Faulted") == []
    assert await found(namespace="default", sort="spaceGroup") == ["*/models", "default", "default/models"]
    assert await found(namespace="other") == []
    seen, cursor = [], ""
    while True:
        page = await admin.get("/groups", limit=1, sort="spaceGroup", fields="spaceGroup", cursor=cursor)
        seen += page["items"]
        cursor = page["nextCursor"]
        if not cursor:
            break
    assert seen == [{"spaceGroup": "*/models"}, {"spaceGroup": "default"}, {"spaceGroup": "default/models"}]
    assert (await admin.get("/groups", 422, sort="used"))["errors"][0]["field"] == "sort"
    assert (await admin.get("/groups", 422, state="Broken"))["detail"].startswith("state[0]: 'Broken' is not one of")


async def test_labels_of_a_member_choose_its_group(admin: Admin) -> None:
    await admin.world.serve_space("n1")
    web, _ = await placed(admin, MODELS), await placed(admin, SPACE)
    path = f"/api/v1/namespaces/default/pods/{web['name']}"
    await admin.world.client.patch(path, {"metadata": {"labels": {"app": "web"}}})
    await admin.world.until(lambda: bool(admin.world.cluster.objects.pods[web["uid"]].scheduling.labels))
    await admin.fresh()
    for selector, groups in (("app=web", ["default/models"]), ("!app", ["default"]), ("app=x", [])):
        rows = (await admin.get("/groups", selector=selector))["items"]
        assert [row["spaceGroup"] for row in rows] == groups, selector


async def test_the_state_of_a_group_follows_what_its_node_reports(admin: Admin) -> None:
    await admin.world.serve_space("n1")
    pod, other = await placed(admin, MODELS), await placed(admin, SPACE)

    async def states() -> dict[str, tuple[str, list[str]]]:
        rows = (await admin.get("/groups"))["items"]
        return {row["spaceGroup"]: (row["state"], [fault["reason"] for fault in row["faults"]]) for row in rows}

    well = ("Serving", list[str]())
    assert await states() == {"default/models": well, "default": well}
    for reason, state in (
        (names.SPACE_NOT_JOINED, "Outside"),
        (names.SPACE_SERVER_FAULTED, "Faulted"),
        (names.SPACE_NOT_READY, "NotReady"),
    ):
        await report(admin, "n1", (pod, reason), (other, names.CARD_UNHEALTHY))
        assert await states() == {"default/models": (state, [reason]), "default": well}
    both = names.SPACE_NOT_JOINED, names.SPACE_SERVER_FAULTED
    await report(admin, "n1", *((pod, reason) for reason in both))
    assert await states() == {"default/models": ("Faulted", list(both)), "default": well}
    await report(admin, "n1")
    assert await states() == {"default/models": well, "default": well}


async def test_without_a_supervisor_a_group_says_so(admin: Admin) -> None:
    await admin.world.serve_space("n1")
    await placed(admin, MODELS)
    cards = [{"uuid": f"GPU-n1-{n}", "index": n, "model": "NVIDIA H100", "memoryMiB": 2048, "healthy": True}
             for n in range(2)]  # fmt: skip
    await admin.world.client.patch(f"{names.GPUNODES_PATH}/n1/status", {"status": {"cards": cards}})
    gpunodes = admin.world.cluster.objects.gpunodes
    await admin.world.until(lambda: not any(card.serves_space for card in gpunodes[NodeName("n1")].node.cards))
    await admin.fresh()
    assert [row["state"] for row in (await admin.get("/groups"))["items"]] == ["Unsupervised"]


async def test_members_and_reports_of_other_namespaces_are_counted_and_not_named(admin: Admin) -> None:
    await admin.world.serve_space("n1")
    pod = await placed(admin, SHARED)
    await report(admin, "n1", (pod, names.SPACE_SERVER_FAULTED))
    snapshot = await CopiedSnapshots(shown(admin.world)).take()
    (group,) = placed_groups.of(snapshot)
    row = placed_groups.kind(snapshot, lambda _: False).row(group, ())
    assert (row["members"], row["pods"], row["faults"], row["state"]) == (1, [], [], "Faulted")


async def test_a_group_is_listed_anew_only_where_its_objects_have_changed(admin: Admin) -> None:
    await admin.world.serve_space("n1")
    pod = await placed(admin, MODELS)
    source = CopiedSnapshots(shown(admin.world))
    (before,) = placed_groups.of(await source.take())
    (same,) = placed_groups.of(await source.take())
    assert before.has_rows_of(same)
    await report(admin, "n1", (pod, names.SPACE_SERVER_FAULTED))
    (after,) = placed_groups.of(await source.take())
    assert not before.has_rows_of(after)
