"""Which models are examined: those that an endpoint lists, or those of a file, with how each is started.

A file is YAML::

    entries:
      - model: small                  # as requests name it
        url: http://127.0.0.1:8001    # default: that of the run
        start: [llama-server, -m, small.gguf, --port, "8001"]
        ready_s: 600                  # so long it may take to answer
    restore: [systemctl, --user, restart, llm]

An entry without ``start`` is served already. A started server runs contained and is ended before the next one starts; ``restore``
is run once at the end, whatever happened, so that what served before the run serves after it.
"""

from collections.abc import Sequence

import msgspec
import yaml

from nodeproof.bench.address import Address
from nodeproof.errors import RunError, UsageError

__all__ = ["Entry", "Roster", "read_roster"]

_MAX_BYTES = 1 << 20


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model."""

    model: str
    url: str = ""
    start: tuple[str, ...] = ()
    """Program and arguments of its server; empty = it is served already."""
    ready_s: float = 600.0


class Roster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of them, in their order."""

    entries: tuple[Entry, ...]
    restore: tuple[str, ...] = ()

    @classmethod
    def of(cls, models: Sequence[str]) -> "Roster":
        """Models that are served already."""
        return cls(entries=tuple(Entry(model=model) for model in models))


def read_roster(path: str) -> Roster:
    """A roster from a file. Raises RunError that names the file and what is wrong."""
    try:
        with open(path, "rb") as file:
            found = yaml.safe_load(file.read(_MAX_BYTES))
        roster = msgspec.convert(found, Roster)
        for entry in roster.entries:
            if entry.url:
                Address.of(entry.url)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; give a file of models, or roster=served") from None
    except (yaml.YAMLError, msgspec.ValidationError, UsageError, RecursionError) as error:
        raise RunError(f"{path}: no roster: {' '.join(str(error).split())[:300]}") from None
    if not roster.entries:
        raise RunError(f"{path}: entries: is empty; name at least one model")
    names = [(entry.model, entry.url) for entry in roster.entries]
    if len(set(names)) != len(names):
        raise RunError(f"{path}: entries: a model stands there twice")
    return roster
