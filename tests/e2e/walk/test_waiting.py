"""Which pods the walk expects to be listed as waiting."""

from tests.e2e import churn
from tests.e2e.walk import waiting


def test_a_pod_that_the_webhook_has_not_seen_waits_too() -> None:
    pod = churn.small("unseen", gpu_mem=1024) | {"status": {"phase": "Pending"}}
    assert waiting.waits(pod)
    pod["spec"]["nodeName"] = "node"
    assert not waiting.waits(pod)
    assert not waiting.waits(churn.small("plain"))
