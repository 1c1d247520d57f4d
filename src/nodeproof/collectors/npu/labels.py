"""Labels of NPU readings: the chip's, those that a metric always has, and those that came with the reading."""

from collections.abc import Mapping

from nodeproof.collectors.services.ascend_told import ChipKey, Told
from nodeproof.model.metric import Labels

__all__ = ["FIXED", "ChipLabels"]


def _fixed() -> dict[str, tuple[tuple[str, str], ...]]:
    found: dict[str, tuple[tuple[str, str], ...]] = {f"aicore{core}_temp": (("aicore", str(core)),) for core in (0, 1)}
    found |= {f"ntc{number}_temp": (("ntc", str(number)),) for number in (1, 2, 3, 4)}
    for memory in ("hbm", "ddr"):
        for kind in ("single", "double"):
            both = (("device_type", memory), ("kind", kind))
            found[f"{memory}_{kind}_ecc"] = found[f"{memory}_{kind}_ecc_errors_total"] = both
            found[f"{memory}_{kind}_ecc_isolated"] = both[:1]
    for port in ("net", "pcie", "hccs"):
        for way in ("tx", "rx"):
            found[f"{port}_{way}_bandwidth"] = (("direction", way),)
    return found


FIXED: Mapping[str, tuple[tuple[str, str], ...]] = _fixed()
"""Metric -> labels that it always has."""

_MOST = 8192


class ChipLabels:
    """Makes labels, the same ones for the same reading: sinks know a series by them."""

    def __init__(self) -> None:
        self._made: dict[tuple[ChipKey, str, tuple[tuple[str, str], ...]], Labels] = {}

    def of(self, key: ChipKey, told: Told) -> Labels:
        """Labels of one reading of one chip."""
        wanted = (key, told.name, told.labels)
        labels = self._made.get(wanted)
        if labels is None:
            if len(self._made) >= _MOST:  # labels that hold pids and codes change without end
                self._made.clear()
            labels = self._made[wanted] = self.chip(key) | dict(FIXED.get(told.name, ())) | dict(told.labels)
        return labels

    @staticmethod
    def chip(key: ChipKey) -> Labels:
        """Labels that name a chip alone."""
        return {"npu_id": str(key.npu_id), "chip_id": str(key.chip_id)}
