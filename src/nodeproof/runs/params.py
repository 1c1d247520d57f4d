"""Parameters of a benchmark: their kinds, their text form, and values that never stand in for one another.

Every value can be written as text and read back, which is what records keep and the command line takes. Names of the kinds and
their rules are those of bench.md 1.9.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from nodeproof.errors import ParamError

__all__ = ["Bool", "Choice", "Float", "Int", "IntList", "Kind", "ParamSpec", "ParamValue", "ParamValues", "Text"]

_Whole = int
"""The type's name where a method of :class:`ParamValues` hides it."""
ParamValue = bool | int | float | str | tuple[int, ...]

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_MAX_DIGITS = 20
"""More digits than any bound has: reading more would only cost time."""


class Kind(Protocol):
    """A domain of values with a text form."""

    @property
    def type_name(self) -> str:
        """What a value of it is called in messages."""
        ...

    def parse(self, text: str) -> ParamValue:
        """The value that ``text`` means, blanks around it aside. Raises ValueError: what is wrong, and what would be right."""
        ...

    def domain_hint(self) -> str:
        """The domain in a few characters, for help."""
        ...


class Bool(msgspec.Struct, frozen=True, tag="bool", tag_field="kind"):
    """Yes or no."""

    type_name = "bool"

    def parse(self, text: str) -> bool:
        """``true yes on 1`` or ``false no off 0``, in any case."""
        word = text.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        raise ValueError(f"{text.strip()[:80]!r} is neither {'/'.join(_TRUE)} nor {'/'.join(_FALSE)}")

    def domain_hint(self) -> str:
        """Both values."""
        return "true / false"


class Int(msgspec.Struct, frozen=True, tag="int", tag_field="kind"):
    """A whole number, both limits allowed."""

    min: int
    max: int
    type_name = "int"

    def parse(self, text: str) -> int:
        """A decimal whole number."""
        return _bounded_int(text, self.min, self.max)

    def domain_hint(self) -> str:
        """Both limits."""
        return f"{self.min}–{self.max}"  # noqa: RUF001 - the dash of a range, as the reference prints it


class Float(msgspec.Struct, frozen=True, tag="float", tag_field="kind"):
    """A finite number, both limits allowed."""

    min: float
    max: float
    type_name = "float"

    def parse(self, text: str) -> float:
        """A decimal number."""
        try:
            value = float(text.strip())
        except ValueError:
            raise ValueError(f"{text.strip()[:80]!r} is no number") from None
        if not math.isfinite(value):
            raise ValueError(f"{text.strip()[:80]!r} is not finite")
        if not self.min <= value <= self.max:
            raise ValueError(f"{value:g} is not between {self.min:g} and {self.max:g}")
        return value

    def domain_hint(self) -> str:
        """Both limits."""
        return f"{self.min:g}–{self.max:g}"  # noqa: RUF001 - as Int


class Text(msgspec.Struct, frozen=True, tag="text", tag_field="kind"):
    """Any text that is not empty: "none" has to be said by a word of its own (``inherit``, ``all``)."""

    type_name = "text"

    def parse(self, text: str) -> str:
        """The text without blanks around it."""
        value = text.strip()
        if not value:
            raise ValueError("is empty; a text is expected")
        return value

    def domain_hint(self) -> str:
        """Says that any will do."""
        return "text"


class Choice(msgspec.Struct, frozen=True, tag="choice", tag_field="kind"):
    """One of a fixed set of words."""

    options: tuple[str, ...]
    type_name = "text"

    def parse(self, text: str) -> str:
        """The option's own spelling, whatever case ``text`` has."""
        word = text.strip().lower()
        for option in self.options:
            if option.lower() == word:
                return option
        raise ValueError(f"{text.strip()[:80]!r} is none of {', '.join(self.options)}")

    def domain_hint(self) -> str:
        """All options."""
        return " / ".join(self.options)


class IntList(msgspec.Struct, frozen=True, tag="int_list", tag_field="kind"):
    """One or more whole numbers, both limits allowed."""

    min: int
    max: int
    type_name = "int list"

    def parse(self, text: str) -> tuple[int, ...]:
        """Numbers with commas between them; blank entries are passed over."""
        values = tuple(_bounded_int(part, self.min, self.max) for part in text.split(",") if part.strip())
        if not values:
            raise ValueError("is empty; at least one whole number is expected")
        return values

    def domain_hint(self) -> str:
        """Limits of each entry."""
        return f"{self.min}–{self.max}, ..."  # noqa: RUF001 - as Int


class ParamSpec(msgspec.Struct, frozen=True):
    """One parameter of a benchmark."""

    key: str
    label: str
    help: str
    kind: Bool | Int | Float | Text | Choice | IntList
    default: ParamValue

    def parse(self, text: str) -> ParamValue:
        """Value of ``text``. Raises ParamError that begins with the label."""
        try:
            return self.kind.parse(text)
        except ValueError as error:
            raise ParamError(self.key, f"{self.label} ({self.key}): {error}") from None

    def domain_hint(self) -> str:
        """The domain in a few characters."""
        return self.kind.domain_hint()


