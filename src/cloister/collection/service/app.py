"""The collector's HTTP interface, an ASGI application.

    GET  /round                the open round: its name, its bundle, how many reports there are
    GET  /plan.json ...        the plan's public files
    POST /reports              one report, or batches: acknowledged when they are on the disk
    GET  /health, /metrics     for whoever runs it
    GET  /alive                for what restarts it, or sends people to another one

    app = collector(Path("plan"), Path("reports"))         # for ASGI servers; ``running.serve`` is the command's

Of a request nothing is read but its method, path, length, kind of content and body, and, for the rate, its address.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, final

from cloister.collection.plan.plan import FILE
from cloister.collection.service.collector import Collector, RequestRejected
from cloister.collection.service.limits import DEFAULT, Limits, peer_of, retry_after
from cloister.collection.service.tickets import Issuer
from cloister.core.errors import MissingExtra

try:
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise MissingExtra("starlette", "serve", "collecting reports") from error

CONTENT = "application/octet-stream"
"""The kind of content of reports. Browsers ask before a page of another origin may send it (``origins``)."""

_PUBLIC = re.compile(r"plan\.json|README\.txt|round-[1-9][0-9]*\.json|bundle-[1-9][0-9]*\.(?:json|bin)")
_TYPES = {"json": "application/json", "txt": "text/plain; charset=utf-8", "bin": CONTENT}


def create_app(
    plan: Path,
    out: Path,
    *,
    shuffle: bool = False,
    issuer: Issuer | None = None,
    origins: Sequence[str] = (),
    limits: Limits = DEFAULT,
    metrics_apart: bool = False,
    told: Callable[[dict[str, Any]], None] = lambda event: None,
) -> Starlette:
    """The application, with its folder locked and its earlier reports read; ``app.state.collector`` is its
    ``Collector``, and
    ``app.state.metrics`` an application of /metrics alone. Its lifespan must be run. Args: origins (of pages that
    browsers may let in; "*": all), metrics_apart (give none here); the others as for ``Collector``. Raises: as
    ``Collector``."""
    collector = Collector(plan, out, shuffle=shuffle, issuer=issuer, limits=limits, told=told)
    pages = _Pages(collector, PublicFiles(plan))
    metrics = [Route("/metrics", pages.metrics)]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with collector.running():
            yield

    async def fault(request: Request, error: Exception) -> Response:
        collector.say("fault", what=type(error).__name__)  # its text may hold what was sent
        return Response("the collector has a fault\n", 500, media_type="text/plain")

    # browsers ask before they post reports, and let a page read what is named: a 429 says when to come back
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST"],
        allow_headers=["content-type"],
        expose_headers=["retry-after"],
        max_age=86400,
    )
    app = Starlette(
        routes=[
            Route("/reports", pages.reports, methods=["POST"]),
            Route("/reports", pages.only_posted),
            Route("/round", pages.round),
            Route("/health", pages.health),
            Route("/alive", pages.alive),
            *([] if metrics_apart else metrics),
            Route("/{name}", pages.file),
        ],
        middleware=[cors] if origins else [],
        exception_handlers={Exception: fault},
        lifespan=lifespan,
    )
    app.state.collector, app.state.metrics = collector, Starlette(routes=metrics)
    return app


@final
class PublicFiles:
    """A plan's public files, by name. Those that were read are kept until they change, as one that is being copied
    does, and for as long as the folder is gone; the plan is kept for good. Args: folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._kept = folder, dict[str, tuple[tuple[int, ...], bytes]]()
        self.get(FILE)

    def get(self, name: str) -> bytes | None:
        """A file's content; None if there is no such file, or it is not public."""
        path, kept = self._folder / name, self._kept.get(name)
        if _PUBLIC.fullmatch(name) and not (kept and name == FILE):
            with suppress(OSError):
                now = path.stat()
                seen = (now.st_ino, now.st_size, now.st_mtime_ns)
                # to open a pipe would take for ever, and nobody else would be answered
                if (kept is None or seen != kept[0]) and stat.S_ISREG(now.st_mode):
                    kept = self._kept[name] = (seen, path.read_bytes())
        return None if kept is None else kept[1]

    def bundle(self, round: int) -> dict[str, Any]:
        """Where a round's bundle is, and the hash of its file; both None while there is none."""
        file = f"bundle-{round}.json"
        content = self.get(file)
        if content is None or self.get(f"bundle-{round}.bin") is None:
            return {"bundle": None, "sha256": None}
        return {"bundle": f"/{file}", "sha256": hashlib.sha256(content).hexdigest()}


