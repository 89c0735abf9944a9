"""The fake of nvidia-container-runtime gives a container the cards that its environment names, and no others."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import ociruntime
from simgpu import state_directory

DRIVER = Path("/driver")
CARDS = state_directory.make_cards(3)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    state_directory.write_cards(tmp_path / "state", CARDS)
    return tmp_path


def run(bundle: Path, *environment: str) -> dict[str, str]:
    """Mounts of the container after the runtime ran, source by destination."""
    spec = {"process": {"env": ["PATH=/bin", *environment]}, "mounts": [{"source": "proc", "destination": "/proc"}]}
    (bundle / "config.json").write_text(json.dumps(spec))
    ociruntime.main(bundle, DRIVER, bundle / "state")
    mounts = json.loads((bundle / "config.json").read_text())["mounts"]
    return {mount["destination"]: mount["source"] for mount in mounts}


def test_a_container_with_named_cards_gets_the_driver_and_their_list(bundle: Path) -> None:
    mounts = run(bundle, f"NVIDIA_VISIBLE_DEVICES={CARDS[2].uuid},{CARDS[0].uuid}")
    assert mounts["/usr/lib/x86_64-linux-gnu/libcuda.so.1"] == "/driver/libcuda.so.1"
    assert mounts["/run/simgpu"] == str(bundle / "state")
    assert Path(mounts["/run/simgpu-visible"]).read_text().split() == [CARDS[2].uuid, CARDS[0].uuid]
    assert mounts["/proc"] == "proc"


@pytest.mark.parametrize("environment", [[], ["NVIDIA_VISIBLE_DEVICES="], ["NVIDIA_VISIBLE_DEVICES=void"]])
def test_a_container_without_cards_is_not_changed(bundle: Path, environment: list[str]) -> None:
    assert run(bundle, *environment) == {"/proc": "proc"}


def test_all_is_every_card_of_the_node(bundle: Path) -> None:
    listing = Path(run(bundle, "NVIDIA_VISIBLE_DEVICES=all")["/run/simgpu-visible"])
    assert listing.read_text().split() == [card.uuid for card in CARDS]


@given(st.lists(st.sampled_from([card.uuid for card in CARDS]), min_size=1, unique=True), st.lists(st.text()))
def test_the_last_value_of_the_variable_counts(named: list[str], others: list[str]) -> None:
    environment = [*others, "NVIDIA_VISIBLE_DEVICES=GPU-other", "NVIDIA_VISIBLE_DEVICES=" + ",".join(named), "X=1"]
    assert ociruntime.visible(environment) == named
