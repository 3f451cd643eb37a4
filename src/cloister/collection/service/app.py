"""HTTP interface of the collector, an ASGI application.

    GET  /round                the open round: its name, bundle and number of reports
    GET  /plan.json ...        the plan's public files
    POST /reports              one report, or batches: acknowledged when they are on the disk
    GET  /health, /metrics     for operators
    GET  /alive                for supervisors and load balancers

    app = create_app(Path("plan"), Path("reports"))        # for ASGI servers; the command uses ``running.serve``

Only a request's method, path, length, content type and body are read, and its address for the rate limit.
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
"""Content type of reports; browsers ask before a page of another origin may send it (``origins``)."""

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
    on_event: Callable[[dict[str, Any]], None] = lambda event: None,
) -> Starlette:
    """Create the application, lock its folder and read its earlier reports; the lifespan must be run.

    ``app.state.collector`` is its ``Collector``, ``app.state.metrics`` an application of /metrics alone. ``origins``
    are those of the pages that browsers may let in ("*": all); with ``metrics_apart``, this application has no
    /metrics. Other arguments, and errors, as for ``Collector``.
    """
    collector = Collector(plan, out, shuffle=shuffle, issuer=issuer, limits=limits, on_event=on_event)
    pages = _Pages(collector, PublicFiles(plan))
    metrics = [Route("/metrics", pages.metrics)]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with collector.running():
            yield

    async def fault(request: Request, error: Exception) -> Response:
        collector.say("fault", what=type(error).__name__)  # the text may quote the request
        return Response("internal error of the collector\n", 500, media_type="text/plain")

    # a page may read the headers exposed here: a 429 says when to retry
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
    """Cache of a plan's public files.

    A file is read again when it changes, and served from memory while the folder is gone; the plan never changes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._kept = folder, dict[str, tuple[tuple[int, ...], bytes]]()
        self.get(FILE)

    def get(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is no such public file."""
        path, entry = self._folder / name, self._kept.get(name)
        if _PUBLIC.fullmatch(name) and not (entry and name == FILE):
            with suppress(OSError):
                status = path.stat()
                version = (status.st_ino, status.st_size, status.st_mtime_ns)
                # opening a pipe would block the event loop for ever
                if (entry is None or version != entry[0]) and stat.S_ISREG(status.st_mode):
                    entry = self._kept[name] = (version, path.read_bytes())
        return None if entry is None else entry[1]

    def bundle(self, round: int) -> dict[str, Any]:
        """Return the path and hash of a round's bundle, both None while there is none."""
        file = f"bundle-{round}.json"
        content = self.get(file)
        if content is None or self.get(f"bundle-{round}.bin") is None:
            return {"bundle": None, "sha256": None}
        return {"bundle": f"/{file}", "sha256": hashlib.sha256(content).hexdigest()}


@final
class _Pages:
    """Request handlers."""

    def __init__(self, collector: Collector, files: PublicFiles) -> None:
        self._collector, self._files = collector, files

    async def reports(self, request: Request) -> Response:
        """Store one report or batches."""
        collector, size = self._collector, 0
        peer = peer_of(request.client.host) if request.client else None
        try:
            self._admit(request, peer)
            body = bytearray()
            try:
                async with asyncio.timeout(collector.limits.seconds):
                    async for chunk in request.stream():
                        size += len(chunk)
                        collector.pending.add(peer, len(chunk))
                        self._bound(size, peer)
                        body += chunk
            except TimeoutError:
                raise RequestRejected(408, "too slow") from None
            receipt = await collector.receive(bytes(body))
        except ClientDisconnect:
            return Response(status_code=400)
        except RequestRejected as rejection:
            collector.counts.refused[rejection.reason] += 1
            answer = {"accepted": 0, "refused": {rejection.reason: 1}, "why": f"refused: {rejection}"}
            return JSONResponse(answer, rejection.status, rejection.headers)
        finally:
            collector.pending.add(peer, -size)
        return JSONResponse({"accepted": receipt.accepted, "refused": receipt.refused}, receipt.status)

    async def only_posted(self, request: Request) -> Response:
        """Refuse to give out reports."""
        text = "send reports here by POST; none are given out\n"
        return Response(text, 405, {"allow": "POST"}, media_type="text/plain")

    async def round(self, request: Request) -> Response:
        """Describe the open round."""
        collector, opened = self._collector, self._collector.opened
        facts: dict[str, Any] = {
            "plan": collector.plan.hash,
            "rounds": collector.plan.length,
            "open": opened is not None,
        }
        if opened is None:
            facts |= {"round": None, "head": None, "bundle": None, "sha256": None, "reports": 0}
        else:
            number = opened.form.round
            facts |= {
                "round": number,
                "head": opened.form.head,
                "reports": collector.reports,
                **self._files.bundle(number),
            }
        return _fresh(JSONResponse(facts))

    async def file(self, request: Request) -> Response:
        """Serve one of the plan's public files."""
        name = request.path_params["name"]
        content = self._files.get(name)
        if content is None:
            return Response("there is no such file\n", 404, media_type="text/plain")
        return _fresh(Response(content, media_type=_TYPES[name.rpartition(".")[2]]))

    async def health(self, request: Request) -> Response:
        """Report whether reports are accepted, with status 503 while they are not."""
        collector, ready = self._collector, self._collector.taking and self._collector.trouble is None
        facts = {
            "ready": ready,
            "state": collector.state,
            "watching": collector.watching,
            "waiting": collector.waiting is not None,
        }
        # the page is public: names of files and accounts go to the log alone
        disk = None if collector.trouble is None else collector.trouble.partition(": ")[0]
        return _fresh(JSONResponse({**facts, "disk": disk}, 200 if ready else 503))

    async def alive(self, request: Request) -> Response:
        """Return 503 while the disk fails.

        Between rounds and after the last it is 200: another collector could not take reports either.
        """
        fine = self._collector.trouble is None
        return _fresh(Response("yes\n" if fine else "no\n", 200 if fine else 503, media_type="text/plain"))

    async def metrics(self, request: Request) -> Response:
        """Return all counts in Prometheus' text format."""
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
        """Raise RequestRejected if the rate limit, content type or declared length forbids the request."""
        wait = self._collector.rates.wait(request.client.host) if request.client else 0.0
        if wait:
            raise RequestRejected(429, "too many", retry_after(wait))
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != CONTENT:
            raise RequestRejected(415, "form")
        declared = request.headers.get("content-length", "")
        self._bound(int(declared) if declared.isdecimal() else 0, peer)

    def _bound(self, size: int, peer: str | None) -> None:
        """Raise RequestRejected if ``size`` bytes are too many, or pending requests hold too much memory."""
        if size > self._collector.limits.body:
            raise RequestRejected(413, "too large")
        if self._collector.pending.full(peer):
            raise RequestRejected(503, "busy", retry_after(1))


def _fresh(response: Response) -> Response:
    """Forbid caches to reuse an answer without asking."""
    response.headers["cache-control"] = "no-cache"
    return response
