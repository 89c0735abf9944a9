"""The page in a real browser, over the real extender."""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.extender.admin.exchange.test_process import running, until_answered
from tests.extender.admin.test_server import free_port
from tests.extender.conftest import World
from tests.vgpu.simulator.process import Run

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><b>text</b>"


async def test_a_pod_appears_by_itself_with_its_card_and_what_it_has(page: Page, run: Run) -> None:
    await page.goto(f"{run.admin}/")
    await expect(page.get_by_text("2 of 2")).to_be_visible()
    await expect(page.locator("#connection")).to_have_text("live")
    await page.get_by_label("As").select_option("list")
    assert run.create("appears", gpu_mem=8192, gpu_cores=30).status_code == 201
    link = page.get_by_role("link", name="default/appears")
    await expect(link).to_be_visible()
    await link.click()
    await expect(page.get_by_role("heading", name="default/appears")).to_be_visible()
    await expect(page.get_by_role("cell", name="8 GiB", exact=True)).to_be_visible()
    await page.get_by_role("link", name="History").click()
    decision = page.locator("tr", has_text="default/appears").filter(has_text="decision").first
    await expect(decision).to_contain_text("8 GiB, 30 %")


async def test_a_card_that_is_not_there_is_an_error_without_empty_sections(page: Page, run: Run) -> None:
    await page.goto(f"{run.admin}/#/card/GPU-none")
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(page.get_by_role("heading", name="Containers")).to_be_hidden()
    await expect(page.get_by_role("heading", name="Charts")).to_be_hidden()


async def test_a_period_that_is_none_is_the_usual_one(page: Page, run: Run) -> None:
    await page.goto(f"{run.admin}/#/usage?period=always")
    await expect(page.get_by_text("A card-hour is a whole card for an hour")).to_be_visible()
    await expect(page.locator(".controls select").nth(1)).to_have_value("7d")


async def test_policies_are_compared_only_for_pods_that_can_be(page: Page, run: Run) -> None:
    await page.goto(f"{run.admin}/#/fit")
    await page.get_by_label("Memory of each card, GiB").fill("-1")
    await page.get_by_role("button", name="Compare policies").click()
    await expect(page.get_by_text("Asking…")).to_have_count(0)
    await expect(page.locator("input:invalid")).to_be_focused()


HIDDEN = "Object.defineProperty(document, 'hidden', {get: () => window.isHidden === true})"


async def show(page: Page, *, is_hidden: bool) -> None:
    """As a browser tells a page that another tab is in front of it; Playwright has all pages in front."""
    await page.evaluate(f"window.isHidden = {str(is_hidden).lower()}")
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


async def test_pages_in_other_tabs_leave_the_connections_to_the_one_that_is_seen(browser: Browser, run: Run) -> None:
    """A browser has six connections to a host, and a stream keeps one."""
    context = await browser.new_context()
    others = [await context.new_page() for _ in range(6)]
    for other in others:
        await other.add_init_script(HIDDEN)
        await other.goto(f"{run.admin}/")
        await other.get_by_label("As").select_option("list")
        await expect(other.locator("#connection")).to_have_text("live")
        await show(other, is_hidden=True)
    page, first = await context.new_page(), others[0]
    await page.goto(f"{run.admin}/#/pods")
    await expect(page.locator("#connection")).to_have_text("live")
    assert run.create("later", gpu_mem=8192).status_code == 201
    await expect(page.get_by_role("link", name="default/later")).to_be_visible()
    await expect(first.get_by_role("link", name="default/later")).to_have_count(0)
    await show(first, is_hidden=False)
    await expect(first.get_by_role("link", name="default/later")).to_be_visible()
    await context.close()


async def test_a_waiting_pod_is_explained(page: Page, run: Run) -> None:
    assert run.create("huge", gpu_mem=200_000).status_code == 201
    await page.goto(f"{run.admin}/#/waiting")
    await expect(page.get_by_text("The cards are smaller than the request").first).to_be_visible()
    await expect(page.locator("#waiting-count")).to_have_text("1")
    await expect(page.get_by_text("A pod's own page says what would help.")).to_be_visible()
    await page.get_by_role("link", name="default/huge").click()
    await expect(page.get_by_role("heading", name="What would help")).to_be_visible()
    await expect(page.get_by_text("ask for 80 GiB or less")).to_be_visible()


async def test_an_administrator_cordons_a_card_and_takes_it_back(page: Page, run: Run) -> None:
    await page.goto(f"{run.admin}/")
    await page.get_by_label("As").select_option("list")
    await page.get_by_role("button", name="Cordon").first.click()
    await expect(page.get_by_role("button", name="Uncordon")).to_be_visible()
    run.admin_has("gpus?cordoned=true", lambda answer: len(answer["items"]) == 1)
    await page.get_by_label("Show").select_option("cordoned")
    await expect(page.locator("tbody tr:not(.group)")).to_have_count(1)
    await page.get_by_role("button", name="Uncordon").click()
    await expect(page.get_by_text("No card matches.")).to_be_visible()


