"""The collector's kit of ``deploy/``: its files with other ports and places, and the proxies that read them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from cloister.federated.transport.certificates import COORDINATOR_NAME, make_test_certificates
from tests.collection.service.collectors import OCTETS
from tests.waiting import PATIENCE, until

KIT = Path(__file__).parents[2] / "deploy"
SITE = "collector.example.org"
PORTS = (8001, 8002)
"""Ports of the kit's collectors."""


def needs(tool: str) -> pytest.MarkDecorator:
    """Skip what runs a program that is not installed."""
    return pytest.mark.skipif(shutil.which(tool, path=_path()) is None, reason=f"{tool} is not installed")


def program(tool: str) -> str:
    """Where a program is; those of administrators are not on everybody's path."""
    return str(shutil.which(tool, path=_path()))


def ran(tool: str, *words: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A program that ends well."""
    done = subprocess.run([program(tool), *map(str, words)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def _path() -> str:
    return "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin:/bin"


def text(name: str, changes: Mapping[str, str] | None = None) -> str:
    """A file of the kit, with some of its words replaced. Raises: AssertionError: it has none of them."""
    found = (KIT / name).read_text()
    for old, new in (changes or {}).items():
        assert old in found, f"{name} does not say {old}"
        found = found.replace(old, new)
    return found


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def nginx(folder: Path, behind: Mapping[int, int], other: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run nginx with the kit's configuration in a new folder, where all that it writes is. Args: behind (which ports
    stand for the kit's), other (words that are replaced). Yields: its address. Who reports says her own address, in
    X-Forwarded-For."""
    port = _begun(folder)
    site = text(
        "nginx.conf",
        {
            f"/etc/letsencrypt/live/{SITE}/fullchain.pem": f"{folder}/{COORDINATOR_NAME}.pem",
            f"/etc/letsencrypt/live/{SITE}/privkey.pem": f"{folder}/{COORDINATOR_NAME}.key",
            "/var/log/nginx": str(folder),
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "    listen [::]:443 ssl http2;\n": "",
            **{f"127.0.0.1:{kit}": f"127.0.0.1:{real}" for kit, real in behind.items()},
            **(other or {}),
        },
    )
    (folder / "site.conf").write_text(site)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder}/temporary-{kind};\n" for kind in kinds)
    peers = "set_real_ip_from 127.0.0.1;\nreal_ip_header X-Forwarded-For;\n"
    (folder / "nginx.conf").write_text(
        f"{'user root;' if os.getuid() == 0 else ''}\n"
        f"daemon off;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/start.log emerg;\n"
        f"events {{ worker_connections 4096; }}\nhttp {{\n{places}{peers}include {folder}/site.conf;\n}}\n"
    )
    with _running(folder, port, program("nginx"), "-e", f"{folder}/start.log", "-p", str(folder), "-c", "nginx.conf"):
        yield f"https://127.0.0.1:{port}"


@contextmanager
def caddy(folder: Path, behind: Mapping[int, int], other: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run Caddy with the kit's configuration, as ``nginx``."""
    port = _begun(folder)
    own = f"{folder}/{COORDINATOR_NAME}.pem {folder}/{COORDINATOR_NAME}.key"
    changes = {
        f"{SITE} {{": f"https://127.0.0.1:{port} {{\n\tbind 127.0.0.1\n\ttls {own}",
        "{\n\tlog": f"{{\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system {folder}/storage\n\tlog",
        **{f"127.0.0.1:{kit}": f"127.0.0.1:{real}" for kit, real in behind.items()},
        **(other or {}),
    }
    (folder / "Caddyfile").write_text(text("Caddyfile", changes))
    with _running(folder, port, program("caddy"), "run", "--config", "Caddyfile", "--adapter", "caddyfile"):
        yield f"https://127.0.0.1:{port}"


def _begun(folder: Path) -> int:
    folder.mkdir()
    make_test_certificates(folder, ())
    return free_port()


@contextmanager
def _running(folder: Path, port: int, *command: str) -> Iterator[None]:
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            command, cwd=folder, stdout=said, stderr=said, env={"HOME": str(folder), "PATH": _path()}
        )
        try:
            until(lambda: process.poll() is not None or _answers(port))
            assert process.poll() is None, (folder / "said").read_text()
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


def _answers(port: int) -> bool:
    """Whether it ends a handshake: Caddy listens before it has made the certificate of an address."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as line:
            unlooked().wrap_socket(line).close()
    except OSError:
        return False
    return True


def unlooked() -> ssl.SSLContext:
    """TLS of somebody who does not look at certificates."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def visitor(address: str) -> httpx.Client:
    """Whoever speaks to a proxy of the kit, and does not look at its certificate."""
    return httpx.Client(base_url=address, verify=False, timeout=PATIENCE)


def send(client: httpx.Client, body: bytes, peer: str = "10.0.0.1") -> int:
    """The status that somebody at this address is told of a report."""
    return client.post("/reports", content=body, headers={**OCTETS, "x-forwarded-for": peer}).status_code
