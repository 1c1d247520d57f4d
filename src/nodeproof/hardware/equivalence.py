"""Whether two boxes are one box for speed numbers (bench.md 3.7). Pure.

Two machines of one order and one driver differed by ten times their own noise because one stood warmer: so everything must agree,
and what is not known on one side does not agree.
"""

from typing import NamedTuple

from nodeproof.hardware.limits import ClassLimits
from nodeproof.model.hardware import HardwareReport, HardwareState, Validity

__all__ = ["Mismatch", "mismatches"]


class Mismatch(NamedTuple):
    """One thing that keeps two boxes apart."""

    what: str
    text: str


def mismatches(one: HardwareReport, other: HardwareReport, limits: ClassLimits) -> list[Mismatch]:
    """Everything that keeps the boxes of two reports apart; empty = they are one box."""
    a, b = one.before, other.before
    accelerated = a.machine.gpu is not None or b.machine.gpu is not None or bool(a.devices or b.devices)
    spreads = limits.equivalence
    found = [
        _equal("accelerator", a.machine.gpu, b.machine.gpu) if accelerated else _equal("processor", a.machine.cpu, b.machine.cpu),
        _equal("driver", _major(a.machine.driver), _major(b.machine.driver)) if accelerated else None,
        _spread("highest clock", _clock_max(a), _clock_max(b), spreads.clock_spread) if accelerated or _clock_max(a) else None,
        _spread("memory", a.mem_total_kb, b.mem_total_kb, spreads.mem_spread),
        *(_thermal(side, state) for side, state in (("first", a), ("second", b)) if accelerated),
        _chassis(a, b, limits.thermal.chassis_equivalence_delta_c),
        *(_validity(side, report) for side, report in (("first", one), ("second", other))),
    ]
    return [entry for entry in found if entry is not None]


def _equal(what: str, a: str | None, b: str | None) -> Mismatch | None:
    if a is None or b is None:
        return Mismatch(what, f"{what} is not known on both sides: {a or 'unknown'}, {b or 'unknown'}")
    return None if a == b else Mismatch(what, f"{what} differs: {a}, {b}")


def _major(driver: str | None) -> str | None:
    return None if not driver else driver.partition(".")[0]


def _clock_max(state: HardwareState) -> float | None:
    return state.sm_clock_max_mhz


def _spread(what: str, a: float | None, b: float | None, limit: float) -> Mismatch | None:
    if a is None or b is None or max(a, b) <= 0:
        return Mismatch(what, f"{what} is not known on both sides")
    spread = abs(a - b) / max(a, b)
    return None if spread <= limit else Mismatch(what, f"{what} differs by {spread * 100:.2f} %, more than {limit * 100:g} %")


def _thermal(side: str, state: HardwareState) -> Mismatch | None:
    hot = state.thermal()
    if hot is None:
        return Mismatch("thermal", f"whether heat slows the {side} box is not known")
    return Mismatch("thermal", f"the {side} box is slowed by heat") if hot else None


def _chassis(a: HardwareState, b: HardwareState, limit_c: float) -> Mismatch | None:
    hot_a, hot_b = a.hottest_chassis_c(), b.hottest_chassis_c()
    if hot_a is None or hot_b is None:
        return Mismatch("chassis", "the hottest zone is not known on both sides")
    apart_c = abs(hot_a - hot_b)
    return (
        None
        if apart_c <= limit_c
        else Mismatch("chassis", f"the hottest zones are {apart_c:g} °C apart, more than {limit_c:g} °C")
    )


def _validity(side: str, report: HardwareReport) -> Mismatch | None:
    post = report.postcheck
    if post is None or post.validity is Validity.VALID:
        return None
    return Mismatch("validity", f"the run on the {side} box is {post.validity}")
