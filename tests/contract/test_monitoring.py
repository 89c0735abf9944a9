"""Alerts, rules, runbook and dashboards are in step with each other and with the metrics of the code."""

import json
import re
from typing import Any

import pytest
import yaml

from extender.explain import waiting_reason
from tests.contract.monitoring import boards, page, rules
from vgpu.adapters.metrics import MetricKind

MADE = "run: .venv/bin/python -m tests.contract.monitoring"
ALERTS = rules.alerts()
SECTIONS = re.split(r"^## ", page.RUNBOOK.read_text(), flags=re.MULTILINE)[1:]
# These reasons end while the pod waits, or kube-scheduler ends them; all others need an action.
ENDED_BY_WAITING = {
    "CardInsufficientMemory", "CardInsufficientCores", "CardHeldWhole", "CardInUse", "CardReserved", "CardKeptForGang",
    "CardAffinity", "CardAntiAffinity", "CardSpaceGroupFull", "NotJudged", "NodeInsufficientCpu",
    "NodeInsufficientMemory", "SchedulingGated",
    "GangInsufficientCards", "GangPlannedElsewhere", "GangWaits", "NotTried",
}  # fmt: skip
GRAFANA_UNITS = {"short", "bytes", "Bps", "ops", "percentunit", "s", "h", "celsius", "watt"}
EXPRESSIONS = [
    *((str(rule.get("alert") or rule["record"]), rule["expr"]) for rule in rules.rules()),
    *(
        (f"{board.uid}: {panel.title}", query)
        for board in boards.BOARDS
        for panel in board.panels
        for query, _ in panel.queries
    ),
]


def test_the_objects_are_made_of_the_plain_files() -> None:
    assert rules.OBJECTS.read_text() == rules.objects(), MADE
    for made, source in zip(yaml.safe_load_all(rules.OBJECTS.read_text()), rules.SOURCES.values(), strict=True):
        assert made["spec"] == yaml.safe_load(source.read_text())


def test_the_list_of_alerts_is_that_of_the_rules() -> None:
    text = page.PAGE.read_text()
    assert text == page.with_alerts(text), MADE
    assert all(f"#{rule['alert'].lower()})" in text for rule in ALERTS)


def test_each_alert_has_a_section_of_the_runbook_in_the_same_order() -> None:
    assert [section.partition("\n")[0] for section in SECTIONS] == [rule["alert"] for rule in ALERTS]


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_it_means_and_its_section_what_to_do(rule: dict[str, Any]) -> None:
    said = rule["annotations"]
    assert said["summary"]
    assert said["description"].endswith(".")
    assert said["runbook_url"].endswith(f"/docs/runbook.md#{rule['alert'].lower()}")
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    (section,) = [text for text in SECTIONS if text.startswith(f"{rule['alert']}\n")]
    assert said["description"] in section
    assert section.index("Look at:\n\n- ") < section.index("Do:\n\n- ")


def test_every_series_is_one_that_is_served_or_recorded() -> None:
    known = rules.served().keys() | rules.recorded()
    for where, expression in EXPRESSIONS:
        named = rules.names_in(expression)
        assert named or where == "vgpu:evaluations:one", where
        assert named <= known, where


def test_every_label_of_a_selector_is_one_of_the_metrics() -> None:
    checked = 0
    for where, expression in EXPRESSIONS:
        for name, selector in re.findall(r"\b(?<!:)(vgpu_\w+)\{([^}]*)\}", expression):
            labels = set(re.findall(r"(\w+)\s*[=!]~?\s*\"", selector))
            metric = rules.served()[name]
            assert labels <= {*metric.labels, *(["le"] if metric.kind is MetricKind.HISTOGRAM else [])}, where
            checked += 1
    assert checked > 20


def test_every_reason_for_which_pods_wait_either_needs_action_or_ends_by_waiting() -> None:
    (rule,) = [rule for rule in ALERTS if rule["alert"] == "VgpuPodsNeedAction"]
    found = re.search(r'reason=~"([^"]*)"', rule["expr"])
    assert found
    acted_on = set(found[1].split("|"))
    assert acted_on | ENDED_BY_WAITING == set(waiting_reason.ALL)
    assert not acted_on & ENDED_BY_WAITING
    (section,) = [text for text in SECTIONS if text.startswith("VgpuPodsNeedAction")]
    assert {reason for reason in acted_on if f"`{reason}`" not in section} == set()


@pytest.mark.parametrize("board", boards.BOARDS, ids=lambda board: board.uid)
def test_a_dashboard_is_made_of_the_table_and_complete(board: boards.Board) -> None:
    assert (boards.FOLDER / f"{board.uid}.json").read_text() == board.text, MADE
    made = json.loads(board.text)
    names = [variable["name"] for variable in made["templating"]["list"]]
    assert names[0] == "datasource"
    assert len({panel["id"] for panel in made["panels"]}) == len(made["panels"])
    for panel in made["panels"]:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["fieldConfig"]["defaults"]["unit"] in GRAFANA_UNITS
        assert panel["description"]
        assert all(target["legendFormat"] for target in panel["targets"])
    used = set(re.findall(r"\$(?!__)(\w+)", json.dumps([panel["targets"] for panel in made["panels"]])))
    assert used == set(names[1:]), "a variable without use, or one that is not there"


@pytest.mark.parametrize("board", boards.BOARDS, ids=lambda board: board.uid)
def test_panels_do_not_overlap(board: boards.Board) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(board.text)["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken
        taken |= cells


def test_the_kustomization_has_every_file_that_is_made() -> None:
    listed = yaml.safe_load((rules.FOLDER / "kustomization.yaml").read_text())
    assert listed["resources"] == [rules.OBJECTS.name]
    (made,) = listed["configMapGenerator"]
    assert made["files"] == [f"dashboards/{board.uid}.json" for board in boards.BOARDS]
    assert {path.name for path in boards.FOLDER.iterdir()} == {f"{board.uid}.json" for board in boards.BOARDS}


def test_the_component_of_the_operator_has_the_rules() -> None:
    component = rules.FOLDER.parent / "components" / "prometheus-operator" / "kustomization.yaml"
    assert "../../monitoring" in yaml.safe_load(component.read_text())["resources"]
