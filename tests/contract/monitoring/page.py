"""The list of alerts in docs/watch.md."""

import re

from tests.contract.monitoring import rules
from tests.contract.repository import ROOT

PAGE = ROOT / "docs" / "watch.md"
RUNBOOK = ROOT / "docs" / "runbook.md"
_TABLE = re.compile(r"(?<=<!-- alerts -->\n).*?(?=<!-- end of alerts -->)", re.DOTALL)


def with_alerts(text: str) -> str:
    """The text of a page with the list of alerts as the rules have it."""
    rows = [
        f"| [{rule['alert']}](runbook.md#{rule['alert'].lower()}) | {rule['labels']['severity']} | {rule['for']} "
        f"| {rule['annotations']['description']} |"
        for rule in rules.alerts()
    ]
    lines = ["| alert | severity | after | what it means for users |", "|---|---|---|---|", *rows]
    return _TABLE.sub(lambda _: "\n".join(lines) + "\n", text)
