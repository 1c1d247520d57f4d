"""Facts about a window of a run, out of the recorder's totals. Pure; each fact names its source and what is behind it."""

from collections.abc import Iterable

from nodeproof.errors import Absence
from nodeproof.hardware.recorder import Recorder
from nodeproof.hardware.tracks import Amount
from nodeproof.model.hardware import Fact
from nodeproof.sources.proc_pid_times import TICKS_PER_S

__all__ = ["Facts"]

_TENTHS = 10
_US = 1e6
_CORRECTED = ("edac_corrected", "mce_corrected", "aer_corrected", "accelerator_corrected")
_COUNTS = (
    ("throttle_events", "throttle_events", ""),
    ("throttle_us", "throttle_us", "us"),
    ("accelerator_throttle_us", "accelerator_throttle_us", "us"),
    ("thermal_log_lines", "thermal_log", ""),
    ("edac_uncorrected", "edac_uncorrected", ""),
    ("mce_uncorrected", "mce_uncorrected", ""),
    ("aer_uncorrected", "aer_uncorrected", ""),
    ("accelerator_uncorrected", "accelerator_uncorrected", ""),
    ("swap_in_pages", "swap_in", ""),
    ("oom_kills", "oom_kills", ""),
    ("foreign_accelerator_looks", "accelerator_foreign", ""),
    ("critical_looks", "critical", ""),
    ("kernel_critical", "kernel_critical", ""),
    ("suspended_s", "suspended", "s"),
    ("wall_step_s", "wall_step", "s"),
)
"""Fact, total and unit of what is simply counted."""
_SHARES_OF_TIME = (
    ("cpu_stall_share", "cpu_stall", _US),
    ("memory_stall_share", "memory_stall", _US),
    ("io_stall_share", "io_stall", _US),
    ("throttle_share", "throttle_us", _US),
    ("accelerator_throttle_share", "accelerator_throttle_us", _US),
)
"""Fact, total and what makes seconds of it."""
_SHARES_OF_CPU = (("busy_share", "busy"), ("own_share", "own"), ("steal_share", "steal"))


