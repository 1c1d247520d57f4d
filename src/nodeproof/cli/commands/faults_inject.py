"""``nodeproof faults inject``: pretend a fault, see it everywhere it ought to be, end it, and see it gone."""

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from nodeproof.cli.fault_orders import caller, give_order
from nodeproof.cli.interface import base_url, get
from nodeproof.cli.options import load_config
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable
from nodeproof.config.schema import Config
from nodeproof.errors import RecordError, SnapshotError, UsageError
from nodeproof.faults.records import read_events, read_state
from nodeproof.health.grades import verdict
from nodeproof.model.fault import Change, Fault, Order, OrderKind
from nodeproof.model.health import Grade, HealthScore
from nodeproof.model.snapshot import GlobalSnapshot
from nodeproof.sinks.snapshot_names import GLOBAL_FILE
from nodeproof.sinks.snapshot_reader import read_global

__all__ = ["Place", "run"]

_SHORTEST_S, _LONGEST_S = 5.0, 3600.0
_SEEN_S = 15.0
_PAUSE_S = 0.1
_NOT_SERVED = "not served"


class Place(NamedTuple):
    """One place that a fault ought to reach, and what was found there."""

    name: str
    found: str
    """In words."""
    seen_s: float | None
    """Seconds after the injection; None = it was not seen, or there is no such place."""
    gone_s: float | None
    """Seconds after the end."""
    good: bool


class _Look(NamedTuple):
    name: str
    there: Callable[[], str]
    """What is seen of the drill; empty while nothing is."""
    absent: str = ""
    """Why there is nothing to look at; that is no failure."""
    stays: bool = False
    """It is a record: afterwards its end is there as well."""


def run(options: argparse.Namespace) -> int:
    """Hold the drill; exit 0 when it was seen everywhere and is gone, 1 when not. Raises UsageError."""
    if not _SHORTEST_S <= options.seconds <= _LONGEST_S:
        raise UsageError(f"--seconds {options.seconds:g} is not within {_SHORTEST_S:g} and {_LONGEST_S:g}")
    config = load_config(options)
    before = _whole(config)
    fault = give_order(config, Order(OrderKind.INJECT, options.rule, caller(), options.note, options.seconds))
    looks = _looks(config, fault)
    try:
        seen = _until(looks, bool, min(_SEEN_S, options.seconds - 1.0))
    finally:
        give_order(config, Order(OrderKind.CLEAR, fault.fault_id, caller(), "end of the drill"))
    gone = _until([one for one in looks if not one.stays], lambda text: not text, _SEEN_S)
    places = [_place(one, seen, gone) for one in looks]
    after = _whole(config)
    good = all(place.good for place in places)
    if options.output == "json":
        print_json({"fault": fault, "passed": good, "places": [place._asdict() for place in places]}, indent=2)
    else:
        _print(fault, places, before.health, after.health)
    return 0 if good else 1


def _looks(config: Config, fault: Fault) -> list[_Look]:
    return [
        _Look("snapshot", lambda: _in_health(_whole(config).health, fault)),
        _Look("score", lambda: _in_grade(_whole(config).health, fault)),
        _Look("check", lambda: _in_check(_whole(config).health)),
        _Look("faults", lambda: _in_state(config, fault)),
        _Look("history", lambda: _in_history(config, fault, Change.SET), stays=True),
        _Look("history", lambda: _in_history(config, fault, Change.CLEARED), stays=True)._replace(name="end in history"),
        *_served(config, fault),
    ]


def _whole(config: Config) -> GlobalSnapshot:
    return read_global(os.path.join(config.snapshot.dir, GLOBAL_FILE))


def _in_health(health: HealthScore, fault: Fault) -> str:
    found = [one for one in health.findings if one.rule == fault.rule and one.drill is True]
    return f"finding {found[0].rule}, marked as a drill" if found else ""


def _in_grade(health: HealthScore, fault: Fault) -> str:
    held = health.grade is Grade.CRITICAL if fault.severity == "critical" else health.grade is not Grade.EXCELLENT
    return f"grade {health.grade}" if held and _in_health(health, fault) else ""


def _in_check(health: HealthScore) -> str:
    answer = verdict(health)
    return f"exit {answer.exit_code}, says DRILL" if "DRILL" in answer.line else ""


def _in_state(config: Config, fault: Fault) -> str:
    try:
        state = read_state(config.faultsub.dir)
    except RecordError:
        return ""
    standing = [one for one in state.faults if one.fault_id == fault.fault_id and one.drill] if state is not None else []
    return f"{fault.fault_id} stands" if standing else ""


