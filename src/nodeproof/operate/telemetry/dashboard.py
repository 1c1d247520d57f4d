"""A Grafana dashboard made of the catalogue: what drives health, a row a component, and what the daemon itself costs."""

import json
from collections.abc import Iterator

from nodeproof.model.catalogue import CATALOGUE, Kind, MetricSpec, Priority
from nodeproof.operate.telemetry.promql import family_of

__all__ = ["dashboard"]

_COLUMNS, _WIDTH, _HEIGHT = 3, 8, 7
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_UNITS = {
    "bytes": "bytes",
    "bytes_per_second": "Bps",
    "celsius": "celsius",
    "hertz": "hertz",
    "joules": "joule",
    "per_second": "cps",
    "ratio": "percentunit",
    "rpm": "rotrpm",
    "seconds": "s",
    "volts": "volt",
    "watts": "watt",
    "amperes": "amp",
}
_DAEMON = "daemon"


def dashboard() -> str:
    """The document that Grafana imports."""
    panels: list[dict[str, object]] = []
    line = 0
    for title, specs in _rows():
        panels.append({"type": "row", "title": title, "id": len(panels) + 1, "gridPos": _place(0, line, 24, 1), "panels": []})
        line += 1
        for number, panel in enumerate(specs):
            column = number % _COLUMNS
            at = line + number // _COLUMNS * _HEIGHT
            panels.append({**panel, "id": len(panels) + 1, "gridPos": _place(column * _WIDTH, at, _WIDTH, _HEIGHT)})
        line += -(-len(specs) // _COLUMNS) * _HEIGHT
    document = {
        "title": "nodeproof",
        "uid": "nodeproof-node",
        "tags": ["nodeproof"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [_source_variable(), _instance_variable()]},
        "annotations": {"list": []},
        "panels": panels,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _rows() -> Iterator[tuple[str, list[dict[str, object]]]]:
    yield "Can it be believed", [_fresh(), _missing(), _age()]
    components = sorted({spec.component for spec in CATALOGUE.values()} - {_DAEMON})
    for component in components:
        yield component, [_panel(spec) for spec in CATALOGUE.values() if spec.component == component and _shows(spec)]
    yield (
        "What nodeproof itself costs",
        [_panel(spec) for spec in CATALOGUE.values() if spec.component == _DAEMON and _plots(spec)],
    )


def _shows(spec: MetricSpec) -> bool:
    return spec.priority is Priority.HIGH and _plots(spec)


def _plots(spec: MetricSpec) -> bool:
    return spec.kind in {Kind.GAUGE, Kind.COUNTER, Kind.STATE}


def _panel(spec: MetricSpec) -> dict[str, object]:
    of = family_of(spec.component, spec.name)
    selected = f'{of.name}{{instance=~"$instance"}}'
    counter = spec.kind is Kind.COUNTER
    unit = _UNITS.get(of.unit, "short")
    return _series_panel(
        f"{spec.component} {spec.name.replace('_', ' ')}",
        f"increase({selected}[$__rate_interval])" if counter else selected,
        " ".join(("{{instance}}", *(f"{{{{{label}}}}}" for label in spec.labels))),
        unit=unit,
        text=spec.help,
        stepped=spec.kind is Kind.STATE,
    )


def _series_panel(title: str, expr: str, legend: str, *, unit: str, text: str, stepped: bool = False) -> dict[str, object]:
    custom = {"lineInterpolation": "stepAfter" if stepped else "linear", "spanNulls": False, "fillOpacity": 0}
    return {
        "type": "timeseries",
        "title": title,
        "description": text,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [{"refId": "A", "datasource": _SOURCE, "expr": expr, "legendFormat": legend}],
    }


def _fresh() -> dict[str, object]:
    return _series_panel(
        "component fresh",
        'nodeproof_component_fresh{instance=~"$instance"}',
        "{{instance}} {{component}}",
        unit="short",
        text="1 while the newest batch of a component is recent. At 0 everything below about it is old, or gone.",
        stepped=True,
    )


def _missing() -> dict[str, object]:
    return _series_panel(
        "readings that are missing",
        'sum by (instance, component, state) (nodeproof_reading_missing{instance=~"$instance",state!="not_applicable"})',
        "{{instance}} {{component}} {{state}}",
        unit="short",
        text="What could not be read, by the state that says why. A line that is not drawn below is not a zero.",
    )


def _age() -> dict[str, object]:
    return _series_panel(
        "age of the newest batch",
        'nodeproof_component_age_seconds{instance=~"$instance"}',
        "{{instance}} {{component}}",
        unit="s",
        text="How old what is shown of a component is.",
    )


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _source_variable() -> dict[str, object]:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}


def _instance_variable() -> dict[str, object]:
    return {
        "name": "instance",
        "label": "Node",
        "type": "query",
        "datasource": _SOURCE,
        "definition": "label_values(nodeproof_build_info, instance)",
        "query": {"query": "label_values(nodeproof_build_info, instance)", "refId": "nodes"},
        "includeAll": True,
        "multi": True,
        "refresh": 2,
        "sort": 1,
    }
