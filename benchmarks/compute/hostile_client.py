"""Clients of the arbiter that launch nothing, and speak to it as no client of ours does, until they are killed.

    python -m benchmarks.compute.hostile_client flood|keep|hold|ask|regular SOCKET CLIENTS

They claim the first card. `flood`: anything, as fast as it goes; `keep`: turns, none of which is ever ended; `hold`:
the same, and their container's region says that work is under way that takes long; `ask`: each of the clients for a
turn, again and again; `regular`: the same each 10 ms exactly, so that the card is kept for them. The layouts are
those of arbitration.h and region.h.
"""

import array
import os
import random
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pynvml

from limiter.arbitration import DONE, HELLO, MAGIC, MESSAGE, VERSION, WANT, WELCOME
from vgpu import limits

ROW, TAKEN, LEASED_UNTIL = 256, 48, 152  # the first card's in a region, and what lies where in it
CLAIM_NS = 10_000_000_000
TRY_S, FULL_S = 0.01, 0.0001
ASK_S, PERIOD_S = 0.05, 0.01


def first_card() -> bytes:
    """Return the card's UUID."""
    pynvml.nvmlInit()
    uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0))
    return limits.uuid_bytes(uuid)


def connect(path: str, card: bytes) -> socket.socket:
    """Connect and be accepted; the page is not looked at. Raises OSError."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(1)
    client.connect(path)
    client.send(HELLO.pack(MAGIC, VERSION, 0, card))
    _, descriptors, _, _ = client.recvmsg(WELCOME.size, socket.CMSG_SPACE(4))
    for _, _, data in descriptors:
        for descriptor in array.array("i", data):
            os.close(descriptor)
    client.setblocking(False)
    return client


def flood(clients: list[socket.socket]) -> None:
    """Say anything until it refuses."""
    said = MESSAGE.pack(random.choice((WANT, DONE, 7)), random.getrandbits(32), random.getrandbits(64))
    for client in clients:
        client.send(said[: random.choice((MESSAGE.size, MESSAGE.size, 5))])


def ask(clients: list[socket.socket]) -> None:
    """Ask for a turn each, and again."""
    for client in clients:
        client.send(MESSAGE.pack(WANT, 0, 0))
    time.sleep(ASK_S)


def come(clients: list[socket.socket]) -> None:
    """Ask at the next moment of many at equal distances."""
    time.sleep(PERIOD_S - time.monotonic() % PERIOD_S)
    for client in clients:
        client.send(MESSAGE.pack(WANT, 0, 0))


def claim(region: Path, card: bytes) -> None:
    """Say that the card works for us for long."""
    with region.open("r+b") as file:
        for offset, piece in (
            (0, card),
            (TAKEN, struct.pack("<I", 1)),
            (LEASED_UNTIL, struct.pack("<Q", time.monotonic_ns() + CLAIM_NS)),
        ):
            file.seek(ROW + offset)
            file.write(piece)


KINDS: dict[str, Callable[[list[socket.socket]], None]] = {
    "flood": flood,
    "keep": ask,
    "hold": ask,
    "ask": ask,
    "regular": come,
}


def main() -> None:
    """Lie."""
    kind, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    card, clients = first_card(), list[socket.socket]()
    while True:
        try:
            clients += [connect(path, card) for _ in range(count - len(clients))]
            if kind == "hold":
                claim(Path(path).parents[1] / "region", card)
            KINDS[kind](clients)
        except BlockingIOError:  # it does not keep up, and need not
            time.sleep(FULL_S)
        except OSError:
            while clients:
                clients.pop().close()
            time.sleep(TRY_S)


if __name__ == "__main__":
    main()
