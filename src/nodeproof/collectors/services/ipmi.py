"""The BMC, through ipmitool: one process at a time for the whole daemon, and nobody ever waits for it.

Collectors ask for the last answer and get it with the moment it was made; what is due is fetched meanwhile on a thread of its
own, one call after the other. A BMC that hangs costs no cycle: its answers grow old, turn stale, and come back by themselves. A
call that takes long is made less often, so that ipmitool never runs more than half of the time.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from nodeproof.clock import Instant
from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, CommandError, CommandFailure, NoData, NodeproofError
from nodeproof.host.background import Answer
from nodeproof.host.commands import CommandResult
from nodeproof.host.machine import Machine
from nodeproof.sources import ipmitool_chassis, ipmitool_dcmi, ipmitool_sel, ipmitool_sensor
from nodeproof.sources.ipmitool_chassis import ChassisStatus, PowerSupply
from nodeproof.sources.ipmitool_dcmi import DcmiPower
from nodeproof.sources.ipmitool_sel import SelEntry, SelInfo
from nodeproof.sources.ipmitool_sensor import IpmiSensor

__all__ = ["Ipmi", "IpmiTiming", "Reach", "Sel"]

_T = TypeVar("_T")

_DEVICES = ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0")
"""Where ipmitool looks for the kernel's driver, in its order."""
_CLASS_DEVICE = "/sys/class/ipmi/ipmi0"
_LOOK_S = 30.0
"""How long the answer to "is there a BMC device and a tool" is kept."""
_MAX_REST_S = 60.0
"""Longest pause after a busy round; a hung BMC must not delay its own return for longer."""
_DECLINED_RETRY_S = 600.0
"""Pause before a command that the BMC does not know is tried again (its firmware may have been updated)."""
_STALE_SLACK_S = 5.0
_MAX_ANSWER_BYTES = 1024 * 1024
"""More than a thousand sensors or the newest events take; reading on would only cost time."""
_SEL_NEWEST = 512
"""Events read when the log has changed; a whole log of some thousand takes minutes on a slow BMC."""


class IpmiTiming(NamedTuple):
    """Cadence of one kind of call."""

    interval_s: float
    """Pause between the end of one call and the start of the next, at least."""
    deadline_s: float
    """When the process is ended. Generous: a sensor scan may take a minute, a long log more."""


_TIMINGS = {
    "sensor": IpmiTiming(10.0, 120.0),
    "dcmi": IpmiTiming(10.0, 30.0),
    "chassis": IpmiTiming(60.0, 30.0),
    "psu": IpmiTiming(60.0, 120.0),
    "sel": IpmiTiming(300.0, 300.0),
}


class Sel(NamedTuple):
    """The event log: its state, and its newest entries as far as they were read."""

    info: SelInfo
    entries: list[SelEntry]


class Reach(NamedTuple):
    """Whether the BMC answers."""

    up: bool
    reason: str
    """Why not; empty when it is up."""
    answered: Instant | None
    """When the newest call that it answered began."""


class _Declined(NoData):
    """The BMC answered that it does not know this command."""


class _Kind(Generic[_T]):
    """One kind of call and what it brought."""

    def __init__(self, name: str, call: Callable[[float], _T], timing: IpmiTiming) -> None:
        self.name = name
        self.call = call
        self.timing = timing
        self.answer: Answer[_T] | None = None
        self.failure: NoData | None = None
        self.duration_s = 0.0
        self.due_mono_s = 0.0
        self.wanted = False


