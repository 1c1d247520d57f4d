"""The Prometheus page, written from the newest batches.

What a component exposes seldom changes its shape: the same series in the same order, with other numbers. So the page of a
component is a *plan*, made once (names, help, types, escaped labels, order), into which the numbers of each batch are poured;
and a component whose batch has not changed since the last scrape is not written anew. A component whose newest batch is too old
leaves the page.
"""

import functools
import math
import operator
import threading
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from nodeproof import __version__
from nodeproof.clock import Instant, rfc3339_parse
from nodeproof.model.catalogue import CATALOGUE, MetricSpec
from nodeproof.model.metric import Batch, Labels, Metric, same_absences
from nodeproof.sinks.base import SinkStatus
from nodeproof.sinks.exposition_names import Family, Format, Naming, family, header, series
from nodeproof.sinks.latest import Entry, LatestStore

__all__ = ["Format", "Naming", "Renderer", "render"]

_GZIP = 31
_LEVEL = 1
"""A page is read once by one reader beside us: speed counts, not size."""


def _own(name: str, kind: str, unit: str, text: str) -> Family:
    return Family(name, kind, unit, text, 1.0, 1.0, constant=False)


_MISSING = _own("nodeproof_reading_missing", "gauge", "", "Readings that are not there, by the state that says why.")
_DUPLICATES = _own("nodeproof_exporter_duplicates_total", "counter", "", "Samples left out: their series was there already.")
_BUILD = _own("nodeproof_build_info", "gauge", "", "Version of the program; always 1.")
_SINK_ERRORS = _own("nodeproof_sink_errors_total", "counter", "", "Failures of a sink of batches.")
_UP = _own("nodeproof_component_fresh", "gauge", "", "1 while the newest batch of a component is recent; 0 once it is stale.")
_AGE = _own("nodeproof_component_age_seconds", "gauge", "seconds", "Age of the newest batch of a component.")
_SUCCESS = _own(
    "nodeproof_component_last_success_timestamp_seconds", "gauge", "seconds", "When the newest batch of a component was read."
)
_OWN = (_MISSING, _DUPLICATES, _BUILD, _SINK_ERRORS, _UP, _AGE, _SUCCESS)


class _Shape(NamedTuple):
    """What a plan was made for; equal shapes pour into the same plan."""

    names: list[str]
    labels: list[Labels | None]
    units: list[str]

    @classmethod
    def of(cls, metrics: Sequence[Metric]) -> "_Shape":
        return cls(
            [metric.name for metric in metrics], [metric.labels for metric in metrics], [metric.unit for metric in metrics]
        )


class _Plan(NamedTuple):
    """The page of one component without its numbers."""

    shape: _Shape
    order: Callable[[list[float]], Any] | None
    """Picks the values in the order of the page; None when there are none."""
    samples: int
    multiply: list[tuple[int, float]]
    divide: list[tuple[int, float]]
    templates: Mapping[Format, bytes]
    duplicates: int
    families: Collection[str]
    known: Mapping[tuple[str, int], tuple[Labels | None, str]]
    """Series text by metric name and identity of its labels, which are held here so that no other dict gets that identity."""

    def pour(self, metrics: Sequence[Metric], form: Format) -> bytes:
        # The plus sign makes a number of a truth value.
        values: list[float] = [+metric.value for metric in metrics]
        for place, factor in self.multiply:
            values[place] *= factor
        for place, divisor in self.divide:
            values[place] /= divisor
        if self.order is None:
            return self.templates[form] % ()
        ordered = self.order(values)
        return self.templates[form] % (ordered if self.samples > 1 else (ordered,))


class _Block(NamedTuple):
    """The newest page of one component."""

    batch: Batch
    plan: _Plan
    missing: bytes
    success: str
    """The sample that says when it was read; empty when the batch does not tell."""
    pages: dict[Format, bytes]
    asked: set[Format]
    """Forms that somebody has asked for."""


