"""`python -m tests.e2e.chaos --minutes 30 --seed 1 --out DIR`: faults under traffic on its own cluster, as root."""

import argparse
import signal
import sys
import time
from pathlib import Path

from cluster import missing, progress
from cluster.programs import binaries
from tests.e2e.chaos.chaos_cluster import ChaosCluster
from tests.e2e.chaos.faults import FAULTS, Fault
from tests.e2e.chaos.run import Run
from tests.e2e.made_cluster import RUNTIME
from tests.e2e.monitor import latency
from tests.e2e.monitor.latency import Prober

_OUT = binaries.REPOSITORY / "build" / "chaos"


def main() -> int:
    """Run; the exit status is 1 where anything was found."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    try:
        with ChaosCluster(runtime=RUNTIME) as cluster, Prober(cluster) as prober:
            run = Run(cluster, prober, arguments.out, arguments.seed)
            end = time.monotonic() + arguments.minutes * 60
            try:
                run.go(_chosen(arguments.only), lambda: time.monotonic() < end)
            except KeyboardInterrupt:
                progress.say("interrupted")
            cluster.save_logs(arguments.out / "logs")
            text = "\n".join([*run.table(), "", *latency.table(prober.answers)])
    except missing.Missing as lacking:
        raise SystemExit(str(lacking)) from None
    (arguments.out / "summary.txt").write_text(text + "\n")
    sys.stdout.write(text + "\n")
    return 1 if run.findings.counts() else 0


def _chosen(words: list[str]) -> list[Fault]:
    return [fault for fault in FAULTS if not words or any(word in fault.name for word in words)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.chaos", description="Faults on a real cluster.")
    parser.add_argument("--minutes", type=float, default=30, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="decides order and lengths (default: %(default)s)")
    parser.add_argument("--only", nargs="*", default=[], help="faults whose name contains one of these words")
    parser.add_argument(
        "--out", type=Path, default=binaries.REPOSITORY / "build" / "chaos", help="folder of the findings"
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
