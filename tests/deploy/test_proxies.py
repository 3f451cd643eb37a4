"""The proxies of Debian with the kit's configuration: what they let through, what they close, whom they limit."""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from cloister.collection.service.limits import DEFAULT
from cloister.collection.wire.batches import BatchForm
from tests.collection.service.collectors import (
    OCTETS,
    USERS,
    batch,
    collecting,
    form_of,
    plan_in,
    refused_in,
    report,
)
from tests.deploy.kit import KIT, PORTS, caddy, needs, nginx, ran, send, unlooked, visitor
from tests.waiting import PATIENCE

pytestmark = pytest.mark.thorough
BOTH = pytest.mark.parametrize(
    "front", [pytest.param(nginx, marks=needs("nginx")), pytest.param(caddy, marks=needs("caddy"))]
)


@pytest.fixture
def form(tmp_path: Path) -> BatchForm:
    return form_of(plan_in(tmp_path / "plan"))


@pytest.fixture
def behind(form: BatchForm, tmp_path: Path) -> Iterator[dict[int, int]]:
    """A collector that stands for both of the kit's."""
    with collecting(tmp_path) as process:
        yield dict.fromkeys(PORTS, process.port)


@BOTH
def test_reports_and_the_plan_pass_and_metrics_and_what_is_too_large_do_not(
    front: Any, behind: dict[int, int], form: BatchForm, tmp_path: Path
) -> None:
    with front(tmp_path / "front", behind) as address, visitor(address) as client:
        assert [send(client, report(form, 1)), send(client, report(form, 1))] == [201, 409]
        assert client.get("/round").json()["reports"] == 1
        assert client.get("/plan.json").content == (tmp_path / "plan" / "plan.json").read_bytes()
        assert send(client, bytes(PHONE)) == 400, "the collector looked at it"
        assert send(client, bytes(PHONE + 1)) in REFUSED[front]
        for path in METRICS:
            assert "cloister_" not in as_written(address, path), path
        assert send(client, report(form, 2)) == 201


PHONE = 2**16
"""Bytes of a request that a proxy lets through of who is no relay."""

REFUSED: dict[Any, set[int]] = {nginx: {413}, caddy: {413, 502}}
"""What a proxy says of a larger one: Caddy says 502 where the collector closed before all was sent to it."""

RELAY = {nginx: {"# 192.0.2.10 1;": "10.0.0.9 1;"}, caddy: {"192.0.2.10": "127.0.0.1"}}
"""How a relay is named: nginx is told addresses, and Caddy sees this machine's."""


