"""A library that the loader cannot map is refused: the loader would print a line and run the program without limits."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from limiter import installation
from limiter.installation import LimiterError

ROOT = Path(installation.__file__).parents[1]


def test_the_built_library_can_be_loaded(shim: Path) -> None:
    installation.refuse_unloadable(shim)


def test_an_empty_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.so").touch()
    with pytest.raises(LimiterError, match="cannot be mapped"):
        installation.refuse_unloadable(tmp_path / "empty.so")


RUN = """
import subprocess, sys
from pathlib import Path
from limiter import installation
package = Path(installation.__file__).parent
subprocess.run(["mount", "--bind", package, package], check=True)
subprocess.run(["mount", "-o", "remount,bind,noexec", package], check=True)
done = subprocess.run([sys.executable, "-m", "vgpu.cli", "run", "--gpu-mem", "1GiB", "--", "true"], capture_output=True)
assert done.returncode != 0, done
assert b"without noexec" in done.stderr, done
"""


@pytest.mark.heavy
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_vgpu_run_refuses_a_library_on_a_file_system_mounted_noexec(shim: Path) -> None:
    assert shim.is_file()
    command = ["unshare", "--mount", sys.executable, "-c", RUN]
    with tempfile.TemporaryDirectory(prefix="vgpu-") as state:  # short: a socket's path has 107 characters at most
        env = {**os.environ, "VGPU_STATE_DIR": f"{state}/s"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr
