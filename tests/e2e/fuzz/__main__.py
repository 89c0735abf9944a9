"""`python -m tests.e2e.fuzz --minutes 60 --seed 1 --out DIR`: hostile pods on a cluster of its own, as root."""

import argparse
from collections.abc import Callable

from cluster import progress
from cluster.cluster import GpuCluster
from tests.e2e import long_run
from tests.e2e.fuzz import rounds
from tests.e2e.made_cluster import RUNTIME
from tests.e2e.monitor.latency import Prober


def main() -> int:
    """Run; the exit status is 1 where anything was found."""
    arguments = _arguments()
    with GpuCluster(runtime=RUNTIME) as cluster, Prober(cluster) as prober:
        run = rounds.Run(
            cluster, prober, arguments.out, arguments.seed, arguments.fire, arguments.creators, arguments.pause
        )
        is_going_on = long_run.time_is_left(arguments.minutes)
        with long_run.until_interrupted():
            _repeat(run, is_going_on)
        cluster.save_logs(arguments.out / "logs")
        lines = rounds.summary(run, prober)
    return long_run.finish(run.findings, lines, arguments.out)


def _repeat(run: rounds.Run, is_going_on: Callable[[], bool]) -> None:
    number = 0
    while is_going_on():
        number += 1
        run.round()
        progress.say(
            f"round {number}: {run.pods.answers.total()} pods so far; found {run.findings.counts() or 'nothing'}"
        )


def _arguments() -> argparse.Namespace:
    parser = long_run.options("fuzz", "Hostile pods on a real cluster.", 60, "seed of the first pod")
    parser.add_argument("--fire", type=float, default=rounds.FIRE_S, help="seconds of creating in a round")
    parser.add_argument(
        "--creators", type=int, default=rounds.CREATORS, help="threads that create pods (default: %(default)s)"
    )
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds that each of them waits after a pod (default: %(default)s)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    long_run.exit_with(main)
