"""Every command about the cluster in every format, as files in golden/.

After a wanted change: VGPU_GOLDEN=write python -m pytest tests/vgpu/cli/cluster/test_golden.py, and read the diff.
"""

import os
import shlex
from pathlib import Path

import pytest

from tests.vgpu.cli.cluster.conftest import Server, run

GOLDEN = Path(__file__).parent / "golden"
FORMATS = ("table", "wide", "json", "yaml", "csv", "name")
POD = Path(__file__).parent / "pod.yaml"

COMMANDS = {
    **{
        f"get-{kind}-{form}": f"get {kind} -o {form}"
        for kind in ("gpus", "nodes", "pods", "pending", "groups")
        for form in FORMATS
    },
    "get-gpus-by-name": "get gpus node-1/1",
    "describe-gpu": "describe gpu node-1/0",
    "describe-node": "describe node node-1",
    "describe-pod": "describe pod train",
    "describe-group": "describe group default/models",
    "get-groups-by-name": "get groups group/default/models -o name",
    "top-groups": "top groups --once",
    "describe-pod-yaml": "describe pod train -o yaml",
    "explain-table": "explain waits",
    "explain-wide": "explain waits -o wide",
    "explain-json": "explain default/waits -o json",
    "explain-yaml": "explain waits -n default -o yaml",
    **{f"simulate-{form}": f"simulate -f {POD} -o {form}" for form in FORMATS},
    "cordon": "cordon node-1/0",
    "cordon-json": "cordon node-1/0 -o json",
    "uncordon": "uncordon GPU-0000",
    "uncordon-name": "uncordon GPU-0000 -o name",
    **{f"doctor-{form}": f"doctor -o {form}" for form in FORMATS},
    **{f"usage-{form}": f"usage --by namespace,day --since 7d -o {form}" for form in FORMATS},
    **{f"rightsize-{form}": f"rightsize --since 7d -o {form}" for form in FORMATS},
    "top-gpus": "top gpus --once",
    "top-nodes": "top nodes --once",
    "top-pods": "top pods --once",
    "inspect": "inspect",
    "inspect-details": "inspect -d",
    "not-found": "explain none",
    "no-such-gpu": "cordon node-9/9",
    "two-gpus": "describe gpu GPU-",
    "selector-of-gpus": "get gpus -l app=x",
}
CODES = {
    "simulate": 1, "doctor": 1, "not-found": 3, "no-such-gpu": 3, "two-gpus": 3,
    "selector-of-gpus": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_golden(name: str, server: Server) -> None:
    code, output = run(*shlex.split(COMMANDS[name]), "--server", server.url)
    expected = next((code for start, code in CODES.items() if name.startswith(start)), 0)
    assert code == expected, output
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("VGPU_GOLDEN") == "write":
        file.write_text(output)
    assert output == file.read_text()


def test_every_golden_file_is_of_a_command() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == COMMANDS.keys()
