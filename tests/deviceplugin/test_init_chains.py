"""Which containers a chain of allocations is for."""

from deviceplugin import init_chains
from tests.strategies import container
from tests.vgpu.node.builders import allocation, bound, sidecar, slices
from vgpu.domain.identifiers import ContainerName


def test_members_of_a_chain_end_with_the_listed_container() -> None:
    pod = bound("p", container("app", gpu_mem=512), init=(container("a", gpu_mem=512), container("b", gpu_mem=512)))
    chain = [allocation(slices(0, 0, 1), sequence=n, chain="c") for n in range(3)]
    assert init_chains.members(pod, chain, ContainerName("app")) == ["a", "b", "app"]
    assert init_chains.members(pod, chain[:1], ContainerName("app")) == ["app"]
    assert init_chains.members(pod, chain[:1], None) == ["a"]
    remembered = [allocation(slices(0, 0, 1), pod, "b")]
    assert init_chains.members(pod, remembered, None) == ["b"]


def test_members_of_an_init_container_whose_ids_went_to_a_sidecar() -> None:
    pod = bound("p", container("app", gpu_mem=512), init=(container("a", gpu_mem=512), sidecar("s", gpu_mem=256)))
    assert init_chains.members(pod, [allocation(slices(0, 0, 1))], None) == ["a"]
    assert init_chains.members(pod, [allocation(slices(0, 0))], ContainerName("s")) == ["s"]
