"""The kit's files: figures that cloister has too, and what programs of a server read in them.

systemd finds the unit hardened, and what it forbids is nothing that a collector does. Prometheus itself reads alerts
and board, and each metric that they name is one that a collector gives.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from cloister.collection.service.app import create_app
from cloister.collection.service.limits import BURST, DEFAULT, REASONS
from cloister.collection.service.running import END, IDLE
from cloister.commands.program import REFUSED
from tests.collection.service.collectors import Client, collecting, form_of, plan_in, post, report
from tests.deploy.kit import KIT, PORTS, free_port, needs, program, ran, text
from tests.waiting import until

NGINX, CADDY = text("nginx.conf"), text("Caddyfile")


def nginx(setting: str) -> list[str]:
    """What a setting of nginx is, wherever it stands."""
    return re.findall(rf"{setting} (.*?);", NGINX)


def test_a_proxy_takes_as_large_a_batch_as_the_collector_and_nginx_of_relays_alone_and_holds_none_of_it() -> None:
    assert nginx("client_max_body_size") == ["64k", f"{DEFAULT.body // 2**20}m"]
    assert (nginx("client_body_buffer_size"), nginx("proxy_request_buffering")) == (["64k"], ["off"])
    assert re.findall("max_size (.*)", CADDY) == [f"{DEFAULT.body // 2**20}MiB", "64KiB"]


def test_caddy_gives_a_whole_request_the_time_that_the_collector_does() -> None:
    assert [f"{kind} {DEFAULT.seconds:.0f}s" in CADDY for kind in ("read_header", "read_body")] == [True, True]
    assert "health_uri /alive" in CADDY, "between rounds, and after the last, devices are told so by the collector"


def test_nginx_limits_an_address_as_the_collector_would() -> None:
    """And four times as much of what is read: a device reads four files."""
    assert [zone.rpartition("rate=")[2] for zone in nginx("limit_req_zone")] == [
        f"{rate:.0f}r/s" for rate in (DEFAULT.rate, 4 * DEFAULT.rate)
    ]
    bursts = {"reading": 4 * DEFAULT.rate * BURST, "reports": DEFAULT.rate * BURST}
    zones = [f"zone={zone} burst={burst:.0f} nodelay" for zone, burst in bursts.items()]
    assert nginx("limit_req") == [*zones, zones[1]]
    assert nginx("client_body_timeout") == nginx("client_header_timeout") == [f"{DEFAULT.seconds:.0f}s"]


def test_a_proxy_ends_an_idle_connection_to_a_collector_before_the_collector_does_and_a_phone_s_as_it_would() -> None:
    assert nginx("keepalive_timeout") == [f"{IDLE - 1}s", f"{IDLE}s"]
    assert f"keepalive {IDLE - 1}s" in CADDY


def test_neither_proxy_writes_down_who_reports() -> None:
    assert nginx("access_log") == ["off"]
    assert nginx("error_log")[0].endswith(" emerg")
    assert "exclude http " in CADDY


# the unit


UNIT = "collector@.service"
MOST_EXPOSED = 2.0
"""Of systemd's scale, on which 10 is a service without any protection."""


def setting(name: str) -> list[str]:
    """Words of a setting of the unit, of all its lines."""
    return " ".join(re.findall(rf"^{name}=(.*)$", text(UNIT), re.MULTILINE)).split()


def test_a_collector_has_the_time_that_it_takes_to_end() -> None:
    assert int(setting("TimeoutStopSec")[0]) > 2 * END


def test_the_unit_tries_what_passes_again_for_as_long_as_it_takes_and_nothing_else() -> None:
    assert setting("RestartPreventExitStatus") == [str(REFUSED)]
    assert (setting("Restart"), setting("StartLimitIntervalSec")) == (["on-failure"], ["0"])
    assert int(setting("RestartSec")[0]) > 0
    assert setting("RequiresMountsFor") == ["/srv/cloister/plan", "/var/lib/private/cloister/%i"]


def test_a_collector_has_the_memory_and_threads_that_its_limits_ask_for() -> None:
    megabytes = {
        name: int(setting(name)[0].replace("1G", "1024M").removesuffix("M")) for name in ("MemoryHigh", "MemoryMax")
    }
    assert 4 * DEFAULT.pending_bytes / 2**20 < megabytes["MemoryHigh"] < megabytes["MemoryMax"]
    assert int(setting("TasksMax")[0]) > 40, "asyncio begins 32 threads at the most"
    assert (setting("Type"), setting("TimeoutStartSec")) == (["notify"], ["infinity"])
    assert "AF_UNIX" in setting("RestrictAddressFamilies")


def test_all_that_an_index_gives_is_named_by_digest() -> None:
    """And it is all that a collector needs."""
    pinned, install = text("requirements.txt"), text("install")
    lines = [line for line in pinned.splitlines() if line and not line.startswith(("#", " "))]
    assert all(re.fullmatch(r"[a-z0-9-]+==\S+ (; .+ )?\\", line) for line in lines)
    assert pinned.count("==") >= len(lines) <= pinned.count("--hash=sha256:")
    project = tomllib.loads((KIT.parent / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["serve"]]
    names = {line.partition("==")[0] for line in lines}
    assert {re.split("[<>=]", one)[0] for one in needed} <= names
    for line in re.findall(r".*/pip\" (?:install|wheel).*", install):
        assert "--require-hashes" in line or "--no-deps" in line, line
    assert re.search(r"^FROM \S+:[0-9.]+-slim@sha256:[0-9a-f]{64}$", text("Containerfile"), re.MULTILINE)
    assert "/alive" in re.findall("^HEALTHCHECK.*", text("Containerfile"), re.MULTILINE)[0]


@needs("systemd-analyze")
@pytest.mark.thorough
def test_systemd_reads_the_unit_and_finds_it_hardened(tmp_path: Path) -> None:
    unit = tmp_path / "collector@8001.service"
    unit.write_text(text(UNIT, {"/opt/cloister/bin/cloister": sys.executable}))
    for words in (["verify"], ["security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:.0f}"]):
        assert "collector@" not in ran("systemd-analyze", *words, unit).stderr


def allowed(group: str) -> set[str]:
    """The system calls of one of systemd's groups."""
    said = ran("systemd-analyze", "syscall-filter", group).stdout
    names = [line.strip() for line in said.splitlines()[1:] if line.strip() and "#" not in line]
    found = [allowed(name) if name.startswith("@") else {name} for name in names]
    return set[str]().union(*found)


@needs("systemd-analyze")
@needs("strace")
@pytest.mark.thorough
def test_a_collector_run_as_the_unit_says_makes_no_call_that_the_unit_forbids(tmp_path: Path) -> None:
    if subprocess.run([program("strace"), "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace is there, and this machine lets nobody trace a process")
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


# alerts and the board


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
    with Client(create_app(tmp_path / "plan", tmp_path / "out")) as client:
        given = set(re.findall(r"^(cloister_\w+)", client.get("/metrics").text, re.MULTILINE))
    assert set(re.findall(r"cloister_\w+", " ".join(expression for _, expression in alerts()))) <= given
    assert set(re.findall(r"cloister_\w+", " ".join(panels()))) == given


def test_each_reason_that_an_alert_names_is_one_and_each_alert_has_a_case() -> None:
    named = [reason for _, expression in alerts() for reason in re.findall(r'reason=~?"([^"]+)"', expression)]
    assert set("|".join(named).split("|")) <= set(REASONS)
    assert len(named) == 4
    assert all(name in CASES.read_text() for name, _ in alerts())


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
        ran("promtool", *words.split(), folder=tmp_path)
