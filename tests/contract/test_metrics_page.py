"""The page of metrics lists what the code defines."""

from tests.contract import metrics_page


def test_the_page_is_what_the_code_defines() -> None:
    message = "run: .venv/bin/python -m tests.contract.metrics_page"
    assert metrics_page.PAGE.read_text() == metrics_page.page(), message