async def test_a_tile_opens_its_card_with_charts_and_back_keeps_filter_and_focus(page: Page, run: Run) -> None:
    assert run.create("appears", gpu_mem=8192, gpu_cores=30).status_code == 201
    used = run.admin_has("gpus", lambda answer: any(card["podCount"] for card in answer["items"]))["items"]
    (uuid,) = [card["uuid"] for card in used if card["podCount"]]
    run.admin_has(f"gpus/{uuid}/series?since=24h", lambda answer: answer["card"]["untilMs"])  # the first five minutes
    await page.goto(f"{run.admin}/")
    tiles = page.locator(".cardtile")
    await expect(tiles).to_have_count(8)
    await page.get_by_label("Show").select_option("used")
    tile = tiles.first
    await expect(tiles).to_have_count(1)
    await tile.click()
    await expect(page.get_by_text(re.compile(r"GiB of 80\sGiB allocated"))).to_be_visible()
    await expect(page.get_by_role("link", name="default/appears")).to_be_visible()
    chart = page.get_by_role("img", name="Time used. the card: last")
    await expect(chart.locator("canvas")).to_be_visible()
    async with page.expect_request(re.compile(r"/series\?since=1h")):
        await page.get_by_label("of the last").select_option("hour")
    await expect(page).to_have_url(re.compile(r"\?time=1h$"))
    await page.go_back()
    await expect(tile).to_be_focused()
    await expect(page.get_by_label("Show")).to_have_value("used")


async def test_few_cards_have_tiles_with_figures_and_many_have_small_ones(page: Page, run: Run) -> None:
    amount = 64

    async def many(route: Route) -> None:
        answered = await (await route.fetch()).json()
        free = answered["items"][0] | {"node": "n", "podCount": 0, "allocatedMiB": 0, "allocatedCores": 0}
        used = free | {"podCount": 1, "allocatedMiB": 8192, "allocatedCores": 30}
        cards = [used, free | {"cordoned": True}, *(amount - 2) * [free]]
        await route.fulfill(json=answered | {"items": [{**card, "uuid": str(n)} for n, card in enumerate(cards)]})

    await page.route("**/api/v1/gpus?**", many)
    await page.goto(f"{run.admin}/")
    await expect(page.locator(".cardtile")).to_have_count(amount)
    used = page.locator(".cardtile", has_text="1 pod")
    await expect(used).to_have_text(re.compile(r"card \d1 pod8\sGiB of 80\sGiB30\s% of time"))
    await expect(page.locator(".cardtile.closed")).to_contain_text("closed")
    await expect(page.get_by_text("Left: memory allocated")).to_be_hidden()
    amount = 65
    await page.reload()
    await expect(page.locator(".cardtile")).to_have_count(amount)
    await expect(page.locator(".cardtile", has_text=re.compile("."))).to_have_count(0)
    await expect(page.get_by_text("Left: memory allocated")).to_be_visible()
    await page.get_by_label("Show").select_option("used")
    await expect(used).to_have_count(1)


async def test_filters_apply_while_one_types(page: Page, run: Run) -> None:
    await page.goto(f"{run.admin}/")
    await expect(page.get_by_text("8 of 8 cards")).to_be_visible()
    await page.get_by_label("Node", exact=True).press_sequentially("DE-2")
    await expect(page.get_by_text("4 of 8 cards")).to_be_visible()
    await page.get_by_label("Model", exact=True).press_sequentially("no such card")
    await expect(page.get_by_text("No card matches.")).to_be_visible()


async def test_a_live_update_changes_a_tile_and_reads_no_list(page: Page, run: Run) -> None:
    """At 5,000 cards a list takes half a second; what has changed is in the stream."""
    lists: list[str] = []
    page.on("request", lambda request: lists.append(request.url) if "/api/v1/gpus?" in request.url else None)
    await page.goto(f"{run.admin}/")
    await expect(page.get_by_text("8 of 8 cards")).to_be_visible()
    await expect(page.locator("#connection")).to_have_text("live")
    assert len(lists) == 1, "the stream is opened first: one load is enough"
    assert run.create("appears", gpu_mem=8192, gpu_cores=30).status_code == 201
    await expect(page.get_by_role("button", name=re.compile("and 30\\s% of time guaranteed"))).to_have_count(1)
    await expect(page.get_by_text("1 running")).to_be_visible()
    assert len(lists) == 1


async def test_a_live_map_is_not_read_again_to_see_whether_it_is_old(page: Page, run: Run) -> None:
    """Every minute the page asks whether what it shows is old; it read all cards again for that."""
    lists: list[str] = []
    page.on("request", lambda request: lists.append(request.url) if "/api/v1/gpus?" in request.url else None)

    async def aged(route: Route) -> None:
        answered = await route.fetch()
        await route.fulfill(json=await answered.json() | {"staleSince": "2026-11-22T12:00:00+00:00"})

    await page.clock.install()
    await page.goto(f"{run.admin}/")
    await expect(page.get_by_text("8 of 8 cards")).to_be_visible()
    await expect(page.locator("#connection")).to_have_text("live")
    old = page.get_by_text("What this page shows is of")
    await page.route("**/api/v1/summary", aged)
    await page.clock.fast_forward(61_000)
    await expect(old).to_be_visible()
    await page.unroute("**/api/v1/summary")
    await page.clock.fast_forward(61_000)
    await expect(old).to_be_hidden()
    assert len(lists) == 1


async def test_racks_group_the_nodes_of_the_map(page: Page, run: Run) -> None:
    def label(rack: str | None) -> None:
        patch = {"metadata": {"labels": {"vgpu.io/rack": rack}}}
        headers = {"Content-Type": "application/merge-patch+json"}
        run.http.patch("/api/v1/nodes/node-2", content=json.dumps(patch), headers=headers).raise_for_status()

    label("r10")
    run.admin_has("gpus?rack=r10", lambda answer: len(answer["items"]) == 4)
    await page.goto(f"{run.admin}/#/cards")
    await page.get_by_label("By").select_option("rack")
    headings = page.locator(".rackname")
    await expect(headings).to_have_text(["No rack (4 cards)", "r10 (1 node, 4 cards)"])
    await page.reload()
    await expect(headings).to_have_count(2)  # the address says it
    label(None)
    await expect(headings).to_have_text(["No rack (8 cards)"])  # by itself


