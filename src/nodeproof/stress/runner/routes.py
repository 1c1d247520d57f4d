"""Routes of the runner: ``/v1`` as the reference has them, ``/v2`` our own."""

import re
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec

from nodeproof.errors import NodeproofError, RecordError
from nodeproof.host.http_server import Response
from nodeproof.host.unix_http import Call, Exchange
from nodeproof.model.job import HISTORY_LIMIT, Initiator
from nodeproof.stress.adapters.base import DescribeError
from nodeproof.stress.facade import RunOptions
from nodeproof.stress.problems import Busy, Disabled, JobNotFound, SelectionError
from nodeproof.stress.runner.access import Access, Role
from nodeproof.stress.runner.service import RunnerService
from nodeproof.stress.runner.wire import AvailabilityBody, Cancel, Problem, RunBody, Start, V1Run
from nodeproof.stress.sizing import Plan

__all__ = ["V1_BENCHMARKS", "Refusal", "Routes"]

V1_BENCHMARKS = ("stream", "hpl", "hpcg")
_V1_BODY_BYTES = 1024
_JSON = "application/json"
_LINES = "application/x-ndjson"
_T = TypeVar("_T")
_STATUS: tuple[tuple[type[NodeproofError], int, str], ...] = (
    (Busy, 409, "busy"),
    (JobNotFound, 404, "not_found"),
    (Disabled, 403, "disabled"),
    (SelectionError, 400, "invalid"),
    (DescribeError, 422, "describe"),
    (RecordError, 404, "record"),
)
_Handler = Callable[[Call, Exchange, dict[str, str]], Response | None]


class Refusal(NodeproofError):  # noqa: N818 - an answer to the client, not a failure of ours
    """An answer that is no success."""

    def __init__(self, status: int, code: str, text: str) -> None:
        self.status = status
        self.code = code
        super().__init__(text)


