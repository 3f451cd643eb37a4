"""Figures of the kit's files that cloister has too: each is written down twice, and is the same."""

from __future__ import annotations

import re

from cloister.collection.service.limits import BURST, DEFAULT
from cloister.collection.service.running import IDLE
from tests.deploy.kit import PORTS, text

NGINX, CADDY = text("nginx.conf"), text("Caddyfile")


def nginx(setting: str) -> list[str]:
    """What a setting of nginx is, wherever it stands."""
    return re.findall(rf"{setting} (.*?);", NGINX)


def test_a_proxy_takes_as_large_a_report_as_the_collector_and_holds_it_in_memory() -> None:
    assert nginx("client_max_body_size") == nginx("client_body_buffer_size") == [f"{DEFAULT.body // 2**20}m"]
    assert f"max_size {DEFAULT.body // 2**20}MiB" in CADDY


def test_nginx_limits_an_address_as_the_collector_would() -> None:
    """And four times as much of what is read: a device reads four files."""
    assert [zone.rpartition("rate=")[2] for zone in nginx("limit_req_zone")] == [
        f"{rate:.0f}r/s" for rate in (DEFAULT.rate, 4 * DEFAULT.rate)
    ]
    bursts = {"reading": 4 * DEFAULT.rate * BURST, "reports": DEFAULT.rate * BURST}
    assert nginx("limit_req") == [f"zone={zone} burst={burst:.0f} nodelay" for zone, burst in bursts.items()]
    assert nginx("client_body_timeout") == nginx("client_header_timeout") == [f"{DEFAULT.seconds:.0f}s"]


def test_a_proxy_ends_an_idle_connection_to_a_collector_before_the_collector_does_and_a_phone_s_as_it_would() -> None:
    assert nginx("keepalive_timeout") == [f"{IDLE - 1}s", f"{IDLE}s"]
    assert f"keepalive {IDLE - 1}s" in CADDY


def test_both_proxies_have_the_same_collectors_behind_them() -> None:
    assert re.findall(r"server 127\.0\.0\.1:(\d+)", NGINX) == [str(port) for port in PORTS]
    assert re.findall(r"127\.0\.0\.1:(\d+)", CADDY) == [str(port) for port in PORTS]


def test_neither_proxy_writes_down_who_reports() -> None:
    assert nginx("access_log") == ["off"]
    assert nginx("error_log")[0].endswith(" emerg")
    assert "exclude http " in CADDY
