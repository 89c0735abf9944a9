"""Which pods the walk expects to be listed as waiting."""

from tests.e2e import churn
from tests.e2e.walk import waiting


def test_a_pod_that_the_webhook_has_not_seen_waits_too() -> None:
    pod = churn.small("unseen", gpu_mem=1024) | {"status": {"phase": "Pending"}}
    assert waiting.waits(pod)
    pod["spec"]["nodeName"] = "node"
    assert not waiting.waits(pod)
    assert not waiting.waits(churn.small("plain"))


def test_what_the_rest_says_of_a_pod_with_a_scheduling_gate() -> None:
    row = {"reasons": [{"reason": "SchedulingGated"}]}
    assert waiting.says_of_gates(row, is_held=True)
    assert not waiting.says_of_gates(row, is_held=False)
    assert not waiting.says_of_gates({"reasons": []}, is_held=True)
    assert waiting.says_of_gates({"reasons": [{"reason": "NotAdmitted"}]}, is_held=True)
