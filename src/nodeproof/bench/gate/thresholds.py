"""Reads ``bench.toml``, the list of what must be proven; judged strictly, every fault told with its path.

::

    schema = 1

    [[signers]]
    key = "ed25519:3q2+7w..."           # nodeproof bench key, on the node that measures
    name = "rack 7"

    [[benchmarks]]
    id = "load"
    model = "m"
    box = "h200"
    status = "measured"
    valid_from = 2026-12-01             # older records do not count
    param_overrides = {concurrency = 16, duration_s = 60}

    [benchmarks.metrics.output_tok_s]
    min = 25.5
    noise = 0.5                         # at most 5 % of the bound
    unit = "tok/s"
"""

import hashlib
import os
import tomllib
from collections.abc import Callable
from typing import NamedTuple

from nodeproof.bench.gate.fields import Fields
from nodeproof.bench.gate.schema import Bound, Entry, Thresholds, TrustedKey
from nodeproof.errors import ConfigError
from nodeproof.host.signing_key import PublicKey
from nodeproof.model.hardware import Validity

__all__ = ["MAX_BYTES", "NOISE_SHARE", "parse", "read_thresholds"]

MAX_BYTES = 1 << 20
NOISE_SHARE = 0.05
"""Of the bound: more would be a threshold of its own, hidden in the noise."""
_SCHEMA = 1
_MAX_ENTRIES = 1000
_UNITS = {
    "_ms": "ms",
    "_tok_s": "tok/s",
    "_per_s": "1/s",
    "_pct": "%",
    "_mb_s": "MB/s",
    "_j": "J",
    "_w": "W",
}
"""Units that the end of a key states."""


