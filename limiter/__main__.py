"""`python -m limiter --memory 4GiB -- script.py arguments`: runs a Python script under limits, in this process."""

import argparse
import runpy
import sys
from pathlib import Path

import limiter
from vgpu.domain.asks.policy import MAX_PRIORITY


def main() -> None:
    """Read the command line, put the limits in force and run the script."""
    parser = argparse.ArgumentParser(prog="python -m limiter", description=__doc__)
    parser.add_argument(
        "--memory", help="memory of each card: 4GiB, or MiB as a number; uuid=4GiB,... for cards that differ"
    )
    parser.add_argument("--cores", type=int, help="percent of each card's time")
    parser.add_argument("--policy", help="fixed, burst or best-effort; default: fixed with --cores, else burst")
    parser.add_argument("--priority", type=int, default=0, help=f"0 to {MAX_PRIORITY}: the highest goes first")
    parser.add_argument(
        "--memory-policy", default="refuse", help="for allocations within the limit on a full card: refuse or spill"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="the script is a module's name")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    try:
        limiter.preload(asked.memory, asked.cores, asked.policy, asked.memory_policy, asked.priority)
    except (limiter.LimiterError, ValueError) as error:
        parser.error(str(error))
    sys.argv = [asked.script, *asked.arguments]
    if not asked.module:
        sys.path[0] = str(Path(asked.script).resolve().parent)
    run = runpy.run_module if asked.module else runpy.run_path
    run(asked.script, run_name="__main__")


if __name__ == "__main__":
    main()