class Renderer:
    """Writes the page of everything in ``store``. For use by several threads."""

    def __init__(
        self,
        store: LatestStore,
        *,
        naming: Naming = Naming.NODEPROOF,
        version: str = __version__,
        statuses: Callable[[], Sequence[SinkStatus]] | None = None,
        catalogue: Mapping[tuple[str, str], MetricSpec] = CATALOGUE,
    ) -> None:
        self._store = store
        self._naming = naming
        self._build = series(_BUILD.name, {"version": version})
        self._statuses = statuses
        self._catalogue = catalogue
        self._lock = threading.Lock()
        self._blocks: dict[str, _Block] = {}
        self._former: dict[str, _Plan] = {}
        """The plan before the newest one, by component."""
        self._owners: dict[str, str] = {of.name: "" for of in _OWN}
        self._duplicates_total = 0
        self._bodies: dict[Format, tuple[object, list[bytes]]] = {}
        self._packers: dict[Format, tuple[object, Any]] = {}

    @property
    def ready(self) -> bool:
        """Whether anything has been read yet."""
        return self._store.ready

    def fresh(self) -> bool:
        """Whether at least one component's newest batch is the present."""
        return any(not entry.expired for entry in self._store.entries().values())

    def render(self, form: Format) -> bytes:
        """The page."""
        return b"".join(self.parts(form))

    def parts(self, form: Format) -> list[bytes]:
        """The page in pieces, to be written one after the other: joining them would move all of it once more."""
        with self._lock:
            entries = self._store.entries()
            return [*self._body(entries, form)[1], self._tail(entries, form)]

    def prepare(self, batch: Batch) -> None:
        """Write the lines of a batch that has just been made, while its readings are in the processor's caches.

        Only where its component's lines before were asked for: whoever asked once a cycle will ask again.
        """
        with self._lock:
            kept = self._blocks.get(batch.component)
            if kept is None or not kept.asked:
                return
            block = self._block(batch)
            for form in kept.asked:
                block.pages[form] = block.plan.pour(batch.metrics, form)

    def render_gzip(self, form: Format) -> bytes:
        """The page, compressed; what does not change between two batches is compressed once."""
        with self._lock:
            entries = self._store.entries()
            state, body = self._body(entries, form)
            kept = self._packers.get(form)
            if kept is None or kept[0] != state:
                packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
                # Flushed, so that a copy of the packer has nothing of the body left to give.
                head = packer.compress(b"".join(body)) + packer.flush(zlib.Z_SYNC_FLUSH)
                kept = self._packers[form] = (state, (head, packer))
            head, packer = kept[1]
            rest = packer.copy()
            return head + rest.compress(self._tail(entries, form)) + rest.flush()

    def _body(self, entries: Mapping[str, Entry], form: Format) -> tuple[object, list[bytes]]:
        """What depends on the batches alone, and a value that is equal while they are the same."""
        for component in [component for component in self._blocks if component not in entries]:
            self._disown(component)
            del self._blocks[component]
            self._former.pop(component, None)
        blocks = [(entry, self._block(entry.batch)) for entry in entries.values()]
        state = tuple((id(entry.batch), entry.batch.sequence, entry.expired) for entry, _ in blocks)
        kept = self._bodies.get(form)
        if kept is not None and kept[0] == state:
            return kept
        parts: list[bytes] = []
        missing: list[bytes] = []
        for entry, block in blocks:
            if entry.expired:
                missing.append(_stale_line(entry.batch))
                continue
            missing.append(block.missing)
            block.asked.add(form)
            if form not in block.pages:
                block.pages[form] = block.plan.pour(entry.batch.metrics, form)
            parts.append(block.pages[form])
        if any(missing):
            parts += [header(_MISSING, form).encode(), *missing]
        rest = f"{header(_DUPLICATES, form)}{_DUPLICATES.name} {self._duplicates_total}\n{header(_BUILD, form)}{self._build} 1\n"
        kept = self._bodies[form] = (state, [*parts, rest.encode()])
        return kept

    def _tail(self, entries: Mapping[str, Entry], form: Format) -> bytes:
        """What is different each time."""
        parts = []
        if entries:
            parts.append(header(_UP, form))
            parts += [f"{_of_component(_UP.name, name)} {int(not entry.expired)}\n" for name, entry in entries.items()]
            parts.append(header(_AGE, form))
            parts += [f"{_of_component(_AGE.name, name)} {entry.age_s:.3f}\n" for name, entry in entries.items()]
            parts.append(header(_SUCCESS, form))
            parts += [self._blocks[component].success for component in entries]
        statuses = self._statuses() if self._statuses is not None else ()
        if statuses:
            parts.append(header(_SINK_ERRORS, form))
            parts += [f"{series(_SINK_ERRORS.name, {'sink': status.name})} {status.errors_total}\n" for status in statuses]
        if form is Format.OPENMETRICS:
            parts.append("# EOF\n")
        return "".join(parts).encode()

    def _block(self, batch: Batch) -> _Block:
        kept = self._blocks.get(batch.component)
        if kept is not None and kept.batch is batch:
            return kept
        plan = self._plan(batch, kept.plan if kept is not None else None)
        self._duplicates_total += plan.duplicates
        same = kept is not None and same_absences(batch.missing, kept.batch.missing)
        missing = kept.missing if kept is not None and same else _missing_lines(batch)
        block = self._blocks[batch.component] = _Block(batch, plan, missing, _success_line(batch), {}, set())
        return block

    def _plan(self, batch: Batch, before: _Plan | None) -> _Plan:
        shape = _Shape.of(batch.metrics)
        if before is not None and before.shape == shape:
            return before
        self._disown(batch.component)
        # Readings that come and go (a latency without a single read, a ratio of nothing) go back and forth between two shapes.
        former = self._former.get(batch.component)
        if before is not None:
            self._former[batch.component] = before
        if former is not None and former.shape == shape:
            if self._claim(former.families, batch.component):
                return former
            self._disown(batch.component)
        return self._make(batch, shape, before.known if before is not None else {})

    def _claim(self, families: Iterable[str], component: str) -> bool:
        """Take ``families`` for ``component``; False when another one has any of them."""
        return all(self._owners.setdefault(name, component) == component for name in families)

    def _disown(self, component: str) -> None:
        self._owners = {name: owner for name, owner in self._owners.items() if owner != component}

    def _make(self, batch: Batch, shape: _Shape, known: Mapping[tuple[str, int], tuple[Labels | None, str]]) -> _Plan:
        """Group the readings by family, first come first served, each series once."""
        families: dict[str, Family] = {}
        places: dict[str, list[tuple[int, str]]] = {}
        seen: set[str] = set()
        still_known: dict[tuple[str, int], tuple[Labels | None, str]] = {}
        of_name: dict[tuple[str, str], Family] = {}
        for place, metric in enumerate(batch.metrics):
            key = (metric.name, metric.unit)
            of = of_name.get(key)
            if of is None:
                spec = self._catalogue.get((batch.component, metric.name))
                of = of_name[key] = family(batch.component, metric.name, metric.unit, spec, self._naming)
            identity = (of.name, id(metric.labels))
            text = known[identity][1] if identity in known else series(of.name, metric.labels)
            still_known[identity] = (metric.labels, text)
            if text in seen or self._owners.setdefault(of.name, batch.component) != batch.component:
                continue
            seen.add(text)
            families.setdefault(of.name, of)
            places.setdefault(of.name, []).append((place, text))
        return _assemble(shape, families, places, still_known, len(batch.metrics) - len(seen))


