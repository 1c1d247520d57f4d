"""Starting and cancelling stress jobs from the page (stress.md 6.1): gate, manager, audit log."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from nodeproof.clock import Clock, SystemClock, rfc3339
from nodeproof.errors import NodeproofError, WriteError
from nodeproof.model.job import Initiator, Report
from nodeproof.web import wire
from nodeproof.web.access import Access
from nodeproof.web.answers import problem
from nodeproof.web.audit import AuditEntry
from nodeproof.web.backstage import Backstage
from nodeproof.web.gate import Gate
from nodeproof.web.http_messages import Endpoint, Request, Response
from nodeproof.web.limits import RateLimit
from nodeproof.web.requests import Refused, body_of, path_of, read_body
from nodeproof.web.stress_api import shown

if TYPE_CHECKING:
    from nodeproof.stress.facade import StressFacade

__all__ = ["StressActions", "action_endpoints"]

_ACTION = "stress"
_REFUSALS = 10
_REFUSALS_WINDOW_S = 60.0
_encode = msgspec.json.Encoder().encode


class _Act:
    """One attempt, for the audit log."""

    def __init__(self, request: Request, access: Access, action: str, clock: Clock) -> None:
        self.caller = caller = request.caller
        self.who = access.identity(request)
        self._head = {"who": self.who, "peer": caller.peer, "role": str(caller.role), "action": action}
        self._clock = clock

    def entry(self, status: int, *, job_id: str = "", detail: str = "") -> AuditEntry:
        """How it ended."""
        return AuditEntry(at=rfc3339(self._clock.now().wall_s), status=status, job_id=job_id, detail=detail, **self._head)


class StressActions:
    """The endpoints of one server."""

    def __init__(self, backstage: Backstage, access: Access, gate: Gate, clock: Clock | None = None) -> None:
        self._backstage = backstage
        self._access = access
        self._gate = gate
        self._refusals = RateLimit(_REFUSALS, _REFUSALS_WINDOW_S)
        self._clock = clock or SystemClock()

    async def start(self, request: Request) -> Response:
        """Start a job."""
        act = await self._pass_gate(request, "stress.start")
        try:
            order = await body_of(request, wire.StartRequest)
            self._gate.rate(act.who)
        except Refused as refused:
            await self._note(act.entry(refused.status, detail=refused.error))
            raise
        return await self._backstage.run(lambda: self._start(self._backstage.manager(), order, act))

    async def cancel(self, request: Request) -> Response:
        """Have a job stopped."""
        act = await self._pass_gate(request, "stress.cancel")
        job_id = path_of(request, wire.JobPath).id
        await read_body(request)
        return await self._backstage.run(lambda: self._cancel(self._backstage.manager(), job_id, act))

    async def _pass_gate(self, request: Request, action: str) -> _Act:
        """Raises Refused; refusals of callers with a token are put down."""
        act = _Act(request, self._access, action, self._clock)
        try:
            self._gate.place(request)
            await self._backstage.run(self._switched_on)
            self._gate.form(request, _ACTION)
        except Refused as refused:
            await self._note(act.entry(refused.status, detail=refused.error))
            raise
        return act

    def _start(self, manager: "StressFacade", order: wire.StartRequest, act: _Act) -> Response:
        """In a worker: reading hashes and asking adapters takes its time."""
        from nodeproof.stress.facade import RunOptions  # noqa: PLC0415 - with the manager, which is loaded when asked for
        from nodeproof.stress.problems import Busy, Disabled  # noqa: PLC0415
        from nodeproof.stress.sizing import Plan  # noqa: PLC0415

        audit = self._backstage.audit()
        asked = f"{','.join(order.benchmarks) or 'default list'} plan {order.plan} limit {order.timeout_seconds:g} s"
        options = RunOptions(timeout_s=order.timeout_seconds, initiator=Initiator.WEB, plan=Plan(order.plan))
        try:
            audit.add(act.entry(102, detail=asked))
            report = manager.start_with_options(order.benchmarks, options)
        except Busy as busy:
            audit.note(act.entry(409, job_id=busy.report.job_id if busy.report is not None else "", detail=str(busy)))
            if busy.report is None:
                return problem(409, "another job runs", str(busy))
            return _json(409, shown(manager, busy.report, act.caller))
        except NodeproofError as error:
            status = 403 if isinstance(error, Disabled) else 400
            audit.note(act.entry(status, detail=str(error)))
            return problem(status, "cannot start", str(error))
        audit.note(act.entry(202, job_id=report.job_id, detail=asked))
        return _json(202, report, {"Location": f"/api/stress/runs/{report.job_id}"})

    def _cancel(self, manager: "StressFacade", job_id: str, act: _Act) -> Response:
        from nodeproof.stress.problems import JobNotFound  # noqa: PLC0415 - with the manager

        audit = self._backstage.audit()
        try:
            manager.cancel(job_id, f"cancelled from the page by {act.who}")
        except JobNotFound as error:
            audit.note(act.entry(404, job_id=job_id, detail=str(error)))
            return problem(404, "no such running job", str(error))
        except WriteError as error:
            audit.note(act.entry(403, job_id=job_id, detail=str(error)))
            return problem(403, "its owner cannot be asked", str(error))
        audit.note(act.entry(200, job_id=job_id))
        return _json(200, wire.Ok(ok=True))

    async def _note(self, entry: AuditEntry) -> None:
        """Of a refusal; so many of one caller and no more, lest they push out what was done."""
        if self._backstage.can_audit and not self._refusals.wait_s(entry.who):
            self._refusals.count(entry.who)
            await self._backstage.run(lambda: self._backstage.audit().note(entry))

    def _switched_on(self) -> None:
        """Whether jobs may be started from a page here. Raises Refused."""
        settings = self._backstage.manager().config
        if not settings.enabled:
            raise Refused(403, "stress jobs are disabled", "set stress.enabled: true")
        if not settings.web_enabled:
            raise Refused(403, "the page may not start stress jobs", "set stress.web_enabled: true")
        if not settings.report_path:
            raise Refused(403, "there is no report path", "set stress.report_path, so that all see what runs")


def action_endpoints(backstage: Backstage, access: Access, gate: Gate) -> Mapping[str, Endpoint]:
    """By the ids of the contract."""
    actions = StressActions(backstage, access, gate)
    return {"stressStart": actions.start, "stressCancel": actions.cancel}


def _json(status: int, content: Report | wire.Ok, headers: dict[str, str] | None = None) -> Response:
    return Response(
        _encode(content),
        status=status,
        media_type="application/json",
        headers={"Cache-Control": "no-store", **(headers or {})},
    )
