"""The dashboard over a large cluster, in Chromium: time to the first view, and what a live update costs the browser.

A first view begins with the navigation and ends with the frame in which every card is drawn; the browser has nothing of
the page then. A live update is one pod that comes or goes. `main thread` is all that the renderer's main thread worked
for an update, from the stream's event to the drawn frame, less what it works in as long a time without a change;
`longest task` is the longest task of it, 0 where none took 50 ms.

    python -m benchmarks.page_speed --nodes 625 --pods 20000 --json FILE
"""

import argparse
import asyncio
import itertools
import os
import shutil
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, CDPSession, Page, async_playwright

from benchmarks.calls import populated
from benchmarks.record import recorder
from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultRow, slug
from vgpu.simulator.api.cluster import InMemoryCluster

CARDS: Final = 8
WINDOW_S: Final = 3.0  # a stream brings a change within a second, the page draws at most once a second
SETTLED_S: Final = 2.0
MOST_S: Final = 120.0
SOURCES: Final = ("extender",)
FIRST_VIEW: Final = "first view"
MAIN_THREAD: Final = "live update, main thread"
LONGEST_TASK: Final = "live update, longest task"
GOAL_VIEW_S: Final = 1.5
GOAL_UPDATE_MS: Final = 50
SHOWN: Final = """
  (() => {
    const look = () => {
      const text = document.querySelector("main")?.textContent ?? "";
      if (!text.includes("ALL")) requestAnimationFrame(look);
      else requestAnimationFrame(() => setTimeout(() => { window.shownMs = performance.now(); }));
    };
    requestAnimationFrame(look);
    window.longestMs = 0;
    new PerformanceObserver((list) => {
      for (const task of list.getEntries()) window.longestMs = Math.max(window.longestMs, task.duration);
    }).observe({ type: "longtask" });
  })()
"""


@dataclass(frozen=True, slots=True)
class LiveUpdate:
    """What an update cost: the main thread's milliseconds, and those of its longest task of 50 ms or more."""

    main_thread_ms: float
    longest_ms: float


async def first_view(browser: Browser, url: str, shown: str) -> float:
    """Return the seconds of a first view, which ends when the page has the text `shown`."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        return await opened(await context.new_page(), url, shown)
    finally:
        await context.close()


async def opened(page: Page, url: str, shown: str) -> float:
    """Open the page; return the seconds until it has the text."""
    await page.add_init_script(SHOWN.replace("ALL", shown))
    await page.goto(url)
    async with asyncio.timeout(MOST_S):
        while not (ms := await page.evaluate("window.shownMs")):  # noqa: ASYNC110 - the policy forbids Playwright's wait
            await asyncio.sleep(0.05)
    return float(ms) / 1000


async def main_thread_ms(session: CDPSession) -> float:
    """Return how long the renderer's main thread has worked since its start."""
    answer = await session.send("Performance.getMetrics")
    return 1000 * next(float(metric["value"]) for metric in answer["metrics"] if metric["name"] == "TaskDuration")


async def updates(
    browser: Browser, url: str, shown: str, cluster: InMemoryCluster, count: int, pods: int
) -> list[LiveUpdate]:
    """Change a pod `count` times while the page is open; return the cost of each."""
    page = await browser.new_page(viewport={"width": 1280, "height": 900})
    await opened(page, url, shown)
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})  # not the time of other programs
    await asyncio.sleep(SETTLED_S)
    found = []
    for number in range(count):
        before = await main_thread_ms(session)
        await asyncio.sleep(WINDOW_S)
        idle = await main_thread_ms(session) - before
        await page.evaluate("window.longestMs = 0")
        before = await main_thread_ms(session)
        if number % 2:
            populated.remove_pod(cluster, pods + number - 1)
        else:
            populated.put_pod(cluster, pods + number, number, 0)
        windows = await drawn(page, f"{pods + 1 - number % 2:,} running")
        worked = await main_thread_ms(session) - before
        found.append(LiveUpdate(worked - windows * idle, float(await page.evaluate("window.longestMs"))))
    await page.close()
    return found


async def drawn(page: Page, text: str) -> int:
    """Return when the page has a text: after how many times `WINDOW_S`. It is looked at seldom, which is work too."""
    async with asyncio.timeout(MOST_S):
        for windows in itertools.count(1):
            await asyncio.sleep(WINDOW_S)
            if await page.evaluate("(text) => document.querySelector('main').textContent.includes(text)", text):
                return windows
    raise AssertionError


async def main(arguments: argparse.Namespace) -> None:
    """Print the table."""
    executable = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    cards = arguments.nodes * CARDS
    cluster = populated.new()
    populated.fill(cluster, arguments.nodes, CARDS, arguments.pods)
    async with populated.extender(cluster) as running, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        url, shown = f"{running.rest.removesuffix('/api/v1')}/", f"{cards:,} of {cards:,} cards"
        views = [await first_view(browser, url, shown) for _ in range(arguments.rounds + 1)][1:]
        costs = await updates(browser, url, shown, cluster, arguments.rounds, arguments.pods)
        await browser.close()
    found = list(rows(views, costs, {"cards": cards, "pods": arguments.pods, "load": round(os.getloadavg()[0], 1)}))
    print(f"{cards} cards, {arguments.pods} pods; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    print("| measured | median | worst | goal |")
    print("|---|---|---|---|")
    for row in found:
        print(f"| {row.id}, {row.unit} | {row.value:.2f} | {row.worst:.2f} | {row.goal} |")
    if arguments.json:
        ResultRecorder(arguments.json, "page_speed", SOURCES).add(*found)


def rows(views: Sequence[float], costs: Sequence[LiveUpdate], load: dict[str, float]) -> Iterator[ResultRow]:
    """Yield the figures: medians and worst rounds."""
    for name, took, unit, goal in (
        (FIRST_VIEW, views, "s", GOAL_VIEW_S),
        (MAIN_THREAD, [cost.main_thread_ms for cost in costs], "ms", GOAL_UPDATE_MS),
        (LONGEST_TASK, [cost.longest_ms for cost in costs], "ms", GOAL_UPDATE_MS),
    ):
        value = statistics.median(took)
        yield ResultRow(
            id=slug("page", name),
            value=value,
            unit=unit,
            worst=max(took),
            rounds=tuple(took),
            goal=f"below {goal}",
            fault="" if value < goal else f"{value:.2f} {unit}",
            details=load,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=625, help=f"with {CARDS} cards each")
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json", type=Path, help=recorder.JSON_HELP)
    asyncio.run(main(parser.parse_args()))
