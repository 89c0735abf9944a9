"""Clients that break the protocol do not delay or disturb others."""

import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from limiter.arbitration import ACCEPTED, DONE, DONE_AWAITED, MESSAGE, WANT
from tests.arbiter.client import Client, open_connection
from tests.arbiter.conftest import CARD, Container, Node, limits_for, until

MS = 1_000_000


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def pair(node: Node) -> tuple[Client, Client, Container]:
    """A client that keeps to the protocol, one for the test to misuse, and the container of the latter."""
    one, other = (node.add(limits_for(50, "burst")) for _ in range(2))
    return one.connect(), other.connect(), other


def is_served(client: Client, within_s: float = 5.0) -> bool:
    began = time.monotonic()
    client.want()
    client.done(client.wait(within_s))
    return time.monotonic() - began < within_s


@pytest.mark.parametrize(
    "message", [b"", b"x", b"\0" * 15, b"\0" * 17, b"x" * 100_000, MESSAGE.pack(0, 0, 0), MESSAGE.pack(7, 1, 1)]
)
def test_a_malformed_message_ends_the_connection(node: Node, message: bytes) -> None:
    honest, other, _ = pair(node)
    with suppress(OSError):
        other.socket.send(message)
    assert other.has_ended()
    assert is_served(honest)


def test_a_flood_of_messages_ends_the_connection(node: Node) -> None:
    honest, other, _ = pair(node)
    with pytest.raises(OSError, match=r"Broken pipe|reset"):
        flood(other)
    assert is_served(honest)


def flood(client: Client) -> None:
    for _ in range(100_000):
        client.want()


def test_a_flood_of_connections_does_not_keep_others_out(node: Node) -> None:
    honest, _, container = pair(node)
    until_s = time.monotonic() + 1
    while time.monotonic() < until_s:
        with suppress(OSError, AssertionError):
            Client(container.socket, CARD).close()
    assert is_served(honest)
    assert node.add().connect().result == ACCEPTED


def test_connections_without_a_hello_do_not_delay_others(node: Node) -> None:
    honest, _, container = pair(node)
    silent = [open_connection(container.socket) for _ in range(100)]
    assert is_served(honest)
    for opened in silent:
        opened.close()


HOLD = """
import sys, time
from pathlib import Path
from tests.arbiter.client import Client, open_connection
path, count, uuid = Path(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
held, lost = [], 0
for _ in range(count):
    try:
        held.append(Client(path, uuid) if uuid else open_connection(path))
    except OSError:
        lost += 1
print(len(held), flush=True)
sys.stdin.read()
print(lost + sum(client.has_ended(0.001) for client in held) if uuid else 0, flush=True)
"""


class Crowd:
    """A process for each container that opens connections: silent ones, or clients where `uuid` is given."""

    def __init__(self, containers: list[Container], count: int, uuid: bytes = b"") -> None:
        self.processes = []
        for container in containers:
            until(container.socket.exists)
            command = [sys.executable, "-c", HOLD, str(container.socket), str(count), uuid.hex()]
            self.processes.append(subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE))

    def until_connected(self) -> None:
        for process in self.processes:
            assert process.stdout is not None
            assert process.stdout.readline()

    def closed(self) -> list[int]:
        """Ends the processes; returns how many clients of each had lost their connection."""
        return [int(process.communicate()[0]) for process in self.processes]


@pytest.mark.slow
def test_silent_connections_of_many_containers_keep_nobody_out(node: Node) -> None:
    """15 x 288 connections are more than the arbiter's table holds."""
    containers = [node.add() for _ in range(15)]
    crowd = Crowd(containers, 288)
    crowd.until_connected()
    assert [node.add().connect().result for _ in range(5)] == [ACCEPTED] * 5
    crowd.closed()


@pytest.mark.slow
def test_clients_of_many_containers_keep_nobody_out_and_lose_connections_to_the_others_only(node: Node) -> None:
    """16 x 256 clients fill the arbiter's table; a container with few clients keeps them."""
    modest = node.add()
    few = [modest.connect() for _ in range(8)]
    crowd = Crowd([node.add() for _ in range(16)], 256, CARD)
    crowd.until_connected()
    newcomers = [node.add() for _ in range(5)]
    clients = [container.connect() for container in newcomers for _ in range(8)]
    assert {client.result for client in clients} == {ACCEPTED}
    for client in few:
        client.want()
        client.done(client.wait())
    closed = crowd.closed()
    assert 48 <= sum(closed) <= 60, closed
    assert max(closed) <= 5, closed


