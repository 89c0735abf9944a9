"""`vgpu simulate`: wrong pods by the server, and `--cluster`: pods in a cluster whose objects are in a file."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import strategies
from tests.vgpu.cli.cluster.conftest import Server, run
from vgpu.domain import names, slices
from vgpu.domain.cards import card_status
from vgpu.domain.cards.device import Card
from vgpu.domain.grants import assignment
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName

POD = Path(__file__).parent / "pod.yaml"


def node(name: str, cpu: str = "8", memory_mib: int = 2048) -> list[dict[str, Any]]:
    """A Node with its GPUNode: two cards."""
    allocatable = {names.SLICE: str(2 * slices.holding(memory_mib, 256)), names.CARD: "2", "cpu": cpu, "memory": "8Gi"}
    cards = [Card(CardUuid(f"GPU-{name}-{n}"), n, "NVIDIA H100 80GB HBM3", memory_mib) for n in range(2)]
    status = {"sliceMiB": 256, "cards": [card_status.card_status(card, mig_enabled=False) for card in cards]}
    return [
        {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}},
        {"kind": "GPUNode", "metadata": {"name": name}, "status": status},
    ]


def pod(name: str, mib: int, node: str = "", card: str = "", phase: str = "Running") -> dict[str, Any]:
    made = strategies.pod(strategies.container(gpu_mem=mib), uid=name, node=node, phase=phase)
    made["kind"], made["metadata"]["name"] = "Pod", name
    if card:
        held = assignment.encode(Assignment({ContainerName("main"): (Grant(CardUuid(card), mib, None),)}))
        made["metadata"]["annotations"] = {names.ASSIGNMENT: held}
    return made


CLUSTER = [
    *node("n1"), *node("n2", cpu="1"),
    pod("full", 2048, "n1", "GPU-n1-0"), pod("ended", 2048, "n1", "GPU-n1-1", "Failed"),
    {"kind": "ConfigMap"}, {"kind": "GPUNode", "metadata": {"name": "odd"}, "status": {"cards": [{"uuid": "x"}]}},
    pod("forged", 256, "n2"), pod("waits", 1536), pod("too-large", 4096),
]  # fmt: skip


def written(folder: Path, items: list[Any], form: str = "json") -> Path:
    file, listed = folder / f"cluster.{form}", {"kind": "List", "items": items}
    file.write_text(json.dumps(listed) if form == "json" else yaml.safe_dump(listed))
    return file


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_waiting_pods_of_a_file_are_placed(tmp_path: Path, form: str) -> None:
    code, output = run("simulate", "--cluster", str(written(tmp_path, CLUSTER, form)), "-o", "json")
    assert code == 1, output
    found = json.loads(output[output.index("{") :])
    assert [(landing["name"], landing["node"]) for landing in found["pods"]] == [("waits", "n1"), ("too-large", "")]
    assert found["pods"][0]["gpus"][0]["uuid"] == "GPU-n1-1"
    assert found["pods"][1]["reasons"][0]["reason"] == "CardTooSmall"
    assert (found["before"]["allocatedPercent"], found["after"]["allocatedPercent"]) == (25.0, 43.75)
    assert (found["before"]["emptyGpus"], found["after"]["emptyGpus"]) == (3, 2)
    assert "left out: GPUNode odd: status.sliceMiB of GPUNode odd: must be 1 at least" in output
    assert "left out: Pod forged: the pod has no assignment" in output


def test_a_waiting_pod_whose_percentage_was_never_resolved_is_left_out(tmp_path: Path) -> None:
    odd = strategies.pod(strategies.container(gpu_mem_percentage=50), uid="odd")
    odd["kind"], odd["metadata"]["name"] = "Pod", "odd"
    code, output = run("simulate", "--cluster", str(written(tmp_path, [*node("n1"), odd, pod("waits", 512)])))
    assert (code, "1 of 1 pod" in output) == (0, True), output
    assert "left out: Pod odd: its percentage was not resolved" in output


def test_percentages_of_manifests_are_of_the_clusters_cards(tmp_path: Path) -> None:
    cluster, manifest = written(tmp_path, node("n1", memory_mib=2600)), tmp_path / "pods.yaml"
    halves = [strategies.pod(strategies.container(gpu_mem_percentage=50), uid=f"p{n}") for n in range(5)]
    manifest.write_text(yaml.safe_dump_all([{**half, "kind": "Pod"} for half in halves]))
    code, output = run("simulate", "--cluster", str(cluster), "-f", str(manifest), "-o", "json")
    found = json.loads(output[output.index("{") :])
    assert (code, found["placed"], found["pods"][0]["requested"]) == (1, 4, "1.25 GiB")


def test_manifests_are_placed_by_the_policy_asked_for_beside_cpu_in_use(tmp_path: Path) -> None:
    wanted = [pod(f"p{n}", 512) for n in range(3)]
    for wanted_pod in wanted:
        wanted_pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1"}
    manifest = tmp_path / "pods.yaml"
    manifest.write_text(yaml.safe_dump_all(wanted))
    asked = ("simulate", "--cluster", str(written(tmp_path, CLUSTER)), "-f", str(manifest))
    code, output = run(*asked, "--node-policy", "spread", "-o", "json")
    assert code == 0, output
    found = json.loads(output[output.index("{") :])
    assert [landing["node"] for landing in found["pods"]] == ["n2", "n1", "n1"]
    assert "3 of 3 pods are placed" in run(*asked)[1]


def test_a_gang_is_placed_as_a_whole_or_the_table_says_for_how_many_pods_there_is_room(tmp_path: Path) -> None:
    spec = {"parallelism": 4, "template": pod("train", 2048)}
    job: dict[str, Any] = {"kind": "Job", "metadata": {"name": "train"}, "spec": spec}
    asked = ("simulate", "--cluster", str(written(tmp_path, CLUSTER)), "-f", str(tmp_path / "job.yaml"))
    for size, code, said in (("3", 1, "3 of 4 pods are placed"), ("4", 1, "gang default/train: room for 3 of 4 pods")):
        job["spec"]["template"]["metadata"]["annotations"] = {names.GANG: "train", names.GANG_SIZE: size}
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
        found = run(*asked)
        assert found[0] == code
        assert said in found[1]
    assert "GangInsufficientCards" in found[1]
    assert "0 of 4 pods are placed" in found[1]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"), ("- 1", "has no GPUNode"), ('{"items": 3}', "has no GPUNode"),
        ("\x00", "cannot be read"),
        ("[" * 100_000, "cannot be read"), (json.dumps({"items": node("n1")}), "0 pods to place"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "cluster").write_text(text)
    code, output = run("simulate", "--cluster", str(tmp_path / "cluster"))
    assert (code, message in output) == (2, True), output


def test_a_pod_that_asks_for_no_gpu_or_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    cluster = str(written(tmp_path, CLUSTER))
    for spec, message in (
        ({"containers": [{"name": "c"}]}, "asks for no GPU: write"),
        ({"containers": "x"}, "cannot be read"),
    ):
        manifest = tmp_path / "pod.yaml"
        manifest.write_text(yaml.safe_dump({"kind": "Pod", "metadata": {"name": "odd"}, "spec": spec}))
        code, output = run("simulate", "--cluster", cluster, "-f", str(manifest))
        assert (code, "pod odd: " in output or "pod odd cannot" in output, message in output) == (2, True, True), output


def test_a_simulation_needs_manifests_or_a_cluster() -> None:
    code, output = run("simulate", "--server", "http://127.0.0.1:1")
    assert (code, "-f: give a file" in output) == (2, True)


def test_a_card_that_two_nodes_of_a_file_report_is_given_out_once(tmp_path: Path) -> None:
    """The node counts whose kubelet offers devices: the other one's plugin is gone."""
    old, new = node("old"), node("new")
    old[1]["metadata"]["creationTimestamp"] = "2026-11-02T00:00:00Z"
    new[1]["metadata"]["creationTimestamp"] = "2026-11-01T00:00:00Z"
    for number, card in enumerate(new[1]["status"]["cards"]):
        card["uuid"] = old[1]["status"]["cards"][number]["uuid"]
    waiting = [pod(f"w{number}", 2048) for number in range(3)]

    def placed() -> list[str]:
        file = written(tmp_path, [*old, *new, *waiting])
        found = json.loads(run("simulate", "--cluster", str(file), "-o", "json")[1])
        return [row["node"] for row in found["pods"]]

    assert placed() == ["old", "old", ""]
    old[0]["status"]["allocatable"] |= dict.fromkeys((names.SLICE, names.CARD), "0")
    assert placed() == ["new", "new", ""]


