"""A namespace of a cluster with real cards: pods that run this machine's Python."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

import rich

from cluster.gpu_machine import image
from cluster.programs import binaries
from tests.e2e.pod_namespace import Document, PodNamespace, Share, container, pod
from vgpu.domain import names

PROGRAMS = Path(__file__).parent / "programs"
STARTED_S = 60  # PyTorch takes seconds to import, and JAX to compile


class GpuNamespace(PodNamespace):
    """One Kubernetes namespace of a cluster with real cards."""

    def create_program(
        self, name: str, *command: str, annotations: Mapping[str, str] | None = None, **share: Unpack[Share]
    ) -> None:
        """Create a pod that runs a program of the folder `programs` once."""
        self.create(once(python_pod(name, *command, annotations=annotations, **share)))

    def printed(self, name: str, within_s: float = STARTED_S) -> list[dict[str, Any]]:
        """Wait for the end of a program, and return the JSON lines that it printed; a failed one fails the test."""
        phase = self.until(lambda: ended(self.phases()[name]), f"{name} has ended", within_s)
        text = self.log(name)
        assert phase == "Succeeded", f"{name}: {phase}\n{text[-4000:]}"
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def last(self, name: str, within_s: float = STARTED_S) -> dict[str, Any]:
        """Wait for the end of a program, and return its last JSON line."""
        return self.printed(name, within_s)[-1]

    def log(self, name: str) -> str:
        """Return what a pod has printed."""
        return self.cluster.kubectl("logs", "-n", self.name, name)

    def has_printed(self, name: str, text: str, within_s: float = STARTED_S) -> None:
        """Wait until a program has printed `text`; one that fails, fails the test at once."""

        def check() -> bool:
            phase = self.phases()[name]
            printed = "" if phase == "Pending" else self.log(name)
            assert phase != "Failed", f"{name}: {phase}\n{printed[-4000:]}"
            return text in printed

        self.until(check, f"{name} prints {text}", within_s)


def ended(phase: str) -> str | None:
    return phase if phase in ("Succeeded", "Failed") else None


def python_pod(
    name: str, *command: str, annotations: Mapping[str, str] | None = None, **share: Unpack[Share]
) -> Document:
    """A pod of this machine's Python; `command`: a program's name and its arguments."""
    program, *arguments = command
    folders = [PROGRAMS, *image.folders()]
    made = container(command=(str(image.interpreter()), str(PROGRAMS / program), *arguments), **share)
    made["image"] = image.PYTHON
    named = {f"folder-{number}": str(folder) for number, folder in enumerate(folders)}
    made["volumeMounts"] = [{"name": volume, "mountPath": path, "readOnly": True} for volume, path in named.items()]
    made["env"] = [{"name": "HOME", "value": "/tmp"}, {"name": "PYTHONUNBUFFERED", "value": "1"}]
    made["env"].append({"name": "PATH", "value": f"{image.CUDA}/bin:/usr/bin:/bin"})  # JAX calls ptxas
    manifest = pod(name, made, annotations=annotations)
    manifest["spec"]["volumes"] = [{"name": volume, "hostPath": {"path": path}} for volume, path in named.items()]
    return manifest


def with_our_modules(manifest: Document) -> Document:
    """The pod, with vgpushare's own modules, and the packages that they need, for its Python."""
    folders = [str(binaries.REPOSITORY), str(Path(rich.__file__).parents[1])]
    (made,) = manifest["spec"]["containers"]
    for number, folder in enumerate(folders):
        made["volumeMounts"].append({"name": f"modules-{number}", "mountPath": folder, "readOnly": True})
        manifest["spec"]["volumes"].append({"name": f"modules-{number}", "hostPath": {"path": folder}})
    made["env"].append({"name": "PYTHONPATH", "value": ":".join(folders)})
    return manifest


def cards(namespace: PodNamespace) -> list[Document]:
    """The cards that the node's GPUNode lists, by index."""
    (node,) = namespace.cluster.api.get(names.GPUNODES_PATH)["items"]
    found: list[Document] = node["status"]["cards"]
    return sorted(found, key=lambda card: int(card["index"]))


def first_card(namespace: PodNamespace) -> Document:
    return cards(namespace)[0]


def on_first_card(namespace: PodNamespace) -> dict[str, str]:
    """The annotation that keeps a pod on the first card, also where the machine has several."""
    return {names.USE_GPU_UUID: str(first_card(namespace)["uuid"])}


def once(manifest: Document) -> Document:
    """The pod, never restarted."""
    return manifest | {"spec": manifest["spec"] | {"restartPolicy": "Never"}}


def used_mib() -> dict[int, int]:
    """MiB of cards that each process of the machine uses, by its PID, as NVML says outside of every container."""
    printed = nvidia_smi("--query-compute-apps=pid,used_memory")
    pairs = [line.split(",") for line in printed.splitlines() if line.strip()]
    return {int(pid): int(mib) for pid, mib in pairs}


def of_card(uuid: str, figure: str) -> int:
    """A figure of a card, such as memory.used in MiB, as NVML says outside of every container."""
    return int(nvidia_smi("-i", uuid, f"--query-gpu={figure}"))


def nvidia_smi(*arguments: str) -> str:
    """Run nvidia-smi on the machine, and return its figures without heads and units."""
    command = ["nvidia-smi", *arguments, "--format=csv,noheader,nounits"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