class Facts:
    """What can be said of any window, on a machine where the run may use ``allowed`` processors."""

    def __init__(self, recorder: Recorder, allowed: int) -> None:
        self._recorder = recorder
        self._allowed = max(1, allowed)

    def window(self, begin_s: float, end_s: float, run_begin_s: float) -> dict[str, Fact]:
        """All facts about ``begin_s`` to ``end_s``; clocks are held against those of the run, which began at ``run_begin_s``."""
        facts = [self._count(name, total, unit, begin_s, end_s) for name, total, unit in _COUNTS]
        for name, total, per_s in _SHARES_OF_TIME:
            facts.append(self._share(name, total, begin_s, end_s, per_s))
        for name, total in _SHARES_OF_CPU:
            facts.append(self._share(name, total, begin_s, end_s, self._allowed * TICKS_PER_S))
        facts.append(self._foreign(begin_s, end_s))
        facts.append(self._corrected(begin_s, end_s))
        facts.append(self._clock_loss(begin_s, end_s))
        facts.append(self._droop(begin_s, end_s, run_begin_s))
        return {fact.name: fact for fact in facts}

    def mean_mhz(self, begin_s: float, end_s: float) -> float | None:
        """Mean clock of the processors that were busy; None when none was, or clocks cannot be read."""
        total = self._recorder.tracks["mhz_sum"].window(begin_s, end_s)
        count = self._recorder.tracks["mhz_count"].window(begin_s, end_s)
        return total.value / count.value if total.value is not None and count.value else None

    def _count(self, name: str, total: str, unit: str, begin_s: float, end_s: float) -> Fact:
        amount = self._recorder.tracks[total].window(begin_s, end_s)
        return _fact(name, amount, unit, self._recorder.sources[total], self._subject(total, begin_s, end_s))

    def _share(self, name: str, total: str, begin_s: float, end_s: float, per_s: float) -> Fact:
        amount = self._recorder.tracks[total].window(begin_s, end_s)
        value = None if amount.value is None else amount.value / per_s / amount.span_s
        return _fact(name, amount._replace(value=value), "", self._recorder.sources[total], self._subject(total, begin_s, end_s))

    def _subject(self, total: str, begin_s: float, end_s: float) -> str:
        counters = self._recorder.counters.get(total)
        return counters.subject(begin_s, end_s) if counters is not None else ""

    def _foreign(self, begin_s: float, end_s: float) -> Fact:
        """Foreign processes' time; where not all of them can be seen, everything that was busy and not the run's own."""
        tracks = self._recorder.tracks
        amount = tracks["foreign"].window(begin_s, end_s)
        source = self._recorder.sources["foreign"]
        hidden = self._recorder.hidden
        if hidden and amount.value is not None:
            busy, own = tracks["busy"].window(begin_s, end_s), tracks["own"].window(begin_s, end_s)
            if busy.value is None or own.value is None:
                return _fact("foreign_share", busy if busy.value is None else own, "", source, "")
            rest = max(amount.value, busy.value - own.value)
            amount = busy._replace(value=rest, complete=busy.complete and own.complete, absence=busy.absence or own.absence)
            source = f"/proc/stat without /proc/<pid>/stat: {hidden}"
        value = None if amount.value is None else amount.value / (self._allowed * TICKS_PER_S) / amount.span_s
        return _fact("foreign_share", amount._replace(value=value), "", source, self._subject("foreign", begin_s, end_s))

    def _corrected(self, begin_s: float, end_s: float) -> Fact:
        """Corrected errors of every kind that can be read."""
        amounts = [(name, self._recorder.tracks[name].window(begin_s, end_s)) for name in _CORRECTED]
        known = [(name, amount) for name, amount in amounts if amount.value is not None]
        if not known:
            return _fact("corrected_errors", _gravest(amount for _, amount in amounts), "", "", "")
        moved = [f"{name.split('_')[0]} {amount.value:.0f}" for name, amount in known if amount.value]
        total = sum(amount.value or 0.0 for _, amount in known)
        sources = ", ".join(self._recorder.sources[name] for name, _ in known)
        return Fact("corrected_errors", total, source=sources, subject=", ".join(moved))

    def _clock_loss(self, begin_s: float, end_s: float) -> Fact:
        """How far below its rated clock the slowest accelerator under load ran, on average."""
        name, source = "accelerator_clock_loss", self._recorder.sources["clock_loss"]
        loss = self._recorder.tracks["clock_loss"].window(begin_s, end_s)
        looks = self._recorder.tracks["loaded_looks"].window(begin_s, end_s)
        if loss.value is None or looks.value is None:
            return _fact(name, loss, "", source, "")
        if not looks.value:
            return _lacking(name, Absence.NOT_APPLICABLE, "no accelerator was under load", source)
        subject = self._subject("clock_loss", begin_s, end_s)
        return _fact(name, loss._replace(value=loss.value / looks.value), "", source, subject)

    def _droop(self, begin_s: float, end_s: float, run_begin_s: float) -> Fact:
        """Clock of busy processors as a share of that in the run's first tenth with any."""
        count = self._recorder.tracks["mhz_count"].window(begin_s, end_s)
        source = self._recorder.sources["mhz_sum"]
        if count.value is None:
            return _fact("busy_mhz_ratio", count, "", source, "")
        if count.value == 0:
            return _lacking("busy_mhz_ratio", Absence.NOT_APPLICABLE, "no processor was busy", source)
        now_s = self._recorder.tracks["mhz_count"].last_s or end_s
        tenth_s = (now_s - run_begin_s) / _TENTHS
        tenths = [(run_begin_s + number * tenth_s, run_begin_s + (number + 1) * tenth_s) for number in range(_TENTHS)]
        base_at = next((at for at, (low, high) in enumerate(tenths) if self.mean_mhz(low, high) is not None), None)
        if base_at is None:
            return _lacking("busy_mhz_ratio", Absence.UNKNOWN, "no processor was busy in the run so far", source)
        base = self.mean_mhz(*tenths[base_at]) or 0.0
        whole = begin_s <= run_begin_s and end_s >= now_s
        windows = tenths[base_at + 1 :] if whole else [(begin_s, end_s)]
        return self._lowest(count, tenths[base_at], base, windows)

    def _lowest(self, count: Amount, base: tuple[float, float], base_mhz: float, windows: list[tuple[float, float]]) -> Fact:
        track = self._recorder.tracks["mhz_count"]
        measure = track.window(*base)
        source = self._recorder.sources["mhz_sum"]
        lowest: tuple[float, float] | None = None
        for low_s, high_s in windows:
            span = track.window(low_s, high_s)
            mhz = self.mean_mhz(low_s, high_s)
            if mhz is not None and (span.begin_s < measure.begin_s or span.end_s > measure.end_s):
                lowest = min(lowest or (mhz, low_s), (mhz, low_s))
        if lowest is None:
            reason = "the window lies in the first tenth of the run, which is the measure"
            state = Absence.UNKNOWN if len(windows) != 1 else Absence.NOT_APPLICABLE
            return _lacking(
                "busy_mhz_ratio", state, reason if state is Absence.NOT_APPLICABLE else "the run had one reading", source
            )
        mhz, at_s = lowest
        subject = f"{mhz:.0f} MHz after {base_mhz:.0f} MHz, {at_s - base[0]:.0f} s later"
        ratio = count._replace(value=mhz / base_mhz)
        return _fact("busy_mhz_ratio", ratio, "", source, subject)


def _fact(name: str, amount: Amount, unit: str, source: str, subject: str) -> Fact:
    absence = amount.absence
    return Fact(
        name,
        amount.value,
        unit,
        amount.complete or amount.value is None,
        absence.state if absence is not None else None,
        absence.reason if absence is not None else "",
        source,
        subject,
    )


def _lacking(name: str, state: Absence, reason: str, source: str) -> Fact:
    return Fact(name, state=state, reason=reason, source=source)


def _gravest(amounts: Iterable[Amount]) -> Amount:
    """The absence that says most: not applicable only where all are."""
    found = list(amounts)
    told = (amount for amount in found if amount.absence is None or amount.absence.state is not Absence.NOT_APPLICABLE)
    return next(told, found[0])