def test_taints_and_selectors_of_the_file_count(tmp_path: Path) -> None:
    cluster = [*node("n1"), *node("n2"), *node("n3")]
    cluster[0]["spec"] = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    cluster[2]["metadata"] = {"name": "n2", "labels": {"disk": "ssd"}}
    tied = pod("tied", 512)
    tied["spec"]["nodeSelector"] = {"disk": "ssd"}
    gang = [pod(f"g{n}", 2048) for n in range(5)]
    for member in gang:
        member["metadata"]["annotations"] = {names.GANG: "g", names.GANG_SIZE: "5"}
    _, output = run("simulate", "--cluster", str(written(tmp_path, [*cluster, tied, *gang])), "-o", "json")
    found = json.loads(output[output.index("{") :])["pods"]
    assert (found[0]["node"], found[1]["node"], found[1]["gang"]["fit"]) == ("n2", "", 3)


def test_wrong_pods_are_named_and_the_others_are_placed(tmp_path: Path) -> None:
    wrong = pod("wrong", 512)
    wrong["spec"]["containers"][0]["resources"]["limits"][names.GPU_MEM] = "16Gi"
    manifest = tmp_path / "pods.yaml"
    manifest.write_text(yaml.safe_dump_all([wrong, pod("right", 512)]))
    asked = ("simulate", "--cluster", str(written(tmp_path, CLUSTER)))
    code, output = run(*asked, "-f", str(manifest))
    assert (code, "1 of 2 pods are placed" in output) == (1, True), output
    assert f"spec.containers[main].resources.limits[{names.GPU_MEM}]" in output
    waiting = run("simulate", "--cluster", str(written(tmp_path, [*CLUSTER, wrong])))[1]
    assert "left out: Pod wrong: " in waiting


