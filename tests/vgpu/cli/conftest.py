"""A state directory with allocations of a test's choice."""

import fcntl
import json
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from limiter import launch, local_state
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.limits import Limits, uuid_bytes
from vgpu.domain.identifiers import CardUuid

GPU = CardUuid("GPU-8f3c2a10-1111-2222-3333-444455556666")
OTHER = CardUuid("GPU-9f3c2a10-1111-2222-3333-444455556666")
GIB = 1 << 30
MS = 1_000_000
CARD_AT, CARD_SIZE = 256, 256

Make = Callable[..., Path]


def card_bytes(
    gpu: str = GPU,
    *,
    used: int = 0,
    refusals: int = 0,
    gpu_ns: int = 0,
    throttled_ns: int = 0,
    delayed: int = 0,
    longest_us: int = 0,
    second: tuple[int, int, int, int] = (0, 0, 0, 0),
    ten_seconds: tuple[int, int, int, int] = (0, 0, 0, 0),
) -> bytes:
    """A card's row as limiter/src/common/region_layout.h lays it out."""
    row = bytearray(CARD_SIZE)
    struct.pack_into("<16sQQQQI", row, 0, uuid_bytes(CardUuid(gpu)), used, 0, used, refusals, 1)
    struct.pack_into("<QQII", row, 168, gpu_ns, throttled_ns, delayed, longest_us)
    struct.pack_into("<QQIIQQII", row, 208, *second, *ten_seconds)
    return bytes(row)


def write_cards(folder: Path, *rows: bytes) -> None:
    with (folder / "region").open("r+b") as file:
        file.seek(CARD_AT)
        file.write(b"".join(rows))


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="vgpu-"))
    local_state.ensure(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def make(home: Path) -> Iterator[Make]:
    """Create an allocation as `vgpu run` does, or, with a pod's name, as the device plugin does."""
    owners = []

    def make(
        name: str,
        *rows: bytes,
        wanted: Limits | None = None,
        command: str = "",
        pod: tuple[str, str, str] | None = None,
    ) -> Path:
        folder = home / "allocations" / name
        folder.mkdir()
        local_state.write_allocation(folder, wanted or launch.parse("8GiB", 30, None))
        write_cards(folder, *rows)
        if command:
            (folder / "command").write_text(command)
            owners.append((folder / "owner").open("w"))
            fcntl.flock(owners[-1], fcntl.LOCK_EX)
        if pod:
            holder = dict(zip(("namespace", "name", "container"), pod, strict=True))
            (folder / "record.json").write_text(json.dumps({"v": 1, "holder": holder}))
        return folder

    yield make
    for owner in owners:
        owner.close()


def limits_of(folder: Path) -> Limits:
    return limits.decode((folder / "limits").read_bytes())


assert len(card_bytes()) * region.MAX_CARDS + CARD_AT == region.SLOTS_AT
