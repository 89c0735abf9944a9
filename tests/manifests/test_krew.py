"""krew's archive: reproducible, as the manifest's checksum says, and its program runs the installed package."""

import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from release import krew

ROOT = Path(__file__).parents[2]


def made(folder: Path) -> Path:
    krew.write(folder, "https://releases.test/vgpushare", "0.2.0")
    return folder


def test_the_checksum_is_that_of_the_archive(tmp_path: Path) -> None:
    first, second = made(tmp_path / "a"), made(tmp_path / "b")
    packed = (first / "vgpu.tar.gz").read_bytes()
    assert packed == (second / "vgpu.tar.gz").read_bytes()
    (platform,) = yaml.safe_load((first / "vgpu.yaml").read_text())["spec"]["platforms"]
    assert platform["sha256"] == hashlib.sha256(packed).hexdigest()
    assert platform["uri"].startswith("https://releases.test/vgpushare/v")
    with tarfile.open(first / "vgpu.tar.gz") as tar:
        modes = {member.name: member.mode for member in tar}
    assert modes == {"vgpu/kubectl-vgpu": 0o755, "vgpu/LICENSE": 0o644}
    assert {file["from"] for file in platform["files"]} == modes.keys()


def test_the_command_needs_no_url_and_takes_its_options_for_no_folder(tmp_path: Path) -> None:
    command: list[str | Path] = [sys.executable, "-m", "release.krew"]
    helped = subprocess.run([*command, "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "where the archive will be published" in helped.stdout
    subprocess.run([*command, tmp_path / "out"], cwd=ROOT, check=True)
    assert f"uri: {krew.NO_URL}/v" in (tmp_path / "out" / "vgpu.yaml").read_text()


@pytest.mark.heavy
def test_the_program_runs_the_installed_package_or_says_what_to_install(tmp_path: Path) -> None:
    subprocess.run(["tar", "-xzf", made(tmp_path) / "vgpu.tar.gz", "-C", tmp_path], check=True)
    program = tmp_path / "vgpu" / "kubectl-vgpu"
    environment = os.environ | {"VGPU_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    helped = subprocess.run([program, "--help"], env=environment, capture_output=True, text=True, check=True)
    assert "rightsize" in helped.stdout
    assert "Usage: kubectl-vgpu " in helped.stdout
    lacking = subprocess.run([program], env={"VGPU_PYTHON": "/none"}, capture_output=True, text=True, check=False)
    assert (lacking.returncode, "pip install vgpushare" in lacking.stderr) == (2, True)