class Ipmi:
    """The BMC of this machine; get it by ``machine.shared(Ipmi)``."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lock = threading.Lock()
        self._sensors: _Kind[list[IpmiSensor]] = _Kind("sensor", self._read_sensors, _TIMINGS["sensor"])
        self._power: _Kind[DcmiPower] = _Kind("dcmi", self._read_power, _TIMINGS["dcmi"])
        self._chassis: _Kind[ChassisStatus] = _Kind("chassis", self._read_chassis, _TIMINGS["chassis"])
        self._supplies: _Kind[list[PowerSupply]] = _Kind("psu", self._read_supplies, _TIMINGS["psu"])
        self._sel: _Kind[Sel] = _Kind("sel", self._read_sel, _TIMINGS["sel"])
        self._kinds: tuple[_Kind[object], ...] = (self._sensors, self._power, self._chassis, self._supplies, self._sel)  # type: ignore[assignment]  # only read as objects here
        self._running: tuple[str, Instant] | None = None
        self._rest_until_mono_s = 0.0
        self._answered: Instant | None = None
        self._trouble: NoData | None = None
        self._looked: tuple[float, NoData | None] | None = None
        self._read_before: set[str] = set()
        self._doubted_before: set[str] = set()
        self._worker = machine.background(
            "ipmitool", self._round, interval_s=0.0, deadline_s=sum(timing.deadline_s for timing in _TIMINGS.values())
        )

    def configure(self, kind: str, timing: IpmiTiming) -> None:
        """Set the cadence of ``sensor``, ``dcmi``, ``chassis``, ``psu`` or ``sel``."""
        next(known for known in self._kinds if known.name == kind).timing = timing

    def sensors(self) -> Answer[list[IpmiSensor]]:
        """All sensors, as last read. Raises NoData."""
        return self._latest(self._sensors)

    def power(self) -> Answer[DcmiPower]:
        """Power of the whole machine by DCMI, as last read. Raises NoData."""
        return self._latest(self._power)

    def chassis(self) -> Answer[ChassisStatus]:
        """Chassis status, as last read. Raises NoData."""
        return self._latest(self._chassis)

    def supplies(self) -> Answer[list[PowerSupply]]:
        """Power supplies, as last read. Raises NoData."""
        return self._latest(self._supplies)

    def sel(self) -> Answer[Sel]:
        """The event log, as last read. Raises NoData."""
        return self._latest(self._sel)

    def reach(self) -> Reach:
        """Whether the BMC answers. Raises NoData when there is none to ask, or nothing was heard yet."""
        now = self._machine.clock.now()
        self._refuse_without_bmc(now)
        with self._lock:
            if self._answered is not None and now.mono_s - self._answered.mono_s <= self._patience_s():
                return Reach(up=True, reason="", answered=self._answered)
            if self._trouble is not None:
                return Reach(up=False, reason=self._trouble.reason, answered=self._answered)
            if self._answered is not None:
                age_s = now.mono_s - self._answered.mono_s
                return Reach(
                    up=False, reason=f"the last answer is {age_s:.0f} s old{self._busy_with(now)}", answered=self._answered
                )
            raise NoData(Absence.UNKNOWN, f"the BMC was not heard yet{self._busy_with(now)}")

    def _latest(self, kind: _Kind[_T]) -> Answer[_T]:
        now = self._machine.clock.now()
        self._refuse_without_bmc(now)
        kind.wanted = True
        if kind.due_mono_s <= now.mono_s and self._rest_until_mono_s <= now.mono_s and self._running is None:
            self._wake()
        with self._lock:
            return self._judge(kind, now)

    def _wake(self) -> None:
        try:
            self._worker.latest()
        except NoData:
            # Its own verdict is about the whole round; each kind is judged by what it brought.
            return

    def _judge(self, kind: _Kind[_T], now: Instant) -> Answer[_T]:
        answer = kind.answer
        if answer is not None and now.mono_s - answer.at.mono_s <= self._patience_s(kind):
            return answer
        if kind.failure is not None:
            raise kind.failure.again()
        busy = self._busy_with(now)
        if answer is None:
            raise NoData(Absence.UNKNOWN, f"ipmitool {kind.name} has not answered yet{busy}")
        raise NoData(Absence.STALE, f"the last answer of ipmitool {kind.name} is {now.mono_s - answer.at.mono_s:.0f} s old{busy}")

    def _busy_with(self, now: Instant) -> str:
        if self._running is None:
            return ""
        name, started = self._running
        return f" (ipmitool {name} has been running for {now.mono_s - started.mono_s:.0f} s)"

    def _patience_s(self, kind: "_Kind[_T] | None" = None) -> float:
        """Age up to which an answer counts: three of its periods, and time for the others and the rest after them."""
        taken_s = sum(known.duration_s for known in self._kinds)
        interval_s = kind.timing.interval_s if kind is not None else min(known.timing.interval_s for known in self._kinds)
        own_s = kind.duration_s if kind is not None else 0.0
        return 3.0 * (interval_s + own_s) + 2.0 * taken_s + _STALE_SLACK_S

    def _refuse_without_bmc(self, now: Instant) -> None:
        looked = self._looked
        if looked is None or now.mono_s - looked[0] >= _LOOK_S:
            looked = self._looked = (now.mono_s, self._look())
        if looked[1] is not None:
            raise looked[1].again()

    def _look(self) -> NoData | None:
        """Why ipmitool need not be started at all; None when it is worth trying."""
        files = self._machine.files
        device = next((path for path in _DEVICES if files.exists(path)), None)
        if device is None and files.exists(_CLASS_DEVICE):
            device = _DEVICES[0]  # the kernel has it, and we, as a service, do not see it
        if device is None:
            return self._machine.shared(Platform).no_hardware(
                "BMC", f"there is no {_DEVICES[0]}", remedy="load the drivers: modprobe ipmi_si ipmi_devintf"
            )
        if not self._machine.may_use(device, "ipmitool"):
            return NoData(
                Absence.NO_PERMISSION,
                f"{device} exists and this user may not open it",
                remedy=f"run as root, or give this user the right to read and write {device}",
            )
        if self._machine.commands.find("ipmitool") is None:
            return NoData(
                Absence.UNSUPPORTED, f"{device} exists, but there is no ipmitool to ask it", remedy="install the package ipmitool"
            )
        return None

    def _round(self) -> None:
        """Make the calls that are due, one after the other; runs on the worker's thread, never twice at once."""
        began = self._machine.clock.now()
        left = set(self._kinds)
        while due := [kind for kind in self._kinds if kind in left and kind.wanted and kind.due_mono_s <= began.mono_s]:
            # The one that has waited longest first: a call that always hangs must not starve the others.
            kind = min(due, key=lambda kind: kind.due_mono_s)
            left.remove(kind)
            kind.wanted = False
            if not self._make(kind):
                break
        ended = self._machine.clock.now()
        with self._lock:
            self._rest_until_mono_s = ended.mono_s + min(ended.mono_s - began.mono_s, _MAX_REST_S)

    def _make(self, kind: _Kind[object]) -> bool:
        """One call; False when the BMC hangs and the others had better wait."""
        started = self._machine.clock.now()
        with self._lock:
            self._running = (kind.name, started)
        answer: Answer[object] | None = None
        failure: NoData | None = None
        hangs = False
        try:
            answer = Answer(kind.call(kind.timing.deadline_s), started)
        except NoData as absence:
            failure = absence.again()
        except CommandError as error:
            hangs = error.failure in {CommandFailure.TIMED_OUT, CommandFailure.STUCK}
            failure = _command_absence(kind.name, error)
        except NodeproofError as error:
            failure = NoData(Absence.READ_ERROR, str(error))
        except Exception as error:  # noqa: BLE001 - a bug in reading one answer must not stop the others
            failure = NoData(Absence.READ_ERROR, f"ipmitool {kind.name}: {type(error).__name__}: {error}")
        ended = self._machine.clock.now()
        with self._lock:
            self._running = None
            self._note(kind, answer, failure, ended)
            if answer is not None:
                kind.duration_s = ended.mono_s - started.mono_s
        return not hangs

    def _note(self, kind: _Kind[object], answer: Answer[object] | None, failure: NoData | None, ended: Instant) -> None:
        """Publish what a call brought."""
        pause_s = kind.timing.interval_s
        kind.failure = failure
        if answer is not None:
            kind.answer = answer
        if answer is not None or isinstance(failure, _Declined):
            self._answered, self._trouble = ended, None
        else:
            self._trouble = failure
        if isinstance(failure, _Declined):
            pause_s = max(pause_s, _DECLINED_RETRY_S)
        kind.due_mono_s = ended.mono_s + pause_s

    def _ask(self, arguments: Sequence[str], deadline_s: float, parse: Callable[[bytes], _T]) -> _T:
        """Run one command. What it printed counts, even when it failed after that; when nothing can be used its own words do."""
        result = self._machine.commands.run(("ipmitool", *arguments), deadline_s=deadline_s)
        if len(result.stdout) > _MAX_ANSWER_BYTES:
            raise NoData(
                Absence.READ_ERROR, f"ipmitool {' '.join(arguments)} printed {len(result.stdout)} bytes; that is no answer"
            )
        if result.exit_code != 0 and not result.stdout.strip():
            raise _complaint(arguments, result)
        try:
            return parse(result.stdout)
        except NodeproofError:
            if result.stderr.strip():
                raise _complaint(arguments, result) from None
            raise

    def _read_sensors(self, deadline_s: float) -> list[IpmiSensor]:
        return self._believe(self._ask(("sensor",), deadline_s, ipmitool_sensor.parse))

    def _read_power(self, deadline_s: float) -> DcmiPower:
        return self._ask(("dcmi", "power", "reading"), deadline_s, ipmitool_dcmi.parse)

    def _read_chassis(self, deadline_s: float) -> ChassisStatus:
        return self._ask(("chassis", "status"), deadline_s, ipmitool_chassis.parse)

    def _read_supplies(self, deadline_s: float) -> list[PowerSupply]:
        return self._ask(("sdr", "type", "Power Supply"), deadline_s, ipmitool_chassis.parse_power_supplies)

    def _read_sel(self, deadline_s: float) -> Sel:
        """The state of the log, and its newest events when that has changed."""
        info = self._ask(("sel", "info"), deadline_s, ipmitool_sel.parse_info)
        before = self._sel.answer.value if self._sel.answer is not None else None
        if before is not None and before.info[:1] + before.info[3:] == info[:1] + info[3:] and info.last_add:
            return Sel(info, before.entries)
        if info.entries == 0:
            return Sel(info, [])
        return Sel(info, self._ask(("sel", "elist", "last", str(_SEL_NEWEST)), deadline_s, ipmitool_sel.parse))

    def _believe(self, sensors: list[IpmiSensor]) -> list[IpmiSensor]:
        """Believe a value with status ``nr`` when it comes a second time and its own limits bear it out.

        Sensors that are not there report ``0.000`` with ``nr`` for ever; a low value therefore also takes a sensor that has read
        well before.
        """
        doubted = {sensor.name for sensor in sensors if sensor.doubted is not None}
        believed = [
            sensor._replace(value=sensor.doubted, problem="")
            if sensor.name in self._doubted_before and _borne_out(sensor, read_before=sensor.name in self._read_before)
            else sensor
            for sensor in sensors
        ]
        self._doubted_before = doubted
        self._read_before.update(sensor.name for sensor in sensors if sensor.value is not None)
        return believed


