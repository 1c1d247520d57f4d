"""Faults begin and end by evidence alone."""

from collections.abc import Callable, Iterator
from itertools import count

import msgspec
import pytest

from nodeproof.clock import Instant, rfc3339
from nodeproof.errors import UsageError
from nodeproof.faults.coalesce import CoalescedEvent
from nodeproof.faults.drill import drill_rule, drill_rules, event_rule
from nodeproof.faults.engine import Engine
from nodeproof.model.event import EventKind, KernelEvent
from nodeproof.model.event import Severity as Gravity
from nodeproof.model.fault import Change, Fault, FaultClass, FaultEvent, FaultState, Order, OrderKind
from nodeproof.model.health import Severity, Standing
from nodeproof.model.metric import Labels
from nodeproof.sources.xid_catalogue import SXIDS
from support.kernel_log import event

Answer = bool | None
_BOOT = "7d2f0c9e-0000-4000-8000-000000000001"
_T0 = 1_800_000_000.0


def _at(mono_s: float, *, step_s: float = 0.0) -> Instant:
    return Instant(_T0 + mono_s + step_s, mono_s)


def _ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"{next(numbers):032x}"


def _engine(state: FaultState | None = None, *, boot: str = _BOOT, at: float = 1000.0, off: tuple[str, ...] = ()) -> Engine:
    return Engine(state, boot, _ids(), _at(at), off=off)


def _standing(
    rule: str = "disk.read_only",
    severity: Severity = Severity.CRITICAL,
    entity: tuple[str, ...] = ("device",),
    *,
    current: bool = True,
    **labels: str,
) -> Standing:
    return Standing(
        rule=rule,
        severity=severity,
        component=rule.partition(".")[0],
        message=f"{rule} is bad",
        labels=labels or {"device": "sda1"},
        entity=entity,
        value=1.0,
        since_wall_s=_T0 + 990.0,
        clears_when="read_only_remount < 1",
        remedy="mend it",
        current=current,
    )


def _reads(answer: Answer, *things: Labels) -> Callable[[str, Callable[[Labels], bool]], bool | None]:
    """Every rule reads ``answer`` of ``things``, and nothing of others."""

    def reads_well(_rule: str, same: Callable[[Labels], bool]) -> bool | None:
        return answer if any(map(same, things)) else None

    return reads_well


_UNREAD = _reads(None)


def _kernel(
    line: str, *, mono_s: float = 1000.0, sequence: int = 5, times: int = 1, first_s: float | None = None
) -> CoalescedEvent:
    found = event(line)
    assert found is not None
    found = msgspec.structs.replace(found, mono_s=mono_s, sequence=sequence)
    return CoalescedEvent(found, times, mono_s if first_s is None else first_s, mono_s)


def _said(engine: Engine) -> Iterator[FaultEvent]:
    said, engine.said = engine.said, []
    return iter(said)


def _only(engine: Engine) -> Fault:
    (fault,) = engine.active.values()
    return fault


_RLW = "NVRM: Xid (PCI:0000:05:00): 145, pid=1, name=a, RLW_RXPIPE {} XC0 i0 Link 13 (0x1 0x2)"
XID_79 = "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def test_a_condition_sets_a_fault_and_a_good_reading_clears_it() -> None:
    engine = _engine()
    engine.judge([_standing()], _UNREAD, _at(1000.0))
    (told,) = _said(engine)
    assert (told.change, told.type, told.device, told.severity, told.recovered) == (
        Change.SET,
        "fs_readonly",
        "sda1",
        Gravity.CRITICAL,
        False,
    )
    assert (told.fault_class, told.fault_id, told.sequence, told.detail) == (
        FaultClass.FILE_SYSTEM,
        "f1",
        1,
        {"device": "sda1", "value": "1"},
    )
    engine.judge([_standing()], _UNREAD, _at(1005.0))
    assert list(_said(engine)) == []
    engine.judge([], _reads(True, {"device": "sda1"}), _at(1010.0))
    (told,) = _said(engine)
    assert (told.change, told.fault_id, told.recovered, told.severity) == (Change.CLEARED, "f1", True, Gravity.CRITICAL)
    assert told.detail == {"cleared_by": "it reads well again"}
    assert engine.active == {}


