"""The REST interface of the faults: routes and bodies of the reference (observe.md 7.4), and a few more.

Who may call it: whoever reaches the address, which is always one of this machine, may read what is broken and what happened.
Subscriptions, and whatever changes something, are for root, the user of the daemon and those in ``faultsub.operators``: the
kernel tells whose end of a connection it is. A browser on a foreign page is kept out: its requests carry an ``Origin`` of their
own, or say that they are cross-site, and a body must call itself JSON, which such a page cannot send without asking first.
"""

import re
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar
from urllib.parse import parse_qs, unquote

import msgspec

from nodeproof.clock import rfc3339_parse
from nodeproof.errors import UsageError, WriteError
from nodeproof.faults.delivery import Deliverer, Progress
from nodeproof.faults.desk import FaultDesk
from nodeproof.faults.records import read_events
from nodeproof.faults.subscriptions import Request as SubscriptionRequest
from nodeproof.faults.subscriptions import Subscriptions
from nodeproof.faults.views import active_fault, by_card, known_types
from nodeproof.host.http_request import Request
from nodeproof.host.http_server import Response
from nodeproof.host.listen import LOOPBACK_NAMES, is_ip
from nodeproof.host.socket_holder import uid_of_connection
from nodeproof.host.users import UserList, user_name
from nodeproof.model.event import Severity
from nodeproof.model.fault import Change, FaultClass, FaultEvent, Subscription

__all__ = ["MOST_BODY_BYTES", "FaultApi", "Ingest", "Redelivery"]

MOST_BODY_BYTES = 64 * 1024
_T = TypeVar("_T")
_JSON = "application/json"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}")
_EVENT_ID = re.compile(r"[0-9a-f]{32}")
_MOST_DETAIL = 64
_MOST_DETAIL_CHARS = 1024
_INGESTS_A_MINUTE = 600
_MOST_EVENTS = 10_000
_KEEP_S = 5.0
"""An event counts as taken once it is on the disk; whoever hands it in waits so long for that."""
_SUBSCRIPTIONS = "/faultsub/subscriptions"
_ORDERS = {"ack", "hold", "release", "clear"}


class Ingest(msgspec.Struct, frozen=True, kw_only=True):
    """An event that somebody hands in; what is left out is filled in, and what is not known is passed over."""

    type: str
    component: str = "npu"
    npu_id: str = ""
    gpu_id: str = ""
    severity: Severity = Severity.WARNING
    detail: dict[str, str] | None = None
    timestamp: str = ""
    event_id: str = ""
    recovered: bool = False


class Redelivery(msgspec.Struct, frozen=True):
    """Which dead letters are to be sent once more."""

    sequences: list[int] | None = None
    """Numbers of their events; None = all."""


class _Shown(Subscription, frozen=True, kw_only=True):
    """A subscription, and how it fares."""

    progress: Progress | None = None
    warnings: tuple[str, ...] = ()