async def test_a_part_of_a_namespace_chooses_the_cards_that_its_pods_have(page: Page, run: Run) -> None:
    assert run.create("appears", gpu_mem=8192).status_code == 201
    run.admin_has("gpus?fields=namespaces", lambda answer: {"namespaces": ["default"]} in answer["items"])
    await page.goto(f"{run.admin}/#/cards?namespace=EFAU")
    await expect(page.get_by_text("1 of 8 cards")).to_be_visible()
    await expect(page.get_by_label("Namespace")).to_have_value("EFAU")
    await page.get_by_label("Namespace").press_sequentially("x")
    await expect(page.get_by_text("No card matches.")).to_be_visible()
    await page.get_by_label("Namespace").fill("")
    await expect(page.get_by_text("8 of 8 cards")).to_be_visible()


async def test_the_focus_stays_with_its_pod_while_others_come(page: Page, run: Run) -> None:
    assert run.create("middle", gpu_mem=1024).status_code == 201
    await page.goto(f"{run.admin}/#/pods")
    middle = page.get_by_role("link", name="default/middle")
    await middle.focus()
    assert run.create("before", gpu_mem=1024).status_code == 201
    await expect(page.get_by_role("link", name="default/before")).to_be_visible()
    await expect(middle).to_be_focused()


async def test_figures_look_old_while_nothing_is_heard(page: Page, run: Run) -> None:
    await page.goto(f"{run.admin}/")
    await expect(page.locator("#connection")).to_have_text("live")
    await expect(page.locator("main")).not_to_have_class("stale")
    await page.route("**/api/v1/events", lambda route: route.fulfill(status=503, content_type="text/plain", body=""))
    await page.reload()
    await expect(page.locator("#connection")).to_contain_text("trying again (not live since")
    await expect(page.locator("main")).to_have_class("stale")
    await expect(page.get_by_text("8 of 8 cards")).to_be_visible()  # lists answer
    await page.unroute("**/api/v1/events")
    await expect(page.locator("#connection")).to_have_text("live")
    await expect(page.locator("main")).not_to_have_class("stale")


async def test_a_card_is_closed_and_opened_by_keyboard_alone(page: Page, run: Run) -> None:
    await page.goto(f"{run.admin}/")
    first = page.get_by_role("button", name="node-1 card 0,")
    await expect(first).to_be_visible()
    await first.focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("button", name="node-1 card 1,")).to_be_focused()
    await page.keyboard.press("End")
    await expect(page.get_by_role("button", name="node-2 card 3,")).to_be_focused()
    await page.keyboard.press("Home")
    await page.keyboard.press("Enter")
    close = page.get_by_role("button", name="Cordon", exact=True)
    await close.press("Enter")
    await expect(page.get_by_role("button", name="Cordon it")).to_be_focused()
    await page.get_by_role("button", name="Cancel").press("Enter")
    await expect(close).to_be_focused()
    await close.press("Enter")
    await page.keyboard.press("Enter")
    again = page.get_by_role("button", name="Uncordon")
    await expect(again).to_be_focused()
    run.admin_has("gpus?cordoned=true", lambda answer: len(answer["items"]) == 1)
    await page.get_by_role("link", name="All cards").press("Enter")
    await expect(page.get_by_role("button", name="node-1 card 0,")).to_have_class("cardtile closed")
    await page.keyboard.press("Enter")
    await again.press("Enter")
    await expect(close).to_be_focused()
    run.admin_has("gpus?cordoned=true", lambda answer: not answer["items"])


async def test_nodes_are_in_natural_order_and_hostile_names_stay_text(page: Page, run: Run) -> None:
    async def answer(route: Route) -> None:
        card = {
            "index": 0, "model": HOSTILE, "memoryMiB": 1024, "allocatedMiB": 0, "allocatedCores": 0, "heldWhole": False,
            "healthy": False, "reason": HOSTILE, "nodeReason": "", "countsOn": "", "cordoned": False, "podCount": 0,
            "usedCores": None, "staleSince": "",
        }  # fmt: skip
        nodes = [f"node-{n}" for n in (10, 2, 1)] + [HOSTILE]
        items = [{**card, "node": node, "uuid": f"GPU-{n}"} for n, node in enumerate(nodes)]
        await route.fulfill(content_type="application/json", body=json.dumps({"items": items, "nextCursor": ""}))

    await page.route("**/api/v1/gpus*", answer)
    await page.goto(f"{run.admin}/#/cards")
    await expect(page.locator(".mapname")).to_have_text([HOSTILE, "node-1", "node-2", "node-10"])
    assert "owned" not in await page.title()


