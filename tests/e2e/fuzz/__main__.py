"""`python -m tests.e2e.fuzz --minutes 60 --seed 1 --out DIR`: hostile pods on a cluster of its own, as root."""

import argparse
import signal
import sys
import time
from pathlib import Path

from cluster import missing, progress
from cluster.cluster import GpuCluster
from cluster.programs import binaries
from tests.e2e.fuzz import rounds
from tests.e2e.made_cluster import RUNTIME
from tests.e2e.monitor.latency import Prober


def main() -> int:
    """Run; the exit status is 1 where anything was found."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    try:
        with GpuCluster(runtime=RUNTIME) as cluster, Prober(cluster) as prober:
            run = rounds.Run(
                cluster, prober, arguments.out, arguments.seed, arguments.fire, arguments.creators, arguments.pause
            )
            try:
                _repeat(run, time.monotonic() + arguments.minutes * 60)
            except KeyboardInterrupt:
                progress.say("interrupted")
            cluster.save_logs(arguments.out / "logs")
            text = "\n".join(rounds.summary(run, prober))
    except missing.Missing as lacking:
        raise SystemExit(str(lacking)) from None
    (arguments.out / "summary.txt").write_text(text + "\n")
    sys.stdout.write(text + "\n")
    return 1 if run.findings.counts() else 0


def _repeat(run: rounds.Run, deadline: float) -> None:
    number = 0
    while time.monotonic() < deadline:
        number += 1
        run.round()
        progress.say(
            f"round {number}: {run.pods.answers.total()} pods so far; found {run.findings.counts() or 'nothing'}"
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.fuzz", description="Hostile pods on a real cluster.")
    parser.add_argument("--minutes", type=float, default=60, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first pod (default: %(default)s)")
    parser.add_argument("--fire", type=float, default=rounds.FIRE_S, help="seconds of creating in a round")
    parser.add_argument(
        "--creators", type=int, default=rounds.CREATORS, help="threads that create pods (default: %(default)s)"
    )
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds that each of them waits after a pod (default: %(default)s)"
    )
    parser.add_argument(
        "--out", type=Path, default=binaries.REPOSITORY / "build" / "fuzz", help="folder of the findings"
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
