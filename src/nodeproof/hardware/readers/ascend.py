"""Ascend chips for the box under a run: DCMI, or ``npu-smi`` where its library does not answer.

The driver does not tell what slows a chip, so nothing here says that heat does or does not. Its clock under load is held against
the rated one instead, which a chip that is not slowed keeps. A chip's power is what it tells itself of its own supply: the rail
is named ``npu_rail``, and its energy is never compared with that of a board.
"""

from collections.abc import Iterator

from nodeproof.clock import Instant
from nodeproof.collectors.services.ascend import Ascend, ChipSaid, Look
from nodeproof.collectors.services.ascend_told import HEALTH_WORDS, ChipIdentity, ChipKey, Told
from nodeproof.collectors.services.dcmi import DcmiChips
from nodeproof.errors import Absence, NoData
from nodeproof.hardware.providers import Survey
from nodeproof.host.machine import Machine
from nodeproof.model.hardware import ComputeApp, DeviceState, Field

__all__ = ["NPU_RAIL", "AscendProvider"]

NPU_RAIL = "npu_rail"

_FIRST_S = 3.0
"""So long the first look waits for a source that has not said anything yet."""
_PROCESSES_S = 2.0
"""Processes are listed at least so often while a run goes on."""
_WORDS = {value: "OK" if word == "ok" else word for word, value in HEALTH_WORDS.items()}
_READINGS = (
    ("temperature", "°C"),
    ("aicore_freq", "MHz"),
    ("aicore_rated_freq", "MHz"),
    ("utilization", "%"),
    ("power_draw", "W"),
    ("health_status", ""),
    ("hbm_single_ecc_errors_total", ""),
    ("hbm_double_ecc_errors_total", ""),
    ("ddr_single_ecc_errors_total", ""),
    ("ddr_double_ecc_errors_total", ""),
)
_SILENT = NoData(Absence.UNSUPPORTED, "neither DCMI nor npu-smi tells it")
_SLOWED = NoData(
    Absence.UNSUPPORTED, "the driver does not tell what slows a chip; its clock under load is held against the rated one"
)


class AscendProvider:
    """All chips of this node."""

    name = "ascend"

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._clock = machine.clock
        self._ascend = machine.shared(Ascend)
        self._dcmi = machine.shared(DcmiChips)

    def read(self) -> Survey:
        """All chips now. Raises NoData when there are none, or they cannot be asked."""
        if not self._ascend.some():
            raise self._ascend.nothing()
        self._dcmi.hasten(_PROCESSES_S)
        look = self._look()
        known = self._ascend.identities()
        now = self._clock.now()
        chips = [_Chip(key, known.get(key, ChipIdentity()), look.chips[key]) for key in sorted(look.chips)]
        driver = self._ascend.driver_version() or None
        apps = self._apps(chips)
        fields = tuple(field for chip in chips for field in chip.fields(look.source, now))
        devices = tuple(chip.state(driver) for chip in chips)
        if isinstance(apps, NoData):
            return Survey(devices, None, look.source, apps, fields)
        return Survey(devices, apps, look.source, None, fields)

    def _look(self) -> Look:
        try:
            return self._ascend.look()
        except NoData as absence:
            if absence.state is not Absence.UNKNOWN:
                raise
        self._ascend.wait(_FIRST_S)
        return self._ascend.look()

    def _apps(self, chips: "list[_Chip]") -> tuple[ComputeApp, ...] | NoData:
        """The processes on every chip; why they cannot be told, when one chip's cannot."""
        apps: list[ComputeApp] = []
        for chip in chips:
            told = chip.told.get("process_info", _SILENT)
            if isinstance(told, NoData):
                return NoData(told.state, f"processes on {chip.device} are not known: {told.reason}", remedy=told.remedy)
            pids = dict(told.labels).get("process_pids", "")
            apps += [ComputeApp(int(pid), self._program(pid), device=chip.device) for pid in pids.split(",") if pid]
        return tuple(apps)

    def _program(self, pid: str) -> str:
        try:
            return self._files.read_text(f"/proc/{pid}/comm")
        except NoData:
            return ""


class _Chip:
    """What all sources together say of one chip: of each reading the first that has a value, else the first reason."""

    def __init__(self, key: ChipKey, identity: ChipIdentity, said: tuple[ChipSaid, ...]) -> None:
        self.device = f"npu{identity.logic_id}" if identity.logic_id is not None else f"npu-card{key.npu_id}-chip{key.chip_id}"
        """By the id that programs count by; where nobody tells that, by a name that looks like none."""
        self.told: dict[str, Told | NoData] = {}
        self._name = identity.name
        self._power_at: Instant | None = None
        self._absence: NoData | None = None
        for answer in said:
            if isinstance(answer, NoData):
                self._absence = answer
                continue
            for one in answer.told:
                if isinstance(one.value, NoData):
                    self.told.setdefault(one.name, one.value)
                elif isinstance(self.told.get(one.name, _SILENT), NoData):
                    self.told[one.name] = one
                    if one.name == "power_draw":
                        self._power_at = answer.at

    def state(self, driver: str | None) -> DeviceState:
        """As the rules want it."""
        rated, power = self._value("aicore_rated_freq"), self._value("power_draw")
        busy, health = self._value("utilization"), self._value("health_status")
        return DeviceState(
            self.device,
            vendor="Huawei",
            name=self._name or None,
            driver=driver,
            temp_c=self._value("temperature"),
            clock_mhz=self._value("aicore_freq"),
            clock_max_mhz=rated,
            rated_mhz=rated,
            busy_share=None if busy is None else busy / 100.0,
            uncorrected_errors=self._errors("double"),
            corrected_errors=self._errors("single"),
            power_w=power,
            power_rail=NPU_RAIL if power is not None else "",
            power_at_s=self._power_at.mono_s if power is not None and self._power_at is not None else None,
            health=None if health is None else _WORDS.get(health, "unknown"),
        )

    def fields(self, source: str, now: Instant) -> Iterator[Field]:
        """Every reading with its value or its reason."""
        for name, unit in _READINGS:
            told = self._told(name)
            if isinstance(told, Told) and isinstance(told.value, float):
                yield Field(self.device, name, source, now.wall_s, value=told.value, unit=unit)
            elif isinstance(told, NoData):
                yield self._absent(name, source, now, told)
        yield self._absent("throttle_active", source, now, _SLOWED)

    def _absent(self, name: str, source: str, now: Instant, why: NoData) -> Field:
        return Field(self.device, name, source, now.wall_s, state=why.state, reason=why.reason, remedy=why.remedy)

    def _told(self, name: str) -> Told | NoData:
        return self.told.get(name) or self._absence or _SILENT

    def _value(self, name: str) -> float | None:
        told = self.told.get(name)
        return told.value if isinstance(told, Told) and isinstance(told.value, float) else None

    def _errors(self, kind: str) -> int | None:
        """Errors of all memories; None when one of them cannot be told, or none is there."""
        total: int | None = None
        for memory in ("hbm", "ddr"):
            told = self._told(f"{memory}_{kind}_ecc_errors_total")
            if isinstance(told, NoData):
                if told.state is not Absence.NOT_APPLICABLE and told is not _SILENT:
                    return None
            elif isinstance(told.value, float):
                total = (total or 0) + int(told.value)
        return total