@pytest.mark.parametrize("answer", [None, False])
def test_a_reading_that_is_gone_or_between_its_edges_clears_nothing(answer: Answer) -> None:
    engine = _engine()
    engine.judge([_standing()], _UNREAD, _at(1000.0))
    engine.judge([], _reads(answer, {"device": "sda1"}), _at(1005.0))
    engine.judge([], _reads(True, {"device": "sdb1"}), _at(1010.0))
    assert _only(engine).unseen
    assert [one.change for one in _said(engine)] == [Change.SET]


def test_batches_of_other_components_do_not_flap() -> None:
    """Defect 25: a batch without NPUs made every fault recover."""
    engine = _engine()
    npu = _standing("npu.card_drop", entity=("npu_id",), npu_id="3")
    for second in range(10):
        engine.judge([npu] if second % 2 == 0 else [], _UNREAD, _at(1000.0 + second))
    assert [(one.type, one.npu_id) for one in _said(engine)] == [("card_drop", "3")]


def test_a_card_keeps_its_name_when_indexes_move_up() -> None:
    engine = _engine()
    engine.cards = {("gpu", "2"): {"gpu_id": "2", "uuid": "GPU-b"}, ("gpu", "3"): {"gpu_id": "3", "uuid": "GPU-c"}}
    engine.judge([_standing("gpu.reset_required", entity=("gpu_id",), gpu_id="3")], _UNREAD, _at(1000.0))
    # Card 1 is lost: the sick one is number 2 by now, and number 3 is another, sound card.
    engine.cards = {("gpu", "2"): {"gpu_id": "2", "uuid": "GPU-c"}, ("gpu", "3"): {"gpu_id": "3", "uuid": "GPU-d"}}
    engine.judge([_standing("gpu.reset_required", entity=("gpu_id",), gpu_id="2")], _UNREAD, _at(1005.0))
    engine.judge([], _reads(True, {"gpu_id": "3"}), _at(1010.0))
    assert _only(engine).device == "GPU-c"
    engine.judge([], _reads(True, {"gpu_id": "2"}), _at(1015.0))
    told = list(_said(engine))
    assert [(one.change, one.gpu_id, one.device) for one in told] == [
        (Change.SET, "3", "GPU-c"),
        (Change.CLEARED, "3", "GPU-c"),
    ]
    assert engine.active == {}


@pytest.mark.parametrize(
    ("line", "bus", "gpu_id"),
    [
        ("0000:05:00", "00000000:05:00.0", "4"),
        ("0018:01:00.0", "00000018:01:00.0", "4"),
        ("0000:05:00", "00000000:06:00.0", ""),
    ],
)
def test_an_event_of_the_kernel_finds_its_card_by_the_bus(line: str, bus: str, gpu_id: str) -> None:
    engine = _engine()
    engine.cards = {("gpu", "4"): {"gpu_id": "4", "uuid": "GPU-e", "pci_bus_id": bus}, ("npu", "0"): {"bus_id": bus}}
    engine.kernel([_kernel(f"NVRM: Xid (PCI:{line}): 79, GPU has fallen off the bus.")], _at(1000.0))
    (told,) = _said(engine)
    assert (told.gpu_id, told.device) == (gpu_id, line)
    assert told.labels == ({"gpu_id": "4", "uuid": "GPU-e", "pci_bus_id": bus} if gpu_id else {"pci": line})


def test_an_event_of_an_npu_driver_names_its_card() -> None:
    engine = _engine()
    engine.cards = {("npu", "3"): {"npu_id": "3", "bus_id": "0000:C1:00.0"}}
    engine.kernel([_kernel("[ascend] [drv_pcie] device heartbeat lost, dev_id=3")], _at(1000.0))
    engine.kernel([_kernel("[ascend] [ERROR] [devmm] alloc failed")], _at(1000.0))
    assert [(one.type, one.npu_id, one.change) for one in _said(engine)] == [
        ("card_drop", "3", Change.SET),
        ("driver_unhealthy", "", Change.EVENT),
    ]


