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
from limiter.arbitration import ACCEPTED, DONE, DONE_AWAITED, HELLO, IN_SPACE, JOINS, MAGIC, MESSAGE, VERSION, WANT
from tests.arbiter.client import open_connection
from tests.arbiter.conftest import CARD, GPU, UNSTARTED, Node, limits_for, until
from tests.limiter.robustness.test_sanitized import compiled
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.formats.limits import CardLimit, Limits, SpaceMembership
from vgpu.domain.identifiers import Namespace

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


@pytest.mark.parametrize("seed", range(2))
def test_members_of_groups_that_come_and_go_are_clean(idle_node: Node, sanitized: Path, seed: int) -> None:
    """Containers join two groups, leave them by their limits, and are removed, in any order."""
    idle_node.start(program=sanitized, VGPU_LOG="off")
    bits = random.Random(seed)
    groups = [None, *(SpaceGroup(Namespace("team"), name) for name in ("one", "two"))]
    hello = HELLO.pack(MAGIC, VERSION, JOINS | IN_SPACE, CARD)
    living = [idle_node.add(group_limits(bits.choice(groups), 10))]
    for _ in range(300):
        container = bits.choice(living)
        match bits.randrange(8):
            case 0 if len(living) < 8:
                living.append(idle_node.add(group_limits(bits.choice(groups), bits.randrange(1, 60))))
            case 1 if len(living) > 1:
                container.folder.rename(idle_node.allocations.parent / f"gone-{bits.random()}")
                living.remove(container)
            case 2:
                container.limit(group_limits(bits.choice(groups), bits.randrange(1, 60)))
            case 3 if container.clients:
                container.clients.pop(bits.randrange(len(container.clients))).close()
            case 4 | 5 if container.clients:
                with suppress(OSError):  # the arbiter has ended the connection, because the group has changed
                    bits.choice(container.clients).want()
            case 6 if container.clients:
                with suppress(OSError):
                    bits.choice(container.clients).done(rest=bits.randrange(5_000_000))
            case _:
                with suppress(OSError):
                    container.connect(hello=hello if bits.random() < 0.8 else None)
    outside = idle_node.add(limits_for(30, "burst")).connect()
    outside.want()
    assert outside.wait() > 0
    assert idle_node.end() == (0, "")


def group_limits(group: SpaceGroup | None, cores: int) -> Limits:
    space = SpaceMembership(group.fingerprint, None) if group else None
    return Limits((CardLimit(GPU, None, cores),), ComputePolicy.BURST, space=space)
