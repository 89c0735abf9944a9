"""The files that say which groups have members and which are served."""

import os
import time
from pathlib import Path

import pytest

from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.errors import StateUnusable
from vgpu.domain.identifiers import CardUuid, Namespace
from vgpu.node.containers import selinux_labels
from vgpu.node.space.directories import SUPERVISED_S, GroupOnCard, SpaceDirectories

CARD = CardUuid("GPU-00000000-0000-0000-0000-000000000001")
OF = GroupOnCard(CARD, SpaceGroup(Namespace("team"), "models").directory)
OTHER = GroupOnCard(CARD, SpaceGroup(Namespace("team"), "").directory)
SPACE = Path("/var/lib/vgpu/space")


@pytest.fixture
def directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SpaceDirectories:
    monkeypatch.chdir(tmp_path)
    return SpaceDirectories(Path("space"))


def test_a_group_is_wanted_while_it_has_members(directories: SpaceDirectories) -> None:
    assert directories.wanted() == frozenset()
    for allocation in ("a", "b", "a"):
        directories.add_member(OF, allocation)
    assert directories.wanted() == {OF}
    assert directories.members(OF) == {"a", "b"}
    assert directories.members(OTHER) == frozenset()
    for allocation in ("a", "b", "never there"):
        directories.remove_member(OF, allocation)
    assert directories.wanted() == frozenset()


def test_a_group_is_ready_while_it_is_said_to_be(directories: SpaceDirectories) -> None:
    directories.set_ready(OF, is_ready=False)
    assert not directories.is_ready(OF)
    directories.set_ready(OF, is_ready=True)
    assert directories.is_ready(OF)
    assert directories.ready() == {OF}
    directories.set_ready(OF, is_ready=False)
    assert directories.ready() == frozenset()


def test_a_node_is_supervised_while_that_was_said_lately(directories: SpaceDirectories) -> None:
    assert not directories.is_supervised(time.time())
    directories.set_supervised(is_supervised=True)
    assert directories.is_supervised(time.time())
    assert not directories.is_supervised(time.time() + SUPERVISED_S + 1)
    directories.set_supervised(is_supervised=False)
    assert not directories.is_supervised(time.time())


def test_names_that_are_no_groups_are_left_out(directories: SpaceDirectories) -> None:
    directories.add_member(OF, "a")
    for stray in ("members/GPU-1/0123456789abcdef/a", f"members/{CARD}/models/a", f"ready/{CARD}/.hidden"):
        Path("space", stray).parent.mkdir(parents=True, exist_ok=True)
        Path("space", stray).touch()
    assert directories.wanted() == {OF}
    assert directories.ready() == frozenset()


@pytest.mark.parametrize(("card", "group"), [("GPU-1", "0" * 16), (CARD, "../../etc"), (CARD, "0" * 15), (CARD, "")])
def test_no_name_leads_out_of_the_folder(card: str, group: str) -> None:
    with pytest.raises(ValueError, match="not a group on a card"):
        GroupOnCard(CardUuid(card), group)


def test_a_pipe_directory_names_its_group() -> None:
    directories = SpaceDirectories(SPACE)
    assert directories.of_pipe(directories.pipe(OF)) == OF
    for other in (directories.pipe(OF) / "more", directories.log(OF), Path("/tmp/nvidia-mps"), SPACE / "pipe/x/y"):
        assert directories.of_pipe(other) is None


def test_the_pipe_directory_keeps_its_place_and_anybody_may_look_into_it(directories: SpaceDirectories) -> None:
    directories.make(OF)
    before = directories.pipe(OF).stat()
    directories.make(OF)
    after = directories.pipe(OF).stat()
    assert after.st_ino == before.st_ino
    assert after.st_mode & 0o777 == 0o755


def test_a_state_directory_whose_sockets_would_have_too_long_paths_is_refused() -> None:
    with pytest.raises(StateUnusable, match="too long for sockets"):
        SpaceDirectories(Path("/" + "x" * 40))


def test_a_pipe_directory_is_labelled_before_a_daemon_makes_its_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever the daemon is: each start of one labels the directory again."""
    monkeypatch.chdir(tmp_path)
    labelled = list[tuple[Path, bool]]()
    directories = SpaceDirectories(Path("space"), lambda path: labelled.append((path, path.is_dir())))
    for _ in range(2):
        directories.make(OF)
    assert labelled == [(directories.pipe(OF), True)] * 2
    assert directories.log(OF).is_dir()  # no container uses the logs


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can label")
def test_a_labelled_pipe_directory_has_the_type_that_containers_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without SELinux the kernel stores the attribute all the same."""
    monkeypatch.chdir(tmp_path)
    made = SpaceDirectories(Path("space"), selinux_labels.label)
    made.make(OF)
    assert os.getxattr(made.pipe(OF), "security.selinux") == b"system_u:object_r:container_file_t:s0\0"
