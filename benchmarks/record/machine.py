"""The machine, the commit and the time of a measurement."""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMIT_ENV = "VGPU_COMMIT"  # for a machine without git: the commit of the folder that was copied there
SIMULATED_ENV = "SIMGPU_STATE"


@dataclass(frozen=True, slots=True)
class HostMachine:
    """The host and its first NVIDIA card. The fields of the card are empty when NVML cannot be read."""

    processor: str
    cores: int
    kernel: str
    python: str
    gpu: str = ""
    driver: str = ""
    cuda: str = ""

    def __str__(self) -> str:
        host = f"{self.cores} x {self.processor}, kernel {self.kernel}, Python {self.python}"
        return f"{self.gpu}, driver {self.driver}, CUDA {self.cuda}; {host}" if self.gpu else host


def read() -> HostMachine:
    """Return this machine."""
    host = (_processor(), os.cpu_count() or 1, platform.release(), platform.python_version())
    return HostMachine(*host, *_card())


def is_simulated() -> bool:
    """Return whether the cards are those of simgpu."""
    return SIMULATED_ENV in os.environ


def commit() -> str:
    """Return $VGPU_COMMIT, or git's short hash with "-dirty" behind it after an edit, or "unknown"."""
    return os.environ.get(COMMIT_ENV) or (_described() if shutil.which("git") else "unknown")


def now() -> str:
    """Return the time in UTC, as 2026-11-22T14:05:00Z."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _described() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]  # never a tag: always the hash
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _card() -> tuple[str, str, str]:
    try:
        import pynvml  # noqa: PLC0415 - some scripts run without NVML

        pynvml.nvmlInit()
        name = str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0)))
        cuda = int(pynvml.nvmlSystemGetCudaDriverVersion())
        return name, str(pynvml.nvmlSystemGetDriverVersion()), f"{cuda // 1000}.{cuda % 1000 // 10}"
    except Exception:  # noqa: BLE001 - no package, no library, or no card
        return "", "", ""
