"""Files of a snapshot directory, and what can be told from them about the daemon that writes them.

The keys of the reference stay (observe.md 4.1). Additions: ``schema missing sequence stale_after_ms history_series boot_id
monotonic_s pid stopped verdict``. ``metrics`` and ``history`` hold numbers only; absences stand in ``missing``, times and gaps in
``history_series``.
"""

import msgspec

from nodeproof.model.daemon_verdict import DaemonVerdict
from nodeproof.model.health import HealthScore, Verdict
from nodeproof.model.metric import Labels, Metric, Missing

__all__ = [
    "SCHEMA_VERSION",
    "CollectorInfo",
    "CompSnapshot",
    "ComponentAge",
    "DaemonState",
    "DaemonVerdict",
    "Evidence",
    "GlobalSnapshot",
    "SeriesHistory",
    "Snapshot",
]

SCHEMA_VERSION = 1
"""Grows when a key changes its meaning; new keys alone do not change it."""


class SeriesHistory(msgspec.Struct, frozen=True, omit_defaults=True):
    """One tracked series with its time axis."""

    points: list[tuple[float, float | None]]
    """Seconds since the epoch, and the value then; null where there was none."""
    entity: Labels = {}
    """Labels of the reading behind the newest value: which disk was fullest, which card came first."""


class CompSnapshot(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """``snapshot_<component>.json``: what is known of one component."""

    component: str
    timestamp: str
    """RFC 3339: when the file was written."""
    metrics: list[Metric]
    history: dict[str, list[float]]
    specs: list[Metric] = []
    """Constants of the hardware, kept from whenever they were read."""
    schema: int
    sequence: int
    """Counts the batches of this component in this daemon."""
    stale_after_ms: int
    """Once the batch is older than this it is no longer the present."""
    boot_id: str
    monotonic_s: float
    """Seconds since boot (CLOCK_BOOTTIME) when the batch was begun."""
    pid: int
    missing: list[Missing]
    history_series: dict[str, SeriesHistory]


class CollectorInfo(msgspec.Struct, frozen=True):
    """One collector, as a viewer needs to know it."""

    name: str
    component: str
    priority: str
    interval: str
    """Duration as configuration files write it: ``3s``."""
    enabled: bool


class GlobalSnapshot(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """``snapshot.json``: what concerns the whole node."""

    session_id: str
    """Seconds since the epoch when this daemon started, in digits."""
    timestamp: str
    refresh_interval_ms: int
    intervals_ms: dict[str, int] = {}
    health: HealthScore
    collectors: list[CollectorInfo]
    system_specs: list[Metric] = []
    schema: int
    sequence: int
    stale_after_ms: int
    boot_id: str
    monotonic_s: float
    pid: int
    verdict: Verdict | None = None
    """The answer of ``check`` to this health; null from a writer that gave none."""
    stopped: bool = False
    """True in the last file of a daemon that was stopped in good order."""


class Snapshot(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Everything in one: the view that a web server hands out; never on disk by itself."""

    session_id: str
    timestamp: str
    refresh_interval_ms: int
    history_points: int
    health: HealthScore
    metrics: list[Metric]
    history: dict[str, list[float]]
    specs: list[Metric] = []


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a verdict rests on. The wall clock is no part of it."""

    lock_held: bool | None
    """Whether a process holds the lock of the directory; null = could not be told."""
    lock_pid: int
    snapshot_pid: int
    same_boot: bool | None
    """Whether the file was written since this machine was booted; null without a file."""
    age_s: float | None
    """Age of snapshot.json on CLOCK_BOOTTIME; null without one of this boot."""
    stale_after_s: float | None
    process_state: str = ""
    """State letter of the lock's holder from /proc/<pid>/stat; ``T`` = stopped by a signal."""


class ComponentAge(msgspec.Struct, frozen=True):
    """How fresh the file of one component is."""

    age_s: float | None
    """Null when there is no file of this daemon."""
    stale_after_s: float | None
    fresh: bool


class DaemonState(msgspec.Struct, frozen=True):
    """The answer to "may I believe this directory now?"."""

    verdict: DaemonVerdict
    reason: str
    evidence: Evidence
    components: dict[str, ComponentAge]

    @property
    def fresh(self) -> bool:
        """Whether what lies there is the present."""
        return self.verdict is DaemonVerdict.RUNNING
