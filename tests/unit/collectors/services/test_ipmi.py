"""The BMC behind one ipmitool: when it is asked, what is believed, and what is said when it cannot be."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nodeproof.collectors.services.ipmi import Ipmi, IpmiTiming
from nodeproof.errors import Absence, CommandError, CommandFailure, NoData
from nodeproof.host.commands import CommandResult
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, recorded_machine
from support.bmc import bmc_machine, ipmitool_answers, ipmitool_output

_SENSOR = "ipmitool sensor"
_ROW = b"FAN1 | 5000.000 | RPM | ok | na | na | na | na | na | na\n"


def _failed(stderr: bytes, *, stdout: bytes = b"", exit_code: int = 1) -> CommandResult:
    return CommandResult(("ipmitool",), exit_code, stdout, stderr, 0.1, truncated=False)


def _absence(call: Callable[[], object]) -> NoData:
    with pytest.raises(NoData) as caught:
        call()
    return caught.value


def _asked(machine: Machine) -> list[str]:
    assert isinstance(machine.commands, RecordedCommands)
    return machine.commands.asked


def _poll(machine: Machine, *calls: Callable[[], object]) -> None:
    """Ask, and wait until what was asked for is there; a recorded tool may answer before the first look."""
    for call in calls:
        with contextlib.suppress(NoData):
            call()
    machine.settle(10.0)


class _Slow(RecordedCommands):
    """Programs that take as long on the test's clock as it says, or hang until they are let go."""

    def __init__(self, clock: ManualClock, took_s: dict[str, float]) -> None:
        super().__init__({**ipmitool_answers("supermicro"), _SENSOR: _ROW})
        self.clock = clock
        self.took_s = took_s
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def run(self, argv: Sequence[str], *, deadline_s: float, subject: str = "") -> CommandResult:
        self.entered.set()
        self.gate.wait(10.0)
        self.clock.advance(min(self.took_s.get(argv[1], 0.0), deadline_s))
        return super().run(argv, deadline_s=deadline_s, subject=subject)


def _slow(**took_s: float) -> tuple[Machine, _Slow, ManualClock, Ipmi]:
    clock = ManualClock()
    commands = _Slow(clock, took_s)
    files = bmc_machine({}).files
    machine = Machine(files, commands, clock)
    return machine, commands, clock, machine.shared(Ipmi)


# Whether there is a BMC to ask


