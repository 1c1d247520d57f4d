"""What a soak is judged by: each quantity against its limit, with "could not tell" as an answer of its own."""

from collections.abc import Sequence
from typing import NamedTuple

from nodeproof.bench.soak.slices import Slice
from nodeproof.bench.stats.trend import MIN_POINTS, Bound, Trend, bound, trend
from nodeproof.host.server_sight import ServerProcesses
from nodeproof.model.run import Verdict, VerdictKind

__all__ = ["Check", "drift_checks", "leak_checks", "verdict_of"]

_FLOOR_MS = 2.0
"""A latency that grows by less is not judged by its share: that is the noise of timers and schedulers."""


class Check(NamedTuple):
    """One quantity."""

    name: str
    state: Bound
    text: str
    """Value and limit."""
    trend: Trend | None = None
    """In the unit of the limit."""


def drift_checks(slices: Sequence[Slice], *, latency_pct: float, rate_pct: float) -> list[Check]:
    """Latencies that may grow by ``latency_pct``, and a rate that may sink by ``rate_pct``."""
    checks: list[Check] = []
    for name, key in (("ttft", "ttft_p50_ms"), ("tpot", "tpot_p50_ms"), ("e2e", "e2e_p50_ms")):
        points = [(one.middle_s, value) for one in slices if (value := getattr(one, key)) is not None]
        if name == "e2e" and checks:
            break  # a stream is judged by its parts: the whole depends on how long answers are
        if points:
            checks.append(_growth(name, points, latency_pct, _FLOOR_MS, "ms"))
    rates = [(one.middle_s, one.output_tok_s or one.requests_per_s) for one in slices]
    return [*checks, _sinking("rate", rates, rate_pct)]


def leak_checks(sights: Sequence[ServerProcesses], *, rss_pct: float, open_files: float) -> list[Check]:
    """Memory that may grow by ``rss_pct``, and descriptors that may grow by ``open_files``.

    What grew and then stood still is no leak: caches fill. So the second half must grow, too.
    """
    checks = [_leak("memory", [(one.at_s, one.resident_bytes / 2**20) for one in sights], rss_pct, "MiB", percent=True)]
    files = [(one.at_s, float(one.open_files)) for one in sights if one.open_files is not None]
    if len(files) < len(sights):
        text = "descriptors of the server: unknown, this user may not list those of all its processes"
        checks.append(Check("descriptors", Bound.UNCLEAR, text))
    else:
        checks.append(_leak("descriptors", files, open_files, "descriptors", percent=False))
    restarts = sights[-1].restarts if sights else 0
    if restarts:
        checks.append(Check("restarts", Bound.BROKEN, f"the server was started anew {restarts} times while it was measured"))
    return checks


def verdict_of(checks: Sequence[Check]) -> Verdict:
    """What they say together: one broken limit fails, one that is unclear leaves all open."""
    by = {state: [check.text for check in checks if check.state is state] for state in Bound}
    if by[Bound.BROKEN]:
        return Verdict(VerdictKind.FAIL, "; ".join(by[Bound.BROKEN]))
    if by[Bound.UNCLEAR] or not checks:
        return Verdict(VerdictKind.INCONCLUSIVE, "; ".join(by[Bound.UNCLEAR]) or "nothing was measured")
    return Verdict(VerdictKind.PASS, "; ".join(by[Bound.KEPT]))


def _growth(name: str, points: Sequence[tuple[float, float]], limit_pct: float, floor: float, unit: str) -> Check:
    found = trend(*_columns(points))
    share = found.percent() if found is not None else None
    if found is None or (share is None and found.high > floor):
        return Check(name, Bound.UNCLEAR, f"{name}: {len(points)} points tell no trend, {MIN_POINTS} are needed")
    shown = f"{_change(share, '%')} from {found.start:.4g} {unit}" if share is not None else f"{_change(found, unit)}"
    state = Bound.UNCLEAR if share is None else bound(share, limit_pct)
    text = f"{name} {shown}, limit {limit_pct:g} %"
    if state is not Bound.KEPT and found.high <= floor:
        return Check(name, Bound.KEPT, f"{text}; below the noise of {floor:g} {unit}", share)
    return Check(name, state, text, share)


def _sinking(name: str, points: Sequence[tuple[float, float]], limit_pct: float) -> Check:
    found = trend(*_columns(points))
    share = found.percent() if found is not None else None
    if found is None or share is None:
        return Check(name, Bound.UNCLEAR, f"{name}: {len(points)} points tell no trend, {MIN_POINTS} are needed")
    text = f"{name} {_change(share, '%')} from {found.start:.4g} a second, limit -{limit_pct:g} %"
    return Check(name, bound(share.negated(), limit_pct), text, share.negated())


def _leak(name: str, points: Sequence[tuple[float, float]], limit: float, unit: str, *, percent: bool) -> Check:
    whole, later = trend(*_columns(points)), trend(*_columns(points[len(points) // 2 :]))
    judged = whole.percent() if whole is not None and percent else whole
    if whole is None or judged is None or later is None:
        return Check(name, Bound.UNCLEAR, f"{name}: {len(points)} looks at the server tell no trend, {2 * MIN_POINTS} are needed")
    shown = f"limit {limit:g} {'%' if percent else unit}"
    text = f"{name} {_change(judged, '%' if percent else '')} from {whole.start:.4g} {unit}, {shown}"
    state = bound(judged, limit)
    if state is not Bound.KEPT and later.low <= 0.0:
        settled = later.high <= whole.change * 0.25
        state = Bound.KEPT if settled else Bound.UNCLEAR
        text += "; it has settled in the second half" if settled else "; whether it goes on growing cannot be told"
    return Check(name, state, text, judged)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [at_s for at_s, _ in points], [value for _, value in points]


def _change(found: Trend, unit: str) -> str:
    mark = f" {unit}" if unit else ""
    return f"{found.change:+.3g}{mark} ({found.low:+.3g} to {found.high:+.3g})"
