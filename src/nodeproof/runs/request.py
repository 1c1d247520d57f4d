"""What the executor was asked for."""

from collections.abc import Callable
from typing import NamedTuple

from nodeproof.clock import Clock
from nodeproof.model.run import RunSource
from nodeproof.runs.benchmark import Descriptor
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.job_locks import JobLocks
from nodeproof.runs.messages import LogLimits
from nodeproof.runs.params import ParamValues
from nodeproof.runs.ports import CoherenceProbe, HardwareEvidence, Switches
from nodeproof.runs.store import RunStore
from nodeproof.runs.supervise import Graces
from nodeproof.runs.worker import Worker

__all__ = ["RunRequest"]


class RunRequest(NamedTuple):
    """One run, as it was asked for."""

    descriptor: Descriptor
    values: ParamValues
    target: TargetEndpoint | None
    source: RunSource
    coherence: CoherenceProbe | None
    """None = not probed."""
    switches: Switches
    evidence: Callable[[], HardwareEvidence]
    deadline_s: float | None
    """For the benchmark's work, from the start on."""
    store: RunStore | None
    """None = nothing is kept."""
    home: str
    """Where artifacts lie."""
    number: int
    graces: Graces
    limits: LogLimits
    clock: Clock
    older: tuple[Worker, ...]
    """Threads of earlier runs that were given up."""
    locks: JobLocks | None = None
    """Taken for the run; None when its caller holds them, and for work on another machine."""
