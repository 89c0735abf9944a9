"""Malformed, huge, deep and slow HTTP requests to the sockets of extender and webhook, made from a seed."""

import json
import random
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from cluster import namespace
from tests.e2e.monitor import latency
from tests.e2e.monitor.findings import Finding, without_numbers
from tests.hostile_pods import generator, values

_EXTENDER: Final = 9870
_WEBHOOK: Final = 9443
_TIMEOUT_S: Final = 15.0
_NOT_READY: Final = 503  # the prober reports a part that is not ready


class Attack(NamedTuple):
    """Bytes to send, in pieces with a pause before each; `is_complete` says that an answer must come."""

    name: str
    port: int
    pieces: tuple[bytes, ...]
    pause_s: float = 0.0
    is_complete: bool = True


def make(seed: int) -> Attack:
    """Return the attack of a seed."""
    chance = random.Random(seed)
    return chance.choice(_ATTACKS)(chance)


def _target(chance: random.Random) -> tuple[int, str]:
    return chance.choice(
        (
            (_EXTENDER, "/filter"),
            (_EXTENDER, "/prioritize"),
            (_EXTENDER, "/bind"),
            (_EXTENDER, "/preempt"),
            (_WEBHOOK, "/mutate?timeout=3s"),
            (_WEBHOOK, "/validate?timeout=3s"),
        )
    )


def _post(path: str, body: bytes, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    head = (f"POST {path} HTTP/1.1", "Host: x", "Connection: close", f"Content-Length: {size}", "", "")
    return "\r\n".join(head).encode() + body


def _wrap(chance: random.Random, path: str, pod: bytes) -> bytes:
    """Return a message around a pod, as kube-scheduler or the API server sends it, in any case of the keys."""
    if "timeout" in path:
        return (
            b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","object":'
            + pod
            + b"}}"
        )
    keys = chance.choice(((b"Pod", b"NodeNames"), (b"pod", b"nodenames"), (b"POD", b"nodeNames")))
    names = json.dumps(["127.0.0.2", "127.0.0.3", *(f"n{n}" for n in range(chance.choice((0, 0, 5000))))]).encode()
    return b'{"' + keys[0] + b'":' + pod + b',"' + keys[1] + b'":' + names + b"}"


def _pod(chance: random.Random) -> Attack:
    port, path = _target(chance)
    case = generator.make(chance.randrange(1 << 30))
    return Attack(f"pod {path}", port, (_post(path, _wrap(chance, path, case.body(name="x", namespace="x", uid="x"))),))


def _malformed(chance: random.Random) -> Attack:
    port, path = _target(chance)
    bodies = (
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"Pod":',
        b'{"Pod":1,"NodeNames":[null]}',
        b'{"Pod":{},"NodeNames":{}}',
        b'{"PodName":1}',
        b'{"PodName":"a","PodNamespace":"../..","PodUID":"%00","Node":"\\ud800"}',
        b"\0" * 1000,
    )
    return Attack(f"malformed {path}", port, (_post(path, chance.choice(bodies)),))


def _deep(chance: random.Random) -> Attack:
    port, path = _target(chance)
    depth = chance.choice((500, 1500, 10_000, 200_000))
    nested = chance.choice((b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth))
    return Attack(f"deep {path}", port, (_post(path, chance.choice((nested, _wrap(chance, path, nested)))),))


def _huge(chance: random.Random) -> Attack:
    port, path = _target(chance)
    text = b'"' + b"x" * chance.choice((3_000_000, 9_000_000, 40_000_000)) + b'"'
    return Attack(f"huge {path}", port, (_post(path, _wrap(chance, path, text)),))


def _slow(chance: random.Random) -> Attack:
    """Send a body byte by byte and give up in the middle."""
    port, path = _target(chance)
    head = _post(path, b"", 1000)
    return Attack(f"slow {path}", port, (head, *(b" " for _ in range(8))), pause_s=0.5, is_complete=False)


def _method(chance: random.Random) -> Attack:
    port, path = _target(chance)
    method = chance.choice(("GET", "PUT", "DELETE", "TRACE", "PRI", "x" * 5000))
    request = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    return Attack(f"method {path}", port, (request.encode(),))


def _protocol(chance: random.Random) -> Attack:
    """Send what is no HTTP, or HTTP whose headers contradict each other."""
    port, path = _target(chance)
    lines = (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\0" * 100_000,
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n".encode(),
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".encode(),
        f"POST {path} HTTP/1.1\r\n".encode() + b"A: b\r\n" * 20_000 + b"\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
    )
    return Attack(f"protocol {path}", port, (chance.choice(lines),), is_complete=False)


def _abandoned(chance: random.Random) -> Attack:
    """Send a complete request and close without reading the answer."""
    port, path = _target(chance)
    body = _wrap(chance, path, values.deep(chance).encode())
    return Attack(f"abandoned {path}", port, (_post(path, body),), is_complete=False)


_ATTACKS: Final[tuple[Callable[[random.Random], Attack], ...]] = (
    _pod,
    _pod,
    _malformed,
    _deep,
    _huge,
    _slow,
    _method,
    _protocol,
    _abandoned,
)


def carry_out(attack: Attack, within: namespace.LinuxNamespaces) -> Iterator[Finding]:
    """Send an attack on a connection of its own; yield what is wrong with the answer."""
    started = time.monotonic()
    try:
        answer = _exchange(attack, within)
    except OSError as error:
        if attack.is_complete and not isinstance(error, (ConnectionError, ssl.SSLError)):
            yield Finding(f"no answer to {attack.name.split('?')[0]}", f"{type(error).__name__}: {error}")
        return
    status = _status(answer)
    if status >= 500 and status != _NOT_READY:
        yield Finding(
            f"{status} to {attack.name.split('?')[0]}", without_numbers(answer[-300:].decode(errors="replace"))
        )
    taken = time.monotonic() - started
    if attack.is_complete and taken > latency.SLOW_S:
        yield Finding(f"slow answer to {attack.name.split('?')[0]}", f"{taken:.1f} s, status {status}")


def _exchange(attack: Attack, within: namespace.LinuxNamespaces) -> bytes:
    with within.network():
        plain = socket.create_connection(("127.0.0.1", attack.port), timeout=_TIMEOUT_S)
    with _secured(plain) if attack.port == _WEBHOOK else plain as connection:
        for piece in attack.pieces:
            time.sleep(attack.pause_s)
            connection.sendall(piece)
        return connection.recv(65536) if attack.is_complete else b""


def _secured(plain: socket.socket) -> socket.socket:
    try:
        return ssl._create_unverified_context().wrap_socket(plain)
    except OSError:
        plain.close()
        raise


def _status(answer: bytes) -> int:
    words = answer.split(b" ", 2)
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
