"""Limits of the kinds that finding tables are made of."""

from nodeproof.health.rules import Compare, How, Limit, Probe

__all__ = ["good", "grown", "level", "state"]


def grown(
    component: str,
    name: str,
    window_s: float,
    *entity: str,
    where: tuple[tuple[str, str], ...] = (),
    from_zero: bool = False,
    more_than: float = 0,
) -> Limit:
    """More than so many new ones within the window. Errors happened or they did not: one sample is enough."""
    probe = Probe(component, (name,), where, entity, How.GROWTH, window_s, from_zero=from_zero)
    return Limit(probe, Compare.ABOVE, more_than, enter=1, leave_s=0)


def level(probe: Probe, threshold: float, clear: float, *, enter: int = 3) -> Limit:
    """A level that must not be passed."""
    return Limit(probe, Compare.ABOVE, threshold, clear, enter)


def state(
    component: str,
    name: str,
    *entity: str,
    where: tuple[tuple[str, str], ...] = (),
    at_least: float = 1,
    equal: float | None = None,
    enter: int = 2,
) -> Limit:
    """A state that is bad from some value on, or at one."""
    probe = Probe(component, (name,), where, entity)
    if equal is not None:
        return Limit(probe, Compare.EQUAL, equal, enter=enter, leave_s=0)
    return Limit(probe, Compare.AT_LEAST, at_least, enter=enter, leave_s=0)


def good(component: str, name: str, *entity: str) -> Limit:
    """A state that is good at 1."""
    return Limit(Probe(component, (name,), entity=entity), Compare.BELOW, 1, enter=2, leave_s=0)
