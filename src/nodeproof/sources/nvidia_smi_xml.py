"""``nvidia-smi -q -x``: the same as a table's row, for a tool whose tables cannot be had.

The elements changed their names with the schema (power_readings, gpu_power_readings; power_draw, average_power_draw): each
reading has all of them, newest first. ``module_power_readings`` is the power of a board with a processor beside the GPU, and
never taken for the card's. A document without a closing element, as a killed tool leaves it, is none.
"""

import re
from collections.abc import Mapping
from xml.parsers import expat

from nodeproof.errors import Absence
from nodeproof.model.gpu import CardState, Untold
from nodeproof.sources.nvidia_smi import Cell, Row, Table, absent_cell

__all__ = ["parse"]

_MAX_BYTES = 8 * 1024 * 1024
_MAX_TEXT = 300
_LANES = re.compile(r"(\d+)x")
_PATHS: Mapping[str, tuple[str, ...]] = {
    "name": ("product_name",),
    "uuid": ("uuid",),
    "vbios_version": ("vbios_version",),
    "persistence_mode": ("persistence_mode",),
    "gpu_recovery_action": ("gpu_recovery_action",),
    "pstate": ("performance_state",),
    "fan.speed": ("fan_speed",),
    "mig.mode.current": ("mig_mode/current_mig",),
    "memory.total": ("fb_memory_usage/total",),
    "memory.used": ("fb_memory_usage/used",),
    "memory.free": ("fb_memory_usage/free",),
    "memory.reserved": ("fb_memory_usage/reserved",),
    "utilization.gpu": ("utilization/gpu_util",),
    "utilization.memory": ("utilization/memory_util",),
    "utilization.encoder": ("utilization/encoder_util",),
    "utilization.decoder": ("utilization/decoder_util",),
    "temperature.gpu": ("temperature/gpu_temp",),
    "temperature.memory": ("temperature/memory_temp",),
    "temperature.gpu.tlimit": ("temperature/gpu_temp_tlimit",),
    "power.draw": (
        "gpu_power_readings/average_power_draw",
        "gpu_power_readings/power_draw",
        "gpu_power_readings/instant_power_draw",
        "power_readings/power_draw",
    ),
    "enforced.power.limit": (
        "gpu_power_readings/current_power_limit",
        "power_readings/enforced_power_limit",
        "power_readings/power_limit",
    ),
    "power.default_limit": ("gpu_power_readings/default_power_limit", "power_readings/default_power_limit"),
    "clocks.current.graphics": ("clocks/graphics_clock",),
    "clocks.current.sm": ("clocks/sm_clock",),
    "clocks.current.memory": ("clocks/mem_clock",),
    "clocks.current.video": ("clocks/video_clock",),
    "clocks.max.graphics": ("max_clocks/graphics_clock",),
    "clocks.max.sm": ("max_clocks/sm_clock",),
    "clocks.max.memory": ("max_clocks/mem_clock",),
    "ecc.mode.current": ("ecc_mode/current_ecc",),
    "pcie.link.gen.current": ("pci/pci_gpu_link_info/pcie_gen/current_link_gen",),
    "pcie.link.gen.max": ("pci/pci_gpu_link_info/pcie_gen/max_link_gen",),
    "pcie.link.width.current": ("pci/pci_gpu_link_info/link_widths/current_link_width",),
    "pcie.link.width.max": ("pci/pci_gpu_link_info/link_widths/max_link_width",),
    "retired_pages.single_bit_ecc.count": ("retired_pages/multiple_single_bit_retirement/retired_count",),
    "retired_pages.double_bit.count": ("retired_pages/double_bit_retirement/retired_count",),
    "retired_pages.pending": ("retired_pages/pending_blacklist", "retired_pages/pending_retirement"),
    "remapped_rows.correctable": ("remapped_rows/remapped_row_corr",),
    "remapped_rows.uncorrectable": ("remapped_rows/remapped_row_unc",),
    "remapped_rows.pending": ("remapped_rows/remapped_row_pending",),
    "remapped_rows.failure": ("remapped_rows/remapped_row_failure",),
    "fabric.state": ("fabric/state",),
    "fabric.status": ("fabric/status",),
} | {
    f"clocks_event_reasons.{reason}": (
        f"clocks_event_reasons/clocks_event_reason_{reason}",
        f"clocks_throttle_reasons/clocks_throttle_reason_{reason}",
    )
    for reason in (
        "gpu_idle",
        "applications_clocks_setting",
        "sw_power_cap",
        "hw_slowdown",
        "sync_boost",
        "sw_thermal_slowdown",
        "hw_thermal_slowdown",
        "hw_power_brake_slowdown",
    )
}
"""Elements by the field that a table has for the same thing."""


class _Cards:
    """Collects the text of every element of each card, by its path."""

    def __init__(self) -> None:
        self.driver = ""
        self.cards: list[tuple[str, dict[str, str]]] = []
        self._path: list[str] = []
        self._text: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name)
        self._text = []
        if self._path == ["nvidia_smi_log", "gpu"]:
            self.cards.append((attributes.get("id", ""), {}))

    def data(self, text: str) -> None:
        self._text.append(text)

    def end(self, _: str) -> None:
        path, text = "/".join(self._path[2:]), "".join(self._text).strip()[:_MAX_TEXT]
        if self._path[:2] == ["nvidia_smi_log", "gpu"] and path and self.cards:
            self.cards[-1][1].setdefault(path, text)
        elif self._path == ["nvidia_smi_log", "driver_version"]:
            self.driver = text
        self._path.pop()
        self._text = []


def parse(raw: bytes, /) -> Table:
    """The document as a table. Never raises; what is cut off or no document has no rows."""
    found = _Cards()
    parser = expat.ParserCreate()
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    parser.StartElementHandler, parser.EndElementHandler = found.start, found.end
    parser.CharacterDataHandler = found.data
    try:
        parser.Parse(raw[:_MAX_BYTES], True)
    except expat.ExpatError as error:
        return Table((), {}, f"nvidia-smi -q -x: {error}", "")
    return Table(tuple(_row(address, texts, found.driver) for address, texts in found.cards), {}, "", "")


def _row(address: str, texts: dict[str, str], driver: str) -> Row:
    cells: dict[str, Cell] = {"pci.bus_id": address}
    if driver:
        cells["driver_version"] = driver
    state, reason = CardState.ANSWERS, ""
    for field, paths in _PATHS.items():
        told = [texts[path] for path in paths if path in texts]
        values = [text for text in told if absent_cell(text) is None]
        gone = [found for text in told if isinstance(found := absent_cell(text), CardState)]
        if gone and max(gone) > state:
            state, reason = max(gone), told[0]
        if values:
            lanes = _LANES.fullmatch(values[0])
            cells[field] = lanes[1] if lanes is not None else values[0]
        elif told:
            absent = absent_cell(told[0])
            cells[field] = (
                absent if isinstance(absent, Untold) else Untold(Absence.READ_ERROR, f"the driver answers {told[0][:60]!r}")
            )
    if texts.get("gpu_reset_status/reset_required") == "Yes" and state < CardState.RESET_REQUIRED:
        state, reason = CardState.RESET_REQUIRED, "the driver says: reset required"
    return Row(cells, {}, state, reason)
