"""The limit that a container sees, and what it can allocate."""

import pytest

from simgpu import usage
from tests.e2e.pod_namespace import Document, PodNamespace, container, pod
from vgpu.domain import names, quantity
from vgpu.domain.identifiers import ContainerName

pytestmark = pytest.mark.e2e

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
MIB = quantity.MIB


def results(lines: list[Document]) -> list[int]:
    return [line["result"] for line in lines if "mib" in line]


def assert_total_memory(namespace: PodNamespace, name: str, mib: int, container: str = "main") -> None:
    """CUDA and NVML report this size of the card."""
    (line,) = namespace.probe(name, "info", container=container)
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
def test_a_container_sees_and_gets_its_share(shared: PodNamespace, prefix: tuple[str, ...]) -> None:
    assert_total_memory(shared, "share", 8192)
    (line,) = shared.probe("share", "info", prefix=prefix)
    assert line["cuda"][0]["total"] == 8192 * MIB
    assert results(shared.probe("share", "alloc", "4096", prefix=prefix)) == [0]
    assert results(shared.probe("share", "alloc", "4096", "4096", "2", prefix=prefix)) == [0, 0, OUT_OF_MEMORY]
    assert results(shared.probe("share", "alloc", "8194", "4096", prefix=prefix)) == [OUT_OF_MEMORY, 0]


def test_the_environment_cannot_loosen_the_limit(shared: PodNamespace) -> None:
    more = ("env", "VGPU_MEMORY_LIMIT=80GiB", "VGPU_LIMITS_FILE=/tmp/none", "VGPU_REGION_FILE=/tmp/none")
    assert results(shared.probe("share", "alloc", "8194", prefix=more)) == [OUT_OF_MEMORY]


def test_the_limits_are_in_the_environment(shared: PodNamespace) -> None:
    environment = shared.run("share", "env")
    assert "VGPU_MEMORY_LIMIT=" in environment
    assert "VGPU_CORES_LIMIT=30" in environment


@pytest.fixture
def shared(namespace: PodNamespace) -> PodNamespace:
    namespace.create(pod("share", gpu_mem=8192, gpu_cores=30))
    namespace.running("share")
    return namespace


def test_two_pods_on_one_card_cannot_use_each_others_share(namespace: PodNamespace) -> None:
    template = pod("", container(command=("gpuprobe", "fill", "64", "--hold", "0"), gpu_mem=8192, gpu_cores=30))
    template["metadata"] = {"labels": {"app": "filler"}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "filler"}}, "template": template}
    namespace.cluster.api.create(
        f"/apis/apps/v1/namespaces/{namespace.name}/deployments", {"metadata": {"name": "filler"}, "spec": spec}
    )
    pods = namespace.until(lambda: found if len(found := namespace.all()) == 2 else None, "two pods")
    first, second = (item["metadata"]["name"] for item in pods)
    namespace.running(first, second)
    (card,) = namespace.assignment(first).gpus()
    assert namespace.assignment(second).gpus() == {card}
    node = next(node for node in namespace.cluster.nodes if node.name == namespace.get(first)["spec"]["nodeName"])
    namespace.until(
        lambda: usage.bytes_by_card(node.driver_state).get(card, 0) >= 2 * 8000 * MIB, "both have filled their share"
    )
    for name in (first, second):
        assert results(namespace.probe(name, "alloc", "64")) == [OUT_OF_MEMORY]
        assert_total_memory(namespace, name, 8192)
    assert usage.peak_bytes_by_card(node.driver_state)[card] <= 2 * 8192 * MIB


def test_init_containers_sidecars_and_two_containers_each_have_their_limit(namespace: PodNamespace) -> None:
    once = ("sh", "-c", "gpuprobe alloc 3072 2 > /dev/termination-log")
    init = container("init", once, gpu_mem=3072)
    sidecar = container("side", gpu_mem=1024, gpu_cores=5) | {"restartPolicy": "Always"}
    manifest = pod(
        "all", container("one", gpu_mem=2048, gpu_cores=20), container("two", gpu_mem=512), init=(sidecar, init)
    )
    namespace.create(manifest)
    (seen,) = namespace.running("all")
    by_name = {
        init_container_status["name"]: init_container_status
        for init_container_status in seen["status"]["initContainerStatuses"]
    }
    message = by_name["init"]["state"]["terminated"]["message"]
    assert '"mib":3072,"result":0' in message
    assert f'"mib":2,"result":{OUT_OF_MEMORY}' in message
    for name, mib in (("one", 2048), ("two", 512), ("side", 1024)):
        assert_total_memory(namespace, "all", mib, container=name)
        assert results(namespace.probe("all", "alloc", str(mib), "2", container=name)) == [0, OUT_OF_MEMORY]


def test_the_memory_of_a_killed_container_is_free_again(namespace: PodNamespace) -> None:
    command = ("sh", "-c", "gpuprobe alloc 1024 --hold 0 & sleep 1000000")
    namespace.create(pod("again", container(command=command, gpu_mem=1024)))
    namespace.running("again")
    namespace.until(lambda: results(namespace.probe("again", "alloc", "2")) == [OUT_OF_MEMORY], "the share is full")
    namespace.cluster.kubectl("exec", "-n", namespace.name, "again", "--", "sh", "-c", "kill -9 -1", check=False)
    node = next(node for node in namespace.cluster.nodes if node.name == namespace.get("again")["spec"]["nodeName"])
    namespace.until(lambda: not usage.bytes_by_card(node.driver_state), "the container's memory is free")


ALIASES: dict[str, Document] = {
    "gpushare": {"aliyun.com/gpu-mem": "4"},
    "hami": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4096", "nvidia.com/gpucores": "30"},
    "volcano": {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "4096", "volcano.sh/vgpu-cores": "30"},
}


@pytest.mark.parametrize("style", ALIASES)
def test_manifests_of_other_projects_run_with_the_equivalent_share(namespace: PodNamespace, style: str) -> None:
    namespace.create(pod(style, container(limits=ALIASES[style])))
    (seen,) = namespace.running(style)
    limits = seen["spec"]["containers"][0]["resources"]["limits"]
    assert limits[names.GPU_MEM] == "4096"
    assert not [name for name in limits if not name.startswith(names.DOMAIN)]
    assert_total_memory(namespace, style, 4096)
    (grant,) = namespace.assignment(style).containers[ContainerName("main")]
    assert grant.cores == (None if style == "gpushare" else 30)
