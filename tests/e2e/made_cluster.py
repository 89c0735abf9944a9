"""Makes the cluster of a fixture, and shows its progress."""

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

from cluster import missing

Made = TypeVar("Made")


def make(config: pytest.Config, build: Callable[[], Made]) -> Made:
    """Return what `build` makes; where no cluster can run, the test is skipped, or fails under CI."""
    capture = config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            return build()
    except missing.Missing as lacking:
        if os.environ.get("CI"):
            pytest.fail(str(lacking), pytrace=False)
        pytest.skip(str(lacking))
