"""The accounts of a card while containers use it, kept as the device plugin keeps them: regions and NVML's samples."""

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from limiter import launch
from vgpu.adapters.nvml.session import Nvml
from vgpu.domain.formats import region
from vgpu.domain.identifiers import CardUuid, ContainerName, PodUid
from vgpu.node.usage.gpu_time import GpuTime, Use

MAIN = ContainerName("main")
EVERY_S = 1.0


class Accounts:
    """Sums GPU seconds until the context is left.

    Args:
        containers: environment and pids of each container, by name.
    """

    def __init__(self, containers: Mapping[str, tuple[Mapping[str, str], tuple[int, ...]]]) -> None:
        self._containers = containers
        self._time = GpuTime()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._nvml = Nvml()
        self.gpu = self._nvml.gpus()[0].card.uuid

    def __enter__(self) -> Self:
        self._add()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        time.sleep(1.0)  # NVML's last samples come up to a second late
        self._add()
        self._nvml.__exit__(None, None, None)

    @property
    def seconds(self) -> dict[str, dict[str, float]]:
        """GPU seconds by account, then by container; `card` and `others` are of the whole card."""
        uses = {name: (PodUid(name), MAIN, self.gpu) for name in self._containers}
        return {
            "gpu": {name: self._time.containers.get(use, 0.0) for name, use in uses.items()},
            "sampled": {name: self._time.sampled.get(use, 0.0) for name, use in uses.items()},
            "card": {"card": self._time.card.get(self.gpu, 0.0), "others": self._time.others.get(self.gpu, 0.0)},
        }

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._add()

    def _add(self) -> None:
        owners = {
            (self.gpu, pid): (PodUid(name), MAIN, self.gpu)
            for name, (_, pids) in self._containers.items()
            for pid in pids
        }
        turns = {(PodUid(name), MAIN, self.gpu): _turn_seconds(env) for name, (env, _) in self._containers.items()}
        samples = self._nvml.busy_samples(self._time.since([self.gpu]))
        outside: dict[tuple[CardUuid, int], Use | None] = {
            (gpu, pid): None for gpu, sample in samples.items() for pid in sample.pids
        }
        self._time.add(samples, outside | owners, turns, time.time_ns() // 1000)


def _turn_seconds(env: Mapping[str, str]) -> float:
    path = env.get(launch.REGION_ENV)
    if path is None:
        return 0.0
    return sum(card.gpu_ns for card in region.decode(Path(path).read_bytes()).cards) / 1e9
