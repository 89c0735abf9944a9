"""The file with prices: read, or refused by the name of the field."""

from pathlib import Path

import pytest

from extender.history.reporting import prices
from vgpu.domain.errors import UnusableSetting


def written(folder: Path, text: str) -> Path:
    (folder / "prices.toml").write_text(text)
    return folder / "prices.toml"


def test_a_price_is_for_a_card_and_an_hour(tmp_path: Path) -> None:
    found = prices.read(written(tmp_path, 'currency = "EUR"\n[card-hour]\n"NVIDIA L4" = 0.72\n'))
    assert found.currency == "EUR"
    assert found.cost("NVIDIA L4", 1800) == pytest.approx(0.36)
    assert found.cost("NVIDIA H100", 1800) is None


def test_a_default_price_is_for_every_other_model(tmp_path: Path) -> None:
    found = prices.read(written(tmp_path, '[card-hour]\n"NVIDIA L4" = 1\ndefault = 2\n'))
    assert found.cost("NVIDIA H100", 3600) == 2.0


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("currency = 1", "currency"),
        ("[card-hour]\nL4 = -1", "card-hour.L4"),
        ("[card-hour]\nL4 = nan", "card-hour.L4"),
        ("[card-hour]\nL4 = true", "card-hour.L4"),
        ("card-hour = 3", "card-hour"),
        ("price = 3", "price"),
        ("[", "prices.toml"),
        ("a = " + "[" * 50_000, "prices.toml"),
        ("x = '" + "y" * (1 << 20) + "'", "longer than"),
    ],
)
def test_other_files_are_refused_by_the_name_of_the_field(tmp_path: Path, text: str, field: str) -> None:
    with pytest.raises(UnusableSetting, match=field):
        prices.read(written(tmp_path, text))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableSetting, match=r"none\.toml"):
        prices.read(tmp_path / "none.toml")
