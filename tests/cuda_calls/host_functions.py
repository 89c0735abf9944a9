"""Functions of the host that streams call, words that streams wait for and write, and peers. Handles are numbers."""

import ctypes
import threading
import time
from typing import Any

GREATER_OR_EQUAL = 0

cuda = ctypes.CDLL("libcuda.so.1")
P = ctypes.c_void_p

_FUNCTION = ctypes.CFUNCTYPE(None, P)
_CALLBACK = ctypes.CFUNCTYPE(None, P, ctypes.c_int, P)

begun: list[str] = []
called: list[str] = []
_kept: list[Any] = []  # what the driver calls, and the words that it reads
_words = (ctypes.c_uint32 * 16)()


def _function(name: str, seconds: float) -> Any:
    def run(_: object) -> None:
        begun.append(name)
        time.sleep(seconds)
        called.append(name)

    _kept.append(_FUNCTION(run))
    return _kept[-1]


def call(name: str, stream: int, seconds: float = 0, twin: str = "") -> int:
    """Result of cuLaunchHostFunc, of a function that takes this long and then notes its name."""
    return int(cuda["cuLaunchHostFunc" + twin](P(stream), _function(name, seconds), None))


def call_back(name: str, stream: int, flags: int = 0) -> int:
    """Result of cuStreamAddCallback, of one that notes its name, whether it was told the stream, and the result."""

    def run(told: int | None, result: int, _: object) -> None:
        called.append(f"{name} {(told or 0) == stream} {result}")

    _kept.append(_CALLBACK(run))
    return int(cuda.cuStreamAddCallback(P(stream), _kept[-1], None, flags))


def node(graph: int, name: str) -> int:
    """Result of cuGraphAddHostNode."""
    parameters, made = (P * 2)(ctypes.cast(_function(name, 0), P), None), P()
    return int(cuda.cuGraphAddHostNode(ctypes.byref(made), P(graph), None, ctypes.c_size_t(), parameters))


def _address(word: int) -> ctypes.c_uint64:
    return ctypes.c_uint64(ctypes.addressof(_words) + 4 * word)


def wait(word: int, value: int, stream: int) -> int:
    """Result of cuStreamWaitValue32."""
    return int(cuda.cuStreamWaitValue32_v2(P(stream), _address(word), value, GREATER_OR_EQUAL))


def write(word: int, value: int, stream: int) -> int:
    """Result of cuStreamWriteValue32."""
    return int(cuda.cuStreamWriteValue32_v2(P(stream), _address(word), value, 0))


def launch_waiting(function: int, word: int, value: int, into: int) -> int:
    """Result of the launch of a kernel that spins until the word is at least `value`."""
    address, wanted = _address(word), ctypes.c_uint32(value)
    parameters = (P * 2)(*(ctypes.addressof(one) for one in (address, wanted)))
    return int(cuda.cuLaunchKernel(P(function), 1, 1, 1, 1, 1, 1, 0, P(into), parameters, None))


def set_word(number: int, value: int) -> None:
    """Sets a word now."""
    _words[number] = value


def word(number: int) -> int:
    """A word's value now."""
    return int(_words[number])


def set_after(number: int, value: int, seconds: float) -> None:
    """Sets a word after that time."""

    def run() -> None:
        time.sleep(seconds)
        _words[number] = value

    threading.Thread(target=run).start()


def context(device: int) -> int:
    """A new context, which is current."""
    made = P()
    cuda.cuCtxCreate_v2(ctypes.byref(made), 0, device)
    return made.value or 0


def change_peer(function: str, peer: int, *flags: int) -> int:
    """Result of cuCtxEnablePeerAccess or cuCtxDisablePeerAccess."""
    return int(cuda[function](P(peer), *flags))


def copy_peer(to: int, to_context: int, source: int, from_context: int, size: int, into: int | None = None) -> int:
    """Result of cuMemcpyPeer, or of cuMemcpyPeerAsync into a stream."""
    arguments = (ctypes.c_uint64(to), P(to_context), ctypes.c_uint64(source), P(from_context), ctypes.c_size_t(size))
    return int(cuda.cuMemcpyPeer(*arguments) if into is None else cuda.cuMemcpyPeerAsync(*arguments, P(into)))