async def test_the_card_and_the_pod_of_a_member_show_its_group(page: Page, run: Run) -> None:
    assert run.create("member", gpu_mem=2048, gpu_cores=10).status_code == 201
    run.until("member", "Running")
    group = {"spaceGroup": "default/models", "namespace": "default", "name": "models", "members": 2, "cores": 20,
             "memoryMiB": 4096, "usedMiB": 1024, "usedCores": 5, "usedAt": ""}  # fmt: skip

    async def of_group(route: Route) -> None:
        found = await (await route.fetch()).json()
        if "pod" in found:
            found["pod"] |= {"computePolicy": "space", "spaceGroup": "default/models"}
        else:
            pods = [
                held | {"spaceGroup": "default/models" if held["pod"] == "member" else ""} for held in found["pods"]
            ]
            found |= {"spaceGroups": [group], "pods": pods}
        await route.fulfill(json=found)

    (card,) = {grant["uuid"] for grant in run.admin_has("pods/default/member", lambda pod: pod.get("gpus"))["gpus"]}
    for path in (f"gpus/{card}", "pods/default/member/explain"):
        await page.route(f"**/api/v1/{path}", of_group)
    await page.goto(f"{run.admin}/#/pods/default/member")
    await expect(page.locator("dl")).to_contain_text("Group in spacedefault/models")
    await page.goto(f"{run.admin}/#/cards/{card}")
    listed = page.get_by_role("list", name="Groups in space")
    await expect(listed).to_have_text("default/models 2 members: 4\u00a0GiB, 20\u00a0%; uses 1\u00a0GiB, 5\u00a0%")
    await expect(page.get_by_text("main: 2\u00a0GiB, 10\u00a0%, in the group default/models")).to_be_visible()
    await page.unroute_all()
    await page.reload()
    await expect(page.get_by_role("heading", name="Containers")).to_be_visible()
    await expect(page.locator(".stacks")).to_be_visible()
    await expect(listed).to_have_count(0)


async def test_the_page_of_a_rank_shows_the_other_ranks_with_their_cards(page: Page, run: Run) -> None:
    assert run.create("rank-0", gpu_mem=2048).status_code == 201
    run.until("rank-0", "Running")
    others = [
        {"namespace": "default", "name": "rank-0", "node": "node-1", "gpus": []},
        {"namespace": "default", "name": HOSTILE, "node": "node-1", "gpus": [{"index": 2}, {"index": 1}, {"index": 2}]},
        {"namespace": "default", "name": "rank-2", "node": "", "gpus": []},
    ]

    async def of_gang(route: Route) -> None:
        found = await (await route.fetch()).json()
        found["pod"]["gang"] = "train"
        await route.fulfill(json=found)

    async def ranks(route: Route) -> None:
        assert "gang=train" in route.request.url
        await route.fulfill(json={"items": others, "nextCursor": ""})

    await page.route("**/api/v1/pods/default/rank-0/explain", of_gang)
    await page.route("**/api/v1/pods?*", ranks)
    await page.goto(f"{run.admin}/#/pods/default/rank-0")
    await expect(page.locator("dl")).to_contain_text(
        f"Gangtrain · default/{HOSTILE} node-1, card 1, 2 · default/rank-2 waits"
    )
    assert "owned" not in await page.title()
    await page.unroute_all()


async def test_it_answers_whether_pods_would_fit(page: Page, run: Run) -> None:
    await page.goto(f"{run.admin}/#/fit")
    await page.get_by_label("Pods").fill("3")
    await page.get_by_role("button", name="Ask").click()
    await expect(page.get_by_text("All 3 pods fit.")).to_be_visible()
    await page.get_by_label("Memory of each card, GiB").fill("300")
    await expect(page.get_by_text("All 3 pods fit.")).to_have_count(0)  # it was about other pods
    await page.get_by_role("button", name="Ask").click()
    await expect(page.get_by_text("0 of 3 pods fit.")).to_be_visible()
    await page.get_by_label("Memory of each card, GiB").fill("0")
    await page.get_by_role("button", name="Ask").click()
    await expect(page.get_by_text("resources.limits[vgpu.io/gpu-mem]").last).to_be_visible()


@pytest.mark.timeout(180)  # a node reports about once a minute
async def test_a_pods_page_tells_its_life_its_neighbours_and_what_it_used(page: Page, run: Run) -> None:
    for name in ("first", "second"):
        assert run.create(name, gpu_mem=8192, gpu_cores=30).status_code == 201
    run.until("second", "Running")
    await page.goto(f"{run.admin}/#/pods/default/first")
    steps = page.locator(".lifeline li strong")
    await expect(steps).to_have_text(["created", "bound", "started"])
    await expect(page.locator(".lifeline")).to_contain_text("gets card 0: 8\u00a0GiB, 30\u00a0%")
    neighbours = page.get_by_role("list", name="Neighbours").get_by_role("link")
    await expect(neighbours).to_have_text(["default/notebook-a", "default/second"])
    await expect(page.get_by_text(re.compile("^GPU-[0-9a-f-]{36}$"))).to_be_visible()
    await expect(page.get_by_role("region", name="Commands")).to_contain_text("vgpu diagnose default/first")
    memory = page.get_by_role("img", name=re.compile(r"^Memory in use\. in use: last .*; limit: last 8\sGiB"))
    await expect(memory.locator("canvas")).to_be_visible(timeout=90_000)
    await expect(page.get_by_role("img", name=re.compile(r"^Time used\. .*guarantee: last 30\s%"))).to_be_visible()
    run.delete_created()
    await expect(page.get_by_text("has no pod of this name")).to_be_visible()
    await expect(steps.last).to_have_text("ended")


