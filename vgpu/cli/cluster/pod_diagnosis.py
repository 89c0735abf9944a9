"""`kubectl vgpu diagnose POD`: runs `vgpu diagnose --live` in the device plugin's pod on the pod's node.

Only there NVML, /proc and all regions of the node can be read. `kubectl exec` does the rest with the user's own rights:
to get the pod, to list the device plugin's pods, and to exec into them, which administrators have.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from vgpu.cli.failure import ANSWER_IS_NO, NO_ANSWER, NOT_FOUND, WRONG_USAGE, CommandFailed
from vgpu.domain import object_names

PLUGIN_LABEL: Final = "app.kubernetes.io/name=vgpu-deviceplugin"
PLUGIN_CONTAINER: Final = "deviceplugin"
STATE: Final = "/var/lib/vgpu"
_PYTHON: Final = ("python", "-m", "vgpu.cli")
_TIMEOUT_S: Final = 60  # beside the time for which the pod is watched
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_ANSWERS: Final = frozenset({0, ANSWER_IS_NO, WRONG_USAGE, NOT_FOUND})


class DiagnosisApi(Protocol):
    """What is asked of the API server."""

    def get(self, path: str, query: dict[str, str] | None = None) -> Any:
        """GET an object. Raises CommandFailed."""


@dataclass(frozen=True, slots=True)
class PodAddress:
    """A pod, checked: both names can stand in a path and in a command line."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str, namespace: str) -> "PodAddress":
        """Read POD or NAMESPACE/POD. Raises CommandFailed."""
        named, _, name = text.rpartition("/")
        found = cls(named or namespace, name)
        if not object_names.is_label(found.namespace):
            raise CommandFailed(f"{found.namespace[:60]!r} is no name of a namespace", WRONG_USAGE)
        if not object_names.is_subdomain(found.name):
            raise CommandFailed(f"{found.name[:60]!r} is no name of a pod", WRONG_USAGE)
        return found


def plugin_beside(api: DiagnosisApi, pod: PodAddress, admin_namespace: str) -> str:
    """Return the name of the device plugin's pod on the node of a running pod. Raises CommandFailed."""
    found = api.get(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}")
    node, phase = found.get("spec", {}).get("nodeName"), found.get("status", {}).get("phase")
    if not node or phase in _ENDED:
        raise CommandFailed(f"{pod.namespace}/{pod.name} does not run; see vgpu explain", ANSWER_IS_NO)
    query = {"labelSelector": PLUGIN_LABEL, "fieldSelector": f"spec.nodeName={node}"}
    listed = api.get(f"/api/v1/namespaces/{admin_namespace}/pods", query).get("items", [])
    running = [plugin["metadata"]["name"] for plugin in listed if plugin.get("status", {}).get("phase") == "Running"]
    if not running:
        text = (
            f"no pod of the device plugin runs on node {node} in namespace {admin_namespace}; see --admin-namespace.\n"
            f"  Where it runs as a process of the node, as in `make cluster`, run there, as its user: "
            f"vgpu diagnose --live {pod.namespace}/{pod.name}/ --state DIR, with the device plugin's --state-dir"
        )
        raise CommandFailed(text, NOT_FOUND)
    return str(running[0])


def command(pod: PodAddress, plugin: str, admin_namespace: str, seconds: float, output: str) -> list[str]:
    """Return the command line of kubectl, without the options that say which cluster."""
    watch = (*_PYTHON, "diagnose", "--live", f"{pod.namespace}/{pod.name}/", "--state", STATE)
    where = ("exec", "-n", admin_namespace, plugin, "-c", PLUGIN_CONTAINER, "--")
    return [*where, *watch, "--seconds", f"{seconds:g}", "-o", output]


def run(kubectl: Sequence[str], arguments: Sequence[str], seconds: float) -> tuple[str, int]:
    """Run kubectl; return what the device plugin's pod printed, and its exit code. Raises CommandFailed."""
    try:
        done = subprocess.run(
            [*kubectl, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds + _TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise CommandFailed(f"{kubectl[0]}: command not found; install kubectl", NO_ANSWER) from error
    except subprocess.TimeoutExpired as error:
        raise CommandFailed("kubectl exec does not answer", NO_ANSWER) from error
    text = done.stdout.decode(errors="replace")
    if done.returncode not in _ANSWERS or (done.returncode and not text):
        said = _last_line(done.stderr.decode(errors="replace"))
        raise CommandFailed(said or "kubectl exec failed", done.returncode if said.startswith("--live") else NO_ANSWER)
    return text, done.returncode


def kubectl_command(context: str | None, kubeconfig: Path | None) -> list[str]:
    """Return kubectl with the options that say which cluster."""
    chosen = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    return ["kubectl", *chosen, *([f"--context={context}"] if context else [])]


def _last_line(text: str) -> str:
    """Return the message on stderr: that of `vgpu` before kubectl's own, without the name of the command."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("vgpu ")]
    return (own or lines or [""])[-1].removeprefix("vgpu diagnose: ")[:500]