def test_a_pod_that_the_webhook_refuses_is_placed_nowhere(tmp_path: Path) -> None:
    refused = [pod(f"refused-{n}", 512) for n in range(3)]
    refused[0]["metadata"]["annotations"] = {f"{names.DOMAIN}/compute-polcy": "fixed"}
    refused[1]["metadata"]["annotations"] = {names.IDLE_AFTER: "30"}
    refused[2]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
    pods = tmp_path / "pods.yaml"
    pods.write_text(yaml.safe_dump_all([*refused, pod("right", 512)]))
    code, output = run("simulate", "--cluster", str(written(tmp_path, CLUSTER)), "-f", str(pods))
    assert (code, "1 of 4 pods are placed" in output) == (1, True), output
    assert "is not an annotation of vgpu.io; did you mean vgpu.io/compute-policy?" in output
    assert f"metadata.annotations[{names.IDLE_AFTER}]" in output
    assert "resources.limits[nvidia.com/gpu]" in output


def one(folder: Path, wanted: dict[str, Any]) -> str:
    """Return what is said of one pod that is refused."""
    pods = folder / "pods.yaml"
    pods.write_text(yaml.safe_dump(wanted))
    code, output = run("simulate", "--cluster", str(written(folder, node("n1"))), "-f", str(pods))
    assert code == 2, output
    return output


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"nvidia.com/gpu": 1}, "asks NVIDIA's device plugin for cards (nvidia.com/gpu: 1), and vgpushare"),
        ({"nvidia.com/gpu-mem": 4000}, "4000, which vgpushare does not know; did you mean vgpu.io/gpu-mem?"),
        ({"vgpushare.io/gpu-mem": 4000}, "4000, which vgpushare does not know; did you mean vgpu.io/gpu-mem?"),
    ],
)  # fmt: skip
def test_a_pod_by_names_of_no_effect_is_told_what_to_write(tmp_path: Path, limits: dict[str, int], said: str) -> None:
    asks = pod("odd", 512)
    asks["spec"]["containers"][0]["resources"] = {"limits": limits}
    assert said in one(tmp_path, asks)


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        (
            {"requests": {names.GPU_MEM: 512}},
            f"spec.containers[main].resources.limits[{names.GPU_MEM}]: must be set for vgpu.io's resources",
        ),
        (
            {"requests": {names.GPU_MEM: 256}, "limits": {names.GPU_MEM: 512}},
            f'spec.containers[main].resources.requests[{names.GPU_MEM}]: "256" must be equal to the limit of 512',
        ),
    ],
)
def test_amounts_that_kubernetes_refuses_are_refused(tmp_path: Path, resources: dict[str, Any], said: str) -> None:
    """They were placed, and creating the pod is refused."""
    asks = pod("odd", 512)
    asks["spec"]["containers"][0]["resources"] = resources
    assert said in one(tmp_path, asks)


def test_an_annotation_without_quotes_is_named_with_what_to_write(tmp_path: Path) -> None:
    asks = pod("odd", 512)
    asks["metadata"]["annotations"] = {names.GANG: "g", names.GANG_SIZE: 8, names.PRIORITY: True}
    output = one(tmp_path, asks)
    assert f'metadata.annotations[{names.GANG_SIZE}]: must be text: write "8"' in output
    assert f'metadata.annotations[{names.PRIORITY}]: must be text: write "true"' in output


