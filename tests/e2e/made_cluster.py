"""Makes the cluster of a fixture, and shows its progress; which containerd it runs."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NoReturn, TypeVar

import pytest

from cluster import missing
from cluster.programs.containerd import ContainerdMajor
from tests import certificates

Made = TypeVar("Made")

RUNTIME = ContainerdMajor(os.environ.get("VGPU_E2E_CONTAINERD", ContainerdMajor.DEBIAN))  # of the clusters of all tests


@contextmanager
def make(config: pytest.Config, build: Callable[[], AbstractContextManager[Made]]) -> Iterator[Made]:
    """Run what `build` makes inside the block; where no cluster can run, the test is skipped, or fails under CI.

    The machine's certificates are trusted meanwhile: packages and programs are downloaded.
    """
    capture = config.pluginmanager.getplugin("capturemanager")
    with certificates.of_the_machine():
        try:
            with capture.global_and_fixture_disabled():
                built = build()
        except missing.Missing as lacking:
            _leave(str(lacking))
        with built as made:
            yield made


def _leave(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