@pytest.mark.parametrize(
    ("rule", "severity", "value", "tier", "expected"),
    [
        ("npu.card_drop", Severity.CRITICAL, 1.0, "card_drop", ("card_drop", Gravity.CRITICAL)),
        ("npu.drop_code", Severity.CRITICAL, 1.0, "", ("card_drop", Gravity.CRITICAL)),
        ("npu.health", Severity.WARNING, 2.0, "health_warning", None),
        ("npu.health", Severity.CRITICAL, 3.0, "health_alarm", ("npu_health", Gravity.WARNING)),
        ("npu.health", Severity.CRITICAL, 4.0, "health_alarm", ("npu_health", Gravity.CRITICAL)),
        ("npu.error_code", Severity.WARNING, 2.0, "error_code", ("npu_error_code", Gravity.WARNING)),
        ("npu.hbm_ecc", Severity.CRITICAL, 1.0, "hbm_double_ecc", ("hbm_uce", Gravity.CRITICAL)),
        ("npu.hbm_ecc", Severity.INFO, 9.0, "hbm_single_ecc", None),
        ("npu.ddr_ecc", Severity.CRITICAL, 1.0, "ddr_double_ecc", ("ddr_uce", Gravity.CRITICAL)),
        ("npu.roce_link_down", Severity.INFO, 0.0, "", ("roce_link_down", Gravity.WARNING)),
        ("npu.driver_unhealthy", Severity.WARNING, 1.0, "", ("driver_unhealthy", Gravity.WARNING)),
        ("npu.straggler", Severity.WARNING, 1.0, "", ("straggler", Gravity.WARNING)),
        ("gpu.temperature", Severity.INFO, 91.0, "temp>90C", ("thermal", Gravity.WARNING)),
        ("gpu.temperature", Severity.INFO, 85.0, "temp>80C", None),
        ("gpu.utilization", Severity.INFO, 99.0, "util>95%", None),
    ],
)
def test_each_type_of_the_reference_positive_and_negative(
    rule: str, severity: Severity, value: float, tier: str, expected: tuple[str, Gravity] | None
) -> None:
    engine = _engine()
    condition = _standing(rule, severity, ("npu_id",), npu_id="3")
    engine.judge([msgspec.structs.replace(condition, value=value, tier=tier)], _UNREAD, _at(1000.0))
    assert [(one.type, one.severity) for one in engine.said] == ([expected] if expected else [])


def test_a_fault_that_gets_graver_is_told_once() -> None:
    engine = _engine()
    for value in (3.0, 3.0, 4.0, 3.0):
        condition = _standing("npu.health", Severity.CRITICAL, ("npu_id",), npu_id="1", status="Alarm")
        engine.judge([msgspec.structs.replace(condition, value=value, tier="health_alarm")], _UNREAD, _at(1000.0))
    assert [(one.change, one.severity) for one in _said(engine)] == [
        (Change.SET, Gravity.WARNING),
        (Change.GRAVER, Gravity.CRITICAL),
    ]
    assert _only(engine).severity is Gravity.CRITICAL


def test_findings_that_are_no_faults_make_none() -> None:
    engine = _engine()
    engine.judge(
        [_standing("cpu.usage"), _standing("disk.file_system_full"), _standing("gpu.xid"), _standing("gpu.new", Severity.INFO)],
        _UNREAD,
        _at(1000.0),
    )
    assert engine.said == []
    engine.judge([_standing("gpu.fabric_manager_down", Severity.WARNING, ("gpu_id",), gpu_id="0")], _UNREAD, _at(1000.0))
    assert [(one.type, one.fault_class) for one in _said(engine)] == [("fabric_manager_down", FaultClass.DEVICE)]


def test_a_kernel_line_sets_a_fault_that_the_next_boot_ends() -> None:
    engine = _engine()
    engine.kernel([_kernel(XID_79)], _at(1000.5))
    (told,) = _said(engine)
    assert (told.type, told.rule, told.device, told.component, told.timestamp) == (
        "card_drop",
        "xid.79",
        "0000:05:00",
        "gpu",
        rfc3339(_T0 + 1000.0),
    )
    engine.expire(_at(1e6), log_readable=True)
    state = engine.state(_at(1e6))
    assert [fault.until_boot for fault in state.faults] == [True]
    assert _engine(state).said == []
    booted = _engine(state, boot="another")
    assert [(one.change, one.detail) for one in booted.said] == [(Change.CLEARED, {"cleared_by": "the machine was booted"})]
    assert booted.active == {}
    assert booted.place.sequence == -1


