"""The arbiter under sanitizers: its pure modules over random histories, and the process with random clients."""

import contextlib
import random
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from limiter import build
from limiter.arbitration import ACCEPTED, DONE, DONE_AWAITED, HELLO, MAGIC, MESSAGE, VERSION, WANT
from tests.arbiter.client import open_connection
from tests.arbiter.conftest import CARD, UNSTARTED, Node, limits_for, until
from tests.limiter.robustness.test_sanitized import compiled

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("fuzz") / "fuzz", "address,undefined", HERE / "fuzz.c", *UNSTARTED)


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("arbiter") / "arbiter", "address,undefined", *build.arbiter_sources())


@pytest.mark.parametrize("seed", range(4))
def test_random_histories_never_give_two_turns_at_once(fuzz: Path, seed: int) -> None:
    done = subprocess.run([fuzz, str(seed)], capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, done.stderr) == (0, "")


def send_random(opened: socket.socket, bits: random.Random) -> None:
    """Sends a hello and messages, some of which are malformed."""
    hello = bytearray(HELLO.pack(MAGIC, VERSION, 0, CARD))
    if bits.random() < 0.3:
        hello[bits.randrange(len(hello))] ^= 1 << bits.randrange(8)
    opened.send(bytes(hello[: bits.choice((32, 32, 32, 31, 0))]) or b"x")
    for _ in range(bits.randrange(30)):
        kind = bits.choice((WANT, DONE, WANT, DONE_AWAITED, bits.getrandbits(32)))
        word = MESSAGE.pack(kind, bits.randrange(200), bits.getrandbits(bits.randrange(1, 65)))
        opened.send(word if bits.random() < 0.97 else bits.randbytes(bits.randrange(1, 100)))
        if bits.random() < 0.1:
            socket.send_fds(opened, [word], [opened.fileno()])


@pytest.mark.parametrize("seed", range(2))
def test_random_messages_and_regions_are_clean(idle_node: Node, sanitized: Path, seed: int) -> None:
    idle_node.start(program=sanitized, VGPU_LOG="off")
    bits = random.Random(seed)
    honest = idle_node.add(limits_for(30)).connect()
    hostile = idle_node.add(limits_for(60))
    until(hostile.socket.exists)
    until_s = time.monotonic() + 3
    while time.monotonic() < until_s:
        (hostile.folder / "region").write_bytes(bits.randbytes(bits.choice((0, 300, 9000))))
        with contextlib.ExitStack() as opened, suppress(OSError):  # the arbiter may refuse the connection
            for _ in range(5):
                send_random(opened.enter_context(open_connection(hostile.socket)), bits)
    for _ in range(3):
        honest.want()
        honest.done(honest.wait())
    (hostile.folder / "limits").write_bytes(bits.randbytes(3264))
    hostile.folder.rename(idle_node.allocations.parent / "gone")
    assert idle_node.add().connect().result == ACCEPTED
    assert idle_node.end() == (0, "")
