"""`python -m tests.contract.monitoring`: writes what is made from the rules and the tables of dashboards."""

from tests.contract.monitoring import boards, page, rules


def main() -> None:
    """Write prometheus-rules.yaml, the dashboards, and the list of alerts in docs/watch.md."""
    rules.OBJECTS.write_text(rules.objects())
    for board in boards.BOARDS:
        (boards.FOLDER / f"{board.uid}.json").write_text(board.text)
    page.PAGE.write_text(page.with_alerts(page.PAGE.read_text()))


if __name__ == "__main__":
    main()