@final
class _Pages:
    """What answers requests. Args: desk, files."""

    def __init__(self, collector: Collector, files: PublicFiles) -> None:
        self._collector, self._files = collector, files

    async def reports(self, request: Request) -> Response:
        """Take one report or batches."""
        collector, taken = self._collector, 0
        peer = peer_of(request.client.host) if request.client else None
        try:
            self._admit(request, peer)
            body = bytearray()
            try:
                async with asyncio.timeout(collector.limits.seconds):
                    async for chunk in request.stream():
                        taken += len(chunk)
                        collector.held.add(peer, len(chunk))
                        self._bound(taken, peer)
                        body += chunk
            except TimeoutError:
                raise RequestRejected(408, "too slow") from None
            kept = await collector.receive(bytes(body))
        except ClientDisconnect:
            return Response(status_code=400)
        except RequestRejected as turned:
            collector.counts.refused[turned.reason] += 1
            said = {"accepted": 0, "refused": {turned.reason: 1}, "why": f"refused: {turned}"}
            return JSONResponse(said, turned.status, turned.headers)
        finally:
            collector.held.add(peer, -taken)
        return JSONResponse({"accepted": kept.accepted, "refused": kept.refused}, kept.status)

    async def only_posted(self, request: Request) -> Response:
        """Nobody is given reports."""
        said = "reports are sent here, by POST: nobody is given any\n"
        return Response(said, 405, {"allow": "POST"}, media_type="text/plain")

    async def round(self, request: Request) -> Response:
        """The open round."""
        collector, opened = self._collector, self._collector.opened
        found: dict[str, Any] = {
            "plan": collector.plan.hash,
            "rounds": collector.plan.length,
            "open": opened is not None,
        }
        if opened is None:
            found |= {"round": None, "head": None, "bundle": None, "sha256": None, "reports": 0}
        else:
            number = opened.form.round
            found |= {
                "round": number,
                "head": opened.form.head,
                "reports": collector.reports,
                **self._files.bundle(number),
            }
        return _fresh(JSONResponse(found))

    async def file(self, request: Request) -> Response:
        """One of the plan's files."""
        name = request.path_params["name"]
        content = self._files.get(name)
        if content is None:
            return Response("there is no such file\n", 404, media_type="text/plain")
        return _fresh(Response(content, media_type=_TYPES[name.rpartition(".")[2]]))

    async def health(self, request: Request) -> Response:
        """Return whether reports are taken, 503 while nobody's are. Everybody reads this: why the next round cannot be
        opened, or whose a file is that cannot be written, with names of files and accounts, is for the log alone."""
        collector, ready = self._collector, self._collector.taking and self._collector.trouble is None
        facts = {
            "ready": ready,
            "state": collector.state,
            "watching": collector.watching,
            "waiting": collector.waiting is not None,
        }
        disk = None if collector.trouble is None else collector.trouble.partition(": ")[0]  # the system's words alone
        return _fresh(JSONResponse({**facts, "disk": disk}, 200 if ready else 503))

    async def alive(self, request: Request) -> Response:
        """Return 503 where another collector would do better: while the disk fails, but neither between rounds nor at
        the end, of which devices are told here."""
        fine = self._collector.trouble is None
        return _fresh(Response("yes\n" if fine else "no\n", 200 if fine else 503, media_type="text/plain"))

    async def metrics(self, request: Request) -> Response:
        """All counts, for Prometheus."""
        collector, opened = self._collector, self._collector.opened
        facts = {"addresses_remembered": len(collector.rates)}
        of_plan = {
            "round": 0 if opened is None else opened.form.round,
            "round_reports": collector.reports,
            "watching": int(collector.watching),
            "between_rounds": int(collector.state == "waiting"),
            "taking_reports": int(collector.taking),
        }
        text = collector.counts.text(facts, of_plan, collector.plan.hash[:16])
        return _fresh(Response(text, media_type="text/plain; version=0.0.4; charset=utf-8"))

    def _admit(self, request: Request, peer: str | None) -> None:
        """Raises: Turned: too many requests of this address, or content that is no reports'."""
        wait = self._collector.rates.wait(request.client.host) if request.client else 0.0
        if wait:
            raise RequestRejected(429, "too many", retry_after(wait))
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != CONTENT:
            raise RequestRejected(415, "form")
        declared = request.headers.get("content-length", "")
        self._bound(int(declared) if declared.isdecimal() else 0, peer)

    def _bound(self, size: int, peer: str | None) -> None:
        """Raises: Turned: a request of so many bytes is too large, or more are under way than memory is given to."""
        if size > self._collector.limits.body:
            raise RequestRejected(413, "too large")
        if self._collector.held.full(peer):
            raise RequestRejected(503, "busy", retry_after(1))


def _fresh(response: Response) -> Response:
    """Let nobody on the way keep an answer, which may be another one in a minute."""
    response.headers["cache-control"] = "no-cache"
    return response
