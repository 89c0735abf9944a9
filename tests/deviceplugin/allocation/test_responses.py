"""Which IDs are preferred, and the response to Allocate."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin import responses
from deviceplugin.kubelet.messages import Mount
from deviceplugin.responses import DeviceList, Injection
from tests.vgpu.node.builders import gpu, slices, uuid
from vgpu.domain.formats import container_paths
from vgpu.node.cards import device_ids
from vgpu.node.containers.state_files import StateFiles

numbers = st.sets(st.integers(0, 7))


@given(
    free=st.tuples(numbers, numbers),
    must=st.sets(st.integers(0, 7), max_size=2),
    held=numbers,
    count=st.integers(1, 6),
    cards=st.sampled_from([(0,), (1,), (0, 1)]),
)
def test_preferred_ids_are_offered_not_held_and_on_the_assigned_cards(
    free: tuple[set[int], set[int]], must: set[int], held: set[int], count: int, cards: tuple[int, ...]
) -> None:
    taken = slices(cards[0], *held)
    insisted = slices(cards[0], *must)
    offered = slices(0, *free[0]) | slices(1, *free[1]) | insisted
    size = count * len(cards)
    chosen = responses.preferred_ids(offered, insisted, size, [uuid(n) for n in cards], taken)
    assert len(chosen) == len(set(chosen)) <= size
    assert set(chosen) <= offered
    assert not set(chosen) & (taken - insisted)
    assert len(insisted & set(chosen)) == min(len(insisted), size)
    room = Counter(device_ids.by_gpu(offered - (taken - insisted)))
    assert all(device_ids.by_gpu(chosen)[uuid(n)] == min(count, room[uuid(n)]) for n in cards if count >= len(insisted))
    assert {device_ids.gpu_of(one) for one in chosen} <= {uuid(n) for n in cards}


def test_the_lowest_ids_are_preferred() -> None:
    chosen = responses.preferred_ids(slices(0, 7, 10, 9, 2), [], 3, [uuid(0)], [])
    assert chosen == [f"{uuid(0)}::{n}" for n in (2, 7, 9)]


def test_without_an_assignment_any_free_ids_are_preferred() -> None:
    assert responses.preferred_ids(slices(0, 1, 2, 3), [], 2, [], slices(0, 1)) == [f"{uuid(0)}::{n}" for n in (2, 3)]


@pytest.fixture
def injection(tmp_path: Path) -> Injection:
    dev = tmp_path / "dev"
    dev.mkdir()
    for node in ("nvidia1", "nvidiactl", "nvidia-uvm"):
        dev.joinpath(node).touch()
    return Injection(StateFiles(tmp_path / "state"), "abc", dev=dev)


def test_the_environment_lists_the_cards_by_index_and_existing_device_nodes_are_passed(injection: Injection) -> None:
    gpus = [gpu(0), gpu(1), gpu(2)]
    response = responses.container_response(slices(2, 0) | slices(1, 5), gpus, "id", injection)
    assert response.envs == {"NVIDIA_VISIBLE_DEVICES": f"{uuid(1)},{uuid(2)}"}
    assert [Path(node).name for node in response.device_nodes] == ["nvidia1", "nvidiactl", "nvidia-uvm"]
    assert response.cdi_devices == ()


def test_only_the_region_is_mounted_writable(injection: Injection) -> None:
    response = responses.container_response(slices(0, 0), [gpu(0)], "id", injection)
    assert {mount.container_path: mount.read_only for mount in response.mounts} == {
        "/run/vgpu/limits": True,
        "/run/vgpu/region": False,
        "/run/vgpu/arbiter": True,
        "/run/vgpu/notices": True,
        "/run/vgpu/space": True,
        "/usr/local/vgpu/libvgpushare.so": True,
        "/etc/ld.so.preload": True,
        "/etc/ld-nix.so.preload": True,
    }


def test_no_file_is_mounted_into_two_containers(injection: Injection) -> None:
    """A container can lease a file that it only reads; whoever opens the file then waits for 45 s."""
    one, other = (responses.container_response(slices(0, n), [gpu(0)], name, injection) for n, name in enumerate("ab"))
    assert not {mount.host_path for mount in one.mounts} & {mount.host_path for mount in other.mounts}


def test_with_cdi_the_environment_variable_is_void(injection: Injection) -> None:
    by_name = Injection(injection.files, "abc", DeviceList.CDI, "nvidia.com/gpu", injection.dev)
    response = responses.container_response({uuid(1)}, [gpu(1)], "id", by_name)
    assert response.cdi_devices == (f"nvidia.com/gpu={uuid(1)}",)
    assert response.envs == {"NVIDIA_VISIBLE_DEVICES": "void"}
    assert response.device_nodes == ()


def test_with_mounts_the_driver_and_its_device_nodes_are_in_the_response(injection: Injection) -> None:
    library = Mount("/usr/lib64/libcuda.so.1", Path("/d/libcuda.so.580"))
    with_mounts = replace(injection, mode=DeviceList.MOUNTS, driver=lambda: (library,))
    response = responses.container_response({uuid(1)}, [gpu(1)], "id", with_mounts)
    assert response.envs == {"NVIDIA_VISIBLE_DEVICES": "void"}
    assert response.device_nodes == ("/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm")
    assert library in response.mounts
    assert "/etc/ld.so.preload" in {mount.container_path for mount in response.mounts}


def test_no_volume_of_a_pod_may_cover_what_is_mounted(injection: Injection) -> None:
    response = responses.container_response(slices(0, 1), [gpu(0)], "a1", injection)
    assert response.mounts
    assert all(container_paths.is_reserved(mount.container_path) for mount in response.mounts)
