"""What the distribution installs: which importable packages, and how many other distributions. Part of `make check`."""

import tomllib
from importlib import metadata
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
IMPORTABLE = {"vgpu", "extender", "webhook", "deviceplugin", "limiter"}
NEVER_INSTALLED = {"simgpu", "cluster", "images", "release"}
MOST_DISTRIBUTIONS = 12


def test_only_five_packages_are_importable() -> None:
    """Any other top-level name may be another project's package, which installing ours would overwrite."""
    packed = {file.distribution_path.partition("/")[0] for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert packed == IMPORTABLE, f"the wheel installs {sorted(packed)} instead of {sorted(IMPORTABLE)}"


def test_every_installed_package_says_that_it_has_types() -> None:
    packed = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {f"{package}/py.typed" for package in IMPORTABLE} <= packed


def test_every_package_of_the_checkout_is_one_of_the_five_or_never_installed() -> None:
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")} - NEVER_INSTALLED
    assert found == IMPORTABLE, f"top-level packages here: {sorted(found)}; put new ones below one of the five"


def test_without_extras_few_distributions_are_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = closure([Requirement(text) for text in project["dependencies"]])
    installed = sorted({project["name"], *needed})
    assert len(installed) <= MOST_DISTRIBUTIONS, f"pip install vgpushare brings {len(installed)}: {installed}"
    assert "rich" in installed


def closure(requirements: list[Requirement]) -> set[str]:
    """Names of these distributions and all that they need, as they are installed here."""
    found: set[str] = set()
    while requirements:
        requirement = requirements.pop()
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        requirements += [Requirement(text) for text in metadata.requires(requirement.name) or ()]
    return found
