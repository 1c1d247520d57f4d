"""What a rule is, as data. The tables are in the modules beside this one."""

from enum import StrEnum
from typing import NamedTuple

from nodeproof.model.health import Severity

__all__ = ["DAY_S", "HOUR_S", "Compare", "Concern", "FindingRule", "How", "Limit", "Probe", "Tier"]

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


class How(StrEnum):
    """How readings become the numbers that are judged."""

    VALUE = "value"
    """Each reading as it is."""
    GROWTH = "growth"
    """What each counter gained within the window; a reading that is a gain already (not a counter in the catalogue) is summed."""
    POOL = "pool"
    """100 * sum of ``field=used`` / sum of ``field=total``, one row a device."""
    OCCUPIED = "occupied"
    """100 * ``field=used`` / (``field=used`` + ``field=available``) of each entity: what df calls Use%. Blocks reserved for root
    count as taken, because nobody else can have them."""
    PEAK = "peak"
    """100 * reading / highest reading of the same entity so far."""


class Compare(StrEnum):
    """When a number is bad."""

    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    EQUAL = "="
    BITS = "has any bit of"
    """Readings that are a sum of powers of two."""


class Probe(NamedTuple):
    """Which readings a rule looks at."""

    component: str
    names: tuple[str, ...]
    """Any of these; all of the same kind and unit."""
    where: tuple[tuple[str, str], ...] = ()
    """Label and value it must have; ``/dev/*`` is a beginning, ``*oops*`` a part."""
    entity: tuple[str, ...] = ()
    """Labels that tell one thing from another."""
    how: How = How.VALUE
    window_s: float = 0.0
    """How far back growth counts."""
    from_zero: bool = False
    """A series that appears later than others of its metric began at 0: its first value is growth. So for errors that are listed
    from the first one on; not for counters that a device brings with it."""
    unless: str = ""
    """A state of the same component; what has it at other than 0 is left out, as a file system that nobody can write to."""
    factor: tuple[tuple[str, str], ...] = ()
    """The threshold is multiplied by the first of these metrics (component, name) that can be read: of the same entity where the
    probe has one, else the only one there is."""


class Limit(NamedTuple):
    """When a number counts as bad, and from when on it no longer does.

    A condition counts when ``enter`` samples in a row (distinct readings, not evaluations) show it: one torn sample convicts
    nobody. It ends with a fresh sample on the good side of ``clear``, ``leave_s`` or more after the first such one.
    """

    probe: Probe
    compare: Compare
    threshold: float
    clear: float | None = None
    """None = wherever the condition does not hold."""
    enter: int = 3
    leave_s: float = 30.0

    def holds(self, value: float, factor: float = 1.0) -> bool:
        """Whether ``value`` is bad."""
        edge = self.threshold * factor
        match self.compare:
            case Compare.ABOVE:
                return value > edge
            case Compare.AT_LEAST:
                return value >= edge
            case Compare.BELOW:
                return value < edge
            case Compare.EQUAL:
                return value == edge
            case _:
                return bool(int(value) & int(edge))

    def clears(self, value: float, factor: float = 1.0) -> bool:
        """Whether ``value`` is good enough to end the condition."""
        if self.clear is None:
            return not self.holds(value, factor)
        edge = self.clear * factor
        return value >= edge if self.compare is Compare.BELOW else value <= edge


class Tier(NamedTuple):
    """One threshold of a concern; the gravest tier that holds is the one that takes points."""

    rule: str
    """Text of the deduction: the reference's."""
    limit: Limit
    share: float
    """Per cent of the component's points."""
    severity: Severity = Severity.INFO
    """What it does to the grade beyond its points: a disk that says it fails costs 15 points, and is critical all the same."""
    points_each: float = 0.0
    """Rule set 0.3.3: points for each unit of each entity's value, instead of a share."""


class Concern(NamedTuple):
    """One thing that a component is judged by, with a share of its points."""

    component: str
    name: str
    share: float
    """Per cent of the component's points."""
    tiers: tuple[Tier, ...]
    """Gravest first."""
    help: str
    """What it means, in a sentence."""
    remedy: str
    """What to do about it."""

    @property
    def key(self) -> str:
        """``cpu.usage``."""
        return f"{self.component}.{self.name}"


class FindingRule(NamedTuple):
    """Something wrong that takes no points and caps the grade."""

    component: str
    name: str
    severity: Severity
    limit: Limit
    message: str
    """What happened; ``{labels}``: ``{device} is read-only``. Also ``{value}``."""
    help: str
    remedy: str
    after_good: bool = False
    """Counts only for an entity that was seen good before: a port that was up."""

    @property
    def key(self) -> str:
        """``disk.read_only``."""
        return f"{self.component}.{self.name}"
