"""``cloister bench``, run as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.in_process import cloister, program, ran

TINY = """epsilons = [1]
runs = 1
entrants = ["./mine"]
[[sets]]
blobs = { rows = 100, columns = 2 }
k = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an entrant and a benchmark."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ran("bench new mine", tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY)
    return tmp_path


def test_a_new_entrant_runs_and_its_results_become_a_page(folder: Path) -> None:
    done = ran("bench run tiny.toml --no-audit", folder)
    assert "100 rows, 2 columns, k = 3" in done.stdout
    assert "results saved to tiny.jsonl" in done.stdout
    assert "not audited" in ran("bench report tiny.jsonl", folder).stdout
    ran("bench report tiny.jsonl --out page.html", folder)
    assert "Benchmark tiny" in (folder / "page.html").read_text()
    (cell,) = json.loads(ran("bench run tiny.toml --no-audit --resume --json", folder).stdout)["cells"]
    assert cell["runs"] == 1


def test_an_audit_prints_the_badge_and_ends_with_3_if_a_check_failed(folder: Path) -> None:
    done = ran("bench audit mine --only budget --only outside", folder)
    assert done.stdout.startswith("mine: passed 2 of 2 checks\n")
    run = folder / "mine" / "run"
    run.write_text(run.read_text().replace("half = epsilon / 2", "half = epsilon"))
    failed = cloister("bench", "audit", "mine", "--only", "budget", "--json", folder=folder)
    assert failed.returncode == 3
    assert json.loads(failed.stdout)["badge"] == "failed: budget"


def test_entrants_that_come_with_cloister_are_listed(folder: Path) -> None:
    assert "scikit-learn's KMeans" in ran("bench list", folder).stdout
    assert "laplace-rows" in [facts["name"] for facts in json.loads(ran("bench list --json", folder).stdout)]


@pytest.mark.thorough
def test_a_quick_benchmark_audits_and_runs_what_comes_with_cloister(folder: Path) -> None:
    """As a user runs it: scikit-learn, a re-implementation and the template; one that cannot be installed is named."""
    text = TINY.replace('["./mine"]', '["./mine", "sklearn", "paper-fastlloyd", "dp-learning"]')
    (folder / "field.toml").write_text(text.replace("[1]", "[0.5, 1, 2]").replace("runs = 1", "runs = 3"))
    done = program("bench", "run", "field.toml", "--quick", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    badges = {one["name"]: one["badge"] for one in found["entrants"]}
    assert badges["sklearn"] == "not private; passed 2 of 6 checks"
    assert badges["mine"] == badges["paper-fastlloyd"] == "passed 6 of 6 checks"
    assert {cell["failures"] for cell in found["cells"]} == {0}
    assert {cell["epsilon"] for cell in found["cells"]} == {0.5, 2.0}


@pytest.mark.thorough
def test_a_method_takes_part_by_its_name_and_options(folder: Path) -> None:
    done = ran("bench run tiny.toml --entrant auto:trust=local --no-audit --json", folder)
    (cell,) = json.loads(done.stdout)["cells"]
    assert (cell["entrant"], cell["runs"], cell["failures"]) == ("auto:trust=local", 1, 0)
