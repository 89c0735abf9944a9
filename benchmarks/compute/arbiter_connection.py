"""A connection to the arbiter without the limiter, for clients that launch nothing."""

import array
import os
import socket

from limiter.arbitration import HELLO, MAGIC, VERSION, WELCOME


def connect(path: str, card: bytes) -> socket.socket:
    """Connect and read the welcome; the page is closed unread. Raises OSError."""
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
