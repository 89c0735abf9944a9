"""`make run`: the simulator with the real extender and webhook as processes, over HTTP."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.vgpu.simulator.process import Run, running

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[3]
STARTED = [
    "starting the extender and the webhook", "1 of 3: waiting for the extender", "2 of 3: waiting for the admin REST",
    "3 of 3: waiting for the webhook",
]  # fmt: skip


@pytest.fixture
def run() -> Iterator[Run]:
    with running("--pods", "1", "--nodes", "2") as started:
        yield started


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_pods_are_admitted_placed_and_run_until_sigterm(run: Run) -> None:
    assert httpx.get(f"{run.extender}/healthz", verify=False).text == "ok"
    run.admin_has("nodes", lambda answer: len(answer["items"]) == 2)
    advised = shlex.split(run.advice.removeprefix("try: "))
    assert "node-1" in subprocess.run(advised, capture_output=True, text=True, check=True).stdout
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
    assert (run.process.returncode, err.splitlines()) == (0, STARTED)
    assert re.search(r"^pod share: Running on node-\d card \d \(8 GiB, 30 %\)$", out, re.MULTILINE)
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", out)
    assert not any(map(is_alive, parts.values()))


def test_the_logs_of_the_parts_are_where_it_says(run: Run) -> None:
    """`vgpu doctor` refers to the log of the extender, which nobody found."""
    run.http.patch(
        "/apis/vgpu.io/v1alpha1/gpunodes/node-1", content=b'{"spec": {"cards": "x"}}',
        headers={"Content-Type": "application/merge-patch+json"},
    ).raise_for_status()  # fmt: skip
    run.admin_has("summary", lambda answer: "UnreadableObjects" in str(answer["findings"]))
    assert [log.name for log in run.logs] == ["extender.log", "webhook.log"]
    assert "node-1" in run.logs[0].read_text()


def test_deleted_nodes_and_hostile_objects_do_not_end_the_run(run: Run) -> None:
    """The case of issue 42: `kubectl delete node node-1` ended the simulator, and a deep pod was answered by 500."""
    run.until("notebook-a", "Running")
    run.http.delete("/api/v1/nodes/node-1").raise_for_status()
    run.http.delete("/apis/vgpu.io/v1alpha1/gpunodes/node-2").raise_for_status()
    run.admin_has("nodes", lambda answer: [node["name"] for node in answer["items"]] == ["node-2"])
    deep = b'{"metadata":{"name":"deep","x":' + b'{"a":' * 1200 + b"1" + b"}" * 1201 + b"}"
    answer = run.http.post(
        "/api/v1/namespaces/default/pods", content=deep, headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["kind"]) == (400, "Status")
    assert run.create("odd", {"simulator/runs-for-seconds": "soon"}, gpu_mem=256).status_code == 201
    run.http.post("/api/v1/nodes", json={"metadata": {"name": "plain"}}).raise_for_status()
    run.http.post("/api/v1/namespaces/default/events", json={"metadata": {"name": "e"}}).raise_for_status()
    run.until("odd", "Running")
    run.http.post("/api/v1/nodes", json={"metadata": {"name": "node-1"}}).raise_for_status()
    run.admin_has("nodes", lambda answer: [node["usable"] for node in answer["items"]] == [True, True])
    assert run.process.poll() is None


def test_make_says_what_the_first_run_waits_for() -> None:
    """Without -q pip prints a line for each package."""
    command = ["make", "--dry-run", "-W", "requirements/run.lock", "run"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    said, installs, *_ = [line for line in printed.splitlines() if "requirements" in line or "installing" in line]
    assert (said.startswith('echo "installing packages'), "pip install --progress-bar off" in installs) == (True, True)


def test_it_says_within_a_second_that_it_starts() -> None:
    """A second of the processor, because other tests run beside."""
    command = [sys.executable, "-m", "vgpu.simulator", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == f"{STARTED[0]}\n"
        user, system = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        process.terminate()
    assert (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") < 1


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
    assert run.process.stderr.read().splitlines() == STARTED
    assert not any(map(is_alive, parts.values()))
