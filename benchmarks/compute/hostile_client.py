"""Clients of the arbiter that launch nothing and misuse its protocol, until they are killed.

    python -m benchmarks.compute.hostile_client flood|keep|hold|ask|regular|zero SOCKET CLIENTS

They ask for the first card. flood: random messages as fast as possible; keep: take turns and never end one; hold: the
same, and their container's region claims that long work is under way; ask: all clients ask for turns in a loop;
regular: they ask every 10 ms exactly, so that the arbiter reserves the card for them; zero: no client connects, but the
region of the container says all the time that its programs have used no GPU time. The layouts are those of
arbitration.h and region_layout.h.
"""

import os
import random
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pynvml

from benchmarks.compute.arbiter_connection import connect
from limiter.arbitration import DONE, MESSAGE, WANT
from vgpu.domain.formats import limits

ROW, TAKEN, LEASED_UNTIL, GPU_NS = (
    256,
    48,
    152,
    168,
)  # offset of the first card's row in a region, and of fields in the row
CLAIM_NS = 10_000_000_000
TRY_S, FULL_S = 0.01, 0.0001
ASK_S, PERIOD_S, ZERO_S = 0.05, 0.01, 0.001


def first_card() -> bytes:
    """Return the UUID of the first card."""
    pynvml.nvmlInit()
    uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0))
    return limits.uuid_bytes(uuid)


def flood(clients: list[socket.socket]) -> None:
    """Send one random message from each client."""
    message = MESSAGE.pack(random.choice((WANT, DONE, 7)), random.getrandbits(32), random.getrandbits(64))
    for client in clients:
        client.send(message[: random.choice((MESSAGE.size, MESSAGE.size, 5))])


def ask(clients: list[socket.socket]) -> None:
    """Ask for a turn with each client."""
    for client in clients:
        client.send(MESSAGE.pack(WANT, 0, 0))
    time.sleep(ASK_S)


def ask_regularly(clients: list[socket.socket]) -> None:
    """Ask with each client at the next multiple of 10 ms."""
    time.sleep(PERIOD_S - time.monotonic() % PERIOD_S)
    for client in clients:
        client.send(MESSAGE.pack(WANT, 0, 0))


def claim(region: Path, card: bytes) -> None:
    """Write into the region that long work is under way on the card."""
    with region.open("r+b") as file:
        for offset, piece in (
            (0, card),
            (TAKEN, struct.pack("<I", 1)),
            (LEASED_UNTIL, struct.pack("<Q", time.monotonic_ns() + CLAIM_NS)),
        ):
            file.seek(ROW + offset)
            file.write(piece)


def report_zero(region: Path) -> None:
    """Write into the region, each millisecond until killed, that no GPU time was used on the first card."""
    with region.open("r+b", buffering=0) as file:
        while True:
            os.pwrite(file.fileno(), bytes(8), ROW + GPU_NS)
            time.sleep(ZERO_S)


KINDS: dict[str, Callable[[list[socket.socket]], None]] = {
    "flood": flood,
    "keep": ask,
    "hold": ask,
    "ask": ask,
    "regular": ask_regularly,
}


def main() -> None:
    """Connect the clients and misbehave until killed; reconnect when the arbiter disconnects them."""
    kind, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if kind == "zero":
        report_zero(Path(path).parents[1] / "region")
    card, clients = first_card(), list[socket.socket]()
    while True:
        try:
            clients += [connect(path, card) for _ in range(count - len(clients))]
            if kind == "hold":
                claim(Path(path).parents[1] / "region", card)
            KINDS[kind](clients)
        except BlockingIOError:  # the socket is full: the arbiter does not read as fast, and need not
            time.sleep(FULL_S)
        except OSError:
            while clients:
                clients.pop().close()
            time.sleep(TRY_S)


if __name__ == "__main__":
    main()