async def test_a_tenant_without_the_right_to_list_cards_sees_its_own_grant(page: Page, run: Run) -> None:
    async def forbid(route: Route) -> None:
        problem = {"status": 403, "detail": "tenant may not list gpunodes", "errors": []}
        await route.fulfill(status=403, content_type="application/problem+json", body=json.dumps(problem))

    assert run.create("own", gpu_mem=8192).status_code == 201
    run.admin_has("pods?status=Running", lambda answer: answer["items"])
    for path in ("gpus**", "gpus/**", "summary", "nodes**"):
        await page.route(f"**/api/v1/{path}", forbid)
    await page.goto(f"{run.admin}/")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Pods")  # it lands on what it may see
    await page.get_by_role("link", name="default/own").click()
    await expect(page.get_by_text("Who else is on it is shown to those who may list gpunodes.")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_count(0)
    await page.goto(f"{run.admin}/#/cards")
    await expect(page.get_by_role("alert")).to_have_text("tenant may not list gpunodes. Your pods")
    await expect(page.get_by_label("Model")).to_be_hidden()
    await page.get_by_role("link", name="Your pods").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Pods")


async def test_usage_is_read_again_by_the_minute(page: Page, run: Run) -> None:
    await page.clock.install()
    await page.goto(f"{run.admin}/#/usage")
    await expect(page.get_by_role("heading", name="Containers that ask for more")).to_be_visible()
    async with page.expect_request(re.compile("/api/v1/usage")):
        await page.clock.fast_forward(61_000)


async def test_a_server_that_cannot_be_reached_is_named_in_words(page: Page, run: Run) -> None:
    await page.goto(f"{run.admin}/#/pods")
    await expect(page.locator("#connection")).to_have_text("live")
    await page.context.set_offline(True)
    await page.get_by_role("link", name="History").click()
    await expect(page.get_by_role("alert")).to_have_text("The admin REST cannot be reached. The page tries again.")


async def test_the_history_is_filtered_by_kind_and_the_address_keeps_it(page: Page, run: Run) -> None:
    assert run.create("filtered", gpu_mem=1024).status_code == 201
    run.admin_has("history?kind=start&name=filtered", lambda answer: answer["items"])
    await page.goto(f"{run.admin}/#/history")
    rows = page.locator("tbody tr", has_text="default/filtered")
    await expect(rows).to_have_count(2)
    await expect(rows.nth(1)).to_contain_text("decision")  # before its start, which the kubelet tells in whole seconds
    await page.get_by_label("Event").select_option("start")
    await expect(rows).to_have_count(1)
    await page.reload()
    await expect(page.get_by_label("Event")).to_have_value("start")
    await expect(rows).to_have_count(1)


@pytest.mark.parametrize("view", ["cards", "waiting", "pods", "fit", "usage", "history"])
async def test_every_view_opens_on_a_small_screen_too(page: Page, run: Run, view: str) -> None:
    await page.set_viewport_size({"width": 400, "height": 700})
    await page.goto(f"{run.admin}/#/{view}")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await expect(page.locator("[aria-current=page]")).to_have_count(1)
    menu = page.get_by_role("button", name="Menu")
    await expect(page.get_by_role("link", name="History")).to_be_hidden()
    await menu.press("Enter")
    await expect(page.get_by_role("link", name="History")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(menu).to_be_focused()
    await expect(page.get_by_role("alert")).to_have_count(0)
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width <= 400, "the page is wider than the screen"


@pytest.mark.parametrize(("view", "label", "wrong"), [("pods", "Labels", "a b: c"), ("history", "Pod", "n" * 300)])
async def test_what_is_wrong_with_a_filter_is_said_until_it_is_mended(
    page: Page, run: Run, view: str, label: str, wrong: str
) -> None:
    """The page kept the rows of the filter before, and an error stayed after the filter was empty again."""
    await page.goto(f"{run.admin}/#/{view}")
    await expect(page.locator("#connection")).to_have_text("live")
    written = page.get_by_label(label, exact=True)
    await written.fill(wrong)
    await written.press("Enter")
    await expect(page.get_by_role("alert")).to_be_visible()
    await written.fill("")
    await written.press("Enter")
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_a_row_that_begins_with_a_number_is_readable_on_a_small_screen(page: Page, run: Run) -> None:
    """The first column of a wide table is as narrow as its number: in stacked rows each letter had its own line."""
    assert run.create("huge", gpu_mem=200_000).status_code == 201
    await page.set_viewport_size({"width": 400, "height": 700})
    await page.goto(f"{run.admin}/#/pods/default/huge")
    number = page.locator("td.number[data-label=Nodes]").first
    await expect(number).to_be_visible()
    box = await number.bounding_box()
    assert box is not None
    assert box["height"] < 40
    assert box["width"] > 200


async def test_several_kinds_of_pods_are_asked_about_at_once(page: Page, run: Run) -> None:
    """By keyboard: the fields of the new kind have the focus."""
    await page.goto(f"{run.admin}/#/fit")
    await page.get_by_role("button", name="Add another kind").press("Enter")
    other = page.get_by_role("group", name="another kind")
    await expect(other.get_by_label("Memory of each card, GiB")).to_be_focused()
    await page.keyboard.type("300")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("1 of 2 pods fit.")).to_be_visible()
    await expect(page.get_by_role("row", name="300 GiB")).to_contain_text("smaller than the request")
    await other.get_by_role("button", name="Remove this kind").press("Enter")
    await expect(page.get_by_text("1 of 2 pods fit.")).to_have_count(0)
    await page.get_by_role("button", name="Ask").press("Enter")
    await expect(page.get_by_text("The pod fits.")).to_be_visible()


async def test_policies_are_compared(page: Page, run: Run) -> None:
    await page.goto(f"{run.admin}/#/fit")
    await page.get_by_label("Pods").fill("2")
    await page.get_by_role("button", name="Compare policies").click()
    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(7, timeout=20_000)
    await expect(rows.filter(has_text="spread")).to_contain_text("2 of 2")


async def test_each_reason_to_wait_stands_once(page: Page, run: Run) -> None:
    for name in ("one", "two"):
        assert run.create(name, gpu_mem=200_000).status_code == 201
    await page.goto(f"{run.admin}/#/waiting")
    await expect(
        page.get_by_role("heading", name="The cards are smaller than the request CardTooSmall 2 pods")
    ).to_be_visible()
    await expect(page.locator("tbody tr")).to_have_count(2)
    await expect(page.locator("tbody").get_by_text("smaller than the request")).to_have_count(0)


async def test_a_gang_that_waits_for_its_members_says_how_many_there_are(page: Page, run: Run) -> None:
    gang = {"vgpu.io/gang": "train", "vgpu.io/gang-size": "3"}
    for name in ("train-0", "train-1"):
        assert run.create(name, gang, gpu_mem=1024).status_code == 201
    await page.goto(f"{run.admin}/#/waiting")
    row = page.get_by_role("row", name="default/train-1")
    await expect(row.get_by_role("cell").last).to_have_text(
        "Gang train of 3 pods: 2 exist; waits for 1 more pod of its namespace with vgpu.io/gang: train. "
    )


async def test_the_schedulers_own_words_stand_beside_a_pod_that_would_fit(page: Page, run: Run) -> None:
    """What a node has of other resources is not compared here, so only kube-scheduler's words tell."""
    limits = {"vgpu.io/gpu-mem": 1024, "example.com/licence": 1}
    container = {"name": "main", "image": "x", "resources": {"limits": limits}}
    assert run.create("elsewhere", spec={"containers": [container]}).status_code == 201
    await page.goto(f"{run.admin}/#/waiting")
    await expect(page.get_by_role("row", name="default/elsewhere")).to_contain_text("Insufficient example.com/licence")
    await page.get_by_role("link", name="default/elsewhere").click()
    await expect(page.get_by_text("Insufficient example.com/licence").first).to_be_visible()


async def test_usage_has_a_chart_by_day_its_currency_and_prints(page: Page, run: Run) -> None:
    def row(name: str, day: str, hours: float) -> dict[str, Any]:
        seconds = {
            "shareSeconds": 3600 * hours,
            "gpuSecondsAsked": 3600.0,
            "gpuSecondsUsed": 1800.0,
            "waitingSeconds": 5.0,
        }
        return {
            "group": {"namespace": name, "day": day},
            **seconds,
            "mibHours": 8192.0,
            "bound": 3,
            "cost": 2.5 * hours,
        }

    async def of_three_days(route: Route) -> None:
        of_namespaces = "by=namespace" in route.request.url  # the day's rows have namespaces that the chart leaves out
        names = ("research", "serving") if of_namespaces else ("research", "serving", "small")
        items = [row(name, f"2026-11-2{day}", day + 1) for name in names for day in range(3)]
        period = {"since": "2026-11-20T00:00:00.000Z", "until": "2026-11-23T00:00:00.000Z"}
        shown = items if "by=day" in route.request.url else items[::3]
        await route.fulfill(json=period | {"items": shown, "itemsLeftOut": 0, "currency": "EUR", "staleSince": ""})

    await page.route("**/api/v1/usage?**", of_three_days)
    await page.goto(f"{run.admin}/#/usage")
    chart = page.get_by_role("img", name="Card-hours by day. all: last 9, most 9; research: last 3, most 3")
    await expect(chart.locator("canvas")).to_be_visible()
    await expect(page.get_by_role("columnheader", name="Cost, EUR")).to_be_visible()
    await expect(page.get_by_role("row", name="research")).to_contain_text("2.50")
    await page.emulate_media(media="print")
    await page.set_viewport_size({"width": 718, "height": 1000})  # A4 without its margins
    await expect(page.get_by_role("navigation")).to_be_hidden()
    await expect(page.get_by_role("button", name="CSV")).to_be_hidden()
    await expect(page.get_by_role("row", name="serving")).to_be_visible()
    cells = await page.get_by_role("row", name="serving").get_by_role("cell").all()
    tops = {await cell.evaluate("cell => cell.getBoundingClientRect().top") for cell in cells}
    assert len(tops) == 1, "a table, and no stacked rows"
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_a_dark_wide_page_prints_light_with_the_whole_chart(page: Page, run: Run) -> None:
    """On paper the chart of a wide screen was cut off, and that of a dark page was pale, as all text was."""
    await page.emulate_media(color_scheme="dark")
    await page.route("**/api/v1/usage?**", month)
    await page.goto(f"{run.admin}/#/usage?period=before")
    canvas = page.locator(".chart canvas")
    await expect(canvas).to_be_visible()
    light = "color => [...color.matchAll(/\\d+/g)].slice(0, 3).every(([part]) => part > 200)"
    ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert not await page.evaluate(light, ground), ground
    await page.emulate_media(media="print", color_scheme="dark")
    await page.set_viewport_size({"width": 718, "height": 1000})
    ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert await page.evaluate(light, ground), ground
    figure = await page.locator(".chart").bounding_box()
    drawn = await canvas.bounding_box()
    assert figure is not None
    assert drawn is not None
    assert drawn["x"] + drawn["width"] <= figure["x"] + figure["width"]
    assert drawn["width"] > 0.9 * figure["width"]
    assert await canvas.evaluate(DARK) > 0.3, "lines are dark on paper"


async def test_a_small_window_prints_no_more_pages_than_a_wide_one(browser: Browser, run: Run) -> None:
    """Chromium counts pages before a chart is drawn again: one enlarged from 400 px left a blank page at the end."""
    pages: dict[int, list[int]] = {}
    for width in (400, 1280):
        small = await browser.new_page(viewport={"width": width, "height": 900})
        await small.route("**/api/v1/usage?**", month_of(f"team-{number}" for number in range(16)))
        await small.goto(f"{run.admin}/#/usage?period=before")
        await expect(small.locator(".chart canvas")).to_be_visible()
        printed = [await small.pdf(height=f"{height}px", width="718px") for height in range(800, 1300, 50)]
        pages[width] = [len(PDF_PAGE.findall(document)) for document in printed]
        await small.close()
    assert pages[400] == pages[1280]
    assert set(pages[1280]) == {1, 2}, "heights on both sides of one page"


PDF_PAGE = re.compile(rb"/Type\s*/Page\b")  # \b: not /Pages

# The part of the opaque pixels of a canvas, which are those of its lines, that are dark.
DARK = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let opaque = 0, dark = 0;
  for (let at = 0; at < data.length; at += 4) {
    opaque += data[at + 3] === 255;
    dark += data[at + 3] === 255 && data[at] < 190;
  }
  return dark / opaque;
}"""


def month_of(namespaces: Iterable[str]) -> Callable[[Route], Awaitable[None]]:
    """Answer with a month of these namespaces."""
    names = tuple(namespaces)
    return lambda route: _answer_month(route, names)


async def month(route: Route) -> None:
    """Answer with a month of three namespaces."""
    await _answer_month(route, ("research", "serving", "n" * 63))


async def _answer_month(route: Route, names: tuple[str, ...]) -> None:
    days = [f"2026-10-{day:02}" for day in range(1, 32)]
    is_daily = "by=day" in route.request.url
    limit = re.search(r"limit=(\d+)", route.request.url)
    names = names[: int(limit[1])] if limit else names
    figures = {"shareSeconds": 3.6e6, "gpuSecondsAsked": 3600.0, "gpuSecondsUsed": None, "waitingSeconds": 5.0}
    items = [
        {"group": {"namespace": name, "day": day}, **figures, "mibHours": 8192.0, "bound": 3, "cost": 2.5}
        for name in names
        for day in (days if is_daily else days[:1])
    ]
    period = {"since": "2026-10-01T00:00:00.000Z", "until": "2026-11-01T00:00:00.000Z"}
    await route.fulfill(json=period | {"items": items, "itemsLeftOut": 0, "currency": "EUR", "staleSince": ""})


async def test_a_fault_of_the_page_is_not_called_a_fault_of_the_connection(page: Page, run: Run) -> None:
    async def without_groups(route: Route) -> None:
        await route.fulfill(json={"items": [{}]})

    await page.route("**/api/v1/usage?**", without_groups)
    await page.goto(f"{run.admin}/#/usage")
    await expect(page.get_by_role("alert")).to_contain_text("Cannot read properties")
    await expect(page.get_by_text("cannot be reached")).to_have_count(0)


async def test_ill_and_closed_cards_are_marked_and_found(page: Page, run: Run) -> None:
    async def marked(route: Route) -> None:
        answered = await (await route.fetch()).json()
        answered["items"][0] |= {"healthy": False, "reason": "Xid79"}
        answered["items"][1]["nodeReason"] = "PluginAway"
        await route.fulfill(json=answered)

    await page.route("**/api/v1/gpus?**", marked)
    await page.goto(f"{run.admin}/")
    for state, name in (("unhealthy", "unhealthy: Xid79"), ("closed", "closed: PluginAway")):
        await page.get_by_label("Show").select_option(state)
        await expect(page.locator(f".cardtile.{state}")).to_have_count(1)
        await expect(page.locator(".cardtile")).to_have_accessible_name(re.compile(f"{name}$"))


async def test_usage_is_had_as_csv(page: Page, run: Run) -> None:
    await page.goto(f"{run.admin}/#/usage")
    await expect(page.get_by_role("status").filter(has_text="A card-hour is")).to_be_visible(timeout=20_000)
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="CSV").click()
    download = await downloading.value
    assert download.suggested_filename == "usage-by-namespace.csv"
    text = await asyncio.to_thread(Path(await download.path()).read_text)
    assert text.startswith('"namespace","card-hours"')


async def test_the_csv_has_the_rows_that_the_table_leaves_out(page: Page, run: Run) -> None:
    row = {
        "shareSeconds": 3600.0,
        "gpuSecondsAsked": 3600.0,
        "gpuSecondsUsed": None,
        "waitingSeconds": 0.0,
        "mibHours": 1024.0,
        "bound": 1,
        "cost": None,
    }

    async def of_three_owners(route: Route) -> None:
        period = {"since": "2026-11-20T00:00:00.000Z", "until": "2026-11-23T00:00:00.000Z"}
        is_whole = "limit=10000" in route.request.url
        items = [{"group": {"owner": f"Job/{n}", "day": "2026-11-20", "namespace": "team"}} | row for n in range(3)]
        shown = {"items": items if is_whole else items[:1], "itemsLeftOut": 7 if is_whole else 9}
        await route.fulfill(json=period | shown | {"currency": "", "staleSince": ""})

    await page.route("**/api/v1/usage?**", of_three_owners)
    await page.goto(f"{run.admin}/#/usage?by=owner")
    await expect(page.get_by_text("9 more rows are not shown.")).to_be_visible(timeout=20_000)
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="CSV").click()
    text = await asyncio.to_thread(Path(await (await downloading.value).path()).read_text)
    lines = text.splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ['"Job/0"', '"Job/1"', '"Job/2"', '"7 more are left out"']


async def test_the_longest_names_push_nothing_off_the_screen(page: Page, run: Run) -> None:
    """One pod's name of 253 characters widened the column of all rows, and moved every button beyond the screen."""
    longest = "n" * 253

    async def with_long_names(route: Route) -> None:
        answer = await (await route.fetch()).json()
        first = answer["items"][0]
        first |= {"name": longest, "node": longest, "reason": longest, "healthy": False}
        tenant = {
            "namespace": "n" * 63,
            "pod": longest,
            "container": "c" * 63,
            "memoryMiB": 1,
            "cores": 1,
            "whole": False,
        }
        first["pods"] = [tenant]
        await route.fulfill(content_type="application/json", body=json.dumps(answer))

    assert run.create("appears", gpu_mem=1024).status_code == 201
    run.admin_has("pods", lambda answer: answer["items"])
    await page.route("**/api/v1/gpus*", with_long_names)
    await page.route("**/api/v1/pods?*", with_long_names)
    for view in ("cards?as=list", "pods"):
        await page.goto(f"{run.admin}/#/{view}")
        await expect(page.get_by_text(longest).first).to_be_attached()
        table = page.locator(".scroll")
        assert await table.evaluate("shown => shown.scrollWidth <= shown.clientWidth"), view
    await page.goto(f"{run.admin}/#/cards?as=list")
    await expect(page.get_by_role("button", name="Cordon").last).to_be_in_viewport()
    await expect(page.get_by_role("link", name=longest)).to_have_attribute("title", f"{'n' * 63}/{longest}")