class FaultApi:
    """Answers requests; :meth:`answer` is the handler."""

    def __init__(
        self,
        desk: FaultDesk,
        subscriptions: Subscriptions,
        deliverer: Deliverer,
        *,
        buffer: int,
        operators: UserList,
        allowed_hosts: Collection[str] = (),
    ) -> None:
        """``buffer``: how many of the newest events can be asked for."""
        self._operators = operators
        self._desk = desk
        self._subscriptions = subscriptions
        self._deliverer = deliverer
        self._buffer = max(0, min(buffer, _MOST_EVENTS))
        self._names = LOOPBACK_NAMES | {name.lower() for name in allowed_hosts}
        self._ingested: list[float] = []
        self._routes: dict[str, dict[str, Callable[[Request], Response]]] = {
            "/-/healthy": {"GET": lambda _: Response(200, b"ok\n")},
            "/-/ready": {"GET": self._ready},
            "/faultsub/types": {"GET": lambda _: _json(200, {"types": known_types()})},
            "/faultsub/snapshot": {"GET": lambda _: _json(200, by_card(self._desk.active()))},
            "/faultsub/active": {"GET": lambda _: _json(200, [active_fault(fault) for fault in self._desk.active()])},
            "/faultsub/events": {"GET": self._events, "POST": self._ingest},
            _SUBSCRIPTIONS: {"GET": self._list, "POST": self._subscribe},
        }

    def answer(self, request: Request) -> Response:
        """One request."""
        refusal = self._refuse(request) or self._keep_out(request)
        if refusal is not None:
            return refusal
        methods = self._routes.get(request.path) or self._below(unquote(request.path))
        if methods is None:
            return _problem(404, "there is nothing here; see /faultsub/types, snapshot, active, events and subscriptions")
        handler = methods.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            allowed = ", ".join(methods)
            return _problem(405, f"only {allowed}", (("Allow", allowed),))
        try:
            return handler(request)
        except UsageError as error:
            return _problem(400, str(error))
        except WriteError as error:
            return _problem(503, str(error))

    def _refuse(self, request: Request) -> Response | None:
        """What a page elsewhere had a browser send."""
        headers = request.headers
        if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"} or not self._own(headers.get("origin", "")):
            return _problem(403, "requests that pages of other sites make are not answered")
        if request.method == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            return _problem(415, "send application/json")
        return None

    def _keep_out(self, request: Request) -> Response | None:
        """Who may only read, from what is not his to read or change."""
        if request.method in {"GET", "HEAD"} and not unquote(request.path).startswith(_SUBSCRIPTIONS):
            return None
        uid = None if request.ends is None else uid_of_connection(*request.ends)
        if uid is None:
            return _problem(403, "it cannot be told which user of this machine asks; ask from the node itself")
        if not self._operators.has(uid):
            return _problem(403, f"{user_name(uid)} may not do this; faultsub.operators may name that user, or a group with a %")
        return None

    def _own(self, origin: str) -> bool:
        if not origin:
            return True
        host = origin.partition("://")[2]
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
        return name.lower() in self._names or is_ip(name)

    def _below(self, path: str) -> dict[str, Callable[[Request], Response]] | None:
        if path.startswith(f"{_SUBSCRIPTIONS}/"):
            identity, slash, rest = path.removeprefix(f"{_SUBSCRIPTIONS}/").partition("/")
            if not slash:
                return {"GET": lambda _: self._one(identity), "DELETE": lambda _: self._delete(identity)}
            if rest == "dead-letters":
                return {"GET": lambda _: self._dead(identity)}
            if rest == "redeliver":
                return {"POST": lambda request: self._redeliver(identity, request)}
        if path.startswith("/faultsub/faults/"):
            identity, _, verb = path.removeprefix("/faultsub/faults/").partition("/")
            if verb in _ORDERS:
                return {"POST": lambda _: _not_here(identity, verb)}
        return None

    def _ready(self, _request: Request) -> Response:
        problem = self._desk.problem
        return Response(503, f"{problem}\n".encode()) if problem else Response(200, b"ok\n")

    def _events(self, request: Request) -> Response:
        query = parse_qs(request.query, keep_blank_values=True)
        since, type_, npu_id, gpu_id, after = (query.get(key, [""])[-1] for key in ("since", "type", "npu_id", "gpu_id", "after"))
        try:
            since_s = rfc3339_parse(since) if since else None
        except (ValueError, OverflowError):
            raise UsageError(f"since: {since[:60]!r} is no RFC 3339 time, such as 2026-11-30T22:20:41Z") from None
        if after and not (after.isascii() and after.isdecimal() and len(after) < 16):
            raise UsageError(f"after: {after[:60]!r} is no number of an event")

        def wanted(event: FaultEvent) -> bool:
            return (
                event.change in {Change.SET, Change.CLEARED, Change.EVENT, Change.GRAVER}
                and (not type_ or event.type == type_)
                and (not npu_id or event.npu_id == npu_id)
                and (not gpu_id or event.gpu_id == gpu_id)
                and (since_s is None or rfc3339_parse(event.timestamp) > since_s)
            )

        return _json(200, read_events(self._desk.directory, limit=self._buffer, after=int(after or 0), wanted=wanted))

    def _ingest(self, request: Request) -> Response:
        now_s = self._desk.now().mono_s
        self._ingested = [told for told in self._ingested if now_s - told < 60.0]
        if len(self._ingested) >= _INGESTS_A_MINUTE:
            return _problem(429, f"more than {_INGESTS_A_MINUTE} events within a minute", (("Retry-After", "60"),))
        event = _ingested(_decoded(request, Ingest))
        self._ingested.append(now_s)
        taken = self._desk.record(event)
        if not self._desk.keep(taken.sequence, _KEEP_S):
            return _problem(503, f"not kept on disk: {self._desk.problem or 'the disk is slow'}", (("Retry-After", "5"),))
        return _json(202, {"event_id": taken.event_id, "status": "dispatched"})

    def _subscribe(self, request: Request) -> Response:
        wish = _decoded(request, SubscriptionRequest)
        subscription = self._subscriptions.add(wish, self._desk.sequence)
        self._deliverer.wake()
        unknown = sorted(set(subscription.types) - set(known_types()))
        warnings = [f"no rule here makes events of type {name!r}" for name in unknown]
        return _json(201, _shown(subscription, self._deliverer.progress(subscription.id), warnings))

    def _list(self, _request: Request) -> Response:
        return _json(200, [_shown(one, self._deliverer.progress(one.id)) for one in self._subscriptions.all()])

    def _one(self, identity: str) -> Response:
        subscription = self._subscriptions.get(identity)
        if subscription is None:
            return _problem(404, f"no subscription {identity[:80]!r}")
        return _json(200, _shown(subscription, self._deliverer.progress(identity)))

    def _delete(self, identity: str) -> Response:
        if not self._subscriptions.remove(identity):
            return _problem(404, f"no subscription {identity[:80]!r}")
        self._deliverer.wake()
        return Response(204, b"", _JSON)

    def _dead(self, identity: str) -> Response:
        if self._subscriptions.get(identity) is None:
            return _problem(404, f"no subscription {identity[:80]!r}")
        return _json(200, self._deliverer.dead_letters(identity))

    def _redeliver(self, identity: str, request: Request) -> Response:
        if self._subscriptions.get(identity) is None:
            return _problem(404, f"no subscription {identity[:80]!r}")
        wish = _decoded(request, Redelivery) if request.body else Redelivery()
        return _json(202, {"sequences": self._deliverer.redeliver(identity, wish.sequences)})


