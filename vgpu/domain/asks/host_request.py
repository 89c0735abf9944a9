"""What a pod requests of its node's CPU and memory, as kube-scheduler counts it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from vgpu.domain.json_types import Json
from vgpu.domain.quantity import MIB

MAX_CPU_MILLI: Final = 1 << 30  # a million CPUs; sums of 10,000 pods do not overflow 64 bits
MAX_MEMORY_MIB: Final = 1 << 30
CPU: Final = "cpu"
MEMORY: Final = "memory"
_NAMES: Final = frozenset({CPU, MEMORY})

# k8s.io/apimachinery/pkg/api/resource.Quantity
_QUANTITY: Final = re.compile(
    r"(\d{1,19})(?:\.(\d{0,9}))?(?:[eE]([+-]?\d{1,2})|(n|u|m|k|[MGTPE]|[KMGTPE]i)?)", re.ASCII
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@dataclass(frozen=True, slots=True)
class HostRequest:
    """CPU in thousandths, and memory in MiB."""

    cpu_milli: int = 0
    memory_mib: int = 0

    def __add__(self, other: "HostRequest") -> "HostRequest":
        return HostRequest(self.cpu_milli + other.cpu_milli, self.memory_mib + other.memory_mib)

    def __sub__(self, other: "HostRequest") -> "HostRequest":
        return HostRequest(self.cpu_milli - other.cpu_milli, self.memory_mib - other.memory_mib)

    def larger(self, other: "HostRequest") -> "HostRequest":
        """Return the larger of each figure."""
        return HostRequest(max(self.cpu_milli, other.cpu_milli), max(self.memory_mib, other.memory_mib))


NOTHING: Final = HostRequest()


def of_pod(spec: Json) -> HostRequest:
    """Read a pod's `spec`: the larger of each init container's phase and the containers', and the pod's overhead.

    Sidecars run in every later phase. Amounts that cannot be read count as 0: they only rank nodes.
    Source: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/
    """
    sidecars, most = NOTHING, NOTHING
    for container in _containers(spec.get("initContainers")):
        asked = amounts(container.get("resources"))
        if container.get("restartPolicy") == "Always":
            sidecars += asked
            most = most.larger(sidecars)
        else:
            most = most.larger(sidecars + asked)
    apps = sum((amounts(app.get("resources")) for app in _containers(spec.get("containers"))), sidecars)
    return most.larger(apps) + _read(spec.get("overhead"))


def amounts(resources: Any) -> HostRequest:
    """Read a container's resources: of what it does not request its limit counts, as the API server fills it in."""
    if not isinstance(resources, Mapping):
        return NOTHING
    limits, requests = resources.get("limits"), resources.get("requests")
    return _read(requests, limits if isinstance(limits, Mapping) else {})


def of_node(allocatable: Json) -> HostRequest:
    """Read a node's allocatable CPU and memory."""
    return _read(allocatable)


@lru_cache(maxsize=1 << 12)
def thousandths(text: str) -> int:
    """Read a Quantity in thousandths of its unit, rounded up; 0 where it cannot be read."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return 0
    digits, fraction, exponent, suffix = match.groups()
    fraction = fraction or ""
    number, places = int(digits + fraction), len(fraction)
    if suffix in _BINARY:
        return int(-(-(number << _BINARY[suffix]) * 1000 // 10**places))
    power = (int(exponent) if exponent else _DECIMAL[suffix or ""]) + 3 - places
    return int(number * 10**power if power >= 0 else -(-number // 10**-power))


def _read(found: Any, default: Json = MappingProxyType({})) -> HostRequest:
    known = found if isinstance(found, Mapping) else {}
    if _NAMES.isdisjoint(known) and _NAMES.isdisjoint(default):
        return NOTHING
    cpu, memory = (thousandths(str(known.get(name, default.get(name, 0)))[:32]) for name in (CPU, MEMORY))
    return HostRequest(min(cpu, MAX_CPU_MILLI), min(-(-memory // (1000 * MIB)), MAX_MEMORY_MIB))


def _containers(containers: Any) -> Sequence[Json]:
    return containers if isinstance(containers, list) else ()
