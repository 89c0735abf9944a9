"""Every part that listens, where IPv6 is the only family: a pod of an IPv6-only cluster, without even 127.0.0.1."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ipv6_only import SETUP

ROOT = Path(__file__).parents[1]


def unshared(script: str) -> list[str]:
    """The command that runs a shell script in a network namespace of its own."""
    flags = ["-n"] if os.geteuid() == 0 else ["-rn"]
    return ["unshare", *flags, "sh", "-c", script]


def can_unshare() -> bool:
    if not (shutil.which("unshare") and shutil.which("ip")):
        return False
    return (
        subprocess.run(unshared(f"{SETUP} && ip addr | grep -q ::1"), capture_output=True, check=False).returncode == 0
    )


@pytest.mark.heavy
@pytest.mark.timeout(240)
@pytest.mark.skipif(not can_unshare(), reason="needs unshare, ip, IPv6, and the right to make network namespaces")
def test_every_part_is_reached_where_only_ipv6_is() -> None:
    script = f"{SETUP} && exec {sys.executable} -m tests.ipv6_only"
    done = subprocess.run(unshared(script), cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "every part answers at ::1\n"), done.stdout + done.stderr
