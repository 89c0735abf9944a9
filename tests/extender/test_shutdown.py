"""How the extender stops: the next leader binds as soon as no Binding of this one is under way."""

import asyncio
from typing import TYPE_CHECKING, cast

from extender.shutdown import shut_down

if TYPE_CHECKING:
    from extender.lead.leadership import Leadership
    from extender.verbs.bind import Binder


class Steps:
    """A binder and a leadership that write down what is asked of them."""

    def __init__(self, *, is_settled: bool) -> None:
        self.taken: list[str] = []
        self._is_settled = is_settled

    async def drain(self, _: float) -> bool:
        self.taken.append("drained")
        return self._is_settled

    async def resign(self) -> None:
        self.taken.append("released")

    async def run_slowly(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.taken.append("ended")


async def stopped(*, is_settled: bool) -> list[str]:
    steps = Steps(is_settled=is_settled)
    background = asyncio.create_task(steps.run_slowly())
    await asyncio.sleep(0)
    await shut_down(cast("Binder", steps), cast("Leadership", steps), background)
    return steps.taken


async def test_the_lease_is_released_before_other_work_has_ended() -> None:
    assert await stopped(is_settled=True) == ["drained", "released", "ended"]


async def test_a_lease_with_a_binding_in_doubt_is_not_released() -> None:
    assert await stopped(is_settled=False) == ["drained", "ended"]
