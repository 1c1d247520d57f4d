"""What is asked of stress jobs, whoever owns them: this process (``manager``) or a runner (``runner.remote``)."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from nodeproof.model.job import HISTORY_DEFAULT, ExecutionProfile, Initiator, Report
from nodeproof.model.live_job import LiveJob
from nodeproof.runs.store import RunStore, StoredRun
from nodeproof.stress.availability import Availability
from nodeproof.stress.settings import StressSettings
from nodeproof.stress.sizing import Plan

__all__ = ["RunOptions", "StressFacade"]


class RunOptions(NamedTuple):
    """Of one job only; nothing of it is kept for the next."""

    timeout_s: float = 0.0
    """Limit of each item; may only shorten the configured ones, 0 = those."""
    initiator: Initiator = Initiator.CLI
    plan: Plan = Plan.STANDARD
    seconds: int = 0
    """Run each item for about so long; 0 = as the plan says."""
    callers_limit: bool = False
    """Whoever asked ends it, as with the reference's runner; the configured limits do not hold, a week does."""


class StressFacade(Protocol):
    """May be used from any thread. Errors are those of :class:`nodeproof.stress.manager.Manager`."""

    @property
    def config(self) -> StressSettings:
        """What the owner was told."""
        ...

    @property
    def runs(self) -> RunStore:
        """Where the full records lie; whether this process may read them there is the file system's say."""
        ...

    def availability(self, name: str, plan: Plan = Plan.STANDARD) -> Availability:
        """Whether ``name`` can be run now, and why not."""
        ...

    def describe(self, name: str, *, timeout_s: float = 0.0, plan: Plan = Plan.STANDARD, seconds: int = 0) -> ExecutionProfile:
        """What a start would run, read-only."""
        ...

    def start_with_options(self, names: Sequence[str], options: RunOptions) -> Report:
        """Start a job and return its first report."""
        ...

    def latest(self) -> Report | None:
        """The job that runs, else the newest of all."""
        ...

    def job(self, job_id: str) -> Report:
        """The job with this id."""
        ...

    def history(self, limit: int = HISTORY_DEFAULT) -> list[Report]:
        """The newest jobs that have ended, newest first."""
        ...

    def history_damage(self) -> str:
        """What is wrong with the history; empty when nothing is."""
        ...

    def inspect(self, run_id: str) -> StoredRun:
        """The record of an item, its files checked."""
        ...

    def live(self) -> LiveJob | None:
        """How the job that runs gets on."""
        ...

    def wait(self, job_id: str, timeout_s: float | None = None) -> Report | None:
        """Wait for the end of a job that was started here; None when it has not come in time."""
        ...

    def can_cancel(self, job_id: str) -> bool:
        """Whether this caller may cancel this job."""
        ...

    def cancel(self, job_id: str, reason: str = "cancelled by the user") -> None:
        """Have a job stopped and return at once."""
        ...

    def kill(self) -> None:
        """End the job that was started here without a grace."""
        ...

    def shutdown(self, timeout_s: float) -> bool:
        """Cancel the job that was started here, never anybody else's; whether its last report came in time."""
        ...