def test_quiet_ends_a_fault_only_while_the_log_can_be_read() -> None:
    engine = _engine()
    line = "blk_update_request: I/O error, dev sda, sector 12345 op 0x0:(READ)"
    engine.kernel([_kernel(line)], _at(1000.0))
    engine.expire(_at(4599.0), log_readable=True)
    engine.expire(_at(4601.0), log_readable=False)
    engine.expire(_at(8200.0), log_readable=True)
    assert len(engine.active) == 1
    engine.expire(_at(8201.0), log_readable=True)
    assert [one.detail.get("cleared_by") for one in _said(engine)] == [None, "there was quiet for 3600 s"]


def test_quiet_goes_on_over_a_restart_and_wall_clocks_that_jump_back_add_none() -> None:
    engine = _engine()
    engine.kernel([_kernel("blk_update_request: I/O error, dev sda, sector 1")], _at(1000.0))
    state = engine.state(_at(1000.0))
    later = Engine(state, _BOOT, _ids(), _at(4500.0))
    later.expire(_at(4601.0), log_readable=True)
    assert later.active == {}
    back = Engine(state, _BOOT, _ids(), _at(4500.0, step_s=-90_000.0))
    back.expire(_at(4601.0, step_s=-90_000.0), log_readable=True)
    assert len(back.active) == 1


def test_the_time_while_the_machine_was_off_was_not_quiet() -> None:
    engine = _engine()
    engine.kernel([_kernel("blk_update_request: I/O error, dev sda, sector 1")], _at(1000.0))
    state = engine.state(_at(1000.0))
    booted = Engine(state, "another boot", _ids(), _at(30.0, step_s=90_000.0))
    booted.expire(_at(60.0, step_s=90_000.0), log_readable=True)
    assert len(booted.active) == 1
    booted.expire(_at(30.0 + 3601.0, step_s=90_000.0), log_readable=True)
    assert booted.active == {}


def test_a_storm_is_one_entry_and_then_seldom_another() -> None:
    """Case 16: an application's tear-down, told once with its count, and no fault."""
    engine = _engine()
    line = "NVRM: Xid (PCI:0000:61:00): 45, pid=1496200, name=trainer, Ch 0000000a"
    engine.kernel([_kernel(line, times=10_000, first_s=999.0)], _at(1000.0))
    for minute in range(1, 180):
        engine.kernel(
            [_kernel(line, mono_s=1000.0 + 60 * minute, times=10_000 + minute, first_s=999.0)], _at(1000.0 + 60 * minute)
        )
    told = list(_said(engine))
    assert engine.active == {}
    assert [(one.change, one.severity, one.fault_class) for one in told[:1]] == [
        (Change.EVENT, Gravity.INFO, FaultClass.APPLICATION)
    ]
    assert [one.count for one in told] == [10_000, 10_001, 10_003, 10_007, 10_015, 10_031, 10_063, 10_123]


def test_a_line_that_anybody_may_have_written_is_never_a_fault() -> None:
    engine = _engine()
    forged = event(XID_79, facility=1)
    assert forged is not None
    for number in range(100):
        device = msgspec.structs.replace(forged, device=f"0000:{number:02x}:00", mono_s=1000.0 + number)
        engine.kernel([CoalescedEvent(device, 1, 1000.0, 1000.0 + number)], _at(1000.0 + number))
    (told,) = _said(engine)
    assert (told.type, told.severity, told.verified, told.rule) == ("unverified_line", Gravity.INFO, False, "kernel.unverified")
    assert engine.active == {}


def test_entries_of_ever_new_devices_are_bounded() -> None:
    engine = _engine()
    engine.kernel([_kernel(f"NVRM: Xid (PCI:0000:{n >> 8:02x}:{n & 255:02x}): 31, x") for n in range(500)], _at(1000.0))
    assert len(engine.said) == 120
    assert engine.dropped == 380


