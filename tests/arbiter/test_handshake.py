"""The handshake: which clients are accepted, and which containers get a socket."""

import fcntl
import mmap
import os
import stat
import time
from pathlib import Path

import pytest

from limiter import arbiter_path
from limiter.arbitration import ACCEPTED, HELLO, MAGIC, NO_SUCH_CARD, OTHER_VERSION, TOO_MANY, VERSION
from tests.arbiter.conftest import CARD, GPU, Node, limits_for, until
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits

OTHER_CARD = bytes(reversed(CARD))


def test_a_container_that_existed_at_start_is_served(idle_node: Node) -> None:
    container = idle_node.add()
    idle_node.start()
    assert container.connect().result == ACCEPTED


def test_the_socket_s_directory_may_be_made_later(node: Node) -> None:
    container = node.add()
    assert container.connect().result == ACCEPTED
    folder = node.allocations / "late"
    folder.mkdir()
    time.sleep(0.05)
    began = time.monotonic()
    (folder / "arbiter").mkdir()
    until((folder / "arbiter" / "socket").exists)
    assert time.monotonic() - began < 0.4  # noticed by inotify, not by the scan twice a second


def test_every_user_may_connect(node: Node) -> None:
    container = node.add()
    container.connect()
    assert stat.S_IMODE(container.socket.stat().st_mode) == 0o666


def test_a_client_of_another_version_is_refused(node: Node) -> None:
    hello = HELLO.pack(MAGIC, VERSION + 1, 0, CARD)
    assert node.add().connect(hello=hello).result == OTHER_VERSION


def test_a_card_that_the_limits_do_not_name_is_refused(node: Node) -> None:
    container = node.add()
    assert container.connect(OTHER_CARD).result == NO_SUCH_CARD
    assert container.connect().result == ACCEPTED
    any_card = node.add(Limits((CardLimit(ANY_GPU, None, 50),)))
    assert any_card.connect(OTHER_CARD).result == ACCEPTED


def test_a_container_is_accepted_once_its_limits_can_be_read(idle_node: Node) -> None:
    container = idle_node.add()
    whole = (container.folder / "limits").read_bytes()
    (container.folder / "limits").write_bytes(b"\0" * len(whole))
    idle_node.start()
    assert container.connect().result == NO_SUCH_CARD
    (container.folder / "limits").write_bytes(whole)
    assert container.connect().result == ACCEPTED


@pytest.mark.parametrize("hello", [b"x", b"\0" * 32, b"x" * 64, HELLO.pack(b"VGPULIMS", VERSION, 0, CARD)])
def test_a_connection_without_a_hello_is_closed(node: Node, hello: bytes) -> None:
    assert node.add().connect(hello=hello).result is None


def test_a_container_may_have_256_clients_and_others_are_unaffected(node: Node) -> None:
    one, other = node.add(), node.add()
    assert [one.connect().result for _ in range(256)] == [ACCEPTED] * 256
    assert one.connect().result == TOO_MANY
    assert other.connect().result == ACCEPTED
    one.clients[7].close()
    until(lambda: one.connect().result == ACCEPTED)


def test_a_client_cannot_write_its_page(node: Node) -> None:
    client = node.add().connect()
    with pytest.raises(PermissionError):
        mmap.mmap(client.fd, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE)
    path = f"/proc/self/fd/{client.fd}"
    try:
        writable = os.open(path, os.O_RDWR)  # allowed for root
    except PermissionError:
        return
    with pytest.raises(PermissionError):
        os.write(writable, b"x")
    with pytest.raises(PermissionError):
        mmap.mmap(writable, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE)
    for size in (0, 8192):
        with pytest.raises(PermissionError):
            os.ftruncate(writable, size)
    with pytest.raises(PermissionError):
        fcntl.fcntl(writable, 1033, 0)  # F_ADD_SEALS
    os.close(writable)


def test_a_container_that_is_removed_is_forgotten(node: Node) -> None:
    container = node.add()
    client = container.connect()
    container.folder.rename(node.allocations.parent / "gone")
    assert client.has_ended()
    again = node.add(limits_for(50, "burst"))
    assert again.connect().result == ACCEPTED
    assert again.clients[0].contended == 0


def test_a_new_directory_of_the_same_name_is_another_container(node: Node) -> None:
    container = node.add()
    client = container.connect()
    container.folder.rename(node.allocations.parent / "gone")
    again = node.add(name=container.folder.name)
    assert client.has_ended()
    assert again.connect().result == ACCEPTED


def test_a_removed_socket_is_made_again(node: Node) -> None:
    container = node.add()
    client = container.connect()
    container.socket.unlink()
    assert container.connect().result == ACCEPTED
    client.want()
    assert client.wait() > 0


@pytest.mark.parametrize("name", [".hidden", "file"])
def test_directories_that_are_no_containers_are_ignored(node: Node, name: str) -> None:
    path = node.allocations / name
    if name == "file":
        path.write_bytes(b"")
    else:
        (path / "arbiter").mkdir(parents=True)
    node.add().connect()
    assert not (path / "arbiter" / "socket").exists()


def test_a_symbolic_link_is_ignored(node: Node, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "arbiter").mkdir(parents=True)
    (node.allocations / "link").symlink_to(elsewhere)
    container = node.add()
    container.connect()
    (container.folder / "arbiter2").mkdir()
    time.sleep(0.1)
    assert not (elsewhere / "arbiter" / "socket").exists()


def test_the_built_arbiter_is_at_its_path_and_executable(built_arbiter: Path) -> None:
    assert built_arbiter == arbiter_path()
    assert os.access(built_arbiter, os.X_OK)
    assert GPU.startswith("GPU-")
