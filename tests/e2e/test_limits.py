"""What a container sees and gets: rows 1, 2, 13 and 14."""

import pytest

from simgpu import usage
from tests.e2e.pod_namespace import Document, Space, container, pod
from vgpu import names, quantity

pytestmark = pytest.mark.e2e

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
MIB = quantity.MIB


def results(lines: list[Document]) -> list[int]:
    return [line["result"] for line in lines if "mib" in line]


def sees(space: Space, name: str, mib: int, container: str = "main") -> None:
    """CUDA and NVML agree that the card has this much."""
    (line,) = space.probe(name, "info", container=container)
    assert [card["total"] for card in line["cuda"]] == [mib * MIB]
    assert [card["total"] for card in line["nvml"]] == [mib * MIB]
    assert [card["uuid"] for card in line["cuda"]] == [card["uuid"] for card in line["nvml"]]


@pytest.mark.parametrize(
    "prefix",
    [
        (),
        ("env", "-i", "PATH=/bin:/usr/bin"),
        ("sh", "-c", 'unset LD_PRELOAD; exec "$@"', "sh"),
        ("bash", "-c", '"$@"', "bash"),
    ],
    ids=["exec", "env -i", "unset LD_PRELOAD", "a shell"],
)  # fmt: skip
def test_1_a_share_is_what_the_container_sees_and_gets(shared: Space, prefix: tuple[str, ...]) -> None:
    sees(shared, "share", 8192)
    (line,) = shared.probe("share", "info", prefix=prefix)
    assert line["cuda"][0]["total"] == 8192 * MIB
    assert results(shared.probe("share", "alloc", "4096", prefix=prefix)) == [0]
    assert results(shared.probe("share", "alloc", "4096", "4096", "2", prefix=prefix)) == [0, 0, OUT_OF_MEMORY]
    assert results(shared.probe("share", "alloc", "8194", "4096", prefix=prefix)) == [OUT_OF_MEMORY, 0]


def test_1_the_environment_cannot_loosen_the_limit(shared: Space) -> None:
    more = ("env", "VGPU_MEMORY_LIMIT=80GiB", "VGPU_LIMITS_FILE=/tmp/none", "VGPU_REGION_FILE=/tmp/none")
    assert results(shared.probe("share", "alloc", "8194", prefix=more)) == [OUT_OF_MEMORY]


def test_1_people_can_read_their_limits(shared: Space) -> None:
    said = shared.run("share", "env")
    assert "VGPU_MEMORY_LIMIT=" in said
    assert "VGPU_CORES_LIMIT=30" in said


@pytest.fixture
def shared(space: Space) -> Space:
    space.create(pod("share", gpu_mem=8192, gpu_cores=30))
    space.running("share")
    return space


def test_2_two_of_one_deployment_on_one_card_cannot_take_each_others(space: Space) -> None:
    template = pod("", container(command=("gpuprobe", "fill", "64", "--hold", "0"), gpu_mem=8192, gpu_cores=30))
    template["metadata"] = {"labels": {"app": "filler"}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "filler"}}, "template": template}
    space.cluster.api.create(
        f"/apis/apps/v1/namespaces/{space.name}/deployments", {"metadata": {"name": "filler"}, "spec": spec}
    )
    pods = space.until(lambda: found if len(found := space.all()) == 2 else None, "two pods")
    first, second = (each["metadata"]["name"] for each in pods)
    space.running(first, second)
    (card,) = space.assignment(first).gpus()
    assert space.assignment(second).gpus() == {card}
    node = next(node for node in space.cluster.nodes if node.name == space.get(first)["spec"]["nodeName"])
    space.until(
        lambda: usage.bytes_by_card(node.driver_state).get(card, 0) >= 2 * 8000 * MIB, "both have filled their share"
    )
    for name in (first, second):
        assert results(space.probe(name, "alloc", "64")) == [OUT_OF_MEMORY]
        sees(space, name, 8192)
    assert usage.peak_bytes_by_card(node.driver_state)[card] <= 2 * 8192 * MIB


def test_13_init_containers_sidecars_two_containers_and_restarts(space: Space) -> None:
    once = ("sh", "-c", "gpuprobe alloc 3072 2 > /dev/termination-log")
    init = container("init", once, gpu_mem=3072)
    sidecar = container("side", gpu_mem=1024, gpu_cores=5) | {"restartPolicy": "Always"}
    manifest = pod(
        "all", container("one", gpu_mem=2048, gpu_cores=20), container("two", gpu_mem=512), init=(sidecar, init)
    )
    space.create(manifest)
    (seen,) = space.running("all")
    by_name = {each["name"]: each for each in seen["status"]["initContainerStatuses"]}
    said = by_name["init"]["state"]["terminated"]["message"]
    assert '"mib":3072,"result":0' in said
    assert f'"mib":2,"result":{OUT_OF_MEMORY}' in said
    for name, mib in (("one", 2048), ("two", 512), ("side", 1024)):
        sees(space, "all", mib, container=name)
        assert results(space.probe("all", "alloc", str(mib), "2", container=name)) == [0, OUT_OF_MEMORY]


def test_13_a_restarted_container_finds_its_share_empty(space: Space) -> None:
    command = ("sh", "-c", "gpuprobe alloc 1024 --hold 0 & sleep 1000000")
    space.create(pod("again", container(command=command, gpu_mem=1024)))
    space.running("again")
    space.until(lambda: results(space.probe("again", "alloc", "2")) == [OUT_OF_MEMORY], "the share is full")
    space.cluster.kubectl("exec", "-n", space.name, "again", "--", "sh", "-c", "kill -9 -1", check=False)
    node = next(node for node in space.cluster.nodes if node.name == space.get("again")["spec"]["nodeName"])
    space.until(lambda: not usage.bytes_by_card(node.driver_state), "the container's memory is free")


ALIASES: dict[str, Document] = {
    "gpushare": {"aliyun.com/gpu-mem": "4"},
    "hami": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4096", "nvidia.com/gpucores": "30"},
    "volcano": {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "4096", "volcano.sh/vgpu-cores": "30"},
}


@pytest.mark.parametrize("style", ALIASES)
def test_14_foreign_manifests_run_with_the_same_meaning(space: Space, style: str) -> None:
    space.create(pod(style, container(limits=ALIASES[style])))
    (seen,) = space.running(style)
    limits = seen["spec"]["containers"][0]["resources"]["limits"]
    assert limits[names.GPU_MEM] == "4096"
    assert not [name for name in limits if not name.startswith(names.DOMAIN)]
    sees(space, style, 4096)
    (grant,) = space.assignment(style).containers["main"]
    assert grant.cores == (None if style == "gpushare" else 30)
