"""Notifications to a supervisor, in systemd's protocol sd_notify: the collector accepts reports, or ends."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def notify(state: str) -> None:
    """Send the supervisor, if there is one, a state such as "READY=1"."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address.startswith(("/", "@")):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
            connection.connect(f"\0{address[1:]}" if address[0] == "@" else address)
            connection.send(state.encode())