def test_corrected_errors_make_a_fault_by_their_number_within_a_window() -> None:
    engine = _engine()
    line = "pcieport 0000:00:01.0: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"

    def told(mono_s: float, times: int) -> None:
        engine.kernel([_kernel(line, mono_s=mono_s, times=times, first_s=1000.0)], _at(mono_s))

    told(1000.0, 1)
    told(1060.0, 99)
    assert engine.active == {}
    # Hours later it is as many altogether, and few within an hour.
    told(20_000.0, 150)
    told(20_060.0, 180)
    assert engine.active == {}
    told(20_120.0, 250)
    assert _only(engine).rule == "kernel.pcie_corrected"
    assert _only(engine).count == 250


def test_operators_acknowledge_hold_release_and_clear() -> None:
    engine = _engine()
    engine.judge([_standing()], _UNREAD, _at(1000.0))

    def order(kind: OrderKind, note: str = "") -> Fault:
        return engine.obey(Order(kind, "f1", "ops", note), _at(1001.0))

    assert order(OrderKind.ACKNOWLEDGE, "disk ordered").acknowledged is not None
    with pytest.raises(UsageError, match="still reads so"):
        order(OrderKind.CLEAR)
    order(OrderKind.HOLD)
    engine.judge([], _reads(True, {"device": "sda1"}), _at(1010.0))
    assert (_only(engine).held, _only(engine).over) == (True, True)
    engine.judge([], _reads(True, {"device": "sda1"}), _at(1015.0))
    order(OrderKind.RELEASE)
    assert [(one.change, one.detail.get("by")) for one in _said(engine)] == [
        (Change.SET, None),
        (Change.ACKNOWLEDGED, "ops"),
        (Change.HELD, "ops"),
        (Change.RELEASED, "ops"),
        (Change.CLEARED, None),
    ]
    with pytest.raises(UsageError, match="no fault 'f1' stands"):
        order(OrderKind.RELEASE)
    engine.kernel([_kernel(XID_79)], _at(1020.0))
    engine.obey(Order(OrderKind.HOLD, "f6", "ops"), _at(1021.0))
    engine.obey(Order(OrderKind.RELEASE, "f6", "ops"), _at(1021.0))
    engine.obey(Order(OrderKind.CLEAR, "f6", "ops", "reseated"), _at(1022.0))
    assert list(_said(engine))[-1].detail == {"cleared_by": "cleared by ops", "by": "ops", "note": "reseated"}


def test_a_held_fault_that_comes_back_is_over_no_longer() -> None:
    engine = _engine()
    engine.judge([_standing()], _UNREAD, _at(1000.0))
    engine.obey(Order(OrderKind.HOLD, "f1", "ops"), _at(1001.0))
    engine.judge([], _reads(True, {"device": "sda1"}), _at(1010.0))
    engine.judge([_standing()], _UNREAD, _at(1020.0))
    assert not _only(engine).over


@pytest.mark.parametrize("rule", drill_rules())
def test_every_rule_can_be_drilled_and_the_drill_ends_by_itself(rule: str) -> None:
    engine = _engine()
    order = Order(OrderKind.INJECT, rule, "ops", seconds=30.0)
    fault = engine.obey(order, _at(1000.0), drill_rule(rule))
    assert fault.drill
    assert fault.message.startswith("DRILL: ")
    with pytest.raises(UsageError, match="is under way"):
        engine.obey(order, _at(1001.0), drill_rule(rule))
    engine.judge([], _reads(True, {}), _at(1020.0))
    engine.expire(_at(1029.0), log_readable=True)
    assert len(engine.active) == 1
    engine.expire(_at(1030.0), log_readable=True)
    assert [(one.change, one.drill) for one in _said(engine)] == [(Change.SET, True), (Change.CLEARED, True)]


def test_no_drill_of_what_makes_no_fault() -> None:
    for rule in ("cpu.usage", "xid.45", "xid.x", "kernel.ascend_error", "nothing", "xid.777", ""):
        assert drill_rule(rule) is None, rule
    with pytest.raises(UsageError, match=r"no rule 'xid\.45' makes a fault"):
        _engine().obey(Order(OrderKind.INJECT, "xid.45", "ops"), _at(1000.0), None)


