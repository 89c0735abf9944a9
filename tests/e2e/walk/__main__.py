"""`python -m tests.e2e.walk --minutes 120 --seed 3 --out DIR`: a random walk on its own cluster, as root.

A finding has its seed and its round, counted from 0: `--seed 3 --rounds 18` sends the requests of rounds 0 to 17 again.
"""

from tests.e2e import long_run
from tests.e2e.made_cluster import RUNTIME
from tests.e2e.walk.faults import FAULTS
from tests.e2e.walk.run import Walk
from tests.e2e.walk.walk_cluster import WalkCluster


def main() -> int:
    """Run; the exit status is 1 where anything was found."""
    parser = long_run.options("walk", "A random walk on a real cluster.", 5, "decides all steps and faults")
    long_run.add_only(parser)
    parser.add_argument("--rounds", type=int, help="end after so many rounds, if the minutes last (default: no limit)")
    arguments = parser.parse_args()
    with WalkCluster(runtime=RUNTIME) as cluster:
        walk = Walk(cluster, arguments.out, arguments.seed, long_run.chosen(FAULTS, arguments.only))
        is_time_left = long_run.time_is_left(arguments.minutes)
        with long_run.until_interrupted():
            walk.go(lambda: is_time_left() and walk.rounds != arguments.rounds)
        cluster.save_logs(arguments.out / "logs")
        lines = walk.table()
    return long_run.finish(walk.findings, lines, arguments.out)


if __name__ == "__main__":
    long_run.exit_with(main)
