"""Answers questions on stdin until it ends. After a question's time limit, in seconds, there is no answer.

A first frame on stdout, without content, says that it listens.
"""

import signal
import sys
import time
from collections.abc import Callable

from extender.admin.exchange import pickle_frames
from extender.admin.worker import questions
from extender.admin.worker.fleet import Fleet, HoldUpdate, Update


def main() -> None:
    """Read frames: an update of the node views, or a question with its time limit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole process group; the parent ends this process
    fleet = Fleet()
    _send(None)
    while (message := pickle_frames.read(sys.stdin.buffer)) is not None:
        if isinstance(message, Update | HoldUpdate):
            fleet.apply(message)
            continue
        question, limit_s = message
        _send(questions.answer(question, fleet, _until(time.monotonic() + limit_s)))


def _send(message: object) -> None:
    sys.stdout.buffer.write(pickle_frames.encode(message))
    sys.stdout.buffer.flush()


def _until(deadline: float) -> Callable[[], None]:
    def check() -> None:
        if time.monotonic() > deadline:
            raise TimeoutError

    return check


if __name__ == "__main__":
    main()
