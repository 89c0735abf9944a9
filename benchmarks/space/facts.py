"""What a driver's MPS does where ADR 174 relies on it: a line of JSON for each question, which says what was seen.

    python -m benchmarks.space.facts [NAME ...]

Needs nvidia-cuda-mps-control in PATH, and the first card for itself: it ends clients by faults. Root shows more. With
SIMGPU_STATE set it runs on the simulated driver, which answers as simgpu/README.md says, and shows only that the
questions can be asked. Exits with 1 where a question could not be answered.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pynvml

from benchmarks.space.client_process import Client
from benchmarks.space.daemon import ANSWER_S, MpsDaemon, daemons
from vgpu.adapters import mps
from vgpu.domain.identifiers import CardUuid

MULTIPROCESSORS, MPS_ENABLED = "attribute 16", "attribute 133"
NOBODY: Final = 65534  # user ID and group ID of `nobody`
MOST_CLIENTS: Final = 48


class Group(MpsDaemon):
    """A daemon with a pipe directory of its own, and clients."""

    def __init__(self, folder: Path, card: CardUuid) -> None:
        super().__init__(folder, card)
        self._clients: list[Client] = []

    def client(self, *, is_started: bool = True, is_outside: bool = False) -> Client:
        """Start a client, with a context by default; or a process that finds no daemon."""
        outside = {mps.PIPE_DIRECTORY: str(self.pipe / "missing")} if is_outside else {}
        client = Client({**self.environment, **outside})
        self._clients.append(client)
        if is_started and client("start"):
            raise RuntimeError("a client cannot make a context")
        return client

    def end(self) -> None:
        """End the clients, the daemon and its servers."""
        for client in self._clients:
            client.end()
        super().end()


Make = Callable[[], Group]


def commands(make: Make) -> dict[str, Any]:
    """What the commands print with two clients, and what a server is."""
    group = make()
    clients = [group.client(), group.client()]
    (server,) = group.servers()
    asked = ("get_server_list", f"get_client_list {server.pid}", f"get_server_status {server.pid}", "ps")
    return {
        "daemon": group.daemon.pid,
        "server": server.pid,
        "parent of the server": server.parent,
        "clients": [client.process.pid for client in clients],
        **{command.partition(" ")[0]: group.ask(command) for command in asked},
    }


def nvml(make: Make) -> dict[str, Any]:
    """What NVML says of the server, of two clients with 1 GiB each, and of an idle client."""
    group = make()
    clients = [group.client() for _ in range(3)]
    names = {client.process.pid: f"client {number}" for number, client in enumerate(clients)}
    names |= {process.pid: "server" for process in group.servers()} | {group.daemon.pid: "daemon"}
    for client in clients[:2]:
        client("alloc 1024")
        client.tell("throughput 1000 5")
    time.sleep(4)
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    found: dict[str, Any] = {"memory used": pynvml.nvmlDeviceGetMemoryInfo(card).used >> 20}
    for kind in ("Compute", "MPSCompute"):
        listed = getattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses")(card)
        found[kind] = {names.get(p.pid, str(p.pid)): (p.usedGpuMemory or 0) >> 20 for p in listed}
    samples = pynvml.nvmlDeviceGetProcessUtilization(card, 0)
    found["samples"] = [(names.get(s.pid, str(s.pid)), s.smUtil) for s in samples]
    for client in clients[:2]:
        client.answer()
    return found


def environment(make: Make) -> dict[str, Any]:
    """Whether a percentage counts that a process sets directly before cuInit, and what a client reads."""
    group = make()
    outside = group.client(is_outside=True)
    plain, late = group.client(), group.client(is_started=False)
    late("start 50")
    return {
        name: {"multiprocessors": client(MULTIPROCESSORS), "MPS_ENABLED": client(MPS_ENABLED)}
        for name, client in (("outside", outside), ("client", plain), ("50, set late", late))
    }


def waits(make: Make) -> dict[str, Any]:
    """Whether a client's stream may wait for a word of memory, by which launches are queued ahead of their turn."""
    group = make()
    outside = group.client(is_outside=True)
    return {"outside": outside("wait_value"), "client": group.client()("wait_value")}


def other_users(make: Make) -> dict[str, Any]:
    """What the daemon answers to another user than root. Needs root."""
    group = make()
    group.client()
    found: dict[str, Any] = {}
    for command in (
        "get_server_list",
        "set_default_active_thread_percentage 7",
        "get_default_active_thread_percentage",
    ):
        done = subprocess.run(
            [group.program],
            env=group.environment,
            input=f"{command}\n",
            text=True,
            capture_output=True,
            check=False,
            timeout=ANSWER_S,
            user=NOBODY,
            group=NOBODY,
            extra_groups=(),
        )
        found[command.partition(" ")[0]] = [done.returncode, (done.stdout + done.stderr).splitlines()]
    found["files"] = {path.name: oct(path.lstat().st_mode) for path in group.pipe.iterdir()}
    return found


