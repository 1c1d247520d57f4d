"""What ``bench.toml`` says, as structs; :mod:`nodeproof.bench.gate.thresholds` reads it."""

import msgspec

from nodeproof.host.signing_key import PublicKey
from nodeproof.model.hardware import Validity

__all__ = ["Bound", "Entry", "Thresholds", "TrustedKey"]


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """What one metric must keep."""

    metric: str
    min: float | None = None
    max: float | None = None
    noise: float = 0.0
    """The measured scatter from run to run, in the metric's unit: a value may miss a limit by so much."""
    unit: str = ""
    valid_from: float | None = None
    """Seconds since the epoch from which on the bound is in force; None = it is."""
    note: str = ""

    @property
    def exact(self) -> bool:
        """One value and no other."""
        return self.min is not None and self.min == self.max

    def keeps(self, value: float) -> bool:
        """Whether ``value`` is within it."""
        above = self.min is None or value + self.noise >= self.min
        return above and (self.max is None or value - self.noise <= self.max)

    def words(self) -> str:
        """The limit, for people."""
        unit = f" {self.unit}" if self.unit else ""
        if self.exact:
            return f"exactly {self.min:g}{unit}"
        parts = [
            f"at least {self.min:g}" if self.min is not None else "",
            f"at most {self.max:g}" if self.max is not None else "",
        ]
        scatter = f", noise {self.noise:g}" if self.noise else ""
        return f"{' and '.join(part for part in parts if part)}{unit}{scatter}"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark that must be proven, for one model on one class of box."""

    place: str
    """Where it stands in the file: ``benchmarks[0]``."""
    id: str
    label: str = ""
    note: str = ""
    model: str = ""
    """Empty = whatever was asked for, or none."""
    box: str = ""
    """Class of the box, as ``perf_class`` of a record has it before the ``@``; empty = any."""
    measured: bool = True
    required: bool = True
    """One that is not is shown, and opens nothing."""
    validity: Validity = Validity.VALID
    """What must be known of the box: that it was fit, or (``unknown``) only that nothing is known against it."""
    valid_from: float | None = None
    """Records that were made earlier do not count."""
    max_age_days: float | None = None
    fingerprint: str = ""
    """Of the instrument; empty = whatever else is demanded decides."""
    shards: int = 0
    """The work is divided in so many records that make a whole; 0 = one record is the whole."""
    param_overrides: dict[str, str] = {}
    serve_overrides: dict[str, str] = {}
    any_settings: bool = False
    """Server settings are not demanded; not for files, which must say what they are about."""
    metrics: dict[str, Bound] = {}

    @property
    def title(self) -> str:
        """Name for people."""
        return self.label or " ".join(part for part in (self.id, self.model, self.box) if part)


class TrustedKey(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody whose records count."""

    key: PublicKey
    name: str = ""


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file."""

    source: str
    sha256: str
    signers: tuple[TrustedKey, ...] = ()
    """Empty = only this node's own key counts."""
    entries: tuple[Entry, ...] = ()
