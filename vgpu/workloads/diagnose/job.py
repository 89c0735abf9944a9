"""Whether the pods of one job run under several network switches, from the JSON of `kubectl get pods,nodes -o json`."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from vgpu.domain.errors import MalformedError
from vgpu.domain.formats.json_depth import shallow
from vgpu.workloads.diagnose.catalogue import FindingCode
from vgpu.workloads.diagnose.finding import ProgramFinding

MAX_BYTES: Final = 256 << 20
_JOB_LABELS: Final = (
    "batch.kubernetes.io/job-name",
    "job-name",
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "volcano.sh/job-name",
)
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def check(data: bytes, switch_label: str) -> list[ProgramFinding]:
    """Return a finding for each job whose pods run under several switches. Raises MalformedError.

    `switch_label` is the label of nodes that names their switch. Nodes without it, and objects that are not as the API
    server writes them, count for nothing.
    """
    objects = list(_objects(data))
    switches = {name: value for kind, name, node in objects if kind == "Node" and (value := _label(node, switch_label))}
    if not switches:
        raise MalformedError(f"no node has the label {switch_label}; give the label that names a node's switch")
    used: dict[str, set[str]] = {}
    for kind, _, pod in objects:
        node = _at(pod, "spec", "nodeName")
        if kind == "Pod" and (job := _job(pod)) and node in switches and _at(pod, "status", "phase") not in _ENDED:
            used.setdefault(job, set()).add(switches[str(node)])
    return [
        ProgramFinding(
            FindingCode.JOB_OVER_SWITCHES, (), f"{job}: under {len(found)} switches: {', '.join(sorted(found)[:8])}"
        )
        for job, found in sorted(used.items())
        if len(found) > 1
    ]


def _objects(data: bytes) -> Iterator[tuple[str, str, object]]:
    if len(data) > MAX_BYTES:
        raise MalformedError(f"more than {MAX_BYTES >> 20} MiB")
    try:
        items = _at(json.loads(shallow(data)), "items")
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"not JSON: {error}") from error
    if not isinstance(items, list):
        raise MalformedError("items: missing; write the file by `kubectl get pods,nodes -A -o json`")
    for item in items:
        yield str(_at(item, "kind")), str(_at(item, "metadata", "name")), item


def _job(pod: object) -> str:
    names = [str(value) for label in _JOB_LABELS if (value := _label(pod, label))]
    return f"{_at(pod, 'metadata', 'namespace')}/{names[0]}" if names else ""


def _label(obj: object, name: str) -> str:
    value = _at(obj, "metadata", "labels", name)
    return value if isinstance(value, str) else ""


def _at(value: object, *path: str) -> object:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