def read_thresholds(path: str) -> Thresholds:
    """The file ``path``. Raises ConfigError."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError("", os.strerror(error.errno or 0), source=path, remedy="name another with --file") from None
    return parse(data, path)


def parse(data: bytes, source: str) -> Thresholds:
    """What ``data``, the bytes of ``source``, says. Raises ConfigError that lists every fault with its path."""
    if len(data) > MAX_BYTES:
        raise ConfigError("", f"is larger than {MAX_BYTES} bytes", source=source)
    try:
        tree = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise ConfigError("", f"byte {error.start} is no UTF-8", source=source) from None
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise ConfigError("", f"is no TOML: {error}", source=source) from None
    faults: list[str] = []
    top = Fields(tree, "", faults)
    schema = top.number("schema")
    if schema is None:
        top.missing("schema", str(_SCHEMA))
    elif schema != _SCHEMA:
        top.fault("schema", f"is {schema:g}, this version reads {_SCHEMA}")
    signers = tuple(found for fields in top.tables("signers", _MAX_ENTRIES) if (found := _signer(fields)) is not None)
    entries = tuple(entry for fields in top.tables("benchmarks", _MAX_ENTRIES) if (entry := _entry(fields)) is not None)
    top.done()
    if not entries and not faults:
        faults.append("benchmarks: there is none, so nothing would be proven")
    faults += _twice(signers, entries)
    if faults:
        raise ConfigError("", "; ".join(faults), source=source)
    return Thresholds(source=source, sha256=hashlib.sha256(data).hexdigest(), signers=signers, entries=entries)


def _signer(fields: Fields) -> TrustedKey | None:
    text, name = fields.text("key"), fields.text("name")
    fields.done()
    if not text:
        fields.missing("key", "ed25519: and 32 bytes in base64; nodeproof bench key prints that of a node")
        return None
    try:
        return TrustedKey(key=PublicKey.parse(text), name=name)
    except ValueError as error:
        fields.fault("key", str(error))
        return None


def _entry(fields: Fields) -> Entry | None:
    name = fields.text("id")
    if not name:
        fields.missing("id", "the id of a benchmark, see nodeproof bench list")
    status = fields.choice("status", ("measured", "unmeasured"), "measured")
    validity = fields.choice("box_validity", (Validity.VALID, Validity.UNKNOWN), Validity.VALID)
    bounds = {key: _bound(key, inner) for key, inner in fields.each_table("metrics")}
    entry = Entry(
        place=fields.place,
        id=name,
        label=fields.text("label"),
        note=fields.text("note"),
        model=fields.text("model"),
        box=fields.text("box"),
        measured=status == "measured",
        required=fields.flag("required", default=True),
        validity=Validity(validity),
        valid_from=fields.moment("valid_from"),
        max_age_days=fields.number("max_age_days", above=0),
        fingerprint=fields.text("fingerprint", pattern=r"[0-9a-f]{64}", expected="64 hexadecimal digits"),
        shards=fields.whole("shards", 1, 1000),
        param_overrides=fields.strings("param_overrides"),
        serve_overrides=fields.strings("serve_overrides"),
        metrics=bounds,
    )
    if entry.measured and not bounds:
        fields.missing("metrics", 'at least one metric with min or max; or status = "unmeasured"')
    if not entry.measured and bounds:
        fields.fault("metrics", 'an unmeasured benchmark has no bounds; say status = "measured"')
    if "port" in entry.serve_overrides:
        fields.fault("serve_overrides.port", "says where a server listens, not what it is")
    if entry.shards and "shard" in entry.param_overrides:
        fields.fault("param_overrides.shard", "each shard has its own; shards says how many there are")
    fields.done()
    return entry if name else None


def _bound(metric: str, fields: Fields) -> Bound:
    bound = Bound(
        metric=metric,
        min=fields.number("min"),
        max=fields.number("max"),
        noise=fields.number("noise", low=0) or 0.0,
        unit=fields.text("unit"),
        valid_from=fields.moment("valid_from"),
        note=fields.text("note"),
    )
    fields.done()
    for rule in _BOUND_RULES:
        if rule.broken(bound):
            fields.fault(rule.key, rule.says(bound))
    return bound


class _Rule(NamedTuple):
    key: str
    broken: Callable[[Bound], bool]
    says: Callable[[Bound], str]


def _smallest(bound: Bound) -> float:
    return min(abs(limit) for limit in (bound.min, bound.max) if limit is not None)


def _stated_unit(bound: Bound) -> str:
    return next((unit for ending, unit in _UNITS.items() if bound.metric.endswith(ending)), bound.unit)


_BOUND_RULES = (
    _Rule("min", lambda one: one.min is None and one.max is None, lambda _: "is missing, and max as well: expected one of them"),
    _Rule(
        "min",
        lambda one: one.min is not None and one.max is not None and one.min > one.max,
        lambda one: f"is {one.min:g}, more than max, which is {one.max:g}",
    ),
    _Rule("noise", lambda one: one.exact and one.noise > 0, lambda _: "min and max are one value, which is kept exactly or not"),
    _Rule(
        "noise",
        lambda one: (
            not one.exact
            and (one.min is not None or one.max is not None)
            and one.noise > NOISE_SHARE * _smallest(one) * (1 + 1e-9)
        ),
        lambda one: f"is {one.noise:g}, more than {NOISE_SHARE:.0%} of the bound, {NOISE_SHARE * _smallest(one):g}",
    ),
    _Rule(
        "unit",
        lambda one: bool(one.unit) and _stated_unit(one) != one.unit,
        lambda one: f"is {one.unit!r}, but {one.metric} is in {_stated_unit(one)}",
    ),
)


def _twice(signers: tuple[TrustedKey, ...], entries: tuple[Entry, ...]) -> list[str]:
    """What stands there twice."""
    faults: list[str] = []
    seen: dict[tuple[object, ...], str] = {}
    for entry in entries:
        key = (entry.id, entry.model, entry.box, entry.label, *sorted(entry.param_overrides.items()))
        if key in seen:
            faults.append(f"{entry.place}: the same as {seen[key]}; give one of them another label")
        seen.setdefault(key, entry.place)
    keys = [signer.key.raw for signer in signers]
    faults += [f"signers[{place}].key: stands there twice" for place, raw in enumerate(keys) if raw in keys[:place]]
    return faults
