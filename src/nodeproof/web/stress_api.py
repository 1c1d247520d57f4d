"""``/api/stress/*`` (stress.md 6.1): what could run, what runs, what ran."""

import time
from collections.abc import Callable, Mapping

import msgspec

from nodeproof.model.job import HISTORY_LIMIT, Report
from nodeproof.web import wire
from nodeproof.web.access import Access
from nodeproof.web.answers import Body, answer
from nodeproof.web.backstage import Backstage, Reports
from nodeproof.web.http_messages import Endpoint, Request, Response
from nodeproof.web.requests import Refused, path_of, query_of
from nodeproof.web.roles import Caller, Role

__all__ = ["StressApi", "bare", "shown", "stress_endpoints"]

_LOOK_AFTER_S = 2.0
_encode = msgspec.json.Encoder().encode


class StressApi:
    """The endpoints of one server."""

    def __init__(self, backstage: Backstage, access: Access) -> None:
        self._backstage = backstage
        self._access = access
        self._runs = False
        """Whether a job ran when it was looked at last."""

    async def config(self, request: Request) -> Response:
        """What could run."""
        operator = self._access.token_required and request.caller.role is Role.OPERATOR

        def view() -> object:
            from nodeproof.stress.views import config_view  # noqa: PLC0415 - with the manager, which is loaded when asked for

            return config_view(self._backstage.manager(), loopback=self._access.loopback, operator=operator)

        return await self._document(request, view)

    async def latest(self, request: Request) -> Response:
        """The newest job."""
        return await self._told(request, lambda reports: shown(reports, _newest(reports), request.caller))

    async def live(self, request: Request) -> Response:
        """How it gets on."""

        def now(reports: Reports) -> object:
            from nodeproof.web.stress_wire import Now  # noqa: PLC0415 - only where somebody asks for jobs

            report = reports.latest()
            newest = None if report is None else bare(shown(reports, report, request.caller))
            return Now(report=newest, live=reports.live())

        return await self._told(request, now)

    async def history(self, request: Request) -> Response:
        """Past jobs."""
        limit = query_of(request, wire.HistoryQuery).limit
        return await self._told(request, lambda reports: reports.history(limit))

    async def trends(self, request: Request) -> Response:
        """Lines of numbers that compare."""

        def lines(reports: Reports) -> object:
            from nodeproof.web.stress_wire import trends  # noqa: PLC0415 - only where somebody asks for jobs

            return trends(reports.history(HISTORY_LIMIT))

        return await self._told(request, lines)

    async def compare(self, request: Request) -> Response:
        """Two jobs."""
        pair = query_of(request, wire.PairQuery)

        def comparison(reports: Reports) -> object:
            from nodeproof.stress.compare import compare_reports  # noqa: PLC0415 - only where somebody asks for jobs

            return compare_reports(_job(reports, pair.first), _job(reports, pair.second))

        return await self._told(request, comparison)

    async def job(self, request: Request) -> Response:
        """One job."""
        job_id = path_of(request, wire.JobPath).id
        return await self._told(request, lambda reports: shown(reports, _job(reports, job_id), request.caller))

    def stamp(self) -> object:
        """Changes with what :meth:`now_json` would tell. An owner that dies changes no file: a job that runs is looked after."""
        return (self._backstage.stress_stamp(), time.monotonic() // _LOOK_AFTER_S if self._runs else None)

    async def now_json(self) -> bytes:
        """What the event stream tells: for everybody, so nobody in particular may cancel."""

        def now() -> bytes:
            from nodeproof.web.stress_wire import Now  # noqa: PLC0415 - only where somebody asks for jobs

            reports = self._backstage.reports()
            report = reports.latest()
            self._runs = report is not None and not report.status.is_final
            return _encode(Now(report=None if report is None else bare(report), live=reports.live()))

        return await self._backstage.run(now)

    async def _told(self, request: Request, make: Callable[[Reports], object]) -> Response:
        return await self._document(request, lambda: make(self._backstage.reports()))

    async def _document(self, request: Request, make: Callable[[], object]) -> Response:
        return answer(request, await self._backstage.run(lambda: Body.of(_encode(make()), "application/json")))


def stress_endpoints(api: StressApi) -> Mapping[str, Endpoint]:
    """By the ids of the contract."""
    return {
        "stressConfig": api.config,
        "stressLatest": api.latest,
        "stressLive": api.live,
        "stressHistory": api.history,
        "stressTrends": api.trends,
        "stressCompare": api.compare,
        "stressJob": api.job,
    }


def _newest(reports: Reports) -> Report:
    report = reports.latest()
    if report is None:
        raise Refused(404, "no stress job", "no stress job was ever run here")
    return report


def _job(reports: Reports, job_id: str) -> Report:
    from nodeproof.stress.problems import JobNotFound  # noqa: PLC0415 - only where somebody asks for jobs

    try:
        return reports.job(job_id)
    except JobNotFound as error:
        raise Refused(404, "no such stress job", str(error)) from None


def shown(reports: Reports, report: Report, caller: Caller) -> Report:
    """With whether this caller may cancel it."""
    may = caller.role is Role.OPERATOR and not report.status.is_final and reports.can_cancel(report.job_id)
    return msgspec.structs.replace(report, cancellable=may)


def bare(report: Report) -> Report:
    """Without what the programs printed."""
    items = [msgspec.structs.replace(item, output="") for item in report.benchmarks]
    return msgspec.structs.replace(report, benchmarks=items)
