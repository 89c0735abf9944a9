"""A user's state directory: its owner and permissions, and the cleanup after dead processes."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import limiter
from limiter import LimiterError, launch, local_keeper, local_state
from vgpu.domain.formats import limits, region

ROOT = Path(limiter.__file__).parents[1]
WANTED = launch.parse("64MiB", 30, None)
HOST = limiter.this_host()

HOLD = """
import os, sys, time
from pathlib import Path
import limiter
from limiter import launch, local_state
made = local_state.add(Path(sys.argv[1]), launch.parse("64MiB", None, None), ["hold", "on & off"], limiter.this_host())
print(made.folder, flush=True)
if sys.argv[2] == "fork" and os.fork():
    os._exit(0)
time.sleep(60)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="vgpu-") as folder:  # a socket's path has 107 characters at most
        yield Path(folder) / "state"


@pytest.fixture
def made(home: Path) -> Path:
    local_state.ensure(home)
    return home


def allocations(home: Path) -> set[Path]:
    return {*(home / "allocations").iterdir(), *(home / "fresh").iterdir()}


def holder(home: Path, then: str = "stay") -> tuple["subprocess.Popen[str]", Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home), then],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_an_allocation_contains_its_files_and_their_description(made: Path) -> None:
    allocation = local_state.add(made, WANTED, ["python", "a b.py"], HOST)
    folder = allocation.folder
    assert folder.parent == made / "allocations"
    assert limits.decode((folder / "limits").read_bytes()) == WANTED
    assert region.decode((folder / "region").read_bytes()).cards == ()
    assert (folder / "command").read_text() == "python 'a b.py'"
    assert (folder / "arbiter").is_dir()
    assert {path.stat().st_mode & 0o777 for path in (made, folder)} == {0o700}
    assert local_state.is_owned(folder)
    local_keeper.release(allocation)
    assert allocations(made) == set()


def test_allocations_of_dead_processes_are_removed(made: Path) -> None:
    (dead, left), (living, kept) = holder(made), holder(made)
    dead.kill()
    dead.communicate()
    assert left.exists()
    (made / "fresh" / "half").mkdir()
    allocation = local_state.add(made, WANTED, [], HOST)
    try:
        assert allocations(made) == {kept, allocation.folder}
    finally:
        living.kill()
        living.communicate()


def test_a_forked_child_keeps_its_parent_s_allocation(made: Path) -> None:
    """As the forked workers of a program with `limiter.preload` do."""
    parent, folder = holder(made, "fork")
    assert parent.wait() == 0
    assert local_state.is_owned(folder)
    os.killpg(parent.pid, signal.SIGKILL)
    parent.communicate()  # returns when the forked child has closed the pipe
    assert not local_state.is_owned(folder)


def test_allocations_may_be_made_concurrently(made: Path) -> None:
    found: list[local_state.LocalAllocation] = []
    threads = [
        threading.Thread(target=lambda: found.append(local_state.add(made, WANTED, [], HOST))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert allocations(made) == {allocation.folder for allocation in found}
    assert len(found) == 16


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_directory_writable_by_others_is_refused(home: Path, mode: int) -> None:
    home.mkdir()
    home.chmod(mode)
    with pytest.raises(LimiterError, match="may be written by others"):
        local_state.ensure(home)


def test_a_link_to_a_directory_is_refused(home: Path, tmp_path: Path) -> None:
    home.symlink_to(tmp_path)
    with pytest.raises(LimiterError, match="is no directory"):
        local_state.ensure(home)


def test_a_file_in_place_of_the_directory_is_refused(home: Path) -> None:
    home.write_bytes(b"")
    with pytest.raises(LimiterError, match="File exists"):
        local_state.ensure(home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_directory_of_another_user_is_refused(home: Path) -> None:
    home.mkdir()
    os.chown(home, 65534, 65534)
    with pytest.raises(LimiterError, match=r"belongs to another user.*VGPU_STATE_DIR"):
        local_state.ensure(home)


def test_a_path_too_long_for_sockets_is_refused(home: Path) -> None:
    with pytest.raises(LimiterError, match="too long a path"):
        local_state.ensure(home / ("x" * 80))


def test_each_user_has_a_default_directory() -> None:
    assert local_state.state_directory({}).name == f"vgpu-{os.geteuid()}"
    assert local_state.state_directory({"VGPU_STATE_DIR": "/chosen"}) == Path("/chosen")


def test_waiting_for_a_held_lock_times_out(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_state, "_LOCK_TIMEOUT_S", 0.05)
    with local_state._locked(made / "lock", HOST), pytest.raises(LimiterError, match="does not go on"):
        local_state.add(made, WANTED, [], HOST)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_on_a_full_disk_nothing_is_left_behind(made: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path\n"
        "import limiter; from limiter import LimiterError, launch, local_state\n"
        "home = Path(sys.argv[1]); local_state.ensure(home); before = len(os.listdir('/proc/self/fd'))\n"
        "try:\n    local_state.add(home, launch.parse('1GiB', None, None), [], limiter.this_host())\n"
        "except LimiterError as error:\n    print(error)\n"
        "print(os.listdir(home / 'fresh'), len(os.listdir('/proc/self/fd')) - before)"
    )
    script = 'mount -t tmpfs -o size=64k,mode=700 none "$1" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        ["unshare", "--mount", "/bin/sh", "-c", script, "sh", str(made), sys.executable, program],
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("mounts are not allowed here")
    assert done.stdout.splitlines() == [f"{made}: No space left on device", "[] 0"], done.stderr


LEAVE = """
import subprocess, sys
import limiter
with limiter.environment("64MiB", None, None, dict(PATH="/usr/bin:/bin", VGPU_STATE_DIR=sys.argv[1])) as env:
    print(env["VGPU_LIMITS_FILE"], flush=True)
    subprocess.run(["sh", "-c", sys.argv[2]], env=env, close_fds=sys.argv[3] == "closed", check=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("descriptors", ["inherited", "closed"])
def test_the_files_stay_until_the_last_process_has_ended(
    home: Path, descriptors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`vgpu run -- sh -c 'job &'` ends at once, and the job goes on; programs may close the inherited lock."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = [sys.executable, "-c", LEAVE, str(home), "sleep 60 > /dev/null 2>&1 & echo $!", descriptors]
    limits_file, pid = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    folder = Path(limits_file).parent
    local_keeper.release(local_state.add(home, WANTED, [], HOST))  # removes what no process uses
    opened = {link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir()}
    assert (folder / local_state.OWNER in opened) == (descriptors == "inherited")
    assert local_state.is_owned(folder) or descriptors == "closed"  # the keeper owns it when it has started
    assert local_state.in_use(folder)
    assert {path.name for path in folder.iterdir()} >= {"limits", "region", "owner"}
    os.kill(int(pid), signal.SIGKILL)
    assert HOST.wait_until(lambda: not folder.exists(), timeout_s=20, period_s=0.05)


def test_a_process_is_found_by_its_mappings_where_it_has_no_environment(made: Path) -> None:
    allocation = local_state.add(made, WANTED, [], HOST)
    program = (
        "import mmap, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0); f.close();"
        "print(1, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(allocation.folder / "region")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.close(allocation.owner)
        assert local_state.in_use(allocation.folder)
        process.communicate()
    assert not local_state.in_use(allocation.folder)
