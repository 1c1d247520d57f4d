"""SMBIOS: which way is taken, what is kept, and what an ordinary user gets."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from nodeproof.collectors.services.smbios import Smbios
from nodeproof.errors import Absence, CommandError, CommandFailure, NoData
from nodeproof.host.commands import CommandResult
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands
from nodeproof.sources.smbios import Board, Chassis, Firmware, System
from support import smbios as make
from support.tree import write, write_all

_OUTPUTS = Path(__file__).parents[3] / "fixtures" / "commands" / "dmidecode"
_TABLE = "/sys/firmware/dmi/tables/DMI"
_LINE = "dmidecode --type 0,1,2,3,4,16,17"
_Answers = Mapping[str, bytes | CommandResult | CommandError]


class _Denied(FileTree):
    """The table is there, and the kernel gives it to root only."""

    def read(self, path: str) -> bytes:
        if path == _TABLE:
            raise NoData(Absence.NO_PERMISSION, f"{path}: Permission denied", remedy="anything")
        return super().read(path)


def _machine(
    root: Path, answers: _Answers | None = None, *, denied: bool = False
) -> tuple[Machine, ManualClock, RecordedCommands]:
    clock, commands = ManualClock(), RecordedCommands(answers or {})
    files = _Denied(str(root)) if denied else FileTree(str(root))
    return Machine(files, commands, clock), clock, commands


def _absence(machine: Machine) -> NoData:
    with pytest.raises(NoData) as raised:
        machine.shared(Smbios).tables()
    return raised.value


def _settled(machine: Machine) -> NoData:
    assert _absence(machine).state is Absence.UNKNOWN
    machine.settle(5.0)
    return _absence(machine)


def test_the_kernels_table_comes_first_and_no_program_is_run(tmp_path: Path) -> None:
    write(str(tmp_path), _TABLE, make.table(make.system("Maker", "Product", "V", "S")))
    machine, _, commands = _machine(tmp_path, {_LINE: (_OUTPUTS / "old-words.txt").read_bytes()})
    assert machine.shared(Smbios).system() == System("Maker", "Product", "V", "S")
    assert commands.asked == []


def test_without_a_table_dmidecode_is_asked_once_and_its_answer_stays(tmp_path: Path) -> None:
    machine, clock, commands = _machine(tmp_path, {_LINE: (_OUTPUTS / "old-words.txt").read_bytes()})
    source = machine.shared(Smbios)
    assert _absence(machine).state is Absence.UNKNOWN  # it is on its way, on a thread of its own
    machine.settle(5.0)
    assert source.system().product_name == "PowerEdge R730"
    assert len(source.tables().memory_modules) == 2
    clock.advance(1_000_000)
    assert source.system().product_name == "PowerEdge R730"
    assert commands.asked == [_LINE]


def test_defect_16_a_failure_is_not_kept(tmp_path: Path) -> None:
    machine, clock, commands = _machine(
        tmp_path, {_LINE: CommandError("dmidecode", CommandFailure.TIMED_OUT, "gave no answer in 20 s")}
    )
    assert _settled(machine).state is Absence.READ_ERROR
    commands.answers[_LINE] = (_OUTPUTS / "old-words.txt").read_bytes()
    assert "gave no answer" in _absence(machine).reason  # not asked again at once
    clock.advance(300)
    machine.settle(5.0)
    with pytest.raises(NoData):
        machine.shared(Smbios).tables()
    machine.settle(5.0)
    assert machine.shared(Smbios).system().manufacturer == "Dell Inc."
    assert commands.asked == [_LINE, _LINE]


def test_no_right_and_no_tool(tmp_path: Path) -> None:
    absence = _absence(_machine(tmp_path, denied=True)[0])
    assert absence.state is Absence.NO_PERMISSION
    assert "run as root" in absence.remedy


def test_no_right_and_a_tool_without_it_either_is_still_no_permission(tmp_path: Path) -> None:
    refused = CommandResult(
        ("dmidecode",),
        1,
        (_OUTPUTS / "no-permission.stdout").read_bytes(),
        (_OUTPUTS / "no-permission.stderr").read_bytes(),
        0.01,
        truncated=False,
    )
    absence = _settled(_machine(tmp_path, {_LINE: refused}, denied=True)[0])
    assert absence.state is Absence.NO_PERMISSION
    assert _TABLE in absence.reason


def test_no_right_but_a_tool_that_has_it(tmp_path: Path) -> None:
    machine = _machine(tmp_path, {_LINE: (_OUTPUTS / "kunpeng.txt").read_bytes()}, denied=True)[0]
    assert _absence(machine).state is Absence.UNKNOWN
    machine.settle(5.0)
    assert machine.shared(Smbios).chassis() == Chassis("Huawei", "Rack Mount Chassis")


@pytest.mark.parametrize(
    ("answer", "state", "word"),
    [
        (
            CommandResult(("dmidecode",), 1, b"", b"/dev/mem: Operation not permitted\n", 0.0, truncated=False),
            Absence.NO_PERMISSION,
            "/dev/mem",
        ),
        (CommandError("dmidecode", CommandFailure.NO_PERMISSION, "Permission denied"), Absence.NO_PERMISSION, "dmidecode"),
        (
            CommandResult(("dmidecode",), 1, b"# No SMBIOS nor DMI entry point found, sorry.\n", b"", 0.0, truncated=False),
            Absence.READ_ERROR,
            "sorry",
        ),
        (b"", Absence.READ_ERROR, "no structure"),
    ],
)
def test_what_the_tool_says_is_told(
    tmp_path: Path, answer: bytes | CommandResult | CommandError, state: Absence, word: str
) -> None:
    absence = _settled(_machine(tmp_path, {_LINE: answer})[0])
    assert absence.state is state
    assert word in absence.reason


def test_a_damaged_table_is_an_error_until_it_is_well(tmp_path: Path) -> None:
    write(str(tmp_path), _TABLE, b"rubbish")
    machine = _machine(tmp_path)[0]
    assert _absence(machine).state is Absence.READ_ERROR
    write(str(tmp_path), _TABLE, make.table(make.baseboard("B", "Board", "1")))
    assert machine.shared(Smbios).board() == Board("B", "Board", "1")


def test_neither_table_nor_tool_in_a_virtual_machine_and_on_real_hardware(tmp_path: Path) -> None:
    assert _absence(_machine(tmp_path)[0]).state is Absence.UNSUPPORTED
    write(str(tmp_path), "/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor\n")
    assert _absence(_machine(tmp_path)[0]).state is Absence.NOT_APPLICABLE


def test_a_table_that_cannot_be_read_keeps_its_own_reason(tmp_path: Path) -> None:
    (tmp_path / _TABLE[1:]).mkdir(parents=True)
    absence = _absence(_machine(tmp_path)[0])
    assert absence.state is Absence.READ_ERROR
    assert "directory" in absence.reason


def test_an_ordinary_user_gets_what_sysfs_shows(tmp_path: Path) -> None:
    public = {
        "sys_vendor": "Maker",
        "product_name": "Product",
        "product_version": "To Be Filled By O.E.M.",
        "board_vendor": "BoardMaker",
        "board_name": "Board",
        "bios_vendor": "AMI",
        "bios_version": "2.6a",
        "bios_date": "03/14/2024",
    }
    write_all(str(tmp_path), "/sys/class/dmi/id", public)
    source = _machine(tmp_path, denied=True)[0].shared(Smbios)
    assert source.system() == System("Maker", "Product", "", "")
    assert source.board() == Board("BoardMaker", "Board", "")
    assert source.firmware() == Firmware("AMI", "2.6a", "03/14/2024")
    with pytest.raises(NoData, match="Permission denied"):
        source.chassis()
    write(str(tmp_path), "/sys/class/dmi/id/product_serial", "TESTSERIAL")
    assert source.system().serial_number == "TESTSERIAL"


def test_where_sysfs_shows_nothing_the_first_reason_stands(tmp_path: Path) -> None:
    source = _machine(tmp_path, denied=True)[0].shared(Smbios)
    for ask in (source.system, source.board, source.firmware):
        with pytest.raises(NoData) as raised:
            ask()
        assert raised.value.state is Absence.NO_PERMISSION


def test_tables_that_leave_something_out_say_so(tmp_path: Path) -> None:
    write(str(tmp_path), _TABLE, make.table(make.memory_array(0x1000, capacity_gib=1, slots=1)))
    source = _machine(tmp_path)[0].shared(Smbios)
    for ask in (source.system, source.board, source.firmware, source.chassis):
        with pytest.raises(NoData, match="tables say nothing") as raised:
            ask()
        assert raised.value.state is Absence.UNKNOWN


def test_the_tables_own_firmware_entry_is_taken(tmp_path: Path) -> None:
    write(str(tmp_path), _TABLE, make.table(make.bios("AMI", "1", "01/02/2024")))
    assert _machine(tmp_path)[0].shared(Smbios).firmware() == Firmware("AMI", "1", "01/02/2024")