def test_a_rule_that_is_switched_off_finds_nothing_and_ends_what_it_found() -> None:
    engine = _engine()
    engine.judge([_standing()], _UNREAD, _at(1000.0))
    engine.kernel([_kernel(XID_79)], _at(1000.0))
    off = _engine(engine.state(_at(1001.0)), off=("fs_readonly", "card_drop"))
    assert [one.detail["cleared_by"] for one in _said(off)] == ["its rule is switched off"] * 2
    off.judge([_standing()], _UNREAD, _at(1002.0))
    off.kernel([_kernel(XID_79)], _at(1002.0))
    assert (off.said, off.active) == ([], {})


def test_what_the_log_has_beyond_the_kept_state_is_taken_over() -> None:
    """The daemon died between the two."""
    engine = _engine()
    kept = engine.state(_at(1000.0))
    engine.judge([_standing()], _UNREAD, _at(1000.0))
    engine.kernel([_kernel(XID_79)], _at(1000.0))
    engine.obey(Order(OrderKind.CLEAR, "f2", "ops"), _at(1001.0))
    again = _engine(kept)
    for entry in engine.said:
        again.replay(entry)
    assert again.sequence == 3
    assert _only(again).fault_id == "f1"
    again.judge([], _reads(True, {"device": "sda1"}), _at(1010.0))
    assert again.active == {}


def test_what_operators_did_is_taken_over_too() -> None:
    engine = _engine()
    kept = engine.state(_at(1000.0))
    engine.kernel([_kernel(XID_79)], _at(1000.0))
    engine.kernel([_kernel(_RLW.format("Nonfatal"))], _at(1000.0))
    engine.kernel([_kernel(_RLW.format("Fatal"))], _at(1001.0))
    engine.obey(Order(OrderKind.ACKNOWLEDGE, "f1", "ops", "seen"), _at(1002.0))
    engine.obey(Order(OrderKind.HOLD, "f1", "ops"), _at(1002.0))
    engine.obey(Order(OrderKind.HOLD, "f2", "ops"), _at(1002.0))
    engine.obey(Order(OrderKind.RELEASE, "f2", "ops"), _at(1003.0))
    again = _engine(kept)
    for entry in engine.said:
        again.replay(entry)
    assert {fault.fault_id: (fault.severity, fault.held, fault.acknowledged) for fault in again.active.values()} == {
        fault.fault_id: (fault.severity, fault.held, fault.acknowledged) for fault in engine.active.values()
    }
    again.replay(msgspec.structs.replace(engine.said[0], change=Change.EVENT))
    assert len(again.active) == 2


def test_what_was_told_and_counted_is_forgotten_in_the_end() -> None:
    engine = _engine()
    aer = "pcieport 0000:{:02x}:{:02x}.0: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"
    for number in range(1100):
        at = 1000.0 + 10 * number
        engine.kernel([_kernel(f"NVRM: Xid (PCI:0000:{number >> 8:02x}:{number & 255:02x}): 31, x", mono_s=at)], _at(at))
        engine.kernel([_kernel(aer.format(number >> 8, number & 255), mono_s=at)], _at(at))
    assert (len(engine._told), len(engine._counted)) == (1024, 1024)


def test_numbers_go_on_and_there_is_an_end_to_everything() -> None:
    engine = _engine()
    engine.judge([_standing(device=f"d{number}") for number in range(5000)], _UNREAD, _at(1000.0))
    assert len(engine.active) == 4096
    assert engine.dropped == 5000 - 4096
    assert engine.sequence == 4096


def test_an_event_that_is_handed_in_makes_no_fault() -> None:
    engine = _engine()
    given = FaultEvent(
        event_id="",
        type="straggler_detected",
        component="npu",
        npu_id="5",
        severity=Gravity.WARNING,
        detail={},
        timestamp="",
        recovered=False,
        sequence=0,
        change=Change.EVENT,
        fault_class=FaultClass.STRAGGLER,
        rule="ingest",
        device="5",
        message="",
        boot_id="",
        verified=False,
    )
    taken = engine.record(given, _at(1000.0))
    assert (len(taken.event_id), taken.timestamp, taken.sequence, taken.boot_id) == (32, rfc3339(_T0 + 1000.0), 1, _BOOT)
    kept = engine.record(msgspec.structs.replace(given, event_id="a" * 32, timestamp=rfc3339(_T0)), _at(1001.0))
    assert (kept.event_id, kept.timestamp, kept.sequence) == ("a" * 32, rfc3339(_T0), 2)
    assert engine.active == {}


