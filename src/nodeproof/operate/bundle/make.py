"""Putting a bundle together: learn, redact, replay what was recorded, search once more, write."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence

import msgspec

from nodeproof import __version__
from nodeproof.config.schema import Config
from nodeproof.errors import NodeproofError
from nodeproof.host.recording import Look
from nodeproof.host.replay import pack_looks
from nodeproof.model.metric import Batch, Metric, Missing
from nodeproof.operate.bundle.archive import Manifest
from nodeproof.operate.bundle.fixture import CONFIG, HOST, READINGS, Readings
from nodeproof.operate.bundle.gather import Gathered
from nodeproof.operate.bundle.looks import learn_look, redacted_look
from nodeproof.operate.bundle.redact import Redactor

__all__ = ["Difference", "Replay", "differences", "readings_of", "seal"]

_MOST_DIFFERENCES = 200

Replay = Callable[[str, Config, int], Readings]
"""Reads the recorded machine in a folder: with this configuration, in so many looks."""


class Difference(msgspec.Struct, frozen=True):
    """A reading that is other than it should be."""

    component: str
    name: str
    labels: dict[str, str]
    expected: str
    """Value, or state and reason of an absence; empty = there should be none."""
    found: str


def readings_of(batches: Mapping[str, Batch], failures: Mapping[str, str], looks: int) -> Readings:
    """What collectors brought."""
    return Readings(
        looks=looks,
        metrics={component: batch.metrics for component, batch in sorted(batches.items())},
        missing={component: batch.missing for component, batch in sorted(batches.items())},
        failures=dict(failures),
    )


def differences(expected: Readings, found: Readings) -> list[Difference]:
    """Readings that are not the same on both sides, times of day apart."""
    told = []
    for component in sorted(expected.metrics.keys() | found.metrics.keys()):
        left, right = (_by_key(one, component) for one in (expected, found))
        for key in sorted(left.keys() | right.keys()):
            if left.get(key, "") != right.get(key, ""):
                name, labels = key
                told.append(Difference(component, name, dict(labels), left.get(key, ""), right.get(key, "")))
    return told


_Key = tuple[str, tuple[tuple[str, str], ...]]


def _by_key(readings: Readings, component: str) -> dict[_Key, str]:
    def key(one: Metric | Missing) -> _Key:
        return one.name, tuple(sorted((one.labels or {}).items()))

    found = {key(one): f"{one.state}: {one.reason}" for one in readings.missing.get(component, ())}
    return found | {key(one): repr(float(one.value)) for one in readings.metrics.get(component, ())}


def seal(
    redactor: Redactor,
    gathered: Gathered,
    looks: Sequence[Look],
    config: Config,
    live: Readings,
    replay: Replay,
    made_at: str,
) -> tuple[Manifest, dict[str, bytes]]:
    """Manifest and parts of a bundle, with nothing in them that must not be told."""
    for look in looks:
        learn_look(redactor, look)
    plain = {**gathered.parts, CONFIG: _json(config), "live.json": _json(live)}
    for name, data in plain.items():
        redactor.learn_from(name, data)
    parts = {redactor.text(name): redactor.redact(name, data) for name, data in plain.items()}
    parts |= {f"{HOST}/{name}": data for name, data in pack_looks([redacted_look(redactor, look) for look in looks])}
    left_out = {redactor.text(name): redactor.text(reason) for name, reason in gathered.left_out.items()}
    left_out |= _without_leaks(redactor, parts)
    _replay(parts, left_out, replay, live.looks)
    manifest = Manifest(nodeproof=__version__, made_at=made_at, redacted=redactor.stand_ins.counts(), left_out=left_out)
    return manifest, parts


def _without_leaks(redactor: Redactor, parts: dict[str, bytes]) -> dict[str, str]:
    """Take out every part in which something is left, in its name too; why, by name."""
    left_out = {}
    for number, name in enumerate(sorted(parts), 1):
        kinds = redactor.leaks(parts[name]) + redactor.leaks(name.encode("utf-8", "surrogateescape"))
        if kinds:
            shown = name if not redactor.leaks(name.encode("utf-8", "surrogateescape")) else f"part {number}"
            left_out[shown] = f"after redaction something is left that looks like: {', '.join(sorted(set(kinds)))}"
            del parts[name]
    return left_out


def _replay(parts: dict[str, bytes], left_out: dict[str, str], replay: Replay, looks: int) -> None:
    """Add what the redacted recording brings when it is read, and in what that differs from what the machine brought."""
    folder = tempfile.mkdtemp(prefix="nodeproof-bundle-")
    try:
        for name, data in parts.items():
            if name.startswith(f"{HOST}/"):
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
                with open(path, "xb") as file:
                    file.write(data)
        config = msgspec.json.decode(parts[CONFIG], type=Config)
        found = replay(os.path.join(folder, HOST), config, looks)
        live = msgspec.json.decode(parts["live.json"], type=Readings)
    except (OSError, NodeproofError, msgspec.MsgspecError, KeyError) as error:
        left_out[READINGS] = f"the recording could not be replayed: {type(error).__name__}"
        return
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    told = differences(live, found)
    parts[READINGS] = _json(found)
    total = sum(map(len, found.metrics.values())) + sum(map(len, found.missing.values()))
    parts["replay.json"] = _json({"readings": total, "other_than_live": len(told), "differences": told[:_MOST_DIFFERENCES]})


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
