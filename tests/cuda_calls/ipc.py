"""IPC handles as hexadecimal text, and file descriptors sent from one session to another."""

import ctypes
import socket

cuda = ctypes.CDLL("libcuda.so.1")
LAZY_PEER_ACCESS = 1
DISABLE_TIMING, INTERPROCESS = 2, 4  # CU_EVENT_*

_open_sockets: dict[str, socket.socket] = {}


class Handle(ctypes.Structure):
    """CUipcMemHandle, which is passed by value; also CUmemPoolPtrExportData."""

    _fields_ = (("reserved", ctypes.c_ubyte * 64),)


def export(pointer: int) -> tuple[int, str]:
    """Result and handle of cuIpcGetMemHandle."""
    handle = Handle()
    result = cuda.cuIpcGetMemHandle(ctypes.byref(handle), ctypes.c_uint64(pointer))
    return result, bytes(handle).hex()


def take(handle: str, flags: int = LAZY_PEER_ACCESS) -> tuple[int, int]:
    """Result and pointer of cuIpcOpenMemHandle_v2."""
    pointer = ctypes.c_uint64()
    function = cuda.cuIpcOpenMemHandle_v2
    function.argtypes = (ctypes.POINTER(ctypes.c_uint64), Handle, ctypes.c_uint)
    return function(ctypes.byref(pointer), Handle.from_buffer_copy(bytes.fromhex(handle)), flags), pointer.value


def close(pointer: int) -> int:
    """Result of cuIpcCloseMemHandle."""
    return int(cuda.cuIpcCloseMemHandle(ctypes.c_uint64(pointer)))


def shared_event() -> int:
    """An event that other processes may open."""
    event = ctypes.c_void_p()
    if cuda.cuEventCreate(ctypes.byref(event), INTERPROCESS | DISABLE_TIMING):
        raise RuntimeError("cuEventCreate")
    return event.value or 0


def export_event(event: int) -> tuple[int, str]:
    """Result and handle of cuIpcGetEventHandle."""
    handle = Handle()
    result = cuda.cuIpcGetEventHandle(ctypes.byref(handle), ctypes.c_void_p(event))
    return result, bytes(handle).hex()


def take_event(handle: str) -> tuple[int, int]:
    """Result and event of cuIpcOpenEventHandle."""
    event = ctypes.c_void_p()
    function = cuda.cuIpcOpenEventHandle
    function.argtypes = (ctypes.POINTER(ctypes.c_void_p), Handle)
    return function(ctypes.byref(event), Handle.from_buffer_copy(bytes.fromhex(handle))), event.value or 0


def record(event: int, stream: int = 0) -> int:
    """Result of cuEventRecord."""
    return int(cuda.cuEventRecord(ctypes.c_void_p(event), ctypes.c_void_p(stream)))


def query(event: int) -> int:
    """Result of cuEventQuery."""
    return int(cuda.cuEventQuery(ctypes.c_void_p(event)))


def await_event(event: int) -> int:
    """Result of cuEventSynchronize."""
    return int(cuda.cuEventSynchronize(ctypes.c_void_p(event)))


def end_event(event: int) -> int:
    """Result of cuEventDestroy."""
    return int(cuda.cuEventDestroy_v2(ctypes.c_void_p(event)))


def listen(path: str) -> None:
    """Binds a socket to which another session can send descriptors."""
    _open_sockets[path] = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    _open_sockets[path].bind(path)


def send(path: str, descriptor: int) -> None:
    """Sends a copy of the descriptor to the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(path)
        socket.send_fds(sender, [b"!"], [descriptor])


def receive(path: str) -> int:
    """The next descriptor that was sent to the socket."""
    descriptors: list[int] = socket.recv_fds(_open_sockets[path], 1, 1)[1]
    return descriptors[0]
