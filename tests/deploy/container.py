"""Does what the Containerfile says, in a folder instead of /, and asks the collector that runs then.

    python3 tests/deploy/container.py cloister-0.1.0-py3-none-any.whl plan/

Knows no more of such files than this one needs; whoever adds another instruction is told.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

KIT = Path(__file__).parents[2] / "deploy"


def main(wheel: Path, plan: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, ports, command, health = Path(folder), list[str](), list[str](), list[str]()
        shutil.copytree(plan, root / "plan")
        for line in (KIT / "Containerfile").read_text().splitlines():
            what, _, rest = line.partition(" ")
            if what == "COPY":
                (root / "kit").mkdir()
                for path in (KIT / "install", KIT / "requirements.txt", wheel):
                    shutil.copy(path, root / "kit")
            elif what == "RUN":
                rest = rest if os.getuid() == 0 else re.sub(" -[og] [0-9]+", "", rest)
                subprocess.run(["sh", "-c", re.sub(r"(?<= )/|^/", f"{root}/", rest)], check=True)
            elif what == "ENV":
                name, _, value = rest.partition("=")
                os.environ[name] = value
            elif what == "EXPOSE":
                ports = rest.split()
            elif what == "HEALTHCHECK":
                health = [re.sub("^/", f"{root}/", word) for word in json.loads(rest.partition(" CMD ")[2])]
            elif what == "ENTRYPOINT":
                command = [re.sub("^/", f"{root}/", word) for word in json.loads(rest)]
            elif what not in ("FROM", "USER", "VOLUME", "STOPSIGNAL", "#", ""):
                raise SystemExit(f"nobody knows what {what} does")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            print(process.stdout.readline().strip())
            for port, path in zip(ports, ("round", "metrics"), strict=True):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}") as reply:
                    assert reply.status == 200
            subprocess.run(health, check=True)
            process.send_signal(signal.SIGTERM)
            print(process.stdout.read().strip())
        assert process.returncode == 0, shlex.join(command)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
