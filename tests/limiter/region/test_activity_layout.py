"""vgpu.domain.formats.region reads each counter of `struct region_activity` from the place that the header gives it."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from tests.limiter.region import written_region
from vgpu.domain.formats import region
from vgpu.domain.formats.region import Activity, Wait

WAITS = {
    "turn": "REGION_WAIT_TURN",
    "share": "REGION_WAIT_SHARE",
    "drain": "REGION_WAIT_DRAIN",
    "queued": "REGION_WAIT_QUEUED",
}
IN_C = {"last_launch_at_ns": "last_launch_at", "last_kernel_end_at_ns": "last_kernel_end_at"}  # others have one name
COUNTERS = [field.name for field in fields(Activity) if field.name not in WAITS]


def expected() -> Activity:
    values: dict[str, Any] = {name: Wait(100 + 2 * place, 101 + 2 * place) for place, name in enumerate(WAITS)}
    values |= {name: 1000 + place for place, name in enumerate(COUNTERS)}
    return Activity(**values)


def assignments() -> list[str]:
    wanted = expected()
    waits = [
        f"region.activity[0].waits[{cause}].ns = {getattr(wanted, name).ns}; "
        f"region.activity[0].waits[{cause}].count = {getattr(wanted, name).count};"
        for name, cause in WAITS.items()
    ]
    return [
        *waits,
        *(f"region.activity[0].{IN_C.get(name, name)} = {getattr(wanted, name)};" for name in COUNTERS),
    ]


def test_every_counter_is_read_from_its_place(tmp_path: Path) -> None:
    (card,) = region.decode(written_region.written(tmp_path, assignments())).cards
    assert card.gpu == written_region.GPU
    assert card.activity == expected()
