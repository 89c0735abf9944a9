"""The page of the REST reads as prose, and has a way back."""

import pytest

from extender.admin.routes import docs_page
from tests.extender.admin.conftest import Admin


@pytest.mark.heavy
async def test_names_stand_as_code_and_a_link_leads_back(admin: Admin) -> None:
    page = docs_page.html(await admin.get("/openapi.json"))
    assert "`" not in page.replace("```", "")
    assert "<code>nextCursor</code>" in page
    assert "<a href=../../>" in page, "relative: the page may stand behind a proxy's path"


def test_text_stays_text() -> None:
    document = {"info": {"title": "t", "version": "1", "description": "`<b>` <i>"}, "paths": {}}
    assert "<code>&lt;b&gt;</code> &lt;i&gt;" in docs_page.html(document)