class Routes:
    """Answers one call."""

    def __init__(self, service: RunnerService, access: Access) -> None:
        self._service = service
        self._access = access
        self._table: tuple[tuple[str, re.Pattern[str], Role, _Handler], ...] = tuple(
            (method, re.compile(pattern), role, handler)
            for method, pattern, role, handler in (
                ("GET", r"/v1/healthz", Role.VIEWER, self._healthz),
                ("GET", r"/v1/benchmarks/(?P<name>[^/]{1,64})", Role.VIEWER, self._v1_describe),
                ("POST", r"/v1/runs", Role.OPERATOR, self._v1_run),
                ("GET", r"/v2/config", Role.VIEWER, self._config),
                ("GET", r"/v2/availability/(?P<name>[a-z0-9_]{1,64})", Role.VIEWER, self._availability),
                ("GET", r"/v2/benchmarks/(?P<name>[a-z0-9_]{1,64})", Role.VIEWER, self._describe),
                ("GET", r"/v2/jobs", Role.VIEWER, self._history),
                ("POST", r"/v2/jobs", Role.OPERATOR, self._start),
                ("GET", r"/v2/jobs/latest", Role.VIEWER, self._latest),
                ("GET", r"/v2/jobs/(?P<id>[0-9a-f]{1,64})", Role.VIEWER, self._job),
                ("GET", r"/v2/jobs/(?P<id>[0-9a-f]{1,64})/events", Role.VIEWER, self._events),
                ("POST", r"/v2/jobs/(?P<id>[0-9a-f]{1,64})/cancel", Role.OPERATOR, self._cancel),
                ("GET", r"/v2/live", Role.VIEWER, self._live),
                ("GET", r"/v2/runs/(?P<id>run-[0-9A-Za-z-]{1,80})", Role.VIEWER, self._run),
            )
        )

    def __call__(self, call: Call, exchange: Exchange) -> Response | None:
        """Raises OSError when the client is gone."""
        path = call.request.path
        try:
            handler, found = self._find(call)
            return handler(call, exchange, found.groupdict())
        except Busy as busy:
            return _problem(409, Problem(error=str(busy), code="busy", report=busy.report), path)
        except Refusal as refusal:
            return _problem(refusal.status, Problem(error=str(refusal), code=refusal.code), path)
        except NodeproofError as error:
            status, code = next(((status, code) for kind, status, code in _STATUS if isinstance(error, kind)), (500, "error"))
            return _problem(status, Problem(error=str(error), code=code), path)

    def _find(self, call: Call) -> tuple[_Handler, re.Match[str]]:
        """Raises Refusal: 404, 405, or 403 for a caller without the role."""
        request = call.request
        methods = []
        for method, pattern, role, handler in self._table:
            found = pattern.fullmatch(request.path)
            if found is None:
                continue
            methods.append(method)
            if method == request.method:
                if self._access.role(call.peer) < role:
                    raise Refusal(403, "forbidden", f"uid {call.peer.uid} is no {role.name.lower()} here")
                return handler, found
        if methods:
            raise Refusal(405, "method", f"only {', '.join(methods)} here")
        raise Refusal(404, "not_found", "there is nothing here")

    # The reference's

    def _healthz(self, call: Call, exchange: Exchange, place: dict[str, str]) -> Response:
        del call, exchange, place
        return _json({"status": "ok", "benchmarks": V1_BENCHMARKS})

    def _v1_describe(self, call: Call, exchange: Exchange, place: dict[str, str]) -> Response:
        del call, exchange
        name = _v1_name(place["name"], 404)
        return _json(self._service.manager.describe(name))

    def _v1_run(self, call: Call, exchange: Exchange, place: dict[str, str]) -> Response | None:
        del place
        if len(call.body) > _V1_BODY_BYTES:
            raise Refusal(413, "invalid", f"a body has at most {_V1_BODY_BYTES} bytes here")
        name = _v1_name(_body(call, V1Run).benchmark, 400)
        try:
            output = self._service.run_whole(name, RunOptions(initiator=Initiator.RUNNER, callers_limit=True), exchange.gone)
        except SelectionError as error:
            raise Refusal(422, "unavailable", str(error)) from None
        if output is None:
            return None
        if output.overlong:
            return Response(502, b"the output is longer than 16 MiB\n")
        if not output.succeeded:
            return Response(422, output.data + f"\n{output.reason}\n".encode())
        return Response(200, output.data)

    # Our own

    def _config(self, call: Call, exchange: Exchange, place: dict[str, str]) -> Response:
        del call, exchange, place
        return _json(self._service.manager.config)

    def _availability(self, call: Call, exchange: Exchange, place: dict[str, str]) -> Response:
        del exchange
        answer = self._service.manager.availability(place["name"], _plan(_query(call).get("plan", "standard")))
        return _json(AvailabilityBody(**answer._asdict()))

    def _describe(self, call: Call, exchange: Exchange, place: dict[str, str]) -> Response:
        del exchange
        query = _query(call)
        return _json(
            self._service.manager.describe(
                place["name"],
                timeout_s=_number(query, "timeout_seconds"),
                plan=_plan(query.get("plan", "standard")),
                seconds=int(_number(query, "seconds")),
            )
        )

    def _history(self, call: Call, exchange: Exchange, place: dict[str, str]) -> Response:
        del exchange, place
        limit = _query(call).get("limit", "20")
        if not limit.isdecimal() or not 1 <= int(limit[:4]) <= HISTORY_LIMIT:
            raise Refusal(400, "invalid", f"limit: expected 1 to {HISTORY_LIMIT}")
        return _json(self._service.manager.history(int(limit)))

    def _start(self, call: Call, exchange: Exchange, place: dict[str, str]) -> Response | None:
        del place
        wanted = _body(call, Start)
        if wanted.initiator not in set(Initiator):
            raise Refusal(400, "invalid", f"initiator: expected one of {', '.join(Initiator)}")
        options = RunOptions(
            timeout_s=wanted.timeout_seconds,
            initiator=Initiator(wanted.initiator),
            plan=_plan(wanted.plan),
            seconds=wanted.seconds,
        )
        report = self._service.start(wanted.benchmarks, options)
        if not wanted.attached:
            return _json(report, 202)
        self._stream(exchange, report.job_id, attached=True)
        return None

    def _latest(self, call: Call, exchange: Exchange, place: dict[str, str]) -> Response:
        del call, exchange, place
        return _json(self._service.manager.latest())

    def _job(self, call: Call, exchange: Exchange, place: dict[str, str]) -> Response:
        del call, exchange
        return _json(self._service.manager.job(place["id"]))

    def _events(self, call: Call, exchange: Exchange, place: dict[str, str]) -> None:
        del call
        self._service.manager.job(place["id"])
        self._stream(exchange, place["id"], attached=False)

    def _cancel(self, call: Call, exchange: Exchange, place: dict[str, str]) -> Response:
        del exchange
        manager = self._service.manager
        wanted = _body(call, Cancel)
        manager.cancel(place["id"], wanted.reason)
        if wanted.kill:
            manager.kill()
        return _json({"job_id": place["id"], "accepted": True}, 202)

    def _live(self, call: Call, exchange: Exchange, place: dict[str, str]) -> Response:
        del call, exchange, place
        return _json(self._service.manager.live())

    def _run(self, call: Call, exchange: Exchange, place: dict[str, str]) -> Response:
        del call, exchange
        stored = self._service.manager.runs.inspect(place["id"])
        return _json(RunBody(record=msgspec.Raw(msgspec.json.encode(stored.record)), problems=list(stored.problems)))

    def _stream(self, exchange: Exchange, job_id: str, *, attached: bool) -> None:
        """Events, a line each, until the end of the job. Raises OSError when the reader is gone."""
        events = self._service.follow(job_id, exchange.gone, attached=attached)
        try:
            first = next(events)  # only one that has begun cancels when it is closed: the reader may be gone already
            exchange.begin(_LINES)
            exchange.send(msgspec.json.encode(first) + b"\n")
            for event in events:
                exchange.send(msgspec.json.encode(event) + b"\n")
            exchange.end()
        finally:
            events.close()  # which cancels an attached job


