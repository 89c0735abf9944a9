"""The files of the kubelet's probes, and the commands in the DaemonSet that look at them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from vgpu.node.presence import probe_files
from vgpu.node.presence.probe_files import ProbeFiles

MANIFEST = Path(__file__).parents[4] / "manifests" / "base" / "deviceplugin.yaml"


def passes(probe: str, folder: Path) -> bool:
    """Run a probe's command of the manifest, in another folder than on a node."""
    (container,) = yaml.safe_load(MANIFEST.read_text())["spec"]["template"]["spec"]["containers"]
    command: list[Any] = container[probe]["exec"]["command"]
    assert command[0] == "python"
    arguments = [argument.replace("/var/lib/vgpu", str(folder)) for argument in command[1:]]
    return subprocess.run([sys.executable, *arguments], check=False).returncode == 0


def test_a_plugin_is_ready_while_it_is_registered(tmp_path: Path) -> None:
    registered = True
    files = ProbeFiles(tmp_path, lambda: registered, lambda: True)
    assert not passes("readinessProbe", tmp_path)
    files.step()
    assert passes("readinessProbe", tmp_path)
    registered = False
    files.step()
    assert not passes("readinessProbe", tmp_path)


def test_a_plugin_is_alive_while_it_waits_for_a_driver_and_while_its_loop_runs(tmp_path: Path) -> None:
    (tmp_path / "alive").touch()
    os.utime(tmp_path / "alive", (1, 1))
    assert not passes("livenessProbe", tmp_path)
    probe_files.clear(tmp_path)
    assert passes("livenessProbe", tmp_path)
    ProbeFiles(tmp_path, lambda: False, lambda: True).step()
    assert passes("livenessProbe", tmp_path)


def test_a_plugin_is_not_alive_when_the_process_that_relays_hangs(tmp_path: Path) -> None:
    """The one that serves the kubelet would go on without a call, while the kubelet waits in one for ever."""
    for name in ("alive", "relays"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1, 1))
    files = ProbeFiles(tmp_path, lambda: True, lambda: probe_files.is_touched(tmp_path / "relays", now=100))
    files.step()
    assert not passes("livenessProbe", tmp_path)
    os.utime(tmp_path / "relays", (90, 90))
    files.step()
    assert passes("livenessProbe", tmp_path)


def test_a_file_that_was_never_touched_is_not_touched_lately(tmp_path: Path) -> None:
    assert not probe_files.is_touched(tmp_path / "relays", now=0)
