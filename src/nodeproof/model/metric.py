"""What a collector says about a node: numbers, and absences with their reason.

The JSON keys of :class:`Metric` are those of the reference (``component name value unit labels timestamp``). A metric always
holds a finite number; whatever could not be read stands beside it as :class:`Missing`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec

from nodeproof.errors import Absence

__all__ = ["COMPONENTS", "Batch", "Labels", "Metric", "Missing", "by_name", "same_absences"]

Labels = dict[str, str]
"""Label key to value. Shared between cycles: never changed after it was made."""

COMPONENTS = ("chassis", "cpu", "disk", "gpu", "memory", "network", "npu")
"""The seven components of the reference, in the order it lists them."""


class Metric(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One number about one thing at one moment."""

    component: str
    name: str
    value: float
    unit: str
    labels: Labels | None = None
    timestamp: str = ""
    """RFC 3339 with the local offset: when it was read, not when it was written."""


class Missing(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One reading that is not there, and why."""

    component: str
    name: str
    state: Absence
    reason: str
    labels: Labels | None = None
    source: str = ""
    """File or command that was tried."""
    remedy: str = ""
    """What an administrator could do about it."""
    timestamp: str = ""


class Batch(msgspec.Struct, frozen=True, dict=True):
    """What one collector cycle brought."""

    component: str
    timestamp: str
    mono_s: float
    """Seconds since boot (CLOCK_BOOTTIME) when the cycle began."""
    metrics: list[Metric]
    missing: list[Missing]
    sequence: int = 0
    """Counts the cycles of this collector in this process, from 1."""

    @cached_property
    def by_name(self) -> Mapping[str, list[Metric]]:
        """The metrics by name, names and metrics in the order of the batch.

        Made once and kept: sinks and rules each look for a few names among thousands of metrics. Not part of the written form.
        """
        return by_name(self.metrics)


def by_name(metrics: Iterable[Metric]) -> Mapping[str, list[Metric]]:
    """``metrics`` by name, names and metrics in their order."""
    found: dict[str, list[Metric]] = defaultdict(list)
    for metric in metrics:
        found[metric.name].append(metric)
    return dict(found)


def same_absences(now: Sequence[Missing], before: Sequence[Missing]) -> bool:
    """Whether both lists tell of the same absences, in the same order: quick to see, and true nearly always."""
    return len(now) == len(before) and all(
        one is other or (one.name == other.name and one.state is other.state and one.labels == other.labels)
        for one, other in zip(now, before, strict=True)
    )
