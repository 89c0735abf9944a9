"""What the plugin is built over: the driver, the API server, the machine's processes, time. A test passes fakes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.node.cards import health
from vgpu.node.processes import process_watch
from vgpu.node.processes.process_watch import Processes
from vgpu.node.usage import sampler


@dataclass(frozen=True, slots=True)
class PluginClocks:
    """Time and randomness, which only `__main__` reads.

    Attributes:
        monotonic: seconds that never go back.
        wall: seconds since 1970.
        now: date and time with the time zone.
        new_id: returns a name that never repeats.
        random: returns a random number from 0 to 1.
    """

    monotonic: Callable[[], float]
    wall: Callable[[], float]
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    random: Callable[[], float]


class PluginDriver(health.HealthDriver, process_watch.ProcessDriver, sampler.UsageDriver, Protocol):
    """What is asked of NVML."""

    def driver_version(self) -> str:
        """Return the driver's version. Raises NvmlError."""
        ...


@dataclass(frozen=True, slots=True)
class PluginSurroundings:
    """The systems outside of the plugin.

    Attributes:
        driver: NVML.
        processes: of the machine.
        client: of the API server.
        clocks: time and randomness.
        environment: where programs and libraries of the driver may be besides the usual places.
    """

    driver: PluginDriver
    processes: Processes
    client: KubernetesClient
    clocks: PluginClocks
    environment: Mapping[str, str]
