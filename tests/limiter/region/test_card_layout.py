"""vgpu.domain.formats.region reads each field of a card's row from the place that `struct region_card` gives it."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from tests.limiter.region import written_region
from vgpu.domain.formats import region
from vgpu.domain.formats.region import CardUse, UsageWindow

IN_C = {
    "used_bytes": "used",
    "limit_bytes": "limit",
    "peak_bytes": "peak",
    "refusals": "refusals",
    "context_bytes": "context_bytes",
    "orphaned_bytes": "orphaned",
    "overdraft_used_ns": "overdraft_used",
    "overdraft_at_ns": "overdraft_at",
    "spilled_bytes": "spilled",
    "spills": "spills",
    "busy_until_ns": "busy_until",
    "gpu_ns": "gpu_ns",
    "throttled_ns": "throttled_ns",
    "delayed_launches": "delayed_launches",
    "longest_wait_us": "longest_wait_us",
}
WINDOWS = ("second", "ten_seconds")
OTHERS = ("gpu", *WINDOWS, "activity")


def expected() -> CardUse:
    values: dict[str, Any] = {name: 100 + place for place, name in enumerate(IN_C)}
    values |= {name: UsageWindow(*range(200 + 4 * place, 204 + 4 * place)) for place, name in enumerate(WINDOWS)}
    return CardUse(written_region.GPU, **values)


def assignments() -> list[str]:
    wanted = expected()
    lines = [f"region.cards[0].{in_c} = {getattr(wanted, name)};" for name, in_c in IN_C.items()]
    for place, name in enumerate(WINDOWS):
        window = getattr(wanted, name)
        values = f"{window.begun_ns}, {window.gpu_ns}, {window.permille}, {window.took_ms}"
        lines.append(f"region.cards[0].windows[{place}] = (struct region_window){{{values}}};")
    return lines


def test_every_field_is_read_from_its_place(tmp_path: Path) -> None:
    assert {field.name for field in fields(CardUse)} == {*IN_C, *OTHERS}
    assert region.decode(written_region.written(tmp_path, assignments())).cards == (expected(),)
