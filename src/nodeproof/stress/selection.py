"""Which items a job has, and how long each may take (stress.md 1.1)."""

from collections.abc import Sequence

from nodeproof.stress.problems import SelectionError
from nodeproof.stress.settings import BENCHMARKS, StressSettings

__all__ = ["no_item", "select_names", "select_timeouts"]


def select_names(settings: StressSettings, asked: Sequence[str]) -> list[str]:
    """Names in the order asked, without blanks and repeats; the default list when none was asked. Raises SelectionError."""
    if not any(item.enabled for item in settings.benchmarks.values()):
        raise SelectionError("no stress item is configured and enabled; enable one below stress.benchmarks")
    names = _cleaned(asked) or _cleaned(settings.default_benchmarks)
    if not names:
        raise SelectionError("no item was named and stress.default_benchmarks is empty; name one")
    for name in names:
        if name not in BENCHMARKS:
            raise SelectionError(no_item(name))
        item = settings.benchmarks.get(name)
        if item is None:
            raise SelectionError(f"{name} is not configured; add it below stress.benchmarks")
        if not item.enabled:
            raise SelectionError(f"{name} is disabled; set stress.benchmarks.{name}.enabled to true")
    return names


def no_item(name: str) -> str:
    """That there is no item ``name``, and which there are."""
    return f"{name[:80]!r} is no stress item; there are {', '.join(BENCHMARKS)}"


def select_timeouts(settings: StressSettings, names: Sequence[str], timeout_s: float) -> dict[str, float]:
    """Limit of each item; ``timeout_s`` of this job may only shorten them, 0 = as configured. Raises SelectionError."""
    if timeout_s < 0:
        raise SelectionError(f"a limit of {timeout_s:g} s is none; 0 means as configured")
    limits = {name: settings.benchmarks[name].timeout_s for name in names}
    for name, configured_s in limits.items():
        if timeout_s > configured_s:
            raise SelectionError(
                f"the limit of {timeout_s:g} s is over the {configured_s:g} s configured for {name}; it can only be shortened"
            )
    return dict.fromkeys(names, timeout_s) if timeout_s else limits


def _cleaned(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for raw in names if (name := raw.strip().lower())))