def test_a_virtual_machine_has_none_and_ipmitool_is_never_started(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text("processor : 0\nvendor_id : GenuineIntel\nflags : fpu hypervisor\n")
    machine = recorded_machine(str(tmp_path), {_SENSOR: _ROW})
    ipmi = machine.shared(Ipmi)
    for call in (ipmi.sensors, ipmi.power, ipmi.chassis, ipmi.supplies, ipmi.sel, ipmi.reach):
        assert _absence(call).state is Absence.NOT_APPLICABLE
    machine.settle(1.0)
    assert _asked(machine) == []


def test_bare_metal_without_the_driver(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text("processor : 0\nvendor_id : GenuineIntel\nflags : fpu\n")
    machine = recorded_machine(str(tmp_path), {_SENSOR: _ROW})
    absence = _absence(machine.shared(Ipmi).sensors)
    assert absence.state is Absence.UNSUPPORTED
    assert "modprobe" in absence.remedy
    machine.settle(1.0)
    assert _asked(machine) == []


def test_a_device_that_this_user_may_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = bmc_machine({_SENSOR: _ROW})
    monkeypatch.setattr(FileTree, "can_read", lambda _self, _path: False)
    absence = _absence(machine.shared(Ipmi).sensors)
    assert absence.state is Absence.NO_PERMISSION
    assert "/dev/ipmi0" in absence.remedy
    assert _asked(machine) == []


def test_a_device_without_the_tool_and_the_tool_installed_later() -> None:
    clock = ManualClock()
    machine = bmc_machine({}, clock)
    ipmi = machine.shared(Ipmi)
    absence = _absence(ipmi.sensors)
    assert (absence.state, absence.remedy) == (Absence.UNSUPPORTED, "install the package ipmitool")
    assert isinstance(machine.commands, RecordedCommands)
    machine.commands.answers[_SENSOR] = _ROW
    clock.advance(31.0)
    _answered_soon(machine, ipmi)


def _answered_soon(machine: Machine, ipmi: Ipmi) -> None:
    _poll(machine, ipmi.sensors)
    assert ipmi.sensors().value[0].value == 5000.0


# Cadence


def test_a_call_rests_for_its_interval_after_it_ended() -> None:
    machine, commands, clock, ipmi = _slow()
    _answered_soon(machine, ipmi)
    clock.advance(9.9)
    _poll(machine, ipmi.sensors)
    assert commands.asked == [_SENSOR]
    clock.advance(0.1)
    _poll(machine, ipmi.sensors)
    assert commands.asked == [_SENSOR, _SENSOR]


def test_a_long_scan_is_never_made_more_than_half_of_the_time() -> None:
    machine, commands, clock, ipmi = _slow(sensor=40.0)
    began = clock.mono_s
    for _ in range(600):
        try:
            ipmi.sensors()
        except NoData as absence:
            assert absence.state is Absence.UNKNOWN
        machine.settle(10.0)
        clock.advance(1.0)
    busy_s = 40.0 * commands.asked.count(_SENSOR)
    assert commands.asked.count(_SENSOR) >= 5
    assert busy_s / (clock.mono_s - began) <= 0.5 + 40.0 / (clock.mono_s - began)


def test_calls_asked_for_meanwhile_run_in_the_same_round() -> None:
    machine, commands, _, ipmi = _slow()
    commands.gate.clear()
    for call in (ipmi.sensors, ipmi.power, ipmi.chassis, ipmi.supplies, ipmi.sel):
        assert "has not answered yet" in _absence(call).reason
    commands.gate.set()
    machine.settle(10.0)
    assert [line.split()[1] for line in commands.asked] == ["sensor", "dcmi", "chassis", "sdr", "sel", "sel"]


def test_a_call_that_always_hangs_does_not_starve_the_others() -> None:
    machine, commands, clock, ipmi = _slow()
    hung = CommandError("ipmitool", CommandFailure.TIMED_OUT, "gave no answer in 120 s and was ended")
    commands.answers[_SENSOR] = hung
    for _ in range(4):
        _poll(machine, ipmi.sensors, ipmi.chassis)
        clock.advance(61.0)
    assert commands.asked.count("ipmitool chassis status") >= 2
    assert ipmi.chassis().value.power_on is True


def test_timing_can_be_set() -> None:
    machine, commands, clock, ipmi = _slow()
    ipmi.configure("sensor", IpmiTiming(100.0, 7.0))
    _answered_soon(machine, ipmi)
    clock.advance(99.0)
    ipmi.sensors()
    machine.settle(10.0)
    assert commands.asked == [_SENSOR]


# A BMC that hangs


def test_defect_17_a_hung_bmc_is_seen_as_old_answers_then_as_stale_and_comes_back_by_itself() -> None:
    machine, commands, clock, ipmi = _slow()
    _answered_soon(machine, ipmi)
    commands.gate.clear()
    commands.entered.clear()
    clock.advance(11.0)
    before = ipmi.sensors()
    assert commands.entered.wait(10.0)
    clock.advance(10.0)
    assert ipmi.sensors() is before
    assert ipmi.reach().up is True
    clock.advance(30.0)
    absence = _absence(ipmi.sensors)
    assert absence.state is Absence.STALE
    assert absence.reason == "the last answer of ipmitool sensor is 51 s old (ipmitool sensor has been running for 40 s)"
    reach = ipmi.reach()
    assert (reach.up, reach.reason) == (False, "the last answer is 51 s old (ipmitool sensor has been running for 40 s)")
    assert "ipmitool sensor has been running for 40 s" in _absence(ipmi.sel).reason
    commands.gate.set()
    machine.settle(10.0)
    _answered_soon(machine, ipmi)
    assert ipmi.reach().up is True


def test_one_failure_leaves_the_last_answer_until_it_is_too_old() -> None:
    machine, commands, clock, ipmi = _slow()
    _answered_soon(machine, ipmi)
    commands.answers[_SENSOR] = _failed(b"Unable to establish LAN session\n")
    clock.advance(11.0)
    before = ipmi.sensors()
    machine.settle(10.0)
    assert ipmi.sensors() is before
    clock.advance(30.0)
    absence = _absence(ipmi.sensors)
    assert (absence.state, absence.reason) == (Absence.READ_ERROR, "ipmitool sensor: Unable to establish LAN session")
    assert ipmi.reach()[:2] == (False, "ipmitool sensor: Unable to establish LAN session")


def test_nothing_heard_yet_is_unknown() -> None:
    _, commands, _, ipmi = _slow()
    commands.gate.clear()
    _absence(ipmi.sensors)
    absence = _absence(ipmi.reach)
    assert absence.state is Absence.UNKNOWN
    assert "not heard yet" in absence.reason
    commands.gate.set()


def test_an_answer_nobody_asked_to_renew_is_stale() -> None:
    machine, _, clock, ipmi = _slow()
    _answered_soon(machine, ipmi)
    clock.advance(500.0)
    assert ipmi.reach()[:2] == (False, "the last answer is 500 s old")


# What the tool says


@pytest.mark.parametrize(
    ("answer", "state", "reason"),
    [
        (
            _failed(b"Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: Permission denied\n"),
            Absence.NO_PERMISSION,
            "Permission denied",
        ),
        (
            _failed(b"Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: No such file or directory\n"),
            Absence.UNSUPPORTED,
            "No such file or directory",
        ),
        (
            _failed(b"IANA PEN registry open failed: No such file or directory\nUnable to read sensor\n"),
            Absence.READ_ERROR,
            "ipmitool sensor: Unable to read sensor",
        ),
        (_failed(b"Error: Unable to establish IPMI v2 / RMCP+ session\n"), Absence.READ_ERROR, "Unable to establish"),
        (_failed(b"", exit_code=3), Absence.READ_ERROR, "exit status 3 and no output"),
        (_failed(b"Get Device ID command failed\n", exit_code=0), Absence.READ_ERROR, "Get Device ID command failed"),
        (_failed(b"Warning: old SDR\n", stdout=b"rubbish\n", exit_code=0), Absence.READ_ERROR, "Warning: old SDR"),
        (_failed(b"Command not supported in present state\n"), Absence.UNSUPPORTED, "not supported"),
        (b"", Absence.READ_ERROR, "expected rows"),
        (_ROW * 20_000, Absence.READ_ERROR, "that is no answer"),
        (_failed(b"Could not open device at /dev/ipmi0: No such device\n"), Absence.UNSUPPORTED, "No such device"),
        (CommandError("ipmitool", CommandFailure.NOT_FOUND, "not found"), Absence.UNSUPPORTED, "ipmitool sensor: not found"),
        (CommandError("ipmitool", CommandFailure.NO_PERMISSION, "denied"), Absence.NO_PERMISSION, "ipmitool sensor: denied"),
        (
            CommandError("ipmitool", CommandFailure.STUCK, "does not end even when killed"),
            Absence.READ_ERROR,
            "ipmitool sensor: does not end even when killed",
        ),
    ],
)
def test_failures_say_which_call_and_why(answer: bytes | CommandResult | CommandError, state: Absence, reason: str) -> None:
    machine = bmc_machine({_SENSOR: answer})
    ipmi = machine.shared(Ipmi)
    _poll(machine, ipmi.sensors)
    absence = _absence(ipmi.sensors)
    assert absence.state is state
    assert reason in absence.reason
    assert "ipmitool sensor" in absence.reason


def test_a_partial_answer_counts_and_warnings_on_standard_error_do_no_harm() -> None:
    machine = bmc_machine({_SENSOR: _failed(b"Warning: a\nGet SDR 0041 command failed\n", stdout=_ROW)})
    ipmi = machine.shared(Ipmi)
    _answered_soon(machine, ipmi)


def test_a_bug_in_reading_costs_its_call_only(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = bmc_machine(ipmitool_answers("supermicro"))
    ipmi = machine.shared(Ipmi)

    def broken(_raw: bytes, /) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr("nodeproof.sources.ipmitool_sensor.parse", broken)
    _poll(machine, ipmi.sensors)
    assert _absence(ipmi.sensors).reason == "ipmitool sensor: RuntimeError: no such luck"
    _poll(machine, ipmi.chassis)
    assert ipmi.chassis().value.power_on is True


def test_a_declined_command_is_an_answer_and_is_not_repeated_soon() -> None:
    clock = ManualClock()
    machine = bmc_machine({"ipmitool dcmi power reading": _failed(b"DCMI request failed because: Invalid command (c1)\n")}, clock)
    ipmi = machine.shared(Ipmi)
    for _ in range(8):
        _poll(machine, ipmi.power)
        assert _absence(ipmi.power).state is Absence.UNSUPPORTED
        clock.advance(60.0)
    assert len(_asked(machine)) == 1
    clock.advance(300.0)
    _poll(machine, ipmi.power)
    assert len(_asked(machine)) == 2
    assert ipmi.reach().up is True


def test_an_empty_log_is_not_listed() -> None:
    machine = bmc_machine({"ipmitool sel info": b"Entries : 0\n"})
    ipmi = machine.shared(Ipmi)
    _poll(machine, ipmi.sel)
    assert ipmi.sel().value.entries == []
    assert _asked(machine) == ["ipmitool sel info"]


def test_a_doubted_value_needs_a_limit_that_bears_it_out() -> None:
    clock = ManualClock()
    row = b"X | 5.000 | Volts | nr | na | na | na | na | na | na\n"
    machine = bmc_machine({_SENSOR: row}, clock)
    ipmi = machine.shared(Ipmi)
    for _ in range(3):
        _poll(machine, ipmi.sensors)
        assert ipmi.sensors().value[0].value is None
        clock.advance(11.0)
    assert len(_asked(machine)) == 3


def test_all_kinds_bring_what_their_parsers_read() -> None:
    machine = bmc_machine(ipmitool_answers("supermicro"))
    ipmi = machine.shared(Ipmi)
    for call in (ipmi.sensors, ipmi.power, ipmi.chassis, ipmi.supplies, ipmi.sel):
        _poll(machine, call)
    assert len(ipmi.sensors().value) == 19
    assert ipmi.power().value.instantaneous_w == 212.0
    assert ipmi.chassis().value.faults["cooling"] is True
    assert [supply.name for supply in ipmi.supplies().value] == ["PS1 Status", "PS2 Status"]
    assert len(ipmi.sel().value.entries) == 5
    assert ipmitool_output("supermicro.sel_info").startswith(b"SEL Information")
