"""Grafana's board and the alert rules ask for metrics that there are, by labels that they have."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import promql_parser
import pytest
from ruamel.yaml import YAML

from subagents.cli.command_table import commands
from subagents.domain.run.outcome import Status
from subagents.extensions.telemetry.metrics import FAMILIES, PREFIX, Family

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
OF_PROMETHEUS: Final = {"instance"}
"""Labels that a scrape adds."""
OF_GRAFANA: Final = {"$__rate_interval": "5m", "$__range": "1h"}


def samples(family: Family) -> Iterator[tuple[str, set[str]]]:
    """The names under which a metric is asked for, each with its labels."""
    labels = {*family.labels}
    name = f"{PREFIX}{family.name}"
    match family.kind:
        case "histogram":
            yield f"{name}_bucket", {*labels, "le"}
            yield f"{name}_sum", labels
            yield f"{name}_count", labels
        case "counter":
            yield f"{name}_total", labels
        case _:
            yield name, labels


KNOWN: Final = {name: labels for family in FAMILIES for name, labels in samples(family)}


def rules() -> list[dict[str, Any]]:
    found = YAML(typ="safe").load(DEPLOY / "prometheus-alerts.yaml")
    return [rule for group in found["groups"] for rule in group["rules"]]


def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana-dashboard.json").read_text("utf-8"))
    return found


def targets() -> Iterator[dict[str, Any]]:
    for panel in board()["panels"]:
        yield from panel["targets"]


def expressions() -> list[str]:
    shown = [each["expr"] for each in targets()]
    for name, text in OF_GRAFANA.items():
        shown = [each.replace(name, text) for each in shown]
    return [*shown, *(each["expr"] for each in rules())]


def asked(expression: str) -> list[tuple[str, dict[str, str]]]:
    """Every metric that it asks for, with what it asks of its labels."""
    found = []

    def seen(node: Any) -> bool:
        match node:
            case promql_parser.MatrixSelector():
                node = node.vector_selector
            case promql_parser.VectorSelector():
                pass
            case _:
                return True
        found.append((node.name, {each.name: each.value for each in node.matchers.matchers}))
        return True

    promql_parser.walk(promql_parser.parse(expression), seen)
    return found


@pytest.mark.requirement("metrics:board")
@pytest.mark.parametrize("expression", expressions())
def test_what_is_asked_for_is_given_under_that_name_and_with_those_labels(expression: str) -> None:
    names = asked(expression)

    assert names
    for name, matchers in names:
        assert name in KNOWN, name
        assert matchers.keys() <= KNOWN[name] | OF_PROMETHEUS
        outcomes = {each for each in matchers.get("outcome", "").split("|") if each}
        assert outcomes <= {str(each) for each in Status}
    labels = {
        *OF_PROMETHEUS,
        *(label for name, _ in names for label in KNOWN[name]),
    }
    grouped = re.findall(r"\bby \(([^)]*)\)", expression)
    assert {each.strip() for group in grouped for each in group.split(",")} <= labels


@pytest.mark.requirement("metrics:alerts")
def test_each_rule_says_what_is_so_how_bad_it_is_and_what_to_do() -> None:
    known = {each.name.split()[0] for each in commands()}

    names = [each["alert"] for each in rules()]
    assert len({*names}) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        summary, description = rule["annotations"]["summary"], rule["annotations"]["description"]
        assert summary
        assert {*re.findall(r"`subagents (\w+)", description)} <= known
        (labels, *_) = [KNOWN[name] for name, _ in asked(rule["expr"])]
        assert {*re.findall(r"\$labels\.(\w+)", f"{summary} {description}")} <= labels


@pytest.mark.requirement("metrics:board")
def test_the_board_shows_each_panel_once_and_names_lines_by_labels_that_they_have() -> None:
    panels = board()["panels"]

    places = [(each["gridPos"]["x"], each["gridPos"]["y"]) for each in panels]
    assert len({*places}) == len({each["id"] for each in panels}) == len(panels)
    for target in targets():
        grouped = {
            each.strip()
            for group in re.findall(r"\bby \(([^)]*)\)", target["expr"])
            for each in group.split(",")
        }
        assert {*re.findall(r"{{(\w+)}}", target["legendFormat"])} <= grouped
    variables = {each["name"] for each in board()["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(panels)))
    assert {each for each in used if not each.startswith("__")} == variables