def test_what_would_help_pods_that_are_placed_nowhere_is_told(tmp_path: Path) -> None:
    pods = [pod("large", 4000), pod("large", 4000), pod("right", 512), pod("nine", 1), pod("beside", 256)]
    pods[3]["spec"]["containers"][0]["resources"] = {"limits": {names.GPU: 9}}
    pods[4]["metadata"]["annotations"] = {names.GPU_AFFINITY: "app=none"}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump_all(pods))
    asked = ("simulate", "--cluster", str(written(tmp_path, node("n1"))), "-f", str(tmp_path / "p.yaml"))
    output = run(*asked)[1]
    assert output.count("What would help") == 3
    assert output.index("What would help large:") < output.index("What would help nine:")
    assert "spread the memory over 2 cards of a node" in output
    assert "ask for 1 card or fewer" in output
    assert "no pod with app=none holds a card" in output
    found = json.loads(run(*asked, "-o", "json")[1])["pods"]
    codes = [[advice["code"] for advice in row["advice"]] for row in found]
    assert codes[0] == codes[1] == ["ask-for-less-memory", "use-several-cards"]
    assert codes[2:] == [[], ["ask-for-fewer-cards"], ["prefer-neighbours"]]


def test_what_admission_warns_of_is_told(tmp_path: Path) -> None:
    asks = pod("p", 512)
    asks["metadata"]["annotations"] = {names.IDLE_ACTION: "evict"}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(asks))
    code, output = run("simulate", "--cluster", str(written(tmp_path, node("n1"))), "-f", str(tmp_path / "p.yaml"))
    assert (code, f"pod p: metadata.annotations[{names.IDLE_ACTION}]" in output) == (0, True), output


def test_annotations_of_a_deployment_are_told(tmp_path: Path) -> None:
    metadata = {"name": "d", "annotations": {names.COMPUTE_POLICY: "fixed"}}
    made = {"kind": "Deployment", "metadata": metadata, "spec": {"template": pod("d", 512)}}
    (tmp_path / "d.yaml").write_text(yaml.safe_dump(made))
    output = run("simulate", "--cluster", str(written(tmp_path, node("n1"))), "-f", str(tmp_path / "d.yaml"))[1]
    assert f"Deployment d: its own {names.COMPUTE_POLICY} has no effect" in output


def test_the_waiting_pods_of_a_file_prefer_cards_and_racks(tmp_path: Path) -> None:
    cluster = [*node("n1"), *node("n2")]
    for index, rack in ((0, "r1"), (2, "r2")):
        cluster[index]["metadata"]["labels"] = {names.RACK: rack}
    server = pod("server", 512, "n1", "GPU-n1-0")
    server["metadata"]["labels"] = {"app": "server"}
    client = pod("client", 512)
    client["metadata"]["annotations"] = {names.PREFERRED_GPU_AFFINITY: "app=server"}
    job = [pod(f"j{n}", 2048) for n in range(2)]
    for member in job:
        owner = {"kind": "Job", "name": "j", "controller": True}
        member["metadata"] |= {"annotations": {names.RACK_POLICY: "spread"}, "ownerReferences": [owner]}
    _, output = run("simulate", "--cluster", str(written(tmp_path, [*cluster, server, client, *job])), "-o", "json")
    found = json.loads(output[output.index("{") :])["pods"]
    assert found[0]["gpus"][0]["uuid"] == "GPU-n1-0"
    assert {found[1]["node"], found[2]["node"]} == {"n1", "n2"}


def test_a_wrong_field_is_named_without_the_number_of_the_pod_in_the_request(server: Server) -> None:
    """`pods[0].pod.` stood before each field: a path of the request that the command made, not of the manifest."""
    field = "spec.containers[main].resources.limits[vgpu.io/gpu-mem]: must be a plain whole number of MiB"
    body = {"detail": f"pods[0].pod.{field}", "errors": []}
    server.answers["POST /api/v1/simulate"] = (422, body)
    code, output = run("simulate", "-f", str(POD), "--server", server.url)
    assert (code, output) == (2, f"vgpu simulate: pod train: {field}\n")

    row = {"namespace": "default", "name": "train", "number": 1, "requested": "", "node": "", "gpus": [], "reasons": []}
    row |= {"nearest": None, "gang": None, "advice": [], "problems": [f"pods[0].pod.{field}", "pods[0].count: is 0"]}
    sums = {"gpus": 1, "emptyGpus": 1, "allocatedPercent": 0.0, "fragmentedPercent": 0.0}
    found = {"placed": 0, "notPlaced": 1, "pods": [row], "before": sums, "after": sums, "keptForGang": None}
    server.answers["POST /api/v1/simulate"] = (200, found)
    code, output = run("simulate", "-f", str(POD), "-o", "json", "--server", server.url)
    assert (code, json.loads(output)["pods"][0]["problems"]) == (1, [field, "count: is 0"])