@BOTH
def test_relays_alone_send_as_much_at_once_as_the_collector_takes(
    front: Any, behind: dict[int, int], form: BatchForm, tmp_path: Path
) -> None:
    many = batch(form, *range(USERS))
    many += batch(form) * ((PHONE + 1) // len(batch(form)))
    assert PHONE < len(many) < DEFAULT.body
    with front(tmp_path / "phones", behind) as address, visitor(address) as client:
        assert send(client, many) in REFUSED[front]
    with front(tmp_path / "relays", behind, RELAY[front]) as address, visitor(address) as client:
        assert send(client, many, "10.0.0.9") == 200
        assert client.get("/round").json()["reports"] == USERS
        assert send(client, bytes(DEFAULT.body + 1), "10.0.0.9") in REFUSED[front]
        assert client.post("/relayed", content=b"", headers=OCTETS).status_code in (404, 405)


HEADS = b"POST /reports HTTP/1.1\r\nhost: x\r\ncontent-type: application/octet-stream\r\ncontent-length: 60000\r\n\r\n"


@needs("nginx")
@pytest.mark.parametrize("peer", ["10.0.0.1", "10.0.0.9"], ids=["a phone", "a relay"])
def test_nginx_keeps_nobody_who_sends_a_byte_now_and_then_for_ever(form: BatchForm, tmp_path: Path, peer: str) -> None:
    """Nginx by itself waits for each byte anew: an hour for this request."""
    with collecting(tmp_path, "--timeout", "1") as process:
        behind = dict.fromkeys(PORTS, process.port)
        with nginx(tmp_path / "front", behind, RELAY[nginx]) as address:
            place = ("127.0.0.1", int(address.rpartition(":")[2]))
            with closing(unlooked().wrap_socket(socket.create_connection(place, PATIENCE))) as line:
                line.sendall(HEADS.replace(b"host: x", f"host: x\r\nx-forwarded-for: {peer}".encode()))
                told, end = b"", time.monotonic() + PATIENCE
                line.settimeout(0.1)
                while not told:
                    assert time.monotonic() < end, "it still takes a byte now and then"
                    line.sendall(b"x")
                    with suppress(TimeoutError):
                        told = line.recv(1000)
            assert told.startswith(b"HTTP/1.1 408"), told
            assert refused_in(httpx.get(f"{process.address}/metrics").text, "too slow") == 1


@needs("caddy")
def test_caddy_ends_a_request_that_is_sent_a_byte_now_and_then(behind: dict[int, int], tmp_path: Path) -> None:
    """Also where its collector would wait for longer."""
    with caddy(tmp_path / "front", behind, {"read_body 20s": "read_body 1s"}) as address:
        place = ("127.0.0.1", int(address.rpartition(":")[2]))
        with closing(unlooked().wrap_socket(socket.create_connection(place, PATIENCE))) as line:
            line.sendall(HEADS)
            ended, end = False, time.monotonic() + PATIENCE
            line.settimeout(0.1)
            while not ended:
                assert time.monotonic() < end, "it still takes a byte now and then"
                with suppress(TimeoutError):
                    try:
                        line.sendall(b"x")
                        ended = not line.recv(1000).startswith(b"HTTP/1.1 2")
                    except ConnectionError:
                        ended = True


METRICS = (
    "/metrics",
    "/metrics?x=1",
    "//metrics",
    "/./metrics",
    "/x/../metrics",
    "/%6detrics",
    "/%2fmetrics",
    "/METRICS",
    "/metrics/",
)


def as_written(address: str, path: str) -> str:
    """The answer to a GET of a path that nobody has tidied."""
    line = http.client.HTTPSConnection(address.removeprefix("https://"), context=unlooked())
    with closing(line):
        line.request("GET", path)
        return line.getresponse().read().decode()


@needs("nginx")
def test_nginx_limits_what_an_address_sends_and_reads_and_says_when_to_come_again(
    behind: dict[int, int], form: BatchForm, tmp_path: Path
) -> None:
    """A network of version 6 is one address. With rates so low that no loaded machine asks too rarely."""
    slow = {"rate=100r/s": "rate=1r/m", "burst=200": "burst=3", "rate=400r/s": "rate=1r/m", "burst=800": "burst=3"}
    with nginx(tmp_path / "front", behind, slow) as address, visitor(address) as client:
        for first, second, other in (
            ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("2001:db8:0:1::1", "2001:db8:0:1:ffff::a:a", "2001:db8:0:2::1"),
            ("2001:db8::1", "2001:db8::9:0:0:a", "2001:db8:0:a::1"),
        ):
            statuses = [send(client, report(form, 1), peer) for peer in (first, first, first, first, second)]
            assert 429 not in statuses[:4]
            assert statuses[4] == 429
            assert send(client, report(form, 1), other) == 409
            asked = [
                client.get(path, headers={"x-forwarded-for": peer})
                for path, peer in (
                    ("/round", first),
                    ("/plan.json", first),
                    ("/health", first),
                    ("/round", first),
                    ("/plan.json", second),
                    ("/round", other),
                )
            ]
            assert [answer.status_code for answer in asked] == [200, 200, 200, 200, 429, 200]
            assert asked[4].headers["retry-after"] == "2"


@needs("nginx")
def test_what_the_page_does_to_debian_s_own_configuration_lets_more_phones_in(tmp_path: Path) -> None:
    page = (KIT.parent / "docs" / "howto" / "operators.md").read_text()
    commands = next(block for block in page.split("```") if "worker_connections" in block).splitlines()[1:-1]
    own = tmp_path / "nginx"
    shutil.copytree("/etc/nginx", own, symlinks=True)
    main = own / "nginx.conf"
    main.write_text(main.read_text().replace("/etc/nginx", str(own)))
    for _ in range(2):
        for line in commands:
            shown = line.replace("/etc/nginx", str(own)).replace("nginx -t && systemctl reload nginx", "true")
            subprocess.run(["sh", "-c", shown], check=True)
    dumped = ran("nginx", "-T", "-c", main).stdout
    assert "worker_connections 16384;" in dumped
    assert "worker_rlimit_nofile 32768;" in dumped
    assert "768;" not in dumped.replace("32768;", "")


class Full(BaseHTTPRequestHandler):
    """A collector whose disk takes nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(503)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@needs("nginx")
def test_a_report_that_one_collector_cannot_write_goes_to_the_other(
    behind: dict[int, int], form: BatchForm, tmp_path: Path
) -> None:
    """By nginx, if it was whole when it was passed on; otherwise its phone is told to come again."""

    def reported(user: int) -> int:
        return next(status for _ in range(100) if (status := send(client, report(form, user))) not in (502, 503))

    with ThreadingHTTPServer(("127.0.0.1", 0), Full) as full:
        threading.Thread(target=full.serve_forever).start()
        places = {PORTS[0]: full.server_port, PORTS[1]: behind[PORTS[1]]}
        with nginx(tmp_path / "front", places) as address, visitor(address) as client:
            assert {reported(user) for user in range(20)} == {201}
        full.shutdown()
