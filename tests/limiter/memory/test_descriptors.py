"""Descriptors of exported memory: open copies in any process are found, and a reused number is not mistaken."""

import ctypes
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.limiter.memory.test_pointers import U64, Ledger

MEMORY, OTHER = U64(7), U64(8)


@pytest.fixture
def ledger(pure: ctypes.CDLL) -> Iterator[Ledger]:
    pure.descriptors_find.restype = U64
    pure.descriptors_are_open.restype = pure.descriptors_forget.restype = ctypes.c_bool
    made = Ledger()
    yield made
    pure.descriptors_forget_all(ctypes.byref(made))


def test_exported_memory_lasts_until_the_last_copy_of_its_descriptor(pure: ctypes.CDLL, ledger: Ledger) -> None:
    reader, writer = os.pipe()
    pure.descriptors_add(ctypes.byref(ledger), reader, MEMORY)
    assert pure.descriptors_find(ctypes.byref(ledger), reader) == 7
    copy = os.dup(reader)
    os.close(reader)
    assert pure.descriptors_are_open(ctypes.byref(ledger), MEMORY)
    assert not pure.descriptors_are_open(ctypes.byref(ledger), OTHER)
    os.close(copy)
    assert not pure.descriptors_are_open(ctypes.byref(ledger), MEMORY)
    os.close(writer)


def test_a_descriptor_in_a_socket_buffer_counts_as_open(pure: ctypes.CDLL, ledger: Ledger) -> None:
    reader, writer = os.pipe()
    pure.descriptors_add(ctypes.byref(ledger), reader, MEMORY)
    near, far = socket.socketpair()
    socket.send_fds(near, [b"!"], [reader])
    os.close(reader)
    assert pure.descriptors_are_open(ctypes.byref(ledger), MEMORY)
    far.close()
    assert not pure.descriptors_are_open(ctypes.byref(ledger), MEMORY)
    near.close()
    os.close(writer)


def test_a_reused_descriptor_number_is_not_the_exported_file(pure: ctypes.CDLL, ledger: Ledger) -> None:
    reader, writer = os.pipe()
    pure.descriptors_add(ctypes.byref(ledger), reader, MEMORY)
    os.dup2(writer, reader)
    assert not pure.descriptors_are_open(ctypes.byref(ledger), MEMORY)
    assert pure.descriptors_find(ctypes.byref(ledger), reader) == 0
    pure.descriptors_add(ctypes.byref(ledger), reader, OTHER)
    assert pure.descriptors_find(ctypes.byref(ledger), reader) == 8
    pure.descriptors_remove(ctypes.byref(ledger), reader)
    assert not pure.descriptors_are_open(ctypes.byref(ledger), OTHER)
    os.close(reader)
    os.close(writer)


def test_a_file_that_epoll_rejects_is_recognised_by_its_offset(
    pure: ctypes.CDLL, ledger: Ledger, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(10))
    with path.open("rb") as first, path.open("rb") as second:
        first.seek(3)
        pure.descriptors_add(ctypes.byref(ledger), first.fileno(), MEMORY)
        assert pure.descriptors_are_open(ctypes.byref(ledger), MEMORY)
        os.dup2(second.fileno(), first.fileno())
        assert not pure.descriptors_are_open(ctypes.byref(ledger), MEMORY)
    assert pure.descriptors_forget(ctypes.byref(ledger), MEMORY)
    assert not pure.descriptors_forget(ctypes.byref(ledger), MEMORY)
