"""The Linux namespaces of the cluster: nothing leaves them, and nothing remains of them."""

import itertools
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cluster import cgroups, process, wait
from cluster.namespace import LinuxNamespaces

pytestmark = pytest.mark.e2e

# A harness that creates a namespace, a cgroup and an endless process, prints their place, and is killed.
_HARNESS = """
import sys, time
from pathlib import Path
from cluster import cgroups, process
from cluster.namespace import LinuxNamespaces
work = Path(sys.argv[1])
within = LinuxNamespaces(work.name, work)
cgroups.create(f"{work.name}-1")
sleeper = process.ClusterProcess("sleeper", ["sleep", "infinity"], within, work)
sleeper.start()
print(sleeper.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def work() -> Path:
    return Path(tempfile.mkdtemp(prefix="vgpu-e2e-"))


def cgroups_of(work: Path) -> list[str]:
    """Cgroups of other tests may end while they are listed. os.walk leaves those out."""
    names = itertools.chain.from_iterable(folders for _, folders, _ in os.walk("/sys/fs/cgroup"))
    return [name for name in names if name.startswith(f"{work.name}-")]


def test_a_killed_harness_leaves_no_process_cgroup_or_file(work: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _HARNESS, work], stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout
        sleeper = Path("/proc") / harness.stdout.readline().strip()
        assert sleeper.exists()
        assert cgroups_of(work)
        harness.kill()
    wait.until(lambda: not sleeper.exists(), "the sleeper's end", 10)
    wait.until(lambda: not cgroups_of(work) and not work.exists(), "cgroups and files gone", 10)


def test_the_network_is_private(work: Path) -> None:
    within = LinuxNamespaces(work.name, work)
    try:
        with within.network(), socket.create_server(("127.0.0.1", 6443)):
            pass
        with within.network(), pytest.raises(OSError, match="unreachable"):
            socket.create_connection(("198.51.100.1", 80), timeout=1)
        with socket.create_server(("127.0.0.1", 0)) as server, within.network(), pytest.raises(ConnectionRefusedError):
            socket.create_connection(server.getsockname(), timeout=1)
    finally:
        within.close()


def test_only_a_process_that_ends_by_itself_has_ended(work: Path) -> None:
    within = LinuxNamespaces(work.name, work)
    try:
        sleeper = process.ClusterProcess("sleeper", ["sleep", "infinity"], within, work)
        sleeper.start()
        sleeper.kill()
        assert not sleeper.has_ended()
        assert not sleeper.running()
        brief = process.ClusterProcess("brief", ["sh", "-c", "echo gone"], within, work)
        brief.start()
        wait.until(brief.has_ended, "its end", 5)
        assert brief.tail() == "gone\n"
    finally:
        within.close()


def test_cgroups_exist_in_every_hierarchy(work: Path) -> None:
    within = LinuxNamespaces(work.name, work)
    try:
        cgroups.create(f"{work.name}-1")
        assert cgroups_of(work)
    finally:
        within.close()
    assert not cgroups_of(work)
