"""A crowd of phones behind one name: each reports until it is told that its report is kept, as the clients do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import final
from urllib.parse import urlsplit

from tests.collection.service.collectors import OCTETS

LANES = 64
"""Phones that report at once."""

LATER = 0.05
"""Seconds until a phone tries again; a real one waits for longer."""


@final
class Crowd:
    """Args: address (of a proxy with TLS), told (called with the number of phones that are done, whenever one is)."""

    def __init__(self, address: str, told: Callable[[int], None] = lambda done: None) -> None:
        parts = urlsplit(address)
        self._name, self._host, self._port = parts.netloc, parts.hostname, parts.port
        self._told, self._done = told, 0
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE

    def report(self, reports: Sequence[bytes]) -> None:
        """Send a report of each phone, until all are kept."""
        asyncio.run(self._all(reports))

    async def _all(self, reports: Sequence[bytes]) -> None:
        left = iter(enumerate(reports))
        async with asyncio.TaskGroup() as group:
            for _ in range(LANES):
                group.create_task(self._lane(left))

    async def _lane(self, left: enumerate[bytes]) -> None:
        for phone, body in left:
            while True:
                status = await self._sent(phone, body)
                if status in (201, 409):
                    break
                assert status in (0, 429) or status >= 500, f"a phone is told {status}"
                await asyncio.sleep(LATER)
            self._done += 1
            self._told(self._done)

    async def _sent(self, phone: int, body: bytes) -> int:
        """The answer's status, on a connection of the phone's own; 0: none came."""
        fields = {**OCTETS, "host": self._name, "content-length": str(len(body)), "x-forwarded-for": address(phone)}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer = None
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
            writer.write(f"POST /reports HTTP/1.1\r\n{head}connection: close\r\n\r\n".encode() + body)
            return int((await reader.read()).split()[1])
        except (OSError, IndexError):
            return 0
        finally:
            if writer is not None:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()


def address(phone: int) -> str:
    """The address of a phone, which no other one has."""
    return f"10.{phone >> 16}.{phone >> 8 & 255}.{phone & 255}"
