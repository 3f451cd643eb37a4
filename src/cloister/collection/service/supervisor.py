"""What a supervisor is told of a collector: that it takes reports, and that it ends. systemd's protocol, sd_notify."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def notify(state: str) -> None:
    """Tell the supervisor a state such as "READY=1"; do nothing without one."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address.startswith(("/", "@")):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.connect(f"\0{address[1:]}" if address[0] == "@" else address)
            line.send(state.encode())
