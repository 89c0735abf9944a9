"""On a real GPU: memory that outlives the contexts of a process (`make gpu`)."""

import json

import pytest

from tests.gpu import trial

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


def test_memory_of_the_device_stays_charged_and_spare_references_cost_little() -> None:
    output = trial.run("context_ends")
    assert json.loads(output)["wrong"] == [], output
