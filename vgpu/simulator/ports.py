"""Free TCP ports of the loopback address, for processes that must be told theirs before they start."""

from vgpu.adapters import listening


class PortTaken(Exception):
    """Another process listens on the port that was asked for."""


def choose(asked: int | None, default: int) -> int:
    """Return the port asked for, or a free one for 0; where none was asked for, the default if it is free.

    Raises:
        PortTaken: the port that was asked for is in use.
    """
    if asked:
        if not is_free(asked):
            raise PortTaken(f"port {asked} is in use; --port 0 takes a free one")
        return asked
    return default if asked is None and is_free(default) else free()


def free() -> int:
    """Return a port that is free now; another process may take it before it is used."""
    with listening.listen(listening.loopback(), 0) as listener:
        port: int = listener.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether no process listens on a port."""
    try:
        with listening.listen(listening.loopback(), port):
            return True
    except OSError:
        return False