def test_a_whole_that_is_graver_by_its_words_makes_the_fault_graver() -> None:
    engine = _engine()
    engine.kernel([_kernel(_RLW.format("Nonfatal"))], _at(1000.0))
    engine.kernel([_kernel(_RLW.format("Nonfatal"), times=7)], _at(1001.0))
    assert _only(engine).count == 7
    engine.kernel([_kernel(_RLW.format("Fatal"))], _at(1002.0))
    assert [(one.change, one.severity) for one in _said(engine)] == [
        (Change.SET, Gravity.WARNING),
        (Change.GRAVER, Gravity.CRITICAL),
    ]


def test_lines_that_are_only_counted_make_nothing() -> None:
    engine = _engine()
    quiet = KernelEvent(EventKind.SEGFAULT, Gravity.INFO, "", "", "a[1]: segfault at 0", 1, 1.0, 0, verified=True)
    engine.kernel([CoalescedEvent(quiet, 1, 1.0, 1.0)], _at(1000.0))
    assert engine.said == []


def test_switch_errors_have_rules_of_their_own() -> None:
    engine = _engine()
    engine.kernel([_kernel("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up")], _at(1000.0))
    (told,) = _said(engine)
    assert (told.rule, told.type, told.severity) == ("sxid.20034", "link_down", Gravity.CRITICAL)
    assert told.detail["code"] == "20034"


@pytest.mark.parametrize("code", [code for code, entry in SXIDS.items() if entry.stands])
def test_a_drill_of_a_switch_error_goes_by_its_number(code: int) -> None:
    rule = event_rule(f"sxid.{code}")
    assert rule is not None
    assert (rule.name, rule.component, rule.stands) == (f"sxid.{code}", "gpu", True)


def test_a_fault_is_as_old_as_the_first_reading_that_led_to_it() -> None:
    """Three readings confirm a condition: the fault began with the first of them, and was told of at the third."""
    engine = _engine()
    engine.judge([_standing()], _UNREAD, _at(1000.0))
    (told,) = _said(engine)
    assert told.since == _only(engine).since == rfc3339(_T0 + 990.0)
    assert told.timestamp == rfc3339(_T0 + 1000.0)


def test_a_fault_of_the_kernel_log_is_as_old_as_its_first_line() -> None:
    engine = _engine()
    line = "EXT4-fs error (device sda1): ext4_find_entry:1463: inode #2: comm ls: reading directory lblock 0"
    engine.kernel([_kernel(line, mono_s=1000.0, first_s=940.0, times=7)], _at(1001.0))
    (told,) = _said(engine)
    assert (told.count, told.since, told.timestamp) == (7, rfc3339(_T0 + 940.0), rfc3339(_T0 + 1000.0))
    assert _only(engine).since == told.since
    # Cleared by an operator; the whole that is counted goes on since before.
    engine.obey(Order(OrderKind.CLEAR, told.fault_id, "root", ""), _at(1100.0))
    engine.kernel([_kernel(line, mono_s=1200.0, first_s=940.0, times=8, sequence=6)], _at(1201.0))
    assert _only(engine).since == rfc3339(_T0 + 1200.0)


def test_a_fault_of_many_events_begins_with_the_first_that_counts() -> None:
    engine = _engine()
    corrected = "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x1 offset:0x0)"
    day = 86400.0
    engine.kernel([_kernel(corrected, mono_s=2 * day, first_s=0.0, times=60)], _at(2 * day))
    engine.kernel([_kernel(corrected, mono_s=2 * day + 900.0, first_s=0.0, times=110)], _at(2 * day + 900.0))
    assert engine.active == {}, "what came more than a day before does not count"
    engine.kernel([_kernel(corrected, mono_s=2 * day + 1800.0, first_s=0.0, times=180)], _at(2 * day + 1800.0))
    assert _only(engine).since == rfc3339(_T0 + 2 * day)