@pytest.mark.parametrize("address", ["%", "toString", "__proto__", "pods/%", "cards/%ff", "no-such-view", ""])
async def test_every_address_shows_a_view(page: Page, run: Run, address: str) -> None:
    await page.goto(f"{run.admin}/#/{address}")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await expect(page.locator("[aria-current=page]")).to_have_count(1)


async def test_what_the_api_server_says_while_the_extender_starts_is_words(page: Page, run: Run) -> None:
    status = {"kind": "Status", "message": "no endpoints available for service", "code": 503, "errors": 5}

    async def unavailable(route: Route) -> None:
        await route.fulfill(status=503, content_type="application/json", body=json.dumps(status))

    await page.route("**/api/v1/gpus*", unavailable)
    await page.goto(f"{run.admin}/#/cards")
    await expect(page.get_by_role("alert")).to_have_text(
        "The admin REST does not answer now (no endpoints available for service). The page tries again."
    )


async def test_text_of_users_stays_text(page: Page, run: Run) -> None:
    async def answer(route: Route) -> None:
        pod = {"namespace": "default", "name": HOSTILE, "requested": HOSTILE, "waitsSince": "", "message": HOSTILE}
        nearest = {"node": HOSTILE, "detail": HOSTILE, "wouldHelp": [f"default/{HOSTILE}"]}
        body = {"items": [{**pod, "nearest": nearest}], "nextCursor": ""}
        await route.fulfill(content_type="application/json", body=json.dumps(body))

    await page.route("**/api/v1/pending*", answer)
    await page.goto(f"{run.admin}/#/waiting")
    await expect(page.get_by_text(HOSTILE).first).to_be_visible()
    assert await page.locator("tbody img, tbody b").count() == 0
    assert "owned" not in await page.title()


