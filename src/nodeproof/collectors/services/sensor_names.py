"""Which of a BMC's sensors is which: names differ from maker to maker, so the rules are data, the reference's own names first.

Names are compared in small letters, with every separator a blank and without the number that HPE puts before them:
``01-Inlet Ambient`` is ``inlet ambient``, ``Total_Power`` is ``total power``.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nodeproof.sources.ipmitool_sensor import IpmiSensor

__all__ = [
    "INLET",
    "OUTLET",
    "POWER",
    "Rule",
    "fan_identity",
    "fan_labels",
    "is_elsewhere",
    "is_fan",
    "is_fan_power",
    "pick",
    "plain_name",
    "psu_direction",
    "psu_number",
]


class Rule(NamedTuple):
    """How a sensor without labels is found."""

    unit: str
    exact: tuple[str, ...]
    """Whole names, best first."""
    words: tuple[tuple[str, ...], ...]
    """Else: all these words in the name, best first."""
    never: tuple[str, ...]
    """Beginnings of words that make it another part's sensor."""


_PARTS = (
    "cpu",
    "dimm",
    "mem",
    "gpu",
    "npu",
    "ps",
    "hd",
    "hdd",
    "ssd",
    "nvme",
    "m2",
    "ocp",
    "nic",
    "pcie",
    "riser",
    "raid",
    "bbu",
)

POWER = Rule(
    "W",
    (
        "power",
        "total power",
        "pwr consumption",
        "power consumption",
        "pw consumption",
        "system level",
        "power meter",
        "sys power",
        "system power",
        "total pwr",
        "node power",
        "chassis power",
        "input power",
    ),
    (
        ("total", "power"),
        ("total", "pwr"),
        ("pwr", "consumption"),
        ("power", "consumption"),
        ("sys", "power"),
        ("system", "power"),
    ),
    (*_PARTS, "fan", "supply"),
)
INLET = Rule(
    "°C",
    (
        "inlet temp",
        "inlet ambient",
        "inlet temperature",
        "system board inlet temp",
        "ambient temp",
        "sys ambient",
        "ambient",
        "front panel temp",
        "front ambient",
        "air inlet",
    ),
    (("inlet",), ("intake",), ("front", "ambient"), ("ambient",)),
    (*_PARTS, "outlet", "exhaust", "rear"),
)
OUTLET = Rule(
    "°C",
    (
        "outlet temp",
        "exhaust temp",
        "outlet temperature",
        "system board exhaust temp",
        "sys exhaust",
        "exit air temp",
        "air outlet",
        "rear ambient",
    ),
    (("outlet",), ("exhaust",), ("exit", "air"), ("rear", "ambient")),
    _PARTS,
)

_HPE_NUMBER = re.compile(r"^\d+-")
_SEPARATORS = re.compile(r"[\s_\-.#()/]+")
_FAN_NOISE = {"speed", "tach", "rpm", "duty", "dutycycle", "power", "pwr", "fan", "fans"}
_FRONT = {"f", "front", "inlet"}
_REAR = {"r", "rear", "outlet"}
_ROTOR = re.compile(r"^(\d+)([fr])$")
_SUPPLY = re.compile(r"^(?:psu?|power supply) ?(\d+|[a-d]\b)")
_IN, _OUT = {"in", "input", "pin", "ac"}, {"out", "output", "pout", "dc"}


def plain_name(name: str) -> str:
    """The name as the rules see it."""
    return _SEPARATORS.sub(" ", _HPE_NUMBER.sub("", name.strip().lower())).strip()


