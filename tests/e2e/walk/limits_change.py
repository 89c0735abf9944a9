"""New limits of running containers: what `vgpu set` is told, and which limits the views are to show from then on."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cluster.programs import binaries
from tests.e2e.monitor.findings import Finding
from tests.e2e.monitor.part_processes import root
from tests.e2e.walk.plan import NewLimits
from tests.e2e.walk.walk_cluster import SetMemory, WalkCluster
from vgpu.domain.errors import MalformedError
from vgpu.domain.formats import limits
from vgpu.domain.formats.limits import Limits
from vgpu.node.containers import allocations
from vgpu.node.containers.allocations import Holder

_MIB = 1 << 20


class _Held(NamedTuple):
    """An allocation of a pod: its ID, its holder, and the folder of its node's state."""

    id: str
    holder: Holder
    state: Path

    def limits(self) -> Limits | None:
        """Return the limits in force; None where the allocation is gone."""
        with contextlib.suppress(OSError):
            return limits.decode((self.state / "allocations" / self.id / "limits").read_bytes())
        return None


def change(cluster: WalkCluster, wanted: NewLimits) -> Iterator[Finding | None]:
    """Change the limits of a pod's containers; yield None for each that has them, a finding for each that has not."""
    for held in list(_allocations(cluster, wanted.pod)):
        former = held.limits()
        if former is not None and all(card.memory_bytes is not None for card in former.cards):  # not whole cards
            yield from _changed(cluster, held, former, wanted)


def _allocations(cluster: WalkCluster, pod: str) -> Iterator[_Held]:
    """Yield the allocations of a pod on all nodes, of containers whose limits are written."""
    for node in cluster.nodes:
        state = root(node) / "var/lib/vgpu"
        for path in state.glob("allocations/*/record.json"):
            with contextlib.suppress(OSError, MalformedError):
                record = allocations.decode(path.read_bytes())
                if record.is_proven and record.holder and "/".join(record.holder.key) == pod:
                    yield _Held(record.id, record.holder, state)


def _changed(cluster: WalkCluster, held: _Held, former: Limits, wanted: NewLimits) -> Iterator[Finding | None]:
    key = wanted.pod, held.holder.container
    (mib,) = {(card.memory_bytes or 0) // _MIB for card in former.cards}  # equal on all cards of a container
    given = cluster.given_mib(*key, mib)
    now = max(1, given * wanted.memory_percent // 100)
    cluster.set_memory[key] = SetMemory(given, now)
    printed = _vgpu_set(held, now, wanted.cores)
    found = held.limits()
    if found is None:
        return
    is_set = all(card.memory_bytes == now * _MIB and wanted.cores in (None, card.cores) for card in found.cards)
    yield None if is_set else Finding("vgpu set changed no limits", f"{wanted}: {printed}: {found}", wanted.pod)


def _vgpu_set(held: _Held, mib: int, cores: int | None) -> str:
    command = [sys.executable, "-m", "vgpu.cli", "set", held.id, "--state", str(held.state), "--gpu-mem", f"{mib}Mi"]
    command += ["--gpu-cores", str(cores)] if cores is not None else []
    done = subprocess.run(
        command, cwd=binaries.REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return f"{done.returncode}: {done.stdout[-300:]}"
