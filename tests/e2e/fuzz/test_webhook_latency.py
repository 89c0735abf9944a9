"""The monitor of webhook calls reads each line of the audit log once, over rotations."""

from pathlib import Path

import pytest

from tests.e2e.fuzz import webhook_latency
from tests.e2e.fuzz.webhook_latency import WebhookLatency

LINE = (
    '{"objectRef":{"resource":"pods","namespace":"tenant","name":"s1"},"annotations":{'
    '"apiserver.latency.k8s.io/mutating-webhook":"%s","apiserver.latency.k8s.io/total":"30.4s"}}\n'
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("812.3ms", 0.8123), ("1.5s", 1.5), ("1m2.5s", 62.5), ("1h0m0s", 3600.0), ("81.2\N{MICRO SIGN}s", 0.0)],
)
def test_durations_of_go(text: str, wanted: float) -> None:
    assert webhook_latency.seconds(text) == pytest.approx(wanted)


def test_each_slow_call_is_found_once(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(LINE % "3s")
    latency = WebhookLatency(log, slow_s=1.0)
    assert not list(latency.slow()), "what was there before"
    with log.open("a") as file:
        file.write(LINE % "999ms" + LINE % "1.25s" + (LINE % "2s")[:-1])
    assert [finding.detail for finding in latency.slow()] == ["1.25 s"]
    log.rename(tmp_path / "audit-2026-11-22T21-05-00.000.log")
    with (tmp_path / "audit-2026-11-22T21-05-00.000.log").open("a") as file:
        file.write("\n")
    log.write_text(LINE % "1m1s")
    assert [(finding.subject, finding.detail) for finding in latency.slow()] == [("s1", "2.00 s"), ("s1", "61.00 s")]
    assert not list(latency.slow())
