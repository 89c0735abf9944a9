"""For how long each container has been idle: looks for its use in the regions and in NVML's samples."""

from collections.abc import Callable, Mapping
from typing import Final

from vgpu.adapters.nvml.records import BusySamples
from vgpu.domain.formats.region import CardUse
from vgpu.domain.identifiers import CardUuid, KubeletPodUid
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.usage import last_use
from vgpu.node.usage.gpu_time import Use
from vgpu.node.usage.last_use import ActiveProcesses, LastUse

UNKNOWN: Final[Mapping[Use, int]] = {}


class IdleTimes:
    """The idle time of each container on each of its cards. Call `look` every second."""

    def __init__(self, monotonic_ns: Callable[[], int]) -> None:
        """`monotonic_ns` returns CLOCK_MONOTONIC, which regions contain."""
        self._monotonic_ns = monotonic_ns
        self._last_use = LastUse()
        self._active = ActiveProcesses()
        self.ms: Mapping[Use, int] = UNKNOWN

    def look(
        self,
        held: Mapping[Use, CardUse | None],
        seconds: Mapping[Use, float],
        samples: Mapping[CardUuid, BusySamples],
        owners: Mapping[tuple[CardUuid, int], Use | None],
        pods: Mapping[KubeletPodUid, BoundPod],
    ) -> None:
        """Look for use, and update `ms`, which lacks containers of which it is unknown.

        Args:
            held: the containers on their cards, with the region's account.
            seconds: GPU seconds of containers so far.
            samples: NVML's since the last look.
            owners: the containers of processes, by card and pid, as far as they are known; None for one without.
            pods: of this node, by UID as the kubelet writes it.
        """
        now_ns = self._monotonic_ns()
        active = self._active.take(samples)
        used = {owner for process in active if (owner := owners.get(process)) is not None}
        young_on = self._active.young_on(active, owners.keys(), now_ns)
        synthetic = {pod.uid for pod in pods.values() if pod.is_synthetic}
        seen = last_use.evidence(held, seconds, samples, used, young_on)
        self._last_use.look(
            {use: found.without_use() if use[0] in synthetic else found for use, found in seen.items()}, now_ns
        )
        self.ms = self._last_use.idle_ms()
