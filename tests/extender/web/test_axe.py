"""axe-core finds nothing on any page: contrast, names, roles and headings; light, dark and on a small screen."""

import re
from importlib import resources
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.vgpu.simulator.process import Run

pytest.importorskip("axe_playwright_python", reason="a development dependency: make format installs it")
pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()
VIEWS = ("cards", "cards?as=list", "cards?by=rack", "waiting", "pods", "pods/default/seen", "pods/default/waits", "fit",
         "usage", "history", "CARD")  # fmt: skip


async def findings(page: Page) -> list[str]:
    await page.evaluate(AXE)
    found: dict[str, Any] = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("way", ["light", "dark", "small"])
async def test_no_page_has_findings(page: Page, run: Run, way: str) -> None:
    await page.emulate_media(color_scheme="dark" if way == "dark" else "light")
    if way == "small":
        await page.set_viewport_size({"width": 400, "height": 800})
    assert run.create("seen", gpu_mem=8192, gpu_cores=30).status_code == 201
    assert run.create("waits", gpu_mem=200_000).status_code == 201
    run.until("seen", "Running")
    uuid = run.admin_has("gpus?fields=uuid", lambda answer: answer["items"])["items"][0]["uuid"]
    found = []
    for view in VIEWS:
        address = view.replace("CARD", f"cards/{uuid}")
        await page.goto(f"{run.admin}/#/{address}")
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await expect(page.locator("#connection")).to_have_text("live")
        await expect(page.locator("main")).to_contain_text(re.compile(r"\w{3}.*\w{3}", re.DOTALL))
        found += [f"{way} {view}: {finding}" for finding in await findings(page)]
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
    await page.goto(f"{run.admin}/api/v1/docs")
    found += [f"{way} docs: {finding}" for finding in await findings(page)]
    assert not found, "\n".join(found)
