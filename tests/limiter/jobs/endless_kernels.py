"""Finds kernels that do not end as the device plugin does: each second, by NVML's samples and the regions."""

import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from simgpu.session import ProbeSession
from simgpu.world import World
from tests.arbiter.conftest import Container as Folder
from tests.vgpu.adapters.test_nvml import SESSION, Session
from vgpu.adapters.nvml.records import BusySamples
from vgpu.domain.formats import region
from vgpu.domain.formats.region import CardUse
from vgpu.domain.identifiers import CardUuid, ContainerName, PodUid
from vgpu.node.usage.gpu_time import Use
from vgpu.node.usage.long_kernels import KernelLengths


@dataclass
class EndlessKernels:
    """Containers by name, each with the sessions of its processes."""

    world: World
    held: Mapping[str, tuple[Folder, Iterable[ProbeSession]]]
    sampled_us: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lengths = KernelLengths()
        self.nvml = Session(self.world.state, self.world.start(sys.executable, "-c", SESSION))
        self.nvml("globals().update(nvml=Nvml())")

    def found_within(self, seconds: float) -> list[tuple[str, CardUuid]]:
        """Names and cards of the containers of which a kernel does not end, as soon as there are any."""
        end = time.monotonic() + seconds
        while not self.lengths.endless_s and time.monotonic() < end:
            time.sleep(1)
            self.lengths.look(self._accounts(), self._samples(), self._owners(), time.monotonic_ns())
        return [(uid, gpu) for uid, _, gpu in self.lengths.endless_s]

    def _accounts(self) -> dict[Use, CardUse | None]:
        return {
            _use(name, card.gpu): card
            for name, (folder, _) in self.held.items()
            for card in region.decode((folder.folder / "region").read_bytes()).cards
        }

    def _owners(self) -> dict[tuple[CardUuid, int], Use | None]:
        return {
            (card.uuid, session.process.pid): _use(name, card.uuid)
            for name, (_, sessions) in self.held.items()
            for session in sessions
            for card in self.world.cards
        }

    def _samples(self) -> dict[CardUuid, BusySamples]:
        found = {}
        for gpu in (card.uuid for card in self.world.cards):
            read = self.nvml(f"asdict(nvml.busy_samples({{{gpu!r}: {self.sampled_us.get(gpu, 0)}}})[{gpu!r}])")
            processes = tuple((pid, at, share) for pid, at, share in read["processes"])
            self.sampled_us[gpu] = max((at for _, at, _ in processes), default=self.sampled_us.get(gpu, 0))
            found[gpu] = BusySamples(processes=processes)
        return found


def _use(name: str, gpu: CardUuid) -> Use:
    return PodUid(name), ContainerName("main"), gpu