def _borne_out(sensor: IpmiSensor, *, read_before: bool) -> bool:
    if sensor.doubted is None:
        return False
    if sensor.upper_nr is not None and sensor.doubted >= sensor.upper_nr > 0:
        return True
    return read_before and sensor.lower_nr is not None and sensor.doubted < sensor.lower_nr


def _command_absence(kind: str, error: CommandError) -> NoData:
    """What a command that did not run to its end means."""
    reason = f"ipmitool {kind}: {error.detail}"
    if error.failure is CommandFailure.NOT_FOUND:
        return NoData(Absence.UNSUPPORTED, reason, remedy="install the package ipmitool")
    if error.failure is CommandFailure.NO_PERMISSION:
        return NoData(Absence.NO_PERMISSION, reason, remedy="run as root")
    remedy = "see whether the BMC answers (ipmitool mc info); ipmitool mc reset cold restarts it without touching the host"
    return NoData(Absence.READ_ERROR, reason, remedy=remedy)


_DECLINED_WORDS = ("invalid command", "not supported", "unsupported", "command not available")


_CHATTER = ("warning", "iana pen registry")
"""Beginnings of lines that tell nothing about the call; 1.8.19 prints the second before everything when a list of makers is not
installed."""


def _complaint(arguments: Sequence[str], result: CommandResult) -> NoData:
    """What the tool's own words on standard error mean."""
    lines = [line.strip() for line in result.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    said = next((line for line in lines if not line.lower().startswith(_CHATTER)), lines[0] if lines else "")[:200]
    reason = f"ipmitool {' '.join(arguments)}: {said or f'exit status {result.exit_code} and no output'}"
    low = said.lower()
    if "permission denied" in low:
        return NoData(Absence.NO_PERMISSION, reason, remedy="run as root, or give this user the right to use /dev/ipmi0")
    if any(word in low for word in _DECLINED_WORDS):
        return _Declined(Absence.UNSUPPORTED, reason)
    if "no such file" in low or "no such device" in low:
        return NoData(Absence.UNSUPPORTED, reason, remedy="load the drivers: modprobe ipmi_si ipmi_devintf")
    return NoData(Absence.READ_ERROR, reason)
