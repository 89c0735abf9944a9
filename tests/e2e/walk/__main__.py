"""`python -m tests.e2e.walk --minutes 120 --seed 3 --out DIR`: a random walk on its own cluster, as root."""

import argparse
import signal
import sys
import time
from pathlib import Path

from cluster import missing, progress
from cluster.programs import binaries
from tests.e2e.made_cluster import RUNTIME
from tests.e2e.walk.actions import FAULTS, Breaks
from tests.e2e.walk.run import Walk
from tests.e2e.walk.walk_cluster import WalkCluster


def main() -> int:
    """Run; the exit status is 1 where anything was found."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    try:
        with WalkCluster(runtime=RUNTIME) as cluster:
            walk = Walk(cluster, arguments.out, arguments.seed, _chosen(arguments.only))
            end = time.monotonic() + arguments.minutes * 60
            try:
                walk.go(lambda: time.monotonic() < end)
            except KeyboardInterrupt:
                progress.say("interrupted")
            cluster.save_logs(arguments.out / "logs")
            text = "\n".join(walk.table())
    except missing.Missing as lacking:
        raise SystemExit(str(lacking)) from None
    (arguments.out / "summary.txt").write_text(text + "\n")
    sys.stdout.write(text + "\n")
    return 1 if walk.findings.counts() else 0


def _chosen(words: list[str]) -> list[Breaks]:
    return [fault for fault in FAULTS if not words or any(word in fault.name for word in words)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.walk", description="A random walk on a real cluster.")
    parser.add_argument("--minutes", type=float, default=5, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="decides all steps and faults (default: %(default)s)")
    parser.add_argument("--only", nargs="*", default=[], help="faults whose name contains one of these words")
    parser.add_argument(
        "--out", type=Path, default=binaries.REPOSITORY / "build" / "walk", help="folder of the findings"
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
