"""Power of the whole machine by ``ipmitool dcmi power reading`` (ipmitool(1); DCMI 1.5, 6.6.1 Get Power Reading).

::

        Instantaneous power reading:                   212 Watts
        Average power reading over sample period:      211 Watts
        Power reading state is:                        activated
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["DcmiPower", "parse"]

_MAX_W = 100_000.0


class DcmiPower(NamedTuple):
    """What the BMC says the machine draws."""

    instantaneous_w: float | None
    """Watts now; None when measuring is switched off or the number cannot be."""
    average_w: float | None
    """Watts, averaged over the BMC's own period."""
    activated: bool | None
    """Whether the BMC is measuring; None when it does not say."""
    problem: str = ""
    """Why ``instantaneous_w`` is None."""


def parse(raw: bytes, /) -> DcmiPower:
    """Read the answer. Raises ParseError when it holds no power reading at all."""
    fields: dict[str, str] = {}
    for line in raw.decode("utf-8", "replace").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip().lower(), value.strip())
    text = fields.get("instantaneous power reading")
    if text is None:
        raise ParseError("ipmitool dcmi power reading", 0, raw.decode("utf-8", "replace").strip(), "Instantaneous power reading")
    state = fields.get("power reading state is", "").lower()
    activated = {"activated": True, "deactivated": False}.get(state)
    watts, problem = _watts(text)
    if activated is False:
        watts, problem = None, "the BMC says that power measuring is deactivated"
    average = _watts(fields.get("average power reading over sample period", ""))[0] if activated is not False else None
    return DcmiPower(watts, average, activated, problem)


def _watts(text: str) -> tuple[float | None, str]:
    """Number of ``212 Watts``, or why there is none. A machine that answers draws power, so 0 is no reading."""
    number = text.partition(" ")[0].replace(",", ".")
    try:
        watts = float(number)
    except ValueError:
        return None, f"{text[:40]!r} is no power"
    if not 0.0 < watts <= _MAX_W:
        return None, f"{text[:40]} cannot be the power of a machine that is running"
    return watts, ""