def test_a_connection_without_a_hello_is_closed_within_a_second(node: Node) -> None:
    honest, _, container = pair(node)
    silent = [open_connection(container.socket) for _ in range(3)]
    began = time.monotonic()
    for opened in silent:
        opened.settimeout(5)
        assert opened.recv(64) == b""
        opened.close()
    assert 0.4 < time.monotonic() - began < 1.4
    assert is_served(honest)


def test_without_a_free_descriptor_the_container_with_the_most_clients_loses_one(idle_node: Node) -> None:
    many, newcomer = idle_node.add(), idle_node.add()
    process = idle_node.start()
    until(many.socket.exists)
    in_use = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (in_use + 40, in_use + 40))
    results = [many.connect().result for _ in range(38)]
    assert results.count(ACCEPTED) >= 36
    assert [newcomer.connect().result for _ in range(10)] == [ACCEPTED] * 10


@pytest.mark.parametrize("lease", [0, 1, 2**64 - 1])
def test_a_turn_that_is_never_ended_is_revoked(node: Node, lease: int) -> None:
    honest, other, container = pair(node)
    container.set_busy_until(lease)
    other.want()
    other.wait()
    for _ in range(5):
        honest.want()
        honest.wait(2)
        other.want()  # and does not send DONE
        honest.done()
        other.wait(2)
    assert is_served(honest)


@pytest.mark.parametrize("turn", [0, 1, 5, 2**32 - 1])
def test_a_client_cannot_end_the_turn_of_another(node: Node, turn: int) -> None:
    honest, other, _ = pair(node)
    honest.want()
    mine = honest.wait()
    other.want()
    other.done(turn if turn != 1 else mine)
    assert is_served(other)


@pytest.mark.heavy
def test_the_turn_of_a_killed_client_ends(node: Node) -> None:
    one, other = (node.add(limits_for(50, "burst")) for _ in range(2))
    honest = one.connect()
    until(other.socket.exists)
    program = (
        "import sys, time; from pathlib import Path; from tests.arbiter.client import Client;"
        "c = Client(Path(sys.argv[1]), bytes.fromhex(sys.argv[2]));"
        "[(c.want(), c.wait(), time.sleep(0.01)) for _ in range(3)]; print(c.turn, flush=True); time.sleep(60)"
    )
    for _ in range(3):
        command = [sys.executable, "-c", program, str(other.socket), CARD.hex()]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline()
            other.set_busy_until(now() + 10_000 * MS)
            process.send_signal(signal.SIGKILL)
        assert is_served(honest)


@pytest.mark.parametrize("state", ["joined", "waiting", "holding", "done"])
def test_disconnecting_in_any_state_frees_the_client(node: Node, state: str) -> None:
    honest, _, container = pair(node)
    for _ in range(20):
        with container.connect() as other:
            if state == "waiting":
                honest.want()
                honest.wait()
            if state != "joined":
                other.want()
            if state in {"holding", "done"}:
                other.wait()
            if state == "done":
                other.done(rest=10_000 * MS)
        assert is_served(honest)


@pytest.mark.parametrize("seed", range(3))
def test_random_bytes_in_a_region_do_not_delay_other_containers(node: Node, seed: int) -> None:
    honest, other, container = pair(node)
    bits = random.Random(seed)
    path = container.folder / "region"
    for length in (0, 100, 8448, 300_000, *[729_344] * 10):
        path.write_bytes(bits.randbytes(length))
        if bits.random() < 0.5 and length > 8448:
            container.set_busy_until(bits.getrandbits(64))
        other.want()
        other.wait()
        honest.want()
        honest.wait(2)
        honest.done()
    path.unlink()
    assert is_served(honest)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(4))
def test_the_arbiter_survives_random_messages(node: Node, seed: int) -> None:
    honest, _, container = pair(node)
    bits = random.Random(seed)
    until_s = time.monotonic() + 1
    with suppress(OSError):
        while time.monotonic() < until_s:
            with container.connect() as other, suppress(OSError):
                for _ in range(bits.randrange(200)):
                    kind = bits.choice((WANT, DONE, DONE_AWAITED, WANT, bits.getrandbits(32)))
                    turn = bits.choice((other.turn, bits.getrandbits(32)))
                    other.socket.send(MESSAGE.pack(kind, turn, bits.choice((0, MS, bits.getrandbits(64)))))
    assert is_served(honest)
    assert node.end()[0] == 0
