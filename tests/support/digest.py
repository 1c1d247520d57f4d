"""Outputs of whole hosts in a form that a person can read and a difference shows in."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["page_outline", "snapshot_listing", "snapshot_outline"]

_LISTS = ("metrics", "missing", "specs", "system_specs", "collectors")


def page_outline(page: str) -> str:
    """A large page as its checksum, and for each family its TYPE, the number of its series and the first one."""
    lines = [f"sha256 {hashlib.sha256(page.encode()).hexdigest()}"]
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            lines.append(line.removeprefix("# TYPE "))
            counted = 0
        elif not line.startswith("#"):
            counted += 1
            if counted == 1:
                lines += ["", f"    {line}"]
            lines[-2] = f"    {counted} series, the first:"
    return "\n".join(lines) + "\n"


def snapshot_listing(folder: Path) -> str:
    """All files of a snapshot directory, a reading a line.

    Left out is what the line's place tells already: a reading's component, and its time where it is that of most readings.
    """
    return "".join([f"== {path.name}\n" + "".join(_listed(_load(path))) for path in sorted(folder.glob("*.json"))])


def snapshot_outline(folder: Path) -> str:
    """Large files as their checksum without times and pids, and for each metric the number of readings and of absences."""
    parts = []
    for path in sorted(folder.glob("*.json")):
        content = _load(path)
        listing = "".join(_listed(content))
        parts.append(f"== {path.name} sha256 {hashlib.sha256(listing.encode()).hexdigest()}\n")
        for key in _LISTS:
            counts: dict[str, int] = {}
            for entry in content.get(key, ()):
                counts[entry["name"]] = counts.get(entry["name"], 0) + 1
            parts += [f"{key} {name} {count}\n" for name, count in counts.items()]
    return "".join(parts)


def _load(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


def _listed(content: dict[str, Any]) -> Iterator[str]:
    plain = {key: value for key, value in content.items() if not isinstance(value, (list, dict))}
    yield json.dumps(plain, ensure_ascii=False) + "\n"
    usual = _usual_time(content)
    for key, value in content.items():
        if key in _LISTS:
            yield f"-- {key}\n"
            yield from (_row(entry, content.get("component"), usual) for entry in value)
        elif isinstance(value, (list, dict)):
            yield f"-- {key}\n"
            yield from _nested(value)


def _row(entry: dict[str, Any], component: str | None, usual: str) -> str:
    shown = {
        key: value
        for key, value in entry.items()
        if not (key == "component" and value == component) and not (key == "timestamp" and value == usual)
    }
    return json.dumps(shown, ensure_ascii=False) + "\n"


def _nested(value: Any) -> Iterator[str]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, (list, dict)) and inner and all(isinstance(one, dict) for one in _children(inner)):
            yield f"{key}:\n"
            yield from (f"  {where}: {json.dumps(one, ensure_ascii=False)}\n" for where, one in _pairs(inner))
        else:
            yield f"{key}: {json.dumps(inner, ensure_ascii=False)}\n"


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items() if isinstance(value, dict) else enumerate(value))


def _children(value: Any) -> list[Any]:
    return [one for _, one in _pairs(value)]


def _usual_time(content: dict[str, Any]) -> str:
    times = [entry.get("timestamp", "") for key in _LISTS for entry in content.get(key, ())]
    return max(sorted(set(times)), key=times.count, default="")
