"""The pool's kit of ``deploy/pool``: a script a site, each in a folder of its own, from keys to the result."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc")

from tests.federated.federated_session import NAMES
from tests.federated.pooling import PARTS, TOML, Programs, ended, ledger, write_rows

KIT = Path(__file__).parents[2] / "deploy" / "pool"
SITES = ("authority", "coordinator", *NAMES)
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
]


class Sites(Programs):
    """Folders of all sites below one, and what runs in them. Args: folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        for site in SITES:
            (folder / site).mkdir()

    def start(self, site: str, *words: str) -> subprocess.Popen[str]:
        """A site's script, with these words."""
        script = ["sh", str(KIT / site)] if site in SITES[:2] else ["sh", str(KIT / "hospital"), site]
        return self.run([*script, *words], self.folder / site, env=self.environment)

    def says(self, site: str, *words: str, code: int = 0) -> str:
        """All that a site's script says, once it has ended with this code."""
        return ended(self.start(site, *words), code)

    def send(self, name: str, *to: str) -> None:
        """A file by mail. Args: name ("site/file"), to (sites)."""
        own, _, rest = name.partition("/")
        for site in set(to) - {own}:
            place = self.folder / site / rest
            place.parent.mkdir(exist_ok=True)
            shutil.copy(self.folder / name, place)


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Sites]:
    made = Sites(tmp_path)
    yield made
    made.end()


def agree(sites: Sites) -> None:
    """All sites get keys, certificates, rows and a plan that all have signed."""
    sites.says("authority", "begin")
    for site in SITES[1:]:
        sites.says(site, "keys")
        sites.send(f"{site}/{site}.csr", "authority")
        sites.says("authority", site)
        sites.send(f"authority/{site}.pem", site)
        sites.send("authority/ca.pem", site)
    lines = [sites.folder / "coordinator/coordinator.line", *(sites.folder / f"{n}/{n}.party" for n in NAMES)]
    (sites.folder / "coordinator/plan.toml").write_text(TOML + "".join(line.read_text() for line in lines))
    sites.send("coordinator/plan.toml", *NAMES)
    for i, (name, rows) in enumerate(zip(NAMES, PARTS, strict=True), 1):
        write_rows(sites.folder / name / "patients.csv", rows)
        sites.says(name, "sign")
        sites.send(f"{name}/plan.signatures/party-{i}.sig", *SITES[1:])


def test_three_hospitals_go_from_keys_to_one_result_by_a_script_each(sites: Sites) -> None:
    """Nothing is known at a site but what was sent to it. A ledger that is there pays, by a check nothing."""
    agree(sites)
    secret = [path for path in sites.folder.rglob("*") if path.suffix in (".key", ".pool")]
    assert len(secret) == 2 * 4 + 1
    assert {path.stat().st_mode & 0o77 for path in secret} == {0}
    made, _ = ledger(sites.folder / "north" / "north.ledger")
    made.declare("north", 2.0, 1e-5, "basic")
    coordinator = sites.start("coordinator", "run", "--patience", "60", "--listen", "127.0.0.1:0")
    assert coordinator.stderr is not None
    (port,) = re.findall(r"listening on port (\d+) for north, south, west", coordinator.stderr.readline())
    to = ("--connect", f"127.0.0.1:{port}")
    facts: dict[str, Any] = json.loads(sites.says("north", "check", "--json", *to))
    assert (facts["party"], facts["signed"], facts["warnings"]) == ("north", True, [])
    assert not made.runs()
    parties = [sites.start(name, "join", *to) for name in NAMES]
    for process in (*parties, coordinator):
        ended(process)
    found = [json.loads((sites.folder / n / f"{n}.json").read_text())["result"]["centers"] for n in NAMES]
    assert found[0] == found[1] == found[2]
    log = (sites.folder / "coordinator/coordinator.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in log][:2] == ["tried", "hello"]
    assert [(run.dataset, run.state) for run in made.runs()] == [("north", "done")]


def test_the_authority_signs_no_request_under_another_name_and_begins_once(sites: Sites) -> None:
    sites.says("authority", "begin")
    assert "there is one already" in sites.says("authority", "begin", code=2)
    sites.says("north", "keys")
    shutil.copy(sites.folder / "north/north.csr", sites.folder / "authority/coordinator.csr")
    assert "is for subject=CN=north, not for coordinator" in sites.says("authority", "coordinator", code=2)
    assert not (sites.folder / "authority/coordinator.pem").exists()