async def test_a_token_is_asked_for_and_kept_for_the_tab(browser: Browser, world: World, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-secret-of-the-test")
    token, port = tmp_path / "token", free_port()
    settings = {"admin_auth": "token", "admin_token_file": token}
    async with running(world, tmp_path / "kubeconfig", port, **settings) as http:
        await until_answered(http)
        page = await browser.new_page()
        await page.goto(f"http://127.0.0.1:{port}/")
        await page.get_by_label("Token").fill("wrong")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("alert")).to_contain_text("is not accepted")
        await page.get_by_label("Token").fill("a-secret-of-the-test")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("heading", name="Cards")).to_be_visible()
        await expect(page.locator("#connection")).to_have_text("live")
        await page.reload()
        await expect(page.get_by_role("heading", name="Cards")).to_be_visible()
        await page.close()


async def test_vgpu_dashboard_serves_the_page_below_its_secret(page: Page, run: Run) -> None:
    command = [sys.executable, "-m", "vgpu.cli", "dashboard", "--no-browser", "--server", run.admin]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        await page.goto((await process.stdout.readline()).decode().strip())
        await expect(page.get_by_text("2 of 2")).to_be_visible()
        await expect(page.locator("#connection")).to_have_text("live")
        await page.get_by_role("link", name="REST").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("vgpushare admin")
        await page.get_by_role("link", name="OpenAPI document").click()
        await expect(page.locator("body")).to_contain_text('"openapi"')
        await page.goto("about:blank")  # nothing of the page asks the command while it ends
    finally:
        process.terminate()
        assert await process.wait() == 0
