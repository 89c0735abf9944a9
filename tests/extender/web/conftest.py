"""A real Chromium, and the control plane behind the page."""

import os
import re
import shutil
from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

from tests.vgpu.simulator.process import Run, running

# What the browser itself writes about an answer of the REST that says what is wrong with a request.
REFUSED = re.compile("Failed to load resource: the server responded with a status of 4")
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    executable = next((found for each in NAMES if (found := shutil.which(each))), None)
    if executable is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium is installed: apt-get install chromium")
        pytest.skip("no Chromium is installed: apt-get install chromium")
    async with async_playwright() as playwright:
        # Chromium's own sandbox needs namespaces that a container does not give; the page is ours.
        started = await playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        yield started
        await started.close()


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page in which an error of a script or a resource fails the test."""
    errors: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not REFUSED.match(message.text):
            errors.append(message.text)

    opened = await browser.new_page(viewport={"width": 1280, "height": 900})
    opened.on("console", on_console)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.set_default_timeout(30_000)
    yield opened
    assert errors == []


@pytest.fixture
def run() -> Iterator[Run]:
    with running("--pods", "1", "--nodes", "2") as started:
        yield started
