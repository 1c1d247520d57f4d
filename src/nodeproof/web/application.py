"""The routes: each operation of the contract with its endpoint, and the files of the page."""

from collections.abc import Callable, Collection, Mapping

from nodeproof.web import documents
from nodeproof.web.access import Access
from nodeproof.web.answers import Body, Kept, answer, problem
from nodeproof.web.backstage import Backstage
from nodeproof.web.contract import OPERATIONS
from nodeproof.web.dfee import energy
from nodeproof.web.faults_api import FaultsApi, faults_endpoints
from nodeproof.web.feed import Feed
from nodeproof.web.gate import Gate
from nodeproof.web.guard import Guard
from nodeproof.web.http_messages import Endpoint, Request, Response
from nodeproof.web.other_api import other_endpoints
from nodeproof.web.roles import Role
from nodeproof.web.router import Router
from nodeproof.web.runs_api import runs_endpoints
from nodeproof.web.session_api import session_endpoints
from nodeproof.web.static_files import load_static
from nodeproof.web.stream import EventStreams, Topic
from nodeproof.web.stress_actions import action_endpoints
from nodeproof.web.stress_api import StressApi, stress_endpoints

__all__ = ["make_application"]


def make_application(
    feed: Feed, backstage: Backstage, access: Access, stopping: Callable[[], bool], allowed_hosts: Collection[str] = ()
) -> Endpoint:
    """Everything that is served of ``feed`` and ``backstage``; streams end once ``stopping`` says so."""
    static = load_static()
    gate = Gate(access)
    stress, faults = StressApi(backstage, access), FaultsApi(backstage, feed)
    topics = (Topic("stress", stress.stamp, stress.now_json), Topic("faults", faults.stamp, faults.active_json))
    endpoints: dict[str, Endpoint] = {
        "snapshot": _document(feed, Kept(documents.combined)),
        "collectors": _document(feed, Kept(documents.collectors)),
        "config": _document(feed, Kept(documents.settings)),
        "health": _document(feed, Kept(documents.wellbeing, ages=True)),
        "catalogue": _document(feed, Kept(documents.catalogue)),
        "energy": _document(feed, Kept(energy)),
        "events": EventStreams(feed, stopping, topics, lambda request: access.caller(request).role is not Role.NONE).reader,
        **stress_endpoints(stress),
        **faults_endpoints(faults),
        **action_endpoints(backstage, access, gate),
        **session_endpoints(access, gate),
        **runs_endpoints(backstage),
        **other_endpoints(backstage),
    }
    pages = {
        "/": {"GET": _page(static)},
        "/stress/": {"GET": _page(static)},
        "/static/{path:path}": {"GET": _static(static)},
    }
    return Guard(Router(pages | _by_path(endpoints)), allowed_hosts, access)


def _by_path(endpoints: Mapping[str, Endpoint]) -> dict[str, dict[str, Endpoint]]:
    """Endpoints of the contract by path and method."""
    found: dict[str, dict[str, Endpoint]] = {}
    for one in OPERATIONS:
        found.setdefault(one.path, {})[one.method] = endpoints[one.id]
    return found


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
        body = static.get(request.path_parameters["path"])
        return problem(404, "not found") if body is None else answer(request, body)

    return endpoint
