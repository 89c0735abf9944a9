"""Groups in space on a cluster: what the API server refuses, whose server a pod is a client of, and what is left."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cluster import command_line
from simgpu import build
from tests.e2e.control_plane.test_admission import annotated, patched, waiting
from tests.e2e.node.test_node_files import at
from tests.e2e.pod_namespace import Document, PodNamespace, container, pod
from vgpu.adapters import mps
from vgpu.adapters.mps import MpsProcess
from vgpu.domain import names

if TYPE_CHECKING:
    from cluster.process import ClusterProcess

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]

NOT_ALLOWED = "names a group of the cluster that the namespace may not use"
# As in the DaemonSet: a supervisor takes every daemon that it sees below its directory for its own, and the nodes of
# this cluster have equal paths.
OWN_PIDS = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
LEFT_S = 180.0  # a member leaves with its allocation's record, a minute or two after the container's end
ILLEGAL_ADDRESS = 700
LABEL = "vgpu.io/shared-space-group"


def member(name: str, group: str, **more: str) -> Document:
    """A pod of a group."""
    annotations = {names.COMPUTE_POLICY: "space", names.SPACE_GROUP: group, **more}
    return pod(name, gpu_mem=512, gpu_cores=10, annotations=annotations)


def allow(namespace: PodNamespace, group: str | None) -> None:
    """Name the group of the cluster that a namespace's pods may be in; None for no group."""
    namespace.cluster.api.patch(namespace.path, {"metadata": {"labels": {LABEL: group}}})


def test_a_group_of_the_cluster_is_for_namespaces_that_an_administrator_names(namespace: PodNamespace) -> None:
    shared = member("foreign", "shared/models")
    assert NOT_ALLOWED in namespace.refused(shared)
    allow(namespace, "others")
    assert NOT_ALLOWED in namespace.refused(shared)
    allow(namespace, "models")
    namespace.create(shared | {"spec": shared["spec"] | {"nodeSelector": {"no-such": "node"}}})


def test_a_waiting_pod_changes_to_no_group_that_its_namespace_may_not_use(namespace: PodNamespace) -> None:
    made = waiting("waits")
    made["metadata"]["annotations"] = {names.COMPUTE_POLICY: "space", names.SPACE_GROUP: "models"}
    namespace.create(made)
    assert NOT_ALLOWED in patched(namespace, "waits", annotated(space_group="shared/models"))
    allow(namespace, "models")
    assert patched(namespace, "waits", annotated(space_group="shared/models")) == ""
    allow(namespace, None)
    assert patched(namespace, "waits", {"metadata": {"labels": {"app": "x"}}}) == "", "what it has stays"
    assert NOT_ALLOWED in patched(namespace, "waits", annotated(space_group="shared/other"))


@pytest.fixture
def supervised(namespace: PodNamespace) -> Iterator[PodNamespace]:
    """A namespace on a cluster whose nodes run the supervisor of MPS daemons; afterwards nothing of it is left."""
    programs = build.ensure()
    supervisors: list[ClusterProcess] = []
    for node in namespace.cluster.nodes:
        command = [*OWN_PIDS, sys.executable, "-m", "deviceplugin.space", f"--control={programs / mps.CONTROL}"]
        environment = namespace.cluster.maker.environment | node.plugin_environment
        supervisors.append(node.process("space", command, environment))
        supervisors[-1].start()
    try:
        namespace.until(lambda: serving_cards(namespace) == {True}, "cards that serve groups", 60)
        yield namespace
        namespace.delete(*namespace.phases())
        namespace.until(lambda: not members(namespace), "no member left", LEFT_S)
        namespace.until(lambda: not of_groups(namespace), "no MPS process left", 60)
    finally:
        for supervisor in supervisors:
            supervisor.kill()


def members(namespace: PodNamespace) -> list[Path]:
    """The files of the members of all groups on the nodes."""
    return [path for node in namespace.cluster.nodes for path in (node.state / "space/members").glob("*/*/*")]


def serving_cards(namespace: PodNamespace) -> set[bool]:
    """Whether the cards of the cluster serve groups, as the GPUNodes say."""
    nodes = namespace.cluster.api.get(names.GPUNODES_PATH)["items"]
    return {card.get("servesSpace", False) for node in nodes for card in node["status"]["cards"]}


def of_groups(namespace: PodNamespace) -> list[MpsProcess]:
    """The daemons and servers below the nodes' state directories; other tests of this machine may run some too."""
    uuids = {card.uuid for node in namespace.cluster.nodes for card in node.cards}
    return [found for found in mps.processes() if found.pipe.parent.name in uuids]