class ParamValues:
    """A configuration: one value a key. Reading never substitutes: what is missing or of another type is an error."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, ParamValue]) -> None:
        self._values = dict(values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParamValues) and self._values == other._values

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.to_strings().items())))

    def __repr__(self) -> str:
        return f"ParamValues({self._values!r})"

    @classmethod
    def defaults(cls, specs: Sequence[ParamSpec]) -> "ParamValues":
        """Every parameter at its default."""
        return cls({spec.key: spec.default for spec in specs})

    @classmethod
    def from_overrides(cls, specs: Sequence[ParamSpec], pairs: Iterable[tuple[str, str]]) -> "ParamValues":
        """Defaults with ``pairs`` of key and text over them, the last of a key counting. Raises ParamError; never half of it."""
        by_key = {spec.key: spec for spec in specs}
        values = {spec.key: spec.default for spec in specs}
        for key, text in pairs:
            spec = by_key.get(key)
            if spec is None:
                raise _unknown_key(key, by_key)
            values[key] = spec.parse(text)
        result = cls(values)
        result.validate_against(specs)
        return result

    def validate_against(self, specs: Sequence[ParamSpec]) -> None:
        """Raise ParamError unless there is exactly one legal value for each of ``specs``."""
        by_key = {spec.key: spec for spec in specs}
        for key in self._values:
            if key not in by_key:
                raise _unknown_key(key, by_key)
        for key, spec in by_key.items():
            if key not in self._values:
                raise ParamError(key, f"{spec.label} ({key}): no value given")
            if spec.parse(_text(self._values[key])) != self._values[key] or not _fits(self._values[key], spec):
                given = f"{self._values[key]!r} is a {_type_name(self._values[key])}"
                raise ParamError(key, f"{spec.label} ({key}): {given}, expected {spec.kind.type_name}, {spec.domain_hint()}")

    def items(self) -> Iterable[tuple[str, ParamValue]]:
        """Key and value of each."""
        return self._values.items()

    def to_strings(self) -> dict[str, str]:
        """The whole configuration as text, sorted by key: what records keep, and :meth:`from_overrides` reads back."""
        return {key: _text(self._values[key]) for key in sorted(self._values)}

    def bool(self, key: str) -> bool:
        """A yes or no. Raises ParamError, as all of these."""
        value = self._get(key)
        if not isinstance(value, bool):
            raise _wrong_type(key, "bool", value)
        return value

    def int(self, key: str) -> int:
        """A whole number."""
        value = self._get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong_type(key, "int", value)
        return value

    def usize(self, key: str) -> _Whole:
        """A whole number of at least 0."""
        value = self.int(key)
        if value < 0:
            raise ParamError(key, f"parameter {key}: {value} is negative")
        return value

    def float(self, key: str) -> float:
        """A number; a whole one will do."""
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong_type(key, "float", value)
        return float(value)

    def text(self, key: str) -> str:
        """A text or an option."""
        value = self._get(key)
        if not isinstance(value, str):
            raise _wrong_type(key, "text", value)
        return value

    def int_list(self, key: str) -> tuple[_Whole, ...]:
        """Whole numbers, at least one."""
        value = self._get(key)
        if not isinstance(value, tuple):
            raise _wrong_type(key, "int list", value)
        return value

    def _get(self, key: str) -> ParamValue:
        if key not in self._values:
            raise ParamError(key, f"parameter {key}: no value given; there are {', '.join(sorted(self._values)) or 'none'}")
        return self._values[key]


def _bounded_int(text: str, low: int, high: int) -> int:
    word = text.strip()
    digits = word.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit()) or word[:2] in {"-+", "+-"}:
        raise ValueError(f"{word[:80]!r} is no whole number")
    if len(digits.lstrip("0")) > _MAX_DIGITS:
        raise ValueError(f"{word[:30]}... is not between {low} and {high}")
    value = int(word)
    if not low <= value <= high:
        raise ValueError(f"{value} is not between {low} and {high}")
    return value


def _fits(value: ParamValue, spec: ParamSpec) -> bool:
    """Whether the value has a type of the kind, not only a text that reads well."""
    expected: dict[type, tuple[type, ...]] = {
        Bool: (bool,),
        Int: (int,),
        Float: (int, float),
        Text: (str,),
        Choice: (str,),
        IntList: (tuple,),
    }
    if isinstance(value, bool):
        return isinstance(spec.kind, Bool)
    return isinstance(value, expected[type(spec.kind)])


def _text(value: ParamValue) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(str(entry) for entry in value)
        case float():
            return repr(value)
        case _:
            return str(value)


def _type_name(value: ParamValue) -> str:
    match value:
        case bool():
            return "bool"
        case tuple():
            return "int list"
        case str():
            return "text"
        case _:
            return type(value).__name__


def _wrong_type(key: str, expected: str, value: ParamValue) -> ParamError:
    return ParamError(key, f"parameter {key}: {value!r} is {_type_name(value)}, {expected} was asked for")


def _unknown_key(key: str, known: Iterable[str]) -> ParamError:
    return ParamError(key, f"there is no parameter {key[:80]!r}; there are {', '.join(sorted(known)) or 'none'}")
