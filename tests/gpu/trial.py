"""Runs a module of this folder as a program on the real GPU."""

import os
import subprocess
import sys
from pathlib import Path

import limiter

ROOT = Path(limiter.__file__).parents[1]


def run(module: str, *arguments: str, python: str = sys.executable) -> str:
    """What the program prints; it must succeed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [python, "-m", f"tests.gpu.{module}", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
