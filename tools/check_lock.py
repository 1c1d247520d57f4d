"""Hold ``requirements/dev.lock`` against ``pyproject.toml``: every tool and dependency is locked, in a version that is allowed.

The lock also must hold hashes, and no address of any index: who installs decides where packages come from.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

__all__ = ["locked", "needed", "problems"]

ROOT = Path(__file__).resolve().parent.parent
_ENTRY = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)")
REMEDY = "run: make lock"


def needed(project: Mapping[str, Any]) -> list[Requirement]:
    """What the project itself and its extra ``dev`` ask for, extras named by extras included."""
    extras = project.get("optional-dependencies", {})
    wanted: list[Requirement] = []
    waiting = [*map(Requirement, project.get("dependencies", [])), *map(Requirement, extras.get("dev", []))]
    seen: set[str] = {"dev"}
    while waiting:
        requirement = waiting.pop()
        if canonicalize_name(requirement.name) != canonicalize_name(project["name"]):
            wanted.append(requirement)
            continue
        for extra in requirement.extras - seen:
            seen.add(extra)
            waiting += map(Requirement, extras.get(extra, []))
    return sorted(wanted, key=lambda requirement: requirement.name.lower())


def locked(lines: Iterable[str]) -> dict[str, Version]:
    """Locked versions by canonical name."""
    entries = (_ENTRY.match(line) for line in lines)
    return {canonicalize_name(entry["name"]): Version(entry["version"]) for entry in entries if entry is not None}


def problems(project: Mapping[str, Any], lock: str) -> list[str]:
    """What is wrong with the lock, one line each."""
    versions = locked(lock.splitlines())
    found = []
    for requirement in needed(project):
        version = versions.get(canonicalize_name(requirement.name))
        if version is None:
            found.append(f"{requirement.name} is not locked")
        elif not requirement.specifier.contains(version, prereleases=True):
            found.append(f"{requirement.name} is locked to {version}, and pyproject.toml asks for {requirement.specifier}")
    entries = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)
    found += [f"{entry.split()[0]} has no hash" for entry in entries if _ENTRY.match(entry) and "--hash=" not in entry]
    if "://" in lock or "--index-url" in lock or "--find-links" in lock:
        found.append("an address of a package index stands in it")
    return found


def main() -> int:
    """Print what is wrong; 0 when nothing is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    path = ROOT / "requirements" / "dev.lock"
    found = problems(project, path.read_text(encoding="utf-8"))
    for line in found:
        print(f"{path.relative_to(ROOT)}: {line}; {REMEDY}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
