"""Allocation records, which a restarted plugin reads again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import own_mounts
from tests.vgpu.node.builders import allocation, bound, slices, uuid
from vgpu.domain import names
from vgpu.domain.errors import MalformedError
from vgpu.domain.identifiers import ContainerName, PodUid
from vgpu.node.containers import allocations
from vgpu.node.containers.allocations import Allocations, Holder, Unread

ROOT = Path(__file__).parents[4]
POD = bound("p")
ANY = allocation(slices(0, 1, 2), POD)


@pytest.fixture
def kept(tmp_path: Path) -> Allocations:
    return Allocations(tmp_path)


def test_records_are_read_again(kept: Allocations) -> None:
    kept.add(ANY)
    kept.add(allocation(frozenset({uuid(1)}), sequence=2, resource=names.CARD))
    kept.set_holder(ANY, Holder.of(POD, ContainerName("other")), proven=True)
    again = Allocations(kept.root)
    assert again.all() == kept.all()
    assert again.all()[0].holder == Holder.of(POD, ContainerName("other"))
    assert again.all()[0].is_proven
    assert again.next_sequence() == 3


def test_directories_without_a_readable_record_are_found(kept: Allocations) -> None:
    kept.add(ANY)
    left = {
        "empty": b"",
        "torn": allocations.encode(ANY)[:-5],
        "zeros": bytes(100),
        "deep": b"[" * 100_000,
        "typed": b'{"v":1,"id":"typed","resource":1,"ids":[],"chain":"","sequence":"x","created":0,"library":""}',
        "copy": allocations.encode(ANY),
        "newer": b'{"v":2}',
    }
    for name, content in left.items():
        kept.root.joinpath(name).mkdir()
        kept.root.joinpath(name, "record.json").write_bytes(content)
    kept.root.joinpath("missing").mkdir()
    again = Allocations(kept.root)
    assert again.all() == (ANY,)
    assert again.sweep() == Unread(frozenset({*left, "missing"} - {"newer"}), frozenset({"newer"}))


def test_a_record_that_could_not_be_read_at_the_start_is_taken_later(kept: Allocations) -> None:
    kept.add(ANY)
    record = kept.root / ANY.id / "record.json"
    content = record.read_bytes()
    record.write_bytes(b"")
    again = Allocations(kept.root)
    assert again.all() == ()
    record.write_bytes(content)
    assert again.sweep() == Unread(frozenset(), frozenset())
    assert again.all() == (ANY,)


FULL = """
import sys
from pathlib import Path
from tests.vgpu.node.builders import allocation, bound, slices
from vgpu.node.containers.allocations import Allocations, Holder
root = Path(sys.argv[1])
filler = root.with_name("filler")
with filler.open("wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError as error:
        print(error.strerror)
kept = Allocations(root)
pod = bound("p")
given = allocation(slices(0, 1), pod)
kept.add(given)
assert kept.all() == (given,)
try:
    kept.set_holder(given, Holder.of(pod, "main"), proven=True)
except OSError as error:
    print(error.strerror)
assert not kept.all()[0].is_proven
assert Allocations(root).all() == ()
filler.unlink()
kept.set_holder(given, Holder.of(pod, "main"), proven=True)
assert Allocations(root).all() == kept.all() != (given,)
"""


@pytest.mark.heavy
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_on_a_full_disk_the_record_is_kept_in_memory_and_saved_when_the_holder_is_confirmed(tmp_path: Path) -> None:
    mount = 'mount -t tmpfs -o size=64k tmpfs "$1" && mkdir "$1/allocations"'
    command = own_mounts.command(mount, tmp_path, (sys.executable, "-c", FULL, str(tmp_path / "allocations")))
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "No space left on device\n" * 2), done.stderr


def test_a_chain_has_the_allocations_of_exactly_these_ids_newest_first(kept: Allocations) -> None:
    ids = slices(0, 1, 2)
    for sequence, chain, wanted in ((1, "old", ids), (2, "new", ids), (3, "new", ids), (4, "part", slices(0, 1))):
        kept.add(allocation(wanted, sequence=sequence, chain=chain))
    kept.add(allocation(ids, sequence=5, resource=names.CARD))
    assert [[record.sequence for record in chain] for chain in kept.chains(names.SLICE, ids)] == [[2, 3], [1]]
    assert [record.sequence for record in kept.overlapping(names.SLICE, slices(0, 1))] == [1, 2, 3, 4]
    assert kept.chains(names.SLICE, slices(0, 7)) == ()


def test_init_containers_are_found_by_pod_uid(kept: Allocations) -> None:
    kept.add(ANY)
    assert kept.was_allocated(POD.uid, ContainerName("main"))
    assert not kept.was_allocated(PodUid("another"), ContainerName("main"))
    assert not kept.was_allocated(POD.uid, ContainerName("other"))


@pytest.mark.heavy
@given(
    st.one_of(
        st.binary(max_size=60), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(repr).map(str.encode)
    )
)
def test_any_bytes_are_decoded_or_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError):
        allocations.decode(data)


@pytest.mark.parametrize("text", [b'{"v":1}', b'{"v":2,"holder":null}', b"[]", b'{"v":1,"holder":{"uid":1},"ids":[]}'])
def test_other_json_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedError):
        allocations.decode(text)
