"""What the firmware says of this machine, read once it can be read: ``machine.shared(Smbios)``.

The kernel gives the tables to root only. A failure is never kept: every call tries again until one succeeds, and the answer of
that one stays, as the tables of a running machine do not change.
"""

from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, CommandError, CommandFailure, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.sources import dmidecode, smbios
from nodeproof.sources.smbios import Board, Chassis, Firmware, System, meaningful

__all__ = ["Smbios"]

_TABLE = "/sys/firmware/dmi/tables/DMI"
_IDENTITY = "/sys/class/dmi/id"
_DMIDECODE = ("dmidecode", "--type", dmidecode.TYPES)
_RETRY_S = 300.0
_DEADLINE_S = 20.0
_REMEDY = "run as root"


class Smbios:
    """Tables of the firmware, and the part of them that every user may read."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._files = machine.files
        self._tables: smbios.Smbios | None = None
        self._tool = machine.background("dmidecode", self._ask, interval_s=_RETRY_S, deadline_s=_DEADLINE_S)

    def tables(self) -> smbios.Smbios:
        """Everything the tables say. Raises NoData: no SMBIOS here, no right to read it, or not answered yet."""
        if self._tables is None:
            self._tables = self._read()
        return self._tables

    def system(self) -> System:
        """Maker, product, version and serial number of the machine; without root, what sysfs shows. Raises NoData."""
        try:
            system = self.tables().system
        except NoData as absence:
            return self._public_system(absence)
        if system is None:
            raise NoData(Absence.UNKNOWN, "the firmware's tables say nothing of the system")
        return system

    def board(self) -> Board:
        """The main board; without root, what sysfs shows. Raises NoData."""
        try:
            board = self.tables().board
        except NoData as absence:
            vendor, name, version = self._public(absence, "board_vendor", "board_name", "board_version")
            return Board(vendor, name, version)
        if board is None:
            raise NoData(Absence.UNKNOWN, "the firmware's tables say nothing of the main board")
        return board

    def firmware(self) -> Firmware:
        """BIOS or UEFI; without root, what sysfs shows. Raises NoData."""
        try:
            firmware = self.tables().firmware
        except NoData as absence:
            vendor, version, date = self._public(absence, "bios_vendor", "bios_version", "bios_date")
            return Firmware(vendor, version, date)
        if firmware is None:
            raise NoData(Absence.UNKNOWN, "the firmware's tables say nothing of themselves")
        return firmware

    def chassis(self) -> Chassis:
        """The housing. Raises NoData."""
        chassis = self.tables().chassis
        if chassis is None:
            raise NoData(Absence.UNKNOWN, "the firmware's tables say nothing of the chassis")
        return chassis

    def _read(self) -> smbios.Smbios:
        try:
            return smbios.parse(self._files.read(_TABLE))
        except ParseError as error:
            absence = NoData(Absence.READ_ERROR, f"{_TABLE}: {error}")
        except NoData as error:
            absence = self._explain(error)
        if self._machine.commands.find(_DMIDECODE[0]) is None:
            raise absence
        try:
            return self._tool.latest().value
        except NoData as error:
            # Without the right to read the table the tool fails too: then the right is what is missing, not the tool.
            raise absence if absence.state is Absence.NO_PERMISSION and error.state is not Absence.UNKNOWN else error from None

    def _explain(self, error: NoData) -> NoData:
        if error.state is Absence.NO_PERMISSION:
            return NoData(error.state, error.reason, remedy=f"{_REMEDY}: the kernel gives {_TABLE} to nobody else")
        if error.state is Absence.UNSUPPORTED:
            return self._machine.shared(Platform).no_hardware(
                "SMBIOS table", error.reason, remedy=f"install dmidecode and {_REMEDY}, where the firmware has SMBIOS"
            )
        return error

    def _ask(self) -> smbios.Smbios:
        try:
            result = self._machine.commands.run(_DMIDECODE, deadline_s=_DEADLINE_S)
        except CommandError as error:
            state = Absence.NO_PERMISSION if error.failure is CommandFailure.NO_PERMISSION else Absence.READ_ERROR
            raise NoData(state, str(error), remedy=_REMEDY if state is Absence.NO_PERMISSION else "") from None
        try:
            return dmidecode.parse(result.stdout)
        except ParseError:
            said = result.first_error_line() or next(iter(result.stdout.decode("utf-8", "replace").splitlines()), "")[:200]
        if "ermission denied" in said or "not permitted" in said:
            raise NoData(Absence.NO_PERMISSION, f"dmidecode: {said}", remedy=_REMEDY)
        raise NoData(Absence.READ_ERROR, f"dmidecode ended with {result.exit_code} and no structure: {said}")

    def _public_system(self, absence: NoData) -> System:
        vendor, product, version = self._public(absence, "sys_vendor", "product_name", "product_version")
        try:
            serial = meaningful(self._files.read_text(f"{_IDENTITY}/product_serial"))
        except NoData:
            serial = ""
        return System(vendor, product, version, serial)

    def _public(self, absence: NoData, *names: str) -> list[str]:
        """Files of ``/sys/class/dmi/id`` that every user may read; ``absence`` when none says anything."""
        texts: list[str] = []
        for name in names:
            try:
                texts.append(meaningful(self._files.read_text(f"{_IDENTITY}/{name}")))
            except NoData:
                texts.append("")
        if not any(texts):
            raise absence
        return texts
