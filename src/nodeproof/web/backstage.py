"""What may block, away from the loop that serves everybody: stress manager, run store, doctor. Loaded when it is asked for."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from nodeproof.clock import SystemClock
from nodeproof.errors import NodeproofError
from nodeproof.web.audit import AuditLog
from nodeproof.web.requests import Refused

if TYPE_CHECKING:
    from nodeproof.model.job import Report
    from nodeproof.model.live_job import LiveJob
    from nodeproof.runs.store import RunStore
    from nodeproof.stress.facade import StressFacade
    from nodeproof.stress.settings import StressSettings
    from nodeproof.stress.shared import SharedReports

__all__ = ["Backstage", "Makers", "Reports"]

_T = TypeVar("_T")
_WORKERS = 4
_AUDIT_FILE = "web-audit.jsonl"
_WAITING = 64
"""So many may wait for a worker; more are told to come back."""


class Makers(NamedTuple):
    """What the composition root lends."""

    manager: "Callable[[], StressFacade] | None" = None
    """Makes the stress manager; None where there is none. Raises NodeproofError."""
    doctor: Callable[[], bytes] | None = None
    """Runs ``nodeproof doctor -o json``; its output. Raises NodeproofError."""
    settings: "Callable[[], StressSettings] | None" = None
    """What holds for stress jobs: with it, reading what ran needs no manager. Raises NodeproofError."""
    faults_dir: str = ""
    """Where the daemon keeps faults."""
    audit_dir: str = ""
    """Directory of the audit log, the page's own; empty = beside stress jobs, which a runner keeps where only it writes."""


class Reports(Protocol):
    """Stress jobs, for those who read."""

    def latest(self) -> "Report | None":
        """The newest."""
        ...

    def history(self, limit: int) -> "list[Report]":
        """Those that ended."""
        ...

    def job(self, job_id: str) -> "Report":
        """One. Raises JobNotFound."""
        ...

    def live(self) -> "LiveJob | None":
        """How the one that runs gets on."""
        ...

    def can_cancel(self, job_id: str) -> bool:
        """Whether it runs and can be asked to stop."""
        ...


class Backstage:
    """Lends workers to requests."""

    def __init__(self, makers: Makers) -> None:
        self._makers = makers
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="web-work")
        self._lock = threading.Lock()
        self._manager: StressFacade | None = None
        self._audit: AuditLog | None = None
        self._shared: SharedReports | None = None
        self._waiting = 0

    async def run(self, work: Callable[[], _T]) -> _T:
        """The result of ``work``, done by a worker. Raises Refused when too many wait."""
        if self._waiting >= _WAITING:
            raise Refused(503, "busy", "too many requests wait for slow answers", {"Retry-After": "2"})
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._waiting -= 1

    @property
    def faults_dir(self) -> str:
        """Where the daemon keeps faults."""
        return self._makers.faults_dir

    @property
    def doctor(self) -> Callable[[], bytes] | None:
        """Runs the doctor."""
        return self._makers.doctor

    def manager(self) -> "StressFacade":
        """The stress manager, made at the first call; for workers. Raises Refused, NodeproofError."""
        if self._makers.manager is None:
            raise Refused(503, "no stress jobs here", "this server was started without a configuration for stress jobs")
        with self._lock:
            if self._manager is None:
                self._manager = self._makers.manager()
            return self._manager

    @property
    def can_audit(self) -> bool:
        """Whether there is a place for an audit log."""
        return self._makers.manager is not None

    def audit(self) -> AuditLog:
        """Who did what from the page; for workers. Raises as :meth:`manager`."""
        path = os.path.join(self._makers.audit_dir or self._stress_root(), _AUDIT_FILE)
        with self._lock:
            if self._audit is None:
                self._audit = AuditLog(path)
            return self._audit

    def _stress_root(self) -> str:
        settings = self._makers.settings
        return settings().state_root if settings is not None else self.manager().config.state_root

    def reports(self) -> Reports:
        """The manager where there is one, else what reads the same files in a tenth of the memory; for workers."""
        if self._manager is not None or self._makers.settings is None:
            return self.manager()
        return self._shared_reports(self._makers.settings)

    def store(self) -> "RunStore":
        """The run store, without a manager where there is none; for workers."""
        if self._manager is not None or self._makers.settings is None:
            return self.manager().runs
        from nodeproof.runs.store import RunStore  # noqa: PLC0415 - only where somebody asks for runs

        return RunStore(self._makers.settings().home)

    def stress_stamp(self) -> object:
        """Changes with what :meth:`reports` would tell; None where there is nothing to tell of. Never blocks, never raises."""
        if self._makers.settings is None:
            return None
        try:
            return self._shared_reports(self._makers.settings).stamp()
        except NodeproofError:
            return None

    def _shared_reports(self, settings: "Callable[[], StressSettings]") -> "SharedReports":
        from nodeproof.stress.shared import SharedReports  # noqa: PLC0415 - only where somebody asks for jobs

        with self._lock:
            if self._shared is None:
                self._shared = SharedReports(settings(), SystemClock())
            return self._shared

    def close(self, timeout_s: float) -> None:
        """End the job of this process, if there is one, and begin no more work."""
        manager = self._manager
        if manager is not None:
            manager.shutdown(timeout_s)
        self._pool.shutdown(wait=False, cancel_futures=True)
