"""The file with the weights: read, or refused by the name of the field."""

from dataclasses import asdict
from pathlib import Path

import pytest

from extender.state import weights_file
from vgpu.domain.cards.links import LinkWeights
from vgpu.domain.errors import UnusableSetting
from vgpu.placement.weights import PolicyWeights, Weights

ROOT = Path(__file__).parents[3]


def written(folder: Path, text: str) -> Path:
    (folder / "weights.toml").write_text(text)
    return folder / "weights.toml"


def test_what_the_file_does_not_name_has_its_default(tmp_path: Path) -> None:
    found = weights_file.read(written(tmp_path, "[fragmentation]\ntolerance = 0\nscarcity = 1\nhalf-life = 100\n"))
    assert found == PolicyWeights(Weights(tolerance=0, scarcity=1, half_life=100))
    found = weights_file.read(written(tmp_path, "[topology]\nsame-numa = 60"))
    assert found == PolicyWeights(topology=LinkWeights(same_numa=60))
    assert weights_file.read(written(tmp_path, "")) == weights_file.read(None) == PolicyWeights()


def test_what_is_printed_can_be_read_again(tmp_path: Path) -> None:
    chosen = PolicyWeights(Weights(1, 2, 0.5, 3, 4, 5), LinkWeights(6, 7, 8))
    tables = [table.split(": ") for table in weights_file.effective(chosen).split("; ")]
    text = "\n".join(f"[{table}]\n" + weights.replace(", ", "\n") for table, weights in tables)
    assert weights_file.read(written(tmp_path, text)) == chosen


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[fragmentation]\ntolerance = -1", "fragmentation.tolerance: must be a whole number from 0 to 500"),
        ("[fragmentation]\nscarcity = nan", "fragmentation.scarcity: must be a number from 0 to 4"),
        ("[fragmentation]\nscarcity = '1'", "fragmentation.scarcity"),
        ("[fragmentation]\nleft = true", "fragmentation.left"),
        ("[fragmentation]\ncovered = 95.0", "fragmentation.covered"),
        ("[fragmentation]\nhalf_life = 3", "'fragmentation.half_life': unknown"),
        ("[binpack]", "'binpack': unknown; there are fragmentation, topology"),
        ("[topology]\nnvlink = 1001", "topology.nvlink: must be a whole number from 0 to 1000"),
        ("[topology]\nsame_numa = 1", "'topology.same_numa': unknown; topology has nvlink, same-numa, other-numa"),
        ("fragmentation = 3", "fragmentation: must be a table"),
        ("[", "weights.toml"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, field: str) -> None:
    with pytest.raises(UnusableSetting, match=field.replace("[", "\\[")):
        weights_file.read(written(tmp_path, text))


def test_every_weight_has_bounds_and_a_row_in_the_guide() -> None:
    defaults = asdict(PolicyWeights())
    assert {table: list(bounds) for table, bounds in weights_file.BOUNDS.items()} == {
        table: list(weights) for table, weights in defaults.items()
    }
    rows = [
        f"| `{name}` | {defaults[table][name.replace('-', '_')]} |"
        for table in defaults
        for name in weights_file.names(table)
    ]
    guide = (ROOT / "docs" / "guide.md").read_text()
    assert [row for row in rows if row not in guide] == []