def _assemble(
    shape: _Shape,
    families: Mapping[str, Family],
    places: Mapping[str, list[tuple[int, str]]],
    known: Mapping[tuple[str, int], tuple[Labels | None, str]],
    duplicates: int,
) -> _Plan:
    order: list[int] = []
    multiply: list[tuple[int, float]] = []
    divide: list[tuple[int, float]] = []
    samples: dict[str, str] = {}
    for name, of in families.items():
        if of.constant:
            samples[name] = "".join([f"{_percent(text)} 1\n" for _, text in places[name]])
            continue
        # Fifteen digits hide the last bit of a division: 0.0945 and not 0.09449999999999999.
        number = "%r" if of.divide == 1 else "%.15g"
        samples[name] = "".join([f"{_percent(text)} {number}\n" for _, text in places[name]])
        order += [place for place, _ in places[name]]
        multiply += [(place, of.multiply) for place, _ in places[name] if of.multiply != 1]
        divide += [(place, of.divide) for place, _ in places[name] if of.divide != 1]
    templates = {
        form: "".join([_percent(header(of, form)) + samples[name] for name, of in families.items()]).encode() for form in Format
    }
    picker = operator.itemgetter(*order) if order else None
    return _Plan(shape, picker, len(order), multiply, divide, templates, duplicates, tuple(families), known)


@functools.lru_cache(maxsize=256)
def _of_component(name: str, component: str) -> str:
    return series(name, {"component": component})


def _percent(text: str) -> str:
    return text.replace("%", "%%")


def _missing_lines(batch: Batch) -> bytes:
    counts: dict[tuple[str, str], int] = {}
    for entry in batch.missing:
        key = (entry.name, str(entry.state))
        counts[key] = counts.get(key, 0) + 1
    return "".join(
        [
            f"{series(_MISSING.name, {'component': batch.component, 'name': name, 'state': state})} {count}\n"
            for (name, state), count in counts.items()
        ]
    ).encode()


def _stale_line(batch: Batch) -> bytes:
    names = {metric.name for metric in batch.metrics} | {entry.name for entry in batch.missing}
    return "".join(
        [f"{series(_MISSING.name, {'component': batch.component, 'name': name, 'state': 'stale'})} 1\n" for name in sorted(names)]
    ).encode()


def _success_line(batch: Batch) -> str:
    try:
        read_s = rfc3339_parse(batch.timestamp)
    except ValueError:
        return ""
    return f"{_of_component(_SUCCESS.name, batch.component)} {read_s:.3f}\n"


def render(batches: Mapping[str, Batch], form: Format = Format.TEXT, naming: Naming = Naming.NODEPROOF) -> str:
    """The page of ``batches`` alone, once: for commands."""
    store = LatestStore(_Still(max((batch.mono_s for batch in batches.values()), default=0.0)), lambda _: math.inf)
    for batch in batches.values():
        store.write(batch)
    return Renderer(store, naming=naming).render(form).decode()


class _Still:
    """A clock that stands at the newest batch."""

    def __init__(self, mono_s: float) -> None:
        self._mono_s = mono_s

    def now(self) -> Instant:
        return Instant(0.0, self._mono_s)

    def sleep(self, seconds: float) -> None:
        del seconds
