"""The page's files: what they refer to, and what a browser may do with them."""

import re

import httpx
import pytest
from fastapi import FastAPI

from extender.web import routes
from extender.web.file_answer import CONTENT_SECURITY_POLICY
from tests.contract.repository import ROOT

OWN = {path.name for path in (ROOT / "extender" / "web" / "files").iterdir()}
TEXTS = {name: file.body.decode() for name, file in routes.FILES.items()}
OUTSIDE = re.compile(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", re.IGNORECASE)


@pytest.fixture
def http() -> httpx.AsyncClient:
    app = FastAPI()
    app.include_router(routes.router)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x")


async def test_the_page_may_load_nothing_from_elsewhere_and_run_nothing_inline(http: httpx.AsyncClient) -> None:
    answer = await http.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert not re.search(r"<style|<script(?![^>]*src=)|\son[a-z]+=|style=", answer.text)


@pytest.mark.parametrize("name", TEXTS)
def test_no_file_names_another_site(name: str) -> None:
    """Comments of a vendored file may: browsers do not read them."""
    text = TEXTS[name].replace("http://www.w3.org/2000/svg", "")
    if name not in OWN:
        text = re.sub(r"/\*.*?\*/|(?<!\S)//[^\n]*", "", text, flags=re.DOTALL)
    assert not OUTSIDE.search(text)


@pytest.mark.parametrize("name", TEXTS)
def test_every_file_that_is_referred_to_exists_and_every_address_is_relative(name: str) -> None:
    imports = re.findall(r'from "\./([^"]+)"', TEXTS[name])
    links = re.findall(r'(?:src|href)="([^"#][^"]*)"', TEXTS[name]) if name == routes.INDEX else []
    assert all(imported in TEXTS for imported in imports)
    for link in links:
        assert not link.startswith("/"), "an absolute path does not work behind the API server's proxy"
        assert not link.startswith("web/") or link.removeprefix("web/") in TEXTS


@pytest.mark.parametrize("name", [name for name in TEXTS if name.endswith(".js")])
def test_text_is_never_parsed_as_html(name: str) -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|DOMParser", TEXTS[name])


async def test_a_file_that_the_browser_has_is_not_sent_again(http: httpx.AsyncClient) -> None:
    first = await http.get("/web/main.js")
    assert first.headers["content-type"] == "text/javascript; charset=utf-8"
    again = await http.get("/web/main.js", headers={"If-None-Match": f'"x", {first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert (await http.get("/web/main.js", headers={"If-None-Match": '"x"'})).status_code == 200


async def test_a_file_is_sent_packed_to_a_browser_that_accepts_it(http: httpx.AsyncClient) -> None:
    plain = await http.get("/web/uPlot.esm.js", headers={"Accept-Encoding": "identity"})
    packed = await http.get("/web/uPlot.esm.js", headers={"Accept-Encoding": "gzip"})
    assert (packed.headers["content-encoding"], packed.content) == ("gzip", plain.content)
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 3
    assert packed.headers["etag"] == plain.headers["etag"]
    assert packed.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize("path", ["/web/none.js", "/web/..%2f__init__.py", "/web/%2e%2e/routes.py", "/web/"])
async def test_there_are_no_other_files(http: httpx.AsyncClient, path: str) -> None:
    assert (await http.get(path)).status_code == 404