def _not_here(identity: str, verb: str) -> Response:
    """An operator's word is given by who may write into the daemon's directory, and stands there with his name."""
    return _problem(403, f"on the node itself: nodeproof faults {verb} {identity[:80]}")


def _ingested(given: Ingest) -> FaultEvent:
    """Raises UsageError, naming the key."""
    for key, text in (("type", given.type), ("component", given.component)):
        if _NAME.fullmatch(text) is None:
            raise UsageError(f"{key}: {text[:80]!r} is no name of letters, digits and _ . : -")
    if given.event_id and _EVENT_ID.fullmatch(given.event_id) is None:
        raise UsageError("event_id: not 32 hexadecimal digits")
    detail = given.detail or {}
    if len(detail) > _MOST_DETAIL or any(len(key) + len(text) > _MOST_DETAIL_CHARS for key, text in detail.items()):
        raise UsageError(f"detail: more than {_MOST_DETAIL} entries, or one of more than {_MOST_DETAIL_CHARS} characters")
    if len(given.npu_id) > 64 or len(given.gpu_id) > 64:
        raise UsageError("npu_id, gpu_id: more than 64 characters")
    if given.timestamp:
        try:
            rfc3339_parse(given.timestamp)
        except (ValueError, OverflowError):
            raise UsageError(f"timestamp: {given.timestamp[:60]!r} is no RFC 3339 time") from None
    return FaultEvent(
        event_id=given.event_id,
        type=given.type,
        component=given.component,
        npu_id=given.npu_id,
        gpu_id=given.gpu_id,
        severity=given.severity,
        detail=detail,
        timestamp=given.timestamp,
        recovered=given.recovered,
        sequence=0,
        change=Change.EVENT,
        fault_class=FaultClass.STRAGGLER if given.type == "straggler_detected" else FaultClass.UNKNOWN,
        rule="ingest",
        device=given.npu_id or given.gpu_id,
        message="handed in through the interface",
        boot_id="",
        verified=False,
    )


def _shown(subscription: Subscription, progress: Progress | None, warnings: Sequence[str] = ()) -> _Shown:
    fields = {name: getattr(subscription, name) for name in subscription.__struct_fields__}
    return _Shown(**fields, progress=progress, warnings=tuple(warnings))


def _decoded(request: Request, kind: type[_T]) -> _T:
    """The body as ``kind``. Raises UsageError."""
    try:
        return msgspec.json.decode(request.body, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"the body is not what is wanted here: {error}") from None


def _json(status: int, value: object) -> Response:
    return Response(status, msgspec.json.encode(value), _JSON)


def _problem(status: int, text: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    return Response(status, msgspec.json.encode({"error": text}), _JSON, headers)
