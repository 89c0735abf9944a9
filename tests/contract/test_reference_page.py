"""The page of settings and paths lists what the code defines."""

from tests.contract import reference_page


def test_the_page_is_what_the_code_defines() -> None:
    message = "run: .venv/bin/python -m tests.contract.reference_page"
    assert reference_page.PAGE.read_text() == reference_page.page(), message


def test_every_setting_has_a_description() -> None:
    for kind in reference_page.PARTS.values():
        assert all(info.description for info in kind.model_fields.values()), kind
