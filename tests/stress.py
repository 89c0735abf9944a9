"""`python -m tests.stress FILE`: runs a test file twenty times beside two busy loops, and counts the rounds that pass.

Fast, heavy and slow tests all run, one after the other. The output of a round that fails is kept in build/stress/.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
OUTPUT: Final = ROOT / "build" / "stress"
ROUNDS: Final = 20
LOOPS: Final = 2
ROUND_S: Final = 900.0  # a round that takes longer is ended, and has failed
TOTAL_S: Final = 7200.0  # no round is begun later

_SELECTION = ("-m", "not e2e and not gpu", "--timeout", "300")
_PYTEST = (sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_OVERDUE = "(the round did not end in time)"
_NO_NAME = "(pytest failed, and no test)"
_BUSY = "import os\nwhile os.getppid() == {parent}: pass"  # it ends also where its parent is killed


@dataclass(slots=True)
class Outcome:
    """What the rounds of a file came to.

    Attributes:
        rounds: how many were run.
        passed: how many of them passed.
        failures: in how many rounds each test failed.
    """

    rounds: int = 0
    passed: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def add(self, failed: list[str]) -> None:
        """Count a round in which these tests failed."""
        self.rounds += 1
        self.passed += not failed
        self.failures.update(failed)

    def report(self, wanted: int) -> str:
        """Return how many rounds passed, and the tests that failed with their counts."""
        missing = f" ({wanted - self.rounds} were not begun in time)" if self.rounds < wanted else ""
        lines = [f"{self.passed} of {self.rounds} rounds passed{missing}"]
        return "\n".join(lines + [f"  failed in {count}: {test}" for test, count in self.failures.most_common()])


@contextmanager
def busy_loop() -> Iterator[None]:
    """Use one processor inside the block."""
    loop = subprocess.Popen([sys.executable, "-c", _BUSY.format(parent=os.getpid())])
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


def failed_tests(file: str, log: Path, within_s: float = ROUND_S) -> list[str]:
    """Run the file once; return the tests that failed. `log` is kept if there is one."""
    with log.open("w") as output:
        pytest = subprocess.Popen(
            [*_PYTEST, *_SELECTION, file], cwd=ROOT, stdout=output, stderr=output, start_new_session=True
        )
        try:
            status = pytest.wait(within_s)
        except subprocess.TimeoutExpired:
            return [_OVERDUE]
        finally:
            if pytest.poll() is None:
                os.killpg(pytest.pid, signal.SIGKILL)
                pytest.wait()
    if status == 0:
        log.unlink()
        return []
    return _FAILED.findall(log.read_text(errors="replace")) or [_NO_NAME]


def stressed(file: str, rounds: int) -> Outcome:
    """Run the rounds beside the busy loops, and print each that fails."""
    outcome, began = Outcome(), time.monotonic()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with ExitStack() as loops:
        for _ in range(LOOPS):
            loops.enter_context(busy_loop())
        for number in range(1, rounds + 1):
            if time.monotonic() - began > TOTAL_S:
                break
            log = OUTPUT / f"{Path(file).stem}-{number}.log"
            failed = failed_tests(file, log)
            outcome.add(failed)
            _say(f"round {number}: {', '.join(failed) + f' ({log})' if failed else 'passed'}")
    return outcome


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - it is a command


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    outcome = stressed(arguments.file, arguments.rounds)
    _say(outcome.report(arguments.rounds))
    return 0 if outcome.passed == arguments.rounds else 1


if __name__ == "__main__":
    sys.exit(main())
