"""One table of a TOML file, field by field: what has the wrong type, is unknown or missing becomes a fault with its path."""

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence

__all__ = ["Fields"]

_TEXT_CHARS = 4096


class Fields:
    """The table at ``place``. Each getter takes a key once; :meth:`done` tells of the keys that nobody asked for."""

    def __init__(self, table: Mapping[str, object], place: str, faults: list[str]) -> None:
        self.place = place
        self._table = table
        self._faults = faults
        self._asked: list[str] = []

    def fault(self, key: str, problem: str) -> None:
        """Something is wrong with ``key``."""
        self._faults.append(f"{self.path(key)}: {problem}")

    def missing(self, key: str, expected: str) -> None:
        """``key`` is not there and should be; a key with a fault of its own has been told of."""
        if key not in self._table:
            self.fault(key, f"is missing, expected {expected}")

    def path(self, key: str) -> str:
        """Where ``key`` stands."""
        written = _written(key)
        return f"{self.place}.{written}" if self.place else written

    def text(self, key: str, *, pattern: str = "", expected: str = "") -> str:
        """A string; empty when there is none."""
        value = self._take(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self._wrong(key, value, "a string")
            return ""
        if not value.strip() or len(value) > _TEXT_CHARS or (pattern and re.fullmatch(pattern, value) is None):
            self.fault(key, f"is {value[:80]!r}, expected {expected or 'a text that says something'}")
            return ""
        return value

    def choice(self, key: str, options: Sequence[str], default: str) -> str:
        """One of a few words."""
        value = self.text(key)
        if value and value not in options:
            self.fault(key, f"is {value[:80]!r}, expected {' or '.join(options)}")
            return default
        return value or default

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self._take(key)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self._wrong(key, value, "true or false")
        return default

    def number(self, key: str, *, low: float = -math.inf, above: float = -math.inf) -> float | None:
        """A finite number, at least ``low`` and more than ``above``."""
        value = self._take(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self._wrong(key, value, "a number")
            return None
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or number < low or number <= above:
            limit = f"more than {above:g}" if above > -math.inf else f"at least {low:g}" if low > -math.inf else "a finite number"
            self.fault(key, f"is {number:g}, expected {limit}")
            return None
        return number

    def whole(self, key: str, low: int, high: int) -> int:
        """A whole number within limits; 0 when there is none."""
        value = self._take(key)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self._wrong(key, value, f"a whole number from {low} to {high}")
            return 0
        return value

    def moment(self, key: str) -> float | None:
        """A date, or a date and time; in UTC unless it says otherwise. Seconds since the epoch."""
        value = self._take(key)
        if value is None:
            return None
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            value = dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001 - the zone comes below
        if not isinstance(value, dt.datetime):
            self._wrong(key, value, "a date like 2026-12-01, without quotes")
            return None
        try:
            return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).timestamp()
        except (OverflowError, ValueError):
            self.fault(key, f"is {value}, which is no time of this world")
            return None

    def strings(self, key: str) -> dict[str, str]:
        """A table of texts, numbers and switches, all as text: as ``--param`` takes them."""
        found = {}
        for name, value in self._tables(key).items():
            if isinstance(value, bool):
                found[name] = "true" if value else "false"
            elif isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
                found[name] = str(value)
            else:
                self._wrong(f"{key}.{name}", value, "a text, a number, true or false")
        return found

    def each_table(self, key: str) -> "list[tuple[str, Fields]]":
        """The tables in a table, by name."""
        found = []
        for name, value in self._tables(key).items():
            if isinstance(value, dict):
                found.append((name, Fields(value, f"{self.path(key)}.{_written(name)}", self._faults)))
            else:
                self._wrong(f"{key}.{name}", value, "a table")
        return found

    def tables(self, key: str, most: int) -> "list[Fields]":
        """A list of tables."""
        value = self._take(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            self._wrong(key, value, f"tables, each under [[{key}]]")
            return []
        if len(value) > most:
            self.fault(key, f"has {len(value)} tables, expected at most {most}")
            return []
        return [Fields(one, f"{self.path(key)}[{place}]", self._faults) for place, one in enumerate(value)]

    def done(self) -> None:
        """All has been asked for: whatever else is there is unknown."""
        for key in self._table:
            if key not in self._asked:
                self.fault(key, f"is unknown; known are {', '.join(sorted(self._asked))}")

    def _tables(self, key: str) -> dict[str, object]:
        value = self._take(key)
        if value is not None and not isinstance(value, dict):
            self._wrong(key, value, "a table")
        return value if isinstance(value, dict) else {}

    def _take(self, key: str) -> object:
        self._asked.append(key)
        return self._table.get(key)

    def _wrong(self, key: str, value: object, expected: str) -> None:
        self.fault(key, f"is {str(value)[:80]!r}, expected {expected}")


def _written(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_.-]+", key) else repr(key)[:80]