def pick(sensors: Sequence[IpmiSensor], rule: Rule) -> list[IpmiSensor]:
    """Sensors that the best matching part of ``rule`` names, with or without a reading; usually one, or none."""
    named = [(plain_name(sensor.name), sensor) for sensor in sensors if sensor.unit in {rule.unit, ""}]
    tests: list[Callable[[str], bool]] = [name.__eq__ for name in rule.exact]
    tests += [lambda plain, words=words: _holds(plain, words, rule.never) for words in rule.words]  # type: ignore[misc]  # mypy cannot infer the type of a lambda's default
    for fits in tests:
        found = [sensor for plain, sensor in named if fits(plain)]
        # A discrete sensor of that name (inlet temperature "ok") is not the one that measures.
        found = [sensor for sensor in found if sensor.unit == rule.unit or (sensor.problem and not sensor.discrete_state)]
        if found:
            return found
    return []


def _holds(plain: str, words: tuple[str, ...], never: tuple[str, ...]) -> bool:
    parts = plain.split(" ")
    return all(any(part.startswith(word) for part in parts) for word in words) and not any(
        part.startswith(never) for part in parts
    )


def is_elsewhere(name: str) -> bool:
    """Whether another component reports this temperature: a processor's or a memory module's."""
    return any(part.startswith(("cpu", "dimm", "mem")) or part.endswith("dimm") for part in plain_name(name).split(" "))


def is_fan(sensor: IpmiSensor) -> bool:
    """Whether it measures how a fan turns, with or without a reading now."""
    if sensor.unit == "RPM":
        return True
    plain = plain_name(sensor.name)
    return (
        sensor.unit in {"%", ""}
        and ("fan" in plain or "tach" in plain)
        and not sensor.discrete_state
        and bool(sensor.problem or sensor.unit)
    )


def is_fan_power(sensor: IpmiSensor) -> bool:
    """Whether it measures what a fan draws."""
    plain = plain_name(sensor.name)
    return sensor.unit == "W" and "fan" in plain and ("power" in plain or "pwr" in plain)


def fan_identity(name: str) -> tuple[str, str]:
    """Fan and direction: ``FAN1 F Speed`` is ``("1", "F")``, ``Fan 2A Tach`` ``("2A", "F")``, ``SYS_FAN3`` ``("SYS 3", "F")``."""
    direction = "F"
    kept: list[str] = []
    for word in _SEPARATORS.split(_HPE_NUMBER.sub("", name.strip())):
        low = word.lower()
        if low in _FRONT or low in _REAR:
            direction = "R" if low in _REAR else "F"
            continue
        if low.startswith("fan") and low not in _FAN_NOISE:
            word, low = word[3:], low[3:]  # noqa: PLW2901 - what is left of FAN1 is the number
        rotor = _ROTOR.match(low)
        if rotor is not None:
            word, direction = rotor[1], rotor[2].upper()  # noqa: PLW2901 - 1F is rotor F of fan 1
        if low and low not in _FAN_NOISE:
            kept.append(word)
    return " ".join(kept) or "0", direction


def fan_labels(fans: Sequence[IpmiSensor]) -> dict[str, dict[str, str]]:
    """Labels ``fan`` and ``direction`` by sensor name; where two come out the same, the later keeps its whole name."""
    labels: dict[str, dict[str, str]] = {}
    used: set[tuple[str, str]] = set()
    for fan in fans:
        identity = fan_identity(fan.name)
        if identity in used:
            identity = (fan.name, identity[1])
        used.add(identity)
        labels[fan.name] = {"fan": identity[0], "direction": identity[1]}
    return labels


def psu_number(name: str) -> str:
    """The supply that a name speaks of: ``1`` for ``PS1 Status``, ``A`` for ``PSU A``; where none is named, the whole name."""
    match = _SUPPLY.match(plain_name(name))
    return match[1].upper() if match is not None else name


def psu_direction(sensor: IpmiSensor) -> str | None:
    """``in``, ``out`` or, untold, empty for a sensor that measures a supply's power; None for any other."""
    plain = plain_name(sensor.name)
    if sensor.unit != "W" or _SUPPLY.match(plain) is None:
        return None
    words = set(plain.split(" "))
    return "out" if words & _OUT else "in" if words & _IN else ""
