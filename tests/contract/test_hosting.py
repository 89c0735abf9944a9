"""What runs elsewhere runs the same: the hosted workflow, the development container and pre-commit."""

import json
import re
from typing import Any

import pytest
import yaml

from tests.contract.repository import ROOT

SCRIPT = (ROOT / ".ci/run").read_text()
INSTALL = re.compile(r"apt-get install -y -qq --no-install-recommends ([\w. -]+)")
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))


def read(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


def steps_of_the_script() -> list[str]:
    """The commands that .ci/run runs as steps, after the installation of packages."""
    lines = re.findall(r"^(step|tests) (.+)$", SCRIPT, re.MULTILINE)
    commands = [line if kind == "step" else f"make {line} || make {line}-failed" for kind, line in lines]
    return [command for command in commands if command != "prerequisites"]


def packages_of_the_script() -> set[str]:
    listed = re.findall(r"packages\+=\(([^)]+)\)", SCRIPT)
    return {"ca-certificates", *(name for names in listed for name in names.split())}


def packages_of(command: str) -> set[str]:
    found = INSTALL.search(command)
    return set(found[1].split()) if found else set()


def workflow_commands() -> list[str]:
    (job,) = read(".github/workflows/ci.yml")["jobs"].values()
    return [step["run"] for step in job["steps"] if "run" in step]


def test_the_script_has_steps_and_packages() -> None:
    assert "make check" in steps_of_the_script()
    assert "chromium" in packages_of_the_script()


def test_the_workflow_installs_the_packages_of_the_script() -> None:
    assert packages_of(workflow_commands()[0]) == packages_of_the_script()


def test_the_workflow_runs_the_steps_of_the_script() -> None:
    commands = [command for command in workflow_commands() if "apt-get" not in command and "git config" not in command]
    assert commands == steps_of_the_script()


def test_the_development_container_installs_the_packages_of_the_script_and_what_tests_need() -> None:
    created = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())["postCreateCommand"]
    packages, make = created.rsplit(" && ", 1)
    assert packages_of(packages) == packages_of_the_script()
    assert make == "make .venv/.dev"


def test_pre_commit_runs_the_checks_of_make_check_by_make() -> None:
    checks = re.search(r"^CHECKS := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert checks
    (repository,) = read(".pre-commit-config.yaml")["repos"]
    hooks = {hook["id"]: hook["entry"] for hook in repository["hooks"]}
    assert hooks == {check: f"make {check}" for check in checks[1].split()}
    assert repository["repo"] == "local"
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in repository["hooks"])


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_has_a_name_a_description_and_fields_with_unique_ids(path: Any) -> None:
    form = yaml.safe_load(path.read_text())
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) > 0
    assert all(field["attributes"]["label"] for field in fields)
