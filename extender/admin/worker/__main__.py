"""Answers questions on stdin until it ends. After a question's time limit, in seconds, there is no answer."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable

from extender.admin.worker import frames, questions
from extender.admin.worker.questions import Update
from vgpu.placement.snapshot import NodeView

NICER = 10  # the verbs go first where there are few cores


def main() -> None:
    """Read frames: an update of the node views, or a question with its time limit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole process group; the parent ends this process
    with contextlib.suppress(OSError):
        os.nice(NICER)
    views = dict[str, NodeView]()
    while (message := frames.read(sys.stdin.buffer)) is not None:
        if isinstance(message, Update):
            _apply(message, views)
            continue
        question, limit_s = message
        sys.stdout.buffer.write(frames.encode(questions.answer(question, views, _until(time.monotonic() + limit_s))))
        sys.stdout.buffer.flush()


def _apply(update: Update, views: dict[str, NodeView]) -> None:
    views.update({each.name: each for each in update.changed})
    for name in update.gone:
        views.pop(name, None)


def _until(deadline: float) -> Callable[[], None]:
    def check() -> None:
        if time.monotonic() > deadline:
            raise TimeoutError

    return check


if __name__ == "__main__":
    main()
