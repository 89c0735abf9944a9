"""The simulator as a process, with the addresses that it prints."""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

PODS = "/api/v1/namespaces/default/pods"


def first_url(line: str) -> str:
    found = re.search(r"https?://(?:[\d.]+|\[[\da-f:]+\]):\d+", line)
    assert found, f"no URL in {line!r}"
    return found[0]


class Run:
    """A simulator process and the addresses that it printed. All that it prints without pods has been read."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.first_line = process.stdout.readline()
        assert self.first_line, process.communicate()[1]  # it has ended
        lines = [self.first_line, *(process.stdout.readline() for _ in range(3))]
        self.extender, self.admin, self.webhook, kubernetes = map(first_url, lines)
        self.advice = process.stdout.readline().strip()
        self.advice_for_one_pod = process.stdout.readline().strip()
        self.logs = [Path(path) for path in re.findall(r"/\S+\.log", process.stdout.readline())]
        self.last_line = process.stdout.readline()
        self.http = httpx.Client(base_url=kubernetes, verify=False)
        self._created: list[str] = []

    def create(
        self,
        name: str,
        annotations: dict[str, str] | None = None,
        spec: dict[str, Any] | None = None,
        **limits: int | str,
    ) -> httpx.Response:
        amounts = {f"vgpu.io/{key.replace('_', '-')}": amount for key, amount in limits.items()}
        spec = {"containers": [{"name": "main", "image": "x", "resources": {"limits": amounts}}]} | (spec or {})
        answer = self.http.post(PODS, json={"metadata": {"name": name, "annotations": annotations or {}}, "spec": spec})
        if answer.is_success:
            self._created.append(name)
        return answer

    def delete_created(self) -> None:
        for name in self._created:
            self.http.delete(f"{PODS}/{name}").raise_for_status()
        self._created.clear()

    def until(self, name: str, phase: str) -> dict[str, Any]:
        end = time.monotonic() + 40
        while time.monotonic() < end:
            answer = self.http.get(f"{PODS}/{name}")
            pod: dict[str, Any] = answer.json()
            if answer.is_success and pod["status"].get("phase") == phase:
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


@contextmanager
def running(*arguments: str) -> Iterator[Run]:
    """Run the simulator on free ports; it ends with the block."""
    command = [sys.executable, "-m", "vgpu.simulator", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        started = Run(process)
        try:
            yield started
        finally:
            started.http.close()
            process.terminate()
