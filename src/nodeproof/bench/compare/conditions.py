"""Everything that decides a number, as text, so that two records can be held against each other line by line."""

from collections.abc import Iterator

import msgspec

from nodeproof.model.run import RunRecord

__all__ = ["Difference", "differing_conditions", "instrument_facts"]


class Difference(msgspec.Struct, frozen=True):
    """A condition that was not the same."""

    what: str
    first: str
    second: str


def differing_conditions(first: RunRecord, second: RunRecord) -> list[Difference]:
    """In the order of the facts."""
    return list(_differences(instrument_facts(first), instrument_facts(second)))


def _differences(ours: dict[str, str], theirs: dict[str, str]) -> Iterator[Difference]:
    for what in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(what, ""), theirs.get(what, "")
        if one != other:
            yield Difference(what, one, other)


def instrument_facts(record: RunRecord) -> dict[str, str]:
    """By name for people."""
    facts = {
        "benchmark": record.benchmark_id,
        "benchmark version": record.benchmark_version,
        "benchmark updated": record.benchmark_updated,
        "nodeproof": record.nodeproof_version,
        "target": record.target_url,
        "model": record.target_model,
        "data set": record.frame.dataset_fingerprint or "",
    }
    facts |= {f"parameter {key}": value for key, value in sorted(record.params.items())}
    facts |= {f"server {key}": value for key, value in sorted(record.serve_overrides.items())}
    for one in record.provenance:
        facts[f"ran {one.name}"] = " ".join(part for part in (one.version, one.sha256) if part)
    return facts
