"""What disks say of their own health: ``smartctl``, every ten minutes, one at a time, never waking a disk that sleeps.

Devices come from our own list and not from ``smartctl --scan-open``: that one opens every device, and disks behind a RAID
controller, which only it would find, have no name of their own in the kernel; for those the reading says how to get at them. One
disk that hangs costs its own deadline; each disk's answer is there as soon as it was given.
"""

from typing import NamedTuple

from nodeproof.clock import Instant
from nodeproof.collectors.services.block_devices import BlockDevices, Disk, no_disks
from nodeproof.errors import Absence, CommandError, NoData, ParseError
from nodeproof.host.commands import CommandResult, absence_of_command
from nodeproof.host.machine import Machine
from nodeproof.sources import smartctl, smartctl_text
from nodeproof.sources.smartctl import Asleep, SmartReport

__all__ = ["INTERVAL_S", "PACKAGE", "Smart", "SmartReading"]

INTERVAL_S = 600.0
PACKAGE = "smartmontools"
_DEADLINE_S = 15.0
"""For one disk; a busy one may take several seconds, a dying one longer."""
_UNREADABLE = ("mmcblk",)
"""Kinds of disk that smartctl knows nothing of."""


class SmartReading(NamedTuple):
    """One disk's answer and when it was given."""

    report: SmartReport
    at: Instant
    asleep: bool = False
    """It sleeps now: this is what it said before, without its temperature."""


class Smart:
    """All disks that could have SMART; get it by ``machine.shared(Smart)``."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._devices = machine.shared(BlockDevices)
        self._outcomes: dict[tuple[str, str], SmartReading | NoData] = {}
        self._todo: tuple[Disk, ...] = ()
        self._speaks_json = True
        self._source = machine.background("smartctl", self._sweep, interval_s=INTERVAL_S, deadline_s=INTERVAL_S)

    def readings(self) -> dict[str, SmartReading | NoData]:
        """By disk: its newest answer, or why there is none. Never blocks.

        Raises NoData when it is the same for all of them: no disk here can have SMART, or there is no smartctl.
        """
        disks = [disk for disk in self._devices.disks().values() if not disk.virtual]
        if not disks:
            raise self._not_applicable()
        if self._machine.commands.find("smartctl") is None:
            raise NoData(Absence.UNSUPPORTED, "smartctl is not installed", remedy=f"install {PACKAGE}")
        self._todo = tuple(disks)
        pending = NoData(Absence.UNKNOWN, "smartctl has not read it yet")
        try:
            self._source.latest()
        except NoData as absence:
            pending = pending if absence.state is Absence.UNKNOWN else absence.again()
        now_s = self._machine.clock.now().mono_s
        return {disk.name: _believable(self._outcomes.get((disk.name, disk.generation), pending), now_s) for disk in disks}

    def wait(self, timeout_s: float) -> bool:
        """Wait for the round in flight; for what is read only once."""
        return self._source.wait(timeout_s)

    def _not_applicable(self) -> NoData:
        if self._devices.disks():
            return NoData(Absence.NOT_APPLICABLE, "every disk here is virtual: its health is the host's business")
        return no_disks()

    def _sweep(self) -> int:
        todo = self._todo
        for disk in todo:
            key = (disk.name, disk.generation)
            before = self._outcomes.get(key)
            self._outcomes[key] = self._ask(disk, before if isinstance(before, SmartReading) else None)
        kept = {(disk.name, disk.generation) for disk in todo}
        self._outcomes = {key: outcome for key, outcome in self._outcomes.items() if key in kept}
        return len(todo)

    def _ask(self, disk: Disk, before: SmartReading | None) -> SmartReading | NoData:
        at = self._machine.clock.now()
        try:
            return SmartReading(self._report(disk), at)
        except CommandError as error:
            return absence_of_command(error, package=PACKAGE)
        except ParseError as error:
            return NoData(Absence.READ_ERROR, str(error))
        except NoData as absence:
            if before is None or not isinstance(absence, Asleep):
                return absence.again()
            return SmartReading(before.report._replace(temperature_c=None, sensors_c={}), before.at, asleep=True)

    def _report(self, disk: Disk) -> SmartReport:
        if disk.name.startswith(_UNREADABLE):
            raise NoData(Absence.UNSUPPORTED, "smartctl cannot read memory cards and eMMC")
        if self._speaks_json:
            result = self._run(disk, "--json=c", "-n", "standby", "-x")
            if not _unknown_option(result):
                return smartctl.parse(result.stdout)
            self._speaks_json = False
        result = self._run(disk, "-n", "standby", "-H", "-A")
        return smartctl_text.parse(result.stdout, result.exit_code & 0xFF if result.exit_code >= 0 else 0)

    def _run(self, disk: Disk, *options: str) -> CommandResult:
        argv = ("smartctl", *options, disk.path)
        return self._machine.commands.run(argv, deadline_s=_DEADLINE_S, subject=disk.name)


def _unknown_option(result: CommandResult) -> bool:
    """Versions before 7.0 answer ``UNRECOGNIZED OPTION: json=c`` or ``invalid option -- -`` in plain text."""
    return result.exit_code == 1 and b"{" not in result.stdout and b"OPTION" in result.stdout.upper()


def _believable(outcome: SmartReading | NoData, now_s: float) -> SmartReading | NoData:
    if isinstance(outcome, SmartReading) and not outcome.asleep and now_s - outcome.at.mono_s > 3 * INTERVAL_S:
        return NoData(Absence.STALE, f"smartctl read it last {now_s - outcome.at.mono_s:.0f} s ago")
    return outcome