def killed_daemon(make: Make) -> dict[str, Any]:
    """What is left of a group whose daemon is killed, and whether another daemon can start in its directory."""
    group = make()
    client = group.client()
    before = {process.pid for process in group.servers()}
    group.daemon.kill()
    group.daemon.wait()
    time.sleep(2)
    found: dict[str, Any] = {"servers that live": len(before & {process.pid for process in group.servers()})}
    found["client"] = [client("spin 100"), client("sync")]
    group.daemon = group.start()
    found["new client"] = [group.client(is_started=False)("start")]
    found["client after that"] = [client("spin 100"), client("sync")]
    return found


def killed_all(make: Make) -> dict[str, Any]:
    """How soon the card serves a new daemon after daemon and server were killed, with a kernel of 10 s on it."""
    group = make()
    client = group.client()
    client("spin 10000000")
    begun = time.monotonic()
    for process in group.processes():
        process.kill()
    group.daemon.wait()
    group.daemon = group.start()
    new = group.client(is_started=False)
    result = [new("start"), new("spin 100"), new("sync")]
    return {"new client": result, "seconds": round(time.monotonic() - begun, 2), "client": client("sync")}


def fault(make: Make) -> dict[str, Any]:
    """Whom a fault ends, and when the daemon serves a new client, without and with one that is stopped (30 s)."""
    found: dict[str, Any] = {}
    for case, is_stopped in (("all exit", False), ("one is stopped", True)):
        group, other = make(), make()
        faulty, neighbour, stranger = group.client(), group.client(), other.client()
        if is_stopped:
            neighbour.process.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        found[case] = {"faulty": [faulty("fault"), faulty("sync")]}
        if not is_stopped:
            found[case]["neighbour"] = [neighbour("spin 100"), neighbour("sync")]
            neighbour.end()
        found[case]["client of another daemon"] = [stranger("spin 100"), stranger("sync")]
        faulty.end()
        (server, *_) = [*group.servers(), None]
        found[case]["status"] = server and group.ask(f"get_server_status {server.pid}")
        new = group.client(is_started=False)
        new.tell("start")
        found[case]["new client"] = new.answer() if new.answers_within(ANSWER_S) else "waits"
        found[case]["seconds"] = round(time.monotonic() - begun, 2)
    return found


def fault_logs(make: Make) -> dict[str, Any]:
    """What the logs of daemon and server say of a fault, and whether a line names the client that faulted."""
    group = make()
    faulty, neighbour = group.client(), group.client()
    before = group.logged()
    results = {"faulty": [faulty("fault"), faulty("sync")], "neighbour": neighbour("sync")}
    time.sleep(1)
    lines = {name: text[len(before.get(name, "")) :].splitlines() for name, text in group.logged().items()}
    pids = {"faulty": faulty.process.pid, "neighbour": neighbour.process.pid}
    return {"results": results, "pids": pids, "lines since": lines}


def most_clients(make: Make) -> dict[str, Any]:
    """Which result the 49th client has, in cuInit or in making its context."""
    group = make()
    results = []
    for _ in range(MOST_CLIENTS + 1):
        client = group.client(is_started=False)
        results.append({"cuInit": client("init"), "context": client("start")})
    refused = [result for result in results if any(result.values())]
    return {"served": len(results) - len(refused), "results of the others": refused}


def handover(make: Make) -> dict[str, Any]:
    """Kernels of 0.1 ms a second: one client, two of one daemon, and two of two daemons."""
    one, other = make(), make()
    clients = [one.client(), one.client(), other.client()]
    found: dict[str, Any] = {}
    for case, who in (("alone", clients[:1]), ("one daemon", clients[:2]), ("two daemons", clients[1:])):
        for client in who:
            client.tell("throughput 100 2")
        found[case] = [(client.answer() or 0) // 2 for client in who]
    return found


FACTS: Final = (
    commands,
    nvml,
    environment,
    waits,
    other_users,
    killed_daemon,
    killed_all,
    fault,
    fault_logs,
    most_clients,
    handover,
)


def main(names: list[str]) -> int:
    """Print what each question finds."""
    chosen = [fact for fact in FACTS if not names or fact.__name__ in names]
    if unknown := set(names) - {fact.__name__ for fact in FACTS}:
        sys.exit(f"no such question: {', '.join(sorted(unknown))}")
    failed = 0
    for fact in chosen:
        try:
            with daemons(Group) as make:
                found = fact(make)
        except Exception as error:  # noqa: BLE001 - the other questions are asked in any case
            found, failed = {"error": repr(error)}, failed + 1
        print(json.dumps({fact.__name__: found}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
