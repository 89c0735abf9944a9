"""Models of the programs whose latency and throughput are published, for the simulation in virtual time."""

from tests.arbiter.simulation import GRACE, MS, US, Inference, Tenant, World

SLACK = 500 * US  # BUSY_SLACK in limiter/src/compute/gate/queue_pace.c


class WaitingInference(Inference):
    """Waits for the card after its two kernels, and estimates that each takes `accuracy` percent of its real time.

    `revoked` counts the requests during whose wait the turn was taken back.
    """

    def __init__(self, world: World, tenant: Tenant, accuracy: int = 100, jitter: int = 0) -> None:
        self.accuracy, self.revoked = accuracy, 0
        super().__init__(world, tenant, jitter=jitter)

    def launched(self, done_at: int) -> None:
        super().launched(done_at)
        if self.left:
            return
        believed = done_at - self.kernel * 2 * (100 - self.accuracy) // 100
        self.tenant.set_busy_until(believed)
        self.tenant.awaited_until = believed + self.kernel * 2 // 4 + SLACK
        self.world.at(done_at, self.wait_ended)

    def wait_ended(self) -> None:
        self.revoked += self.page.turn != self.turn
        self.tenant.awaited_until = 0
        self.tenant.busy_until = self.world.now + GRACE


class RestingInference(WaitingInference):
    """Sleeps for 8 ms after each wait, and up to `jitter` longer."""

    rest = 8 * MS

    def request(self) -> None:
        self.begin()

    def wait_ended(self) -> None:
        super().wait_ended()
        self.world.at(self.world.now + self.rest + self.random.randint(0, self.jitter), self.begin)


class ClosedLoop(RestingInference):
    """A small model that serves one request after the other: 0.5 ms of kernels, then 0.4 to 0.5 ms of its host."""

    rest = 400 * US

    def __init__(self, world: World, tenant: Tenant) -> None:
        super().__init__(world, tenant, jitter=100 * US)
        self.kernel = 260 * US
