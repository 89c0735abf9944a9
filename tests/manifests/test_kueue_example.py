"""The example of Kueue's configuration and its queues: no resource that users or the webhook write is left out."""

import yaml

from tests.manifests import examples
from vgpu.domain import names
from vgpu.domain.asks import aliases

FOLDER = examples.FOLDER / "kueue"
CONFIGURATION = yaml.safe_load((FOLDER / "configuration.yaml").read_text())["resources"]
QUOTA = {names.GPU_MEM, names.GPU_CORES, names.GPU}


def transformed() -> dict[str, dict[str, object]]:
    assert {transformation["strategy"] for transformation in CONFIGURATION["transformations"]} == {"Replace"}
    return {transformation["input"]: transformation["outputs"] for transformation in CONFIGURATION["transformations"]}


def test_every_name_that_users_may_write_has_a_quota_or_is_translated() -> None:
    written = {name for family in aliases.FAMILIES for name in family.all_names()} | {names.GPU_MEM_PERCENTAGE}
    assert transformed().keys() == written
    assert {name for outputs in transformed().values() for name in outputs} == QUOTA


def test_amounts_in_other_units_are_translated_to_mib() -> None:
    family = aliases.GPUSHARE
    assert transformed()[family.memory] == {names.GPU_MEM: aliases.GIB_IN_MIB}


def test_what_the_webhook_adds_is_taken_out() -> None:
    assert set(CONFIGURATION["excludeResourcePrefixes"]) == {names.SLICE, names.CARD}
    assert not [name for name in QUOTA if name.startswith(tuple(CONFIGURATION["excludeResourcePrefixes"]))]


def test_the_queue_has_a_quota_for_everything_that_the_job_asks_for() -> None:
    queue = next(
        document for document in examples.documents(FOLDER / "queues.yaml") if document["kind"] == "ClusterQueue"
    )
    (group,) = queue["spec"]["resourceGroups"]
    quotas = {resource["name"] for flavor in group["flavors"] for resource in flavor["resources"]}
    assert set(group["coveredResources"]) == quotas >= QUOTA
    (job,) = examples.documents(FOLDER / "job.yaml")
    (pod,) = examples.pods(job)
    resources = pod["spec"]["containers"][0]["resources"]
    assert {name for amounts in resources.values() for name in amounts} <= quotas
