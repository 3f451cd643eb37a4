"""Alerts and the board: Prometheus itself reads them, and each metric that they name is one that a collector gives."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cloister.collection.service.app import collector
from cloister.collection.service.limits import REASONS
from tests.collection.service.collectors import Client, plan_in
from tests.deploy.kit import KIT, PORTS, needs, program, text

CASES = Path(__file__).with_name("alerts_test.yml")


def alerts() -> Iterator[tuple[str, str]]:
    """Name and expression of each alert."""
    (group,) = yaml.safe_load(text("alerts.yml"))["groups"]
    return ((rule["alert"], rule["expr"]) for rule in group["rules"])


def panels() -> list[str]:
    """Every expression of the board."""
    return [target["expr"] for panel in json.loads(text("grafana.json"))["panels"] for target in panel["targets"]]


def test_each_metric_that_alerts_and_board_name_is_given_and_the_board_shows_all(tmp_path: Path) -> None:
    plan_in(tmp_path / "plan")
    with Client(collector(tmp_path / "plan", tmp_path / "out")) as client:
        given = set(re.findall(r"^(cloister_\w+)", client.get("/metrics").text, re.MULTILINE))
    assert set(re.findall(r"cloister_\w+", " ".join(expression for _, expression in alerts()))) <= given
    assert set(re.findall(r"cloister_\w+", " ".join(panels()))) == given


def test_each_reason_that_an_alert_names_is_one() -> None:
    named = [reason for _, expression in alerts() for reason in re.findall(r'reason=~?"([^"]+)"', expression)]
    assert set("|".join(named).split("|")) <= set(REASONS)
    assert len(named) == 4


def test_each_alert_has_a_case() -> None:
    cases = CASES.read_text()
    assert all(name in cases for name, _ in alerts())


def test_prometheus_asks_the_kit_s_collectors_where_their_counts_are() -> None:
    (job,) = yaml.safe_load(text("prometheus.yml"))["scrape_configs"]
    assert job["static_configs"][0]["targets"] == [f"127.0.0.1:1{port}" for port in PORTS]
    assert "--port %i --metrics-port 1%i" in text("collector@.service")
    assert f'up{{job="{job["job_name"]}"}}' in text("alerts.yml")


@needs("promtool")
@pytest.mark.thorough
def test_promtool_reads_all_and_each_alert_is_raised_when_it_is_due_only(tmp_path: Path) -> None:
    for path in (KIT / "prometheus.yml", KIT / "alerts.yml", CASES):
        shutil.copy(path, tmp_path)
    rules = [{"record": f"panel:{i}", "expr": expression} for i, expression in enumerate(panels())]
    (tmp_path / "board.yml").write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))
    for words in ("check config prometheus.yml", "check rules board.yml", f"test rules {CASES.name}"):
        done = subprocess.run(
            [program("promtool"), *words.split()], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
