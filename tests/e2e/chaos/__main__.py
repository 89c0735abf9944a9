"""`python -m tests.e2e.chaos --minutes 30 --seed 1 --out DIR`: faults under traffic on its own cluster, as root."""

from tests.e2e import long_run
from tests.e2e.chaos.chaos_cluster import ChaosCluster
from tests.e2e.chaos.faults import FAULTS
from tests.e2e.chaos.run import Run
from tests.e2e.made_cluster import RUNTIME
from tests.e2e.monitor import latency
from tests.e2e.monitor.latency import Prober


def main() -> int:
    """Run; the exit status is 1 where anything was found."""
    parser = long_run.options("chaos", "Faults on a real cluster.", 30, "decides order and lengths")
    long_run.add_only(parser)
    arguments = parser.parse_args()
    with ChaosCluster(runtime=RUNTIME) as cluster, Prober(cluster) as prober:
        run = Run(cluster, prober, arguments.out, arguments.seed)
        is_going_on = long_run.time_is_left(arguments.minutes)
        with long_run.until_interrupted():
            run.go(long_run.chosen(FAULTS, arguments.only), is_going_on)
        cluster.save_logs(arguments.out / "logs")
        lines = [*run.table(), "", *latency.table(prober.answers)]
    return long_run.finish(run.findings, lines, arguments.out)


if __name__ == "__main__":
    long_run.exit_with(main)
