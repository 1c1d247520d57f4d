"""The routes. All of them read; whatever would change something is not here."""

from collections.abc import Awaitable, Callable, Collection, Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from nodeproof.web import documents
from nodeproof.web.answers import Body, Kept, answer, problem
from nodeproof.web.dfee import energy
from nodeproof.web.feed import Feed
from nodeproof.web.guard import Guard
from nodeproof.web.static_files import load_static
from nodeproof.web.stream import EventStreams

__all__ = ["Endpoint", "make_application"]

Endpoint = Callable[[Request], Awaitable[Response]]
_READ = ["GET"]
_WORDS = {404: "not found", 405: "method not allowed", 413: "content too large"}


def make_application(feed: Feed, stopping: Callable[[], bool], allowed_hosts: Collection[str] = ()) -> ASGIApp:
    """Everything that is served of ``feed``; streams end once ``stopping`` says so."""
    static = load_static()
    events = Route("/api/events", EventStreams(feed, stopping), methods=_READ)
    routes = [
        Route("/", _page(static), methods=_READ),
        Route("/stress/", _page(static), methods=_READ),
        Route("/static/{path:path}", _static(static), methods=_READ),
        Route("/api/snapshot", _document(feed, Kept(documents.combined)), methods=_READ),
        Route("/api/collectors", _document(feed, Kept(documents.collectors)), methods=_READ),
        Route("/api/config", _document(feed, Kept(documents.settings)), methods=_READ),
        Route("/api/health", _document(feed, Kept(documents.wellbeing, ages=True)), methods=_READ),
        Route("/api/catalogue", _document(feed, Kept(documents.catalogue)), methods=_READ),
        Route("/api/dfee", _document(feed, Kept(energy)), methods=_READ),
        events,
    ]
    application = Starlette(routes=routes, exception_handlers={HTTPException: _refusal, Exception: _failure})
    application.router.redirect_slashes = False
    return Guard(application, allowed_hosts)


def _document(feed: Feed, kept: Kept) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        view = feed.look()
        body = kept.body(view)
        if body is None:
            return problem(
                503,
                "snapshot not ready",
                f"{view.state.verdict}: {view.state.reason}",
                {"Retry-After": "1"},
                daemon=view.state,
                problems=view.problems,
            )
        return answer(request, body)

    return endpoint


def _page(static: Mapping[str, Body]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return answer(request, static["index.html"])

    return endpoint


def _static(static: Mapping[str, Body]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        body = static.get(request.path_params["path"])
        return problem(404, "not found") if body is None else answer(request, body)

    return endpoint


async def _refusal(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    return problem(status, _WORDS.get(status, "refused"), headers=headers)


async def _failure(_request: Request, error: Exception) -> Response:
    return problem(500, "internal error", f"an error of nodeproof itself: {type(error).__name__}")
