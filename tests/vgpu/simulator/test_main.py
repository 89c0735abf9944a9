"""`make run`: the simulator with the real extender and webhook as processes, over HTTP."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

PODS = "/api/v1/namespaces/default/pods"


def first_url(line: str) -> str:
    found = re.search(r"https?://[\d.]+:\d+", line)
    assert found, f"no URL in {line!r}"
    return found[0]


class Run:
    """A simulator process and the addresses that it printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.first_line = process.stdout.readline()
        lines = [self.first_line, *(process.stdout.readline() for _ in range(3))]
        self.extender, self.admin, self.webhook, kubernetes = map(first_url, lines)
        self.http = httpx.Client(base_url=kubernetes, verify=False)

    def create(self, name: str, **limits: int | str) -> httpx.Response:
        amounts = {f"vgpu.io/{key.replace('_', '-')}": amount for key, amount in limits.items()}
        spec = {"containers": [{"name": "main", "image": "x", "resources": {"limits": amounts}}]}
        return self.http.post(PODS, json={"metadata": {"name": name}, "spec": spec})

    def until(self, name: str, phase: str) -> dict[str, Any]:
        end = time.monotonic() + 40
        while time.monotonic() < end:
            pod: dict[str, Any] = self.http.get(f"{PODS}/{name}").json()
            if pod.get("status", {}).get("phase") == phase:
                return pod
            time.sleep(0.05)
        raise AssertionError(f"{name} is not {phase}: {pod}")

    def admin_has(self, path: str, condition: Callable[[Any], bool]) -> Any:
        """Return what the admin REST answers once a condition holds; it shows changes half a second later at most."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            answer = httpx.get(f"{self.admin}/api/v1/{path}").json()
            if condition(answer):
                return answer
            time.sleep(0.05)
        raise AssertionError(f"{path}: {answer}")

    def children(self) -> dict[str, int]:
        """Process IDs of the parts, by name."""
        pids = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        found = {}
        for pid in pids:
            arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            found[arguments[2]] = int(pid)
        return found


@pytest.fixture
def run() -> Iterator[Run]:
    command = [sys.executable, "-m", "vgpu.simulator", "--port", "0", "--pods", "1", "--nodes", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        started = Run(process)
        yield started
        started.http.close()
        process.terminate()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_pods_are_admitted_placed_and_run_until_sigterm(run: Run) -> None:
    assert httpx.get(f"{run.extender}/healthz", verify=False).text == "ok"
    assert len(run.admin_has("nodes", lambda answer: answer["items"])["items"]) == 2
    refused = run.create("typo", gpu_mem="16Gi")
    assert (refused.status_code, "for 16Gi write 16384" in refused.text) == (422, True)
    assert run.create("share", gpu_mem=8192, gpu_cores=30).status_code == 201
    pod = run.until("share", "Running")
    seen = run.admin_has("pods/default/share", lambda answer: answer.get("node"))
    assert (seen["node"], seen["requested"]) == (pod["spec"]["nodeName"], "8 GiB, 30 %")
    assert pod["spec"]["schedulerName"] == "vgpu-scheduler"
    assert pod["spec"]["containers"][0]["resources"]["limits"]["vgpu.io/slice"] == "32"
    assert '"mem":8192,"cores":30' in pod["metadata"]["annotations"]["vgpu.io/assignment"]
    run.until("notebook-a", "Running")
    parts = run.children()
    assert parts.keys() == {"extender", "webhook"}
    run.process.send_signal(signal.SIGINT)
    out, err = run.process.communicate(timeout=40)
    assert (run.process.returncode, err) == (0, "starting the extender and the webhook\n")
    assert re.search(r"^pod share: Running on node-\d card \d \(8 GiB, 30 %\)$", out, re.MULTILINE)
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", out)
    assert not any(map(is_alive, parts.values()))


def test_it_ends_when_a_part_ends(run: Run) -> None:
    parts = run.children()
    os.kill(parts["webhook"], signal.SIGKILL)
    _, err = run.process.communicate(timeout=40)
    assert run.process.returncode == 1
    assert "the webhook exited with code -9" in err
    assert not is_alive(parts["extender"])


def test_it_ends_without_an_error_when_its_output_is_closed(run: Run) -> None:
    parts = run.children()
    assert run.process.stdout is not None
    run.process.stdout.close()
    assert run.create("share", gpu_mem=8192).status_code == 201
    assert run.process.wait(timeout=40) == 0
    assert run.process.stderr is not None
    assert run.process.stderr.read() == "starting the extender and the webhook\n"
    assert not any(map(is_alive, parts.values()))