def test_two_groups_of_a_namespace_have_a_server_each_and_all_views_name_them(supervised: PodNamespace) -> None:
    node = supervised.cluster.nodes[0]
    for name, group in (("a", "models"), ("b", "models"), ("c", "batch")):
        supervised.create(member(name, group, **at(node)))
        supervised.running(name)
        assert supervised.probe(name, "alloc", "16")[0]["result"] == 0
    cards = {name: supervised.assignment(name).gpus() for name in "abc"}
    assert cards["a"] == cards["b"]
    daemons = [found for found in of_groups(supervised) if not found.is_server]
    assert len(daemons) == 2
    assert len({found.pipe for found in daemons}) == 2
    rows = command_line.read(supervised.cluster, "admin", "get", "gpus")["items"]
    groups = {group["spaceGroup"]: (group["members"], group["cores"]) for row in rows for group in row["spaceGroups"]}
    assert groups == {f"{supervised.name}/models": (2, 20), f"{supervised.name}/batch": (1, 10)}
    assert supervised.probe("a", "info")[-1]["cuda"][0]["total"] == 512 << 20
    supervised.delete("c")
    supervised.until(lambda: len([f for f in of_groups(supervised) if not f.is_server]) == 1, "one daemon", LEFT_S)


def result(namespace: PodNamespace, name: str, arguments: str) -> int:
    """The result of gpuprobe's last call in a pod, also where the program fails; the limiter writes other lines."""
    printed = namespace.run(name, "sh", "-c", f"gpuprobe {arguments}; true")
    found: int = [json.loads(line) for line in printed.splitlines() if line.startswith("{")][-1]["result"]
    return found


def test_a_fault_is_told_to_the_pods_of_its_group_and_to_no_other(supervised: PodNamespace) -> None:
    node = supervised.cluster.nodes[0]
    holds = container(command=("gpuprobe", "--hold", "0", "alloc", "16"), gpu_mem=512, gpu_cores=10)
    for name, group in (("faulty", "models"), ("other", "batch")):
        supervised.create(member(name, group, **at(node)))
    neighbour = member("neighbour", "models", **at(node))
    neighbour["spec"]["containers"] = [holds]
    supervised.create(neighbour)
    supervised.running("faulty", "other", "neighbour")
    supervised.until(lambda: [f for f in of_groups(supervised) if f.is_server], "a server, so a client")
    assert result(supervised, "faulty", "fault") == ILLEGAL_ADDRESS

    def told() -> set[str]:
        events = supervised.events()
        return {e["involvedObject"]["name"] for e in events if e["reason"] == names.SPACE_SERVER_FAULTED}

    supervised.until(lambda: told() == {"faulty", "neighbour"}, "Events of the fault", 60)
    assert result(supervised, "other", "alloc 16") == 0
    supervised.until(lambda: result(supervised, "faulty", "alloc 16") == 0, "a new client is served", 30)
    assert told() == {"faulty", "neighbour"}


def test_a_member_that_never_joins_is_reported(supervised: PodNamespace, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc, which links a static program")
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    subprocess.run(build.static_command(tmp_path / "static"), check=True, capture_output=True)
    node = supervised.cluster.nodes[0]
    alone = member("alone", "models", **at(node))
    command = ("sh", "-c", "unset CUDA_MPS_PIPE_DIRECTORY; exec /programs/static --hold 0 alloc 64")
    holds = container(command=command, gpu_mem=512, gpu_cores=10)
    holds["volumeMounts"] = [{"name": "programs", "mountPath": "/programs", "readOnly": True}]
    alone["spec"]["containers"] = [holds]
    alone["spec"]["volumes"] = [{"name": "programs", "hostPath": {"path": str(tmp_path)}}]
    supervised.create(alone)
    supervised.running("alone")

    def joined() -> str:
        found = supervised.cluster.api.get(f"{names.GPUNODES_PATH}/{node.name}")["status"]["conditions"]
        return next((str(condition["status"]) for condition in found if condition["type"] == "SpaceJoined"), "")

    def reasons() -> set[str]:
        return {event["reason"] for event in supervised.events("alone")}

    supervised.until(lambda: joined() == "False" and names.SPACE_NOT_JOINED in reasons(), "the report", 60)
    supervised.delete("alone")
    supervised.until(lambda: joined() == "True", "the condition true again", LEFT_S)
