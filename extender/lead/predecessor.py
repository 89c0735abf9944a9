"""Which replica ran in this container before, and has certainly ended.

A Lease whose holder is known to have ended need not expire before another replica takes it. A file in the container's
volume names the last replica; the replica holds the file's lock, which the kernel releases at the end of the process
and not before. So who gets the lock knows that the replica that is named sends no more requests.
"""

import contextlib
import fcntl
import logging
from collections.abc import Iterator
from pathlib import Path
from urllib import parse

log = logging.getLogger(__name__)


@contextlib.contextmanager
def noted(folder: Path | None, host: str, identity: str) -> Iterator[str]:
    """Note this replica inside the block; yield the identity of the last replica, which has ended, or an empty text.

    Args:
        folder: that survives the process; None where there is none.
        host: name that no replica on another machine has, where replicas share the folder.
        identity: of this process, which no other one ever has.
    """
    if folder is None:
        yield ""
        return
    file = folder / f"replica-{parse.quote(host, safe='')}"
    with contextlib.ExitStack() as stack:
        yield _taken(file, identity, stack)


def _taken(file: Path, identity: str, stack: contextlib.ExitStack) -> str:
    """Take the file until the stack unwinds, and return the identity in it; empty where another process has it."""
    try:
        opened = stack.enter_context(file.open("a+"))
        fcntl.flock(opened.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        opened.seek(0)
        before = opened.read().strip()
        opened.truncate(0)
        opened.write(identity)
        opened.flush()
    except OSError as error:
        log.info("after a crash the next leader waits for the end of the Lease: %s: %s", file, error)
        return ""
    stack.callback(file.unlink, missing_ok=True)
    return before
