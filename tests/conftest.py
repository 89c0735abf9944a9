"""Settings of the whole suite."""

import atexit
import os
import shutil
import signal
import tempfile

from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does; speed is measured in benchmarks/, not here.
settings.register_profile("ours", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ours")

# A shell that starts us in the background, or nohup, has these ignored, and every program we start would inherit that.
_INHERITED = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL, signal.SIGQUIT: signal.SIG_DFL}
for number, usual in _INHERITED.items():
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

# A state directory of the suite's own (limiter/local_state.py): in the user's there may be programs of his.
os.environ["VGPU_STATE_DIR"] = tempfile.mkdtemp(prefix="vgpu-")
atexit.register(shutil.rmtree, os.environ["VGPU_STATE_DIR"], ignore_errors=True)
