"""Runs every part that listens in a network namespace that has the address ::1 only: `python -m tests.ipv6_only`.

The simulator starts the real extender, admin REST and webhook on loopback. Beside them the webhook and the extender run
with the addresses of the manifests, and the CLI asks without and with an address.
"""

import contextlib
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests import kubeconfigs
from tests.vgpu.simulator.process import first_url

SETUP = "ip link set lo up && ip addr del 127.0.0.1/8 dev lo"
TIMEOUT_S = 60.0


@contextlib.contextmanager
def running(module: str, *flags: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", module, *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=40)


def get(url: str) -> str:
    """Return the body of an answer, as soon as there is one."""
    trusting = ssl._create_unverified_context()
    end = time.monotonic() + TIMEOUT_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5, context=trusting) as answer:
                return str(answer.read(), "utf-8")
        except OSError as error:
            if time.monotonic() > end or isinstance(error, urllib.error.HTTPError):
                raise AssertionError(f"{url}: {error}") from error
            time.sleep(0.1)


def vgpu(*arguments: str) -> str:
    command = [sys.executable, "-m", "vgpu.cli", *arguments]
    environment = {"HOME": "/nonexistent", "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def main() -> None:
    """Check all; raise AssertionError at the first that does not answer."""
    with tempfile.TemporaryDirectory() as folder, running("vgpu.simulator", "--pods", "2") as simulator:
        assert simulator.stdout is not None
        lines = [simulator.stdout.readline() for _ in range(4)]
        extender, admin, webhook, kubernetes = map(first_url, lines)
        assert all("//[::1]:" in url for url in (extender, admin, webhook, kubernetes)), lines
        assert get(f"{extender}/healthz") == "ok"
        assert get(f"{webhook}/healthz") == "ok"
        assert "node-1" in vgpu("get", "nodes", "--server", admin)
        assert "node-1" in vgpu("get", "nodes"), "the default address"
        kubeconfig = f"--kubeconfig={kubeconfigs.write(Path(folder), kubernetes)}"
        flags = [kubeconfig, "--listen=[::]:9443", "--metrics-listen=[::]:9873", "--dns-names=::1"]
        with running("webhook", *flags):
            assert get("https://[::1]:9443/readyz") == "ok"
            assert "vgpu_webhook_reviews_total" in get("http://[::1]:9873/metrics")
        flags = [kubeconfig, "--listen=[::1]:9970", "--admin-listen=[::]:9971", "--admin-auth=kubernetes"]
        with running("extender", *flags, "--metrics-listen=[::]:9974"):
            assert get("http://[::1]:9970/healthz") == "ok"
            assert "vgpu_extender" in get("http://[::1]:9974/metrics")
            assert "<html" in get("https://[::1]:9971/")
    print("every part answers at ::1")  # noqa: T201 - what the test reads


if __name__ == "__main__":
    main()