def _in_history(config: Config, fault: Fault, change: Change) -> str:
    def wanted(event: object) -> bool:
        return getattr(event, "fault_id", "") == fault.fault_id and getattr(event, "change", None) is change

    after = int(fault.fault_id.removeprefix("f")) - 1
    events = read_events(config.faultsub.dir, limit=1, after=after, wanted=wanted)
    return f"entry {events[0].sequence}, marked as a drill" if events and events[0].drill else ""


def _served(config: Config, fault: Fault) -> list[_Look]:
    """The page, the interface and the subscribers, as far as they are served."""
    looks = []
    page = f"http://{config.web.address}/api/health"
    absent = "" if config.web.enabled and get(page) is not None else f"{_NOT_SERVED} at {config.web.address}"
    looks.append(_Look("page", lambda: _in_json(page, fault), absent))
    if not config.faultsub.enabled:
        off = "faultsub.enabled is false"
        return [*looks, _Look("interface", str, off), _Look("webhooks", str, off)]
    base = base_url(config)
    looks.append(_Look("interface", lambda: _in_json(f"{base}/active", fault)))
    hooks = _hooks(base)
    looks.append(_Look("webhooks", lambda: _delivered(base, fault), "" if hooks else "nobody subscribed", stays=True))
    return looks


def _in_json(url: str, fault: Fault) -> str:
    text = json.dumps(get(url))
    return "shown, marked as a drill" if f'"{fault.rule}"' in text and '"drill": true' in text else ""


def _hooks(base: str) -> list[dict[str, object]]:
    found = get(f"{base}/subscriptions")
    return [one for one in found if one.get("delivery") == "webhook"] if isinstance(found, list) else []


def _delivered(base: str, fault: Fault) -> str:
    """Webhooks that are past the drill's event: it was delivered, or they do not want it."""
    number = int(fault.fault_id.removeprefix("f"))
    hooks = _hooks(base)
    done = [one for one in hooks if _progress(one, "place") >= number]
    return f"{len(done)} of {len(hooks)} served" if hooks and len(done) == len(hooks) else ""


def _progress(hook: dict[str, object], key: str) -> int:
    progress = hook.get("progress")
    value = progress.get(key) if isinstance(progress, dict) else None
    return value if isinstance(value, int) else 0


def _until(looks: list[_Look], true: Callable[[str], bool], limit_s: float) -> dict[str, tuple[float, str]]:
    """When each look first answered so, and what it saw."""
    began = time.monotonic()
    found: dict[str, tuple[float, str]] = {}
    while True:
        for look in looks:
            if look.name not in found and not look.absent:
                text = _seen(look)
                if true(text):
                    found[look.name] = (time.monotonic() - began, text)
        waiting = [one for one in looks if one.name not in found and not one.absent and one.name != "end in history"]
        if not waiting or time.monotonic() - began >= limit_s:
            return found
        time.sleep(_PAUSE_S)


def _seen(look: _Look) -> str:
    try:
        return look.there()
    except SnapshotError:
        return ""  # the daemon is just replacing it, or has ended


def _place(look: _Look, seen: dict[str, tuple[float, str]], gone: dict[str, tuple[float, str]]) -> Place:
    if look.absent:
        return Place(look.name, look.absent, None, None, good=True)
    if look.name == "end in history":
        text = _seen(look)
        return Place(look.name, text or "not seen", None, None, good=bool(text))
    seen_s, text = seen.get(look.name, (None, "not seen"))
    gone_s = gone.get(look.name, (None, ""))[0]
    return Place(look.name, text, seen_s, gone_s, good=seen_s is not None and (look.stays or gone_s is not None))


def _print(fault: Fault, places: list[Place], before: HealthScore, after: HealthScore) -> None:
    print(printable(f"Drill {fault.fault_id} of {fault.rule} ({fault.type}, {fault.fault_class}, {fault.severity})\n".strip()))
    print(f"Before: {before.grade}, {before.score} of 100. After: {after.grade}, {after.score} of 100.\n")
    print_table(
        ("Place", "What was found", "Seen after", "Gone after", "Good"),
        [
            (
                place.name,
                place.found,
                "-" if place.seen_s is None else f"{place.seen_s:.1f} s",
                "-" if place.gone_s is None else f"{place.gone_s:.1f} s",
                "yes" if place.good else "NO",
            )
            for place in places
        ],
        right=(2, 3),
    )
