"""On a real GPU that another process has filled (`make gpu`)."""

import json

import pytest

from tests.gpu import trial

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


def test_on_a_full_card_the_spill_policy_uses_managed_memory() -> None:
    output = trial.run("spill")
    assert json.loads(output)["wrong"] == [], output
