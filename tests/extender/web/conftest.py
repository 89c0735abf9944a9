"""A real Chromium, and the control plane behind the page."""

import os
import re
import shutil
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

from tests.vgpu.simulator.process import Run, running

# What the browser itself writes about an answer of the REST that says what is wrong with a request, or about none.
REFUSED = re.compile(
    "Failed to load resource: (the server responded with a status of [45]|net::ERR_INTERNET_DISCONNECTED)"
)
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    executable = next((found for name in NAMES if (found := shutil.which(name))), None)
    if executable is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium is installed: apt-get install chromium")
        pytest.skip("no Chromium is installed: apt-get install chromium")
    async with async_playwright() as playwright:
        # Chromium's own sandbox needs namespaces that a container does not give; the page is ours.
        started = await playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        yield started
        await started.close()


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page in which an error of a script or a resource fails the test."""
    errors: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not REFUSED.match(message.text):
            errors.append(message.text)

    opened = await browser.new_page(viewport={"width": 1280, "height": 900})  # with cookies and a store of its own
    opened.on("console", on_console)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.set_default_timeout(30_000)
    yield opened
    await opened.close()
    assert errors == []


@pytest.fixture(scope="module")
def control_plane() -> Iterator[Run]:
    with running("--pods", "1", "--nodes", "2") as started:
        yield started


@pytest.fixture
def run(control_plane: Run) -> Iterator[Run]:
    """The control plane of all tests of a file, which loses the pods of a test at its end."""
    yield control_plane
    control_plane.delete_created()
