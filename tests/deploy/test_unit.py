"""The unit: systemd reads it and finds it hardened, and what it forbids is nothing that a collector does."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from cloister.collection.service.running import END
from tests.collection.service.collectors import collecting, form_of, plan_in, post, report
from tests.deploy.kit import free_port, needs, program, text
from tests.waiting import until

UNIT = "collector@.service"
MOST_EXPOSED = 2.0
"""Of systemd's scale, on which 10 is a service without any protection."""


def setting(name: str) -> list[str]:
    """Words of a setting of the unit, of all its lines."""
    return " ".join(re.findall(rf"^{name}=(.*)$", text(UNIT), re.MULTILINE)).split()


def test_a_collector_has_the_time_that_it_takes_to_end() -> None:
    assert int(setting("TimeoutStopSec")[0]) > 2 * END


@needs("systemd-analyze")
@pytest.mark.thorough
def test_systemd_reads_the_unit_and_finds_it_hardened(tmp_path: Path) -> None:
    unit = tmp_path / "collector@8001.service"
    unit.write_text(text(UNIT, {"/opt/cloister/bin/cloister": sys.executable}))
    for words in (["verify"], ["security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:.0f}"]):
        done = subprocess.run(
            [program("systemd-analyze"), *words, str(unit)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "collector@" not in done.stderr, done.stderr


def allowed(group: str) -> set[str]:
    """The system calls of one of systemd's groups."""
    said = subprocess.run(
        [program("systemd-analyze"), "syscall-filter", group], capture_output=True, text=True, check=True
    )
    names = [line.strip() for line in said.stdout.splitlines()[1:] if line.strip() and "#" not in line]
    found = [allowed(name) if name.startswith("@") else {name} for name in names]
    return set[str]().union(*found)


@needs("systemd-analyze")
@needs("strace")
@pytest.mark.thorough
def test_a_collector_run_as_the_unit_says_makes_no_call_that_the_unit_forbids(tmp_path: Path) -> None:
    if subprocess.run([program("strace"), "true"], capture_output=True, check=False).returncode:
        pytest.skip("nothing may be traced here")
    plan, port, trace = plan_in(tmp_path / "plan"), free_port(), tmp_path / "trace"
    command = shlex.split(" ".join(setting("ExecStart")).replace("1%i", "0").replace("%i", str(port)))
    places = {"/opt/cloister/bin/cloister": "", "/srv/cloister/plan": "plan", f"/var/lib/cloister/{port}": "reports"}
    words = [places.get(word, word) for word in command]
    assert words[:2] == ["", "serve"]
    assert words.pop() == "$OPTIONS"
    traced = (program("strace"), "-D", "-f", "-o", str(trace), sys.executable, "-m", "cloister", *words[1:])
    with collecting(tmp_path, command=traced) as process:
        for user in (1, 2, 2):
            post(process.address, report(form_of(plan), user))
        assert httpx.get(process.metrics).status_code == 200
        assert process.end() == 0
    until(lambda: "+++ exited with 0 +++" in trace.read_text().splitlines()[-1])
    lines = re.findall(r"^\d+ +(\w+)\((.*)", trace.read_text(), re.MULTILINE)
    first, less, *more = re.findall(r"^SystemCallFilter=(.*)$", text(UNIT), re.MULTILINE)
    without = set[str]().union(*map(allowed, less.removeprefix("~").split()))
    assert {name for name, _ in lines} <= (allowed(first) - without) | set(more)
    families = {found[1] for name, given in lines if name == "socket" and (found := re.match("(AF_\\w+)", given))}
    assert families <= set(setting("RestrictAddressFamilies"))
    assert not [
        given for name, given in lines if "PROT_EXEC" in given and (name == "mprotect" or "PROT_WRITE" in given)
    ]
