"""Settings of the whole suite."""

import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

from tests import certificates, crashed_workers

# How long an example takes depends on the machine's other work; speed is measured in benchmarks/, not here.
settings.register_profile("ours", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ours")

# nohup, or a shell that starts pytest in the background, makes pytest ignore these signals, and so every program that
# pytest starts.
_HANDLERS: dict[signal.Signals, Callable[[int, FrameType | None], object] | signal.Handlers] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGHUP: signal.SIG_DFL,
    signal.SIGQUIT: signal.SIG_DFL,
}
for number, handler in _HANDLERS.items():
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

certificates.trust_nobody()

# The suite's own state directory (limiter/local_state.py): the user's may list programs that run outside the tests.
os.environ["VGPU_STATE_DIR"] = tempfile.mkdtemp(prefix="vgpu-")
atexit.register(shutil.rmtree, os.environ["VGPU_STATE_DIR"], ignore_errors=True)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(crashed_workers)