def _v1_name(name: str, status: int) -> str:
    if name not in V1_BENCHMARKS:
        raise Refusal(status, "not_found" if status == 404 else "invalid", f"{name[:64]!r} is none of {', '.join(V1_BENCHMARKS)}")
    return name


def _body(call: Call, kind: type[_T]) -> _T:
    """Raises Refusal."""
    media = call.request.headers.get("content-type", _JSON).partition(";")[0].strip().lower()
    if media != _JSON:
        raise Refusal(415, "invalid", f"a body is {_JSON} here")
    try:
        return msgspec.json.decode(call.body, type=kind)
    except msgspec.DecodeError as error:
        raise Refusal(400, "invalid", f"the body: {error}") from None


def _query(call: Call) -> dict[str, str]:
    return dict(parse_qsl(call.request.query, keep_blank_values=True, max_num_fields=16))


def _plan(text: str) -> Plan:
    try:
        return Plan(text)
    except ValueError:
        raise Refusal(400, "invalid", f"plan: expected one of {', '.join(Plan)}") from None


def _number(query: dict[str, str], name: str) -> float:
    text = query.get(name, "0")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e7:
        raise Refusal(400, "invalid", f"{name}: {text[:40]!r} is no number of seconds")
    return value


def _json(value: object, status: int = 200) -> Response:
    return Response(status, msgspec.json.encode(value) + b"\n", _JSON)


def _problem(status: int, problem: Problem, path: str) -> Response:
    """As plain text where the reference speaks plain text."""
    if path.startswith("/v1/"):
        return Response(status, f"{problem.error}\n".encode())
    return _json(problem, status)
