"""The dashboard, the alerts and the page: they name what there is, and nothing else."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from synapsed.parts.telemetry.families import FAMILIES

ROOT = Path(__file__).parents[3]
DASHBOARD = ROOT / "packaging/grafana/synapsed.json"
RULES = ROOT / "packaging/prometheus/synapsed.rules.yml"
PAGE = ROOT / "docs/metrics.md"

OF_PROMETHEUS = {"instance", "job"}
"""Labels that a scrape adds."""


def series() -> dict[str, set[str]]:
    """Every series that there may be, with the names of its labels."""
    found = {}
    for name, family in FAMILIES.items():
        labels = set(family.labels) | OF_PROMETHEUS
        if family.kind == "histogram":
            found |= {f"{name}_bucket": labels | {"le"}, f"{name}_sum": labels, f"{name}_count": labels}
        else:
            found[name] = labels
    return found


def expressions() -> Iterator[tuple[str, str]]:
    """Every query, with where it stands."""
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']!r}", target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield f"variable {variable['name']}", variable["query"]["query"]
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            yield f"alert {rule['alert']}", rule["expr"]


def wrong_in(expression: str) -> list[str]:
    """Series that are not there, and labels that they do not have."""
    known, wrong = series(), []
    used = re.findall(r"\b(synapse_\w+)(?:\{([^}]*)\})?", expression)
    for name, selector in used:
        if name not in known:
            wrong.append(name)
            continue
        selected = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector)
        wrong += [f"{name}{{{label}}}" for label in selected if label not in known[name]]
    grouped = {label.strip() for labels in re.findall(r"\bby \(([^)]*)\)", expression) for label in labels.split(",")}
    every = {label for name, _ in used for label in known.get(name, ())}
    return wrong + [f"by ({label})" for label in sorted(grouped - every)]


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_every_query_asks_for_what_there_is(where: str, expression: str) -> None:
    assert wrong_in(expression) == [], where
    assert expression.count("(") == expression.count(")")
    assert re.search(r"\bsynapse_|\bup\b", expression), where


def test_what_is_not_there_is_found() -> None:
    assert wrong_in("sum by (agent) (rate(synapse_agents[5m]))") == ["by (agent)"]
    assert wrong_in('synapse_gone{agent="x"} + synapse_agents{task="1"}') == ["synapse_gone", "synapse_agents{task}"]
    assert wrong_in("synapse_task_turn_seconds") == ["synapse_task_turn_seconds"]


def test_every_metric_is_shown() -> None:
    shown = "\n".join(expression for _, expression in expressions())
    assert [name for name in FAMILIES if not re.search(rf"\b{name}(_bucket)?\b", shown)] == []


def test_the_panels_stand_beside_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    panels = json.loads(DASHBOARD.read_text())["panels"]
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_alerts_say_what_to_do() -> None:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in ("critical", "warning"), rule["alert"]
            assert rule["annotations"]["summary"], rule["alert"]
            used = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
            names = re.findall(r"\bsynapse_\w+", rule["expr"])
            assert used <= {label for name in names for label in series()[name]}, rule["alert"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool")
def test_promtool_takes_the_alerts() -> None:
    told = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr


def test_the_page_has_every_metric_with_its_labels() -> None:
    rows = re.findall(r"^\| (`synapse_[^|]*) \| (\w+) \| ([^|]*)\|", PAGE.read_text(), re.MULTILINE)
    told = {
        name: (kind, tuple(re.findall(r"`(\w+)`", labels)))
        for names, kind, labels in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    assert told == {name: (family.kind, family.labels) for name, family in FAMILIES.items()}
