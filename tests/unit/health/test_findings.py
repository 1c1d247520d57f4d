"""Every finding beyond the tables: on and off at its threshold, with its words."""

from string import Formatter
from typing import NamedTuple

import pytest

from nodeproof.errors import Absence
from nodeproof.health import Evaluator
from nodeproof.health.findings import FINDINGS
from nodeproof.health.rules import FindingRule
from nodeproof.model.catalogue import CATALOGUE
from nodeproof.model.health import HealthScore
from support.findings_gpu import GPU_CASES
from support.node import Node, by_rule, finding, healthy, unknown, with_gpus

RUN = {"mount_point": "/run"}
ROOT = {"device": "/dev/sda1", "mount_point": "/", "fstype": "ext4"}
SDA = {"device": "sda"}
ETH0 = {"interface": "eth0"}
IB = {"device": "mlx5_0", "port": "1"}
DIMM = {"locator": "DIMM_A1", "rated": "3200", "configured": "2933"}
FULL = {"stall": "full", "interval": "avg60"}


class Case(NamedTuple):
    rule: str
    severity: str
    labels: dict[str, str]
    good: float
    """The last value that is not bad; for growth the total before."""
    bad: float
    """The first value that is."""
    message: str
    metric: str = ""
    """Where the name of the metric is not the rule's."""


def event(kind: str, severity: str) -> dict[str, str]:
    return {"kind": kind, "severity": severity}


EVENTS = "system.kernel_events_total"
CHIP = {"npu_id": "3", "chip_id": "0"}
CASES = [
    Case(
        "npu.drop_code",
        "critical",
        {**CHIP, "error_codes": "0x80e18005,0x40f84e00"},
        0,
        2,
        "NPU 3 reports the error code of a lost card",
        "npu.error_code",
    ),
    Case("npu.driver_unhealthy", "warning", CHIP, 0, 5, "the driver of NPU 3 calls itself unwell (5)", "npu.driver_health"),
    Case("npu.roce_link_down", "info", CHIP, 1, 0, "the RoCE port of NPU 3 has no link", "npu.roce_link_status"),
    Case(
        "cpu.uncorrected_machine_check",
        "critical",
        {"severity": "uncorrected"},
        3,
        4,
        "1 uncorrected machine checks within 24 h",
        "cpu.machine_checks",
    ),
    Case(
        "cpu.slowed_by_heat",
        "warning",
        {"package": "0"},
        700,
        702,
        "processor package 0 was slowed down by heat 2 times within 10 min",
        "cpu.core_throttles",
    ),
    Case(
        "cpu.package_slowed_by_heat",
        "warning",
        {"package": "1"},
        7,
        8,
        "processor package 1 as a whole was slowed down by heat 1 times within 10 min",
        "cpu.package_throttles",
    ),
    Case("cpu.cores_offline", "info", {}, 0, 1, "1 logical processors are switched off", "cpu.offline_core_num"),
    Case(
        "cpu.pressure",
        "info",
        {"stall": "some", "interval": "avg60"},
        80,
        80.5,
        "tasks waited for a processor 80.5 % of the last minute",
        "cpu.pressure",
    ),
    Case(
        "memory.broken_pages",
        "warning",
        {},
        0,
        0.25,
        "the kernel took 0.25 MB of broken memory out of use",
        "memory.hardware_corrupted",
    ),
    Case("memory.oom_kills", "warning", {}, 5, 7, "2 processes were killed for want of memory within 1 h", "memory.oom_count"),
    Case(
        "memory.cgroup_oom_kills",
        "warning",
        {"cgroup": "/job"},
        1,
        2,
        "1 processes of control group /job were killed for want of memory within 1 h",
    ),
    Case(
        "memory.cgroup_limit_near",
        "warning",
        {"cgroup": "/job"},
        95,
        95.5,
        "control group /job uses 95.5 % of the memory it may use",
        "memory.cgroup_usage",
    ),
    Case("memory.pressure", "warning", FULL, 10, 10.5, "all tasks stood still for want of memory 10.5 % of the last minute"),
    Case(
        "memory.uncorrected_total",
        "info",
        {"mc": "mc0"},
        0,
        1,
        "memory controller mc0 has counted 1 uncorrected errors since its driver was loaded",
        "memory.ecc_uce_errors",
    ),
    Case(
        "memory.corrected_total",
        "info",
        {"mc": "mc0"},
        0,
        2,
        "memory controller mc0 has counted 2 corrected errors since its driver was loaded",
        "memory.ecc_ce_errors",
    ),
    Case(
        "memory.module_slow",
        "info",
        DIMM,
        0,
        1,
        "memory module DIMM_A1 runs at 2933 instead of 3200",
        "memory.module_speed_downclocked",
    ),
    Case("system.clock_not_synchronised", "warning", {}, 1, 0, "nobody disciplines the clock", "system.clock_synced"),
    Case(
        "system.clock_stepped",
        "info",
        {"direction": "back"},
        0,
        1,
        "the wall clock jumped back 1 times within 1 h",
        "system.clock_steps_total",
    ),
    Case("system.task_stuck", "warning", {}, 120, 135, "a process has been in state D for 135 s", "system.disk_sleep_longest"),
    Case(
        "system.zombies",
        "warning",
        {"state": "zombie"},
        100,
        101,
        "101 processes have ended and nobody collects them",
        "system.processes",
    ),
    Case("system.file_handles_short", "warning", {}, 90, 91, "91 % of all file handles are in use", "system.file_handles_usage"),
    Case("system.pids_short", "warning", {}, 90, 91, "91 % of all process numbers are in use", "system.pid_usage"),
    Case(
        "system.kernel_oops", "critical", event("oops", "critical"), 0, 1, "the kernel itself faulted 1 times within 24 h", EVENTS
    ),
    Case(
        "system.soft_lockup",
        "critical",
        event("soft_lockup", "critical"),
        1,
        2,
        "a processor was stuck in the kernel 1 times within 1 h",
        EVENTS,
    ),
    Case(
        "system.hard_lockup",
        "critical",
        event("hard_lockup", "critical"),
        0,
        1,
        "a processor took no interrupts, 1 times within 1 h",
        EVENTS,
    ),
    Case(
        "system.rcu_stall",
        "critical",
        event("rcu_stall", "critical"),
        0,
        1,
        "the kernel reported 1 RCU stalls within 1 h",
        EVENTS,
    ),
    Case(
        "system.hung_task", "warning", event("hung_task", "warning"), 0, 3, "the kernel reported 3 hung tasks within 1 h", EVENTS
    ),
    Case(
        "system.firmware_error",
        "critical",
        event("firmware_error", "critical"),
        0,
        1,
        "firmware reported 1 fatal hardware errors within 24 h",
        EVENTS,
    ),
    Case(
        "system.pcie_fatal",
        "critical",
        {"severity": "fatal"},
        0,
        1,
        "1 fatal PCIe errors within 24 h",
        "system.pcie_errors_total",
    ),
    Case(
        "system.pcie_nonfatal",
        "warning",
        {"severity": "nonfatal"},
        4,
        5,
        "1 uncorrected PCIe errors within 24 h",
        "system.pcie_errors_total",
    ),
    Case("gpu.xid", "critical", event("xid", "critical"), 0, 1, "the driver reported 1 grave errors (XID) within 1 h", EVENTS),
    Case("gpu.sxid", "critical", event("sxid", "critical"), 0, 1, "the driver reported 1 grave errors (SXID) within 1 h", EVENTS),
    Case(
        "daemon.collector_hung",
        "warning",
        {"collector": "disk"},
        0,
        0.5,
        "collector disk has overrun its deadline by 0.5 s",
    ),
    Case(
        "daemon.collector_failing",
        "warning",
        {"collector": "npu"},
        0,
        1,
        "collector npu fails: what it observes cannot be told",
    ),
    Case(
        "daemon.not_written",
        "warning",
        {"sink": "jsonl"},
        0,
        1,
        "what the daemon writes (jsonl) cannot be written: it is not on record",
        "daemon.sink_failing",
    ),
    Case("disk.tmpfs_full", "warning", RUN, 95, 95.1, "/run, which lies in memory, is 95.1 % full", "disk.tmpfs_usage"),
    Case(
        "disk.tmpfs_inodes_full",
        "warning",
        RUN,
        95,
        95.1,
        "/run, which lies in memory, uses 95.1 % of its inodes",
        "disk.tmpfs_inode_usage",
    ),
    Case(
        "network.neighbour_table_full",
        "warning",
        {"family": "ipv4"},
        3,
        5,
        "the ipv4 neighbour table was full 2 times within 1 h",
    ),
    Case("network.tcp_memory_short", "warning", {}, 90, 91, "TCP uses 91 % of the memory it may use", "network.tcp_memory_usage"),
    Case("disk.read_only", "critical", ROOT, 0, 1, "/ (/dev/sda1) has become read-only", "disk.read_only_remount"),
    Case("disk.inodes_short", "info", ROOT, 90, 90.1, "/ uses 90.1 % of its inodes", "disk.inode_usage"),
    Case("disk.inodes_full", "warning", ROOT, 95, 95.1, "/ uses 95.1 % of its inodes", "disk.inode_usage"),
    Case(
        "disk.file_system_errors",
        "warning",
        {"device": "sda1", "fstype": "ext4", "error": "total"},
        0,
        1,
        "ext4 on sda1 has 1 errors on record",
        "disk.filesystem_errors",
    ),
    Case("disk.pressure", "warning", FULL, 50, 51, "all tasks stood still for want of I/O 51 % of the last minute"),
    Case(
        "disk.raid_degraded",
        "critical",
        {"device": "md0", "level": "raid1"},
        0,
        1,
        "RAID array md0 runs without all of its members",
        "disk.raid_state",
    ),
    Case("disk.raid_inactive", "warning", {"device": "md0", "level": ""}, 0, 2, "RAID array md0 is inactive", "disk.raid_state"),
    Case(
        "disk.raid_failed", "critical", {"device": "md0", "level": "raid5"}, 2, 3, "RAID array md0 has failed", "disk.raid_state"
    ),
    Case("disk.io_errors", "warning", SDA, 0, 2, "2 requests to sda failed within 1 h"),
    Case(
        "disk.controller_resets",
        "warning",
        {"device": "nvme0"},
        1,
        2,
        "nvme0 timed out or was reset 1 times within 1 h",
        "disk.storage_resets",
    ),
    Case(
        "disk.failing_attributes",
        "critical",
        SDA,
        0,
        1,
        "disk sda: 1 SMART attributes foretell failure",
        "disk.smart_failing_attributes",
    ),
    Case(
        "disk.nvme_failing",
        "critical",
        SDA,
        0,
        8,
        "disk sda is unreliable or has made itself read-only (critical warning 8)",
        "disk.smart_critical_warning",
    ),
    Case(
        "disk.nvme_warning",
        "warning",
        SDA,
        0,
        2,
        "disk sda warns of spare, temperature or its write cache (critical warning 2)",
        "disk.smart_critical_warning",
    ),
    Case("disk.worn", "warning", SDA, 99, 100, "disk sda has used 100 % of its rated endurance", "disk.smart_percentage_used"),
    Case(
        "disk.pending_sectors",
        "warning",
        SDA,
        0,
        8,
        "disk sda has 8 sectors that cannot be read",
        "disk.smart_pending_sectors",
    ),
    Case(
        "disk.unreadable_sectors",
        "warning",
        SDA,
        0,
        1,
        "disk sda found 1 sectors unreadable",
        "disk.smart_offline_uncorrectable",
    ),
    Case(
        "disk.new_reallocations",
        "warning",
        SDA,
        500,
        501,
        "disk sda replaced 1 sectors by spares within 24 h",
        "disk.smart_reallocated_sectors",
    ),
    Case(
        "disk.media_errors",
        "warning",
        SDA,
        3,
        4,
        "disk sda could not deliver data 1 times within 24 h",
        "disk.smart_media_errors",
    ),
    Case(
        "disk.crc_errors",
        "warning",
        SDA,
        3,
        4,
        "1 transfers to disk sda were damaged within 24 h",
        "disk.smart_crc_errors",
    ),
    Case("network.link_lost", "warning", ETH0, 0, 1, "eth0 had a link and has none now"),
    Case(
        "network.link_flaps",
        "warning",
        ETH0,
        2,
        3,
        "the link of eth0 went down 3 times within 1 h",
        "network.link_flaps",
    ),
    Case("network.half_duplex", "warning", ETH0 | {"duplex": "half"}, 1, 0, "eth0 runs at half duplex", "network.duplex"),
    Case("network.speed_fell", "warning", ETH0, 25000, 10000, "eth0 runs at 40 % of the speed it had", "network.speed"),
    Case(
        "network.bond_down",
        "critical",
        {"interface": "bond0", "mode": "lacp"},
        1,
        0,
        "bond bond0 has no link",
        "network.bond_status",
    ),
    Case(
        "network.ib_port_down",
        "critical",
        IB | {"link_layer": "InfiniBand", "state": "DOWN"},
        1,
        0,
        "InfiniBand port mlx5_0/1 was active and is DOWN",
        "network.ib_port_state",
    ),
    Case(
        "network.ib_saturated",
        "warning",
        IB | {"counter": "symbol_error"},
        0,
        1,
        "counter symbol_error of mlx5_0/1 stands at its greatest value: it must be reset before it can tell anything",
    ),
    Case(
        "network.ib_link_downed",
        "warning",
        IB | {"type": "link_downed"},
        2,
        3,
        "the link of mlx5_0/1 failed 1 times within 1 h",
        "network.ib_error_total",
    ),
    Case(
        "network.ib_symbol_errors",
        "warning",
        IB | {"type": "symbol_error"},
        0,
        101,
        "mlx5_0/1 had 101 symbol errors within 1 h",
        "network.ib_error_total",
    ),
    Case(
        "network.conntrack_full",
        "warning",
        {},
        90,
        91,
        "the firewall tracks 91 % of the connections it can track",
        "network.conntrack_usage",
    ),
    Case(
        "network.listen_overflows",
        "info",
        {},
        7,
        9,
        "2 connections were refused within 10 min because a listener's queue was full",
    ),
    Case(
        "chassis.psu_failed",
        "critical",
        {"psu": "PS1"},
        1,
        2,
        "power supply PS1 has failed, has no input, or is gone (state 2)",
        "chassis.psu_state",
    ),
    Case(
        "chassis.psu_warning",
        "warning",
        {"psu": "PS1"},
        0,
        1,
        "power supply PS1 foretells failure or does not match the others",
        "chassis.psu_state",
    ),
    Case(
        "chassis.psu_redundancy",
        "warning",
        {"sensor": "PS Redundancy"},
        0,
        1,
        "power supplies are no longer redundant (PS Redundancy, state 1)",
    ),
    Case(
        "chassis.fan_failed",
        "critical",
        {"fan": "3", "direction": "F"},
        1,
        2,
        "fan 3F has failed or fell silent",
        "chassis.fan_state",
    ),
    Case(
        "chassis.fan_warning",
        "warning",
        {"fan": "3", "direction": "R"},
        0,
        1,
        "fan 3R is beyond a limit of its speed",
        "chassis.fan_state",
    ),
    Case(
        "chassis.sensor_critical",
        "critical",
        {"sensor": "P12V", "type": "voltage"},
        1,
        2,
        "sensor P12V (voltage) is beyond a critical limit",
        "chassis.sensor_status",
    ),
    Case(
        "chassis.sensor_warning",
        "warning",
        {"sensor": "P12V", "type": "voltage"},
        0,
        1,
        "sensor P12V (voltage) is beyond a non-critical limit",
        "chassis.sensor_status",
    ),
    Case(
        "chassis.fault", "warning", {"fault": "cooling"}, 0, 1, "the board controller reports: cooling", "chassis.chassis_fault"
    ),
    Case("chassis.intrusion", "info", {}, 0, 1, "the cover is open, or was"),
    Case(
        "chassis.event_log_nearly_full",
        "info",
        {},
        90,
        91,
        "the board controller's event log is 91 % full",
        "chassis.sel_used",
    ),
    Case(
        "chassis.event_log_overflow",
        "info",
        {},
        0,
        1,
        "the board controller dropped events because its log was full",
        "chassis.sel_overflow",
    ),
    Case(
        "chassis.critical_events",
        "warning",
        {},
        0,
        1,
        "1 critical events came into the board controller's log within 24 h",
        "chassis.sel_critical_events",
    ),
    Case(
        "chassis.bmc_silent",
        "warning",
        {},
        1,
        0,
        "the board controller does not answer: the chassis could not be told",
        "chassis.bmc_up",
    ),
    *(
        Case(f"gpu.{rule}", severity, labels, good, bad, message, metric)
        for rule, severity, labels, good, bad, message, metric in GPU_CASES
    ),
]
ELSEWHERE = {
    "cpu.frequency_capped",
    "disk.file_system_full",
    "system.tainted_by_machine_check",
    "system.tainted_by_oops",
    "gpu.card_lost",
    "npu.card_lost",
    "gpu.straggler",
    "npu.straggler",
    "daemon.component_stale",
    "network.pcie_narrow",
    "network.speed_low",
    "network.bond_degraded",
}
"""Rules that look at more than one metric, or at conclusions: tested below or in test_scheme, test_hysteresis, test_straggler."""
GOOD_ABOVE_ZERO = {"gpu.driver_down", "gpu.nvlinks_down", "gpu.nvlink_missing"}
"""Rules of readings whose bad value is 0."""
GRADES = {"info": "Excellent", "warning": "Good", "critical": "Critical"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_each_finding_at_its_threshold(case: Case) -> None:
    component, name = (case.metric or case.rule).split(".")
    node = healthy().set(component, name, case.good, **case.labels)
    node.judge()
    assert case.rule not in by_rule(node.judge())
    node.set(component, name, case.bad, **case.labels)
    score = node.judge()
    told = finding(score, case.rule)
    assert (told.message, told.severity, told.component) == (case.message, case.severity, case.rule.split(".")[0])
    assert told.penalty == 0
    assert told.reading.value == case.bad
    assert told.reading.labels == (case.labels or None)
    assert told.source
    if case.rule not in {"memory.uncorrected_total", "memory.corrected_total"}:  # whose growth takes points besides
        assert (score.score, score.grade) == (100, GRADES[case.severity])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_each_finding_ends(case: Case) -> None:
    component, name = (case.metric or case.rule).split(".")
    node = healthy(Evaluator(), every_s=60.0).set(component, name, case.good, **case.labels)
    node.judge(2)
    node.set(component, name, case.bad, **case.labels)
    assert case.rule in by_rule(node.judge(3)), "three samples begin every one of them"
    node.set(component, name, case.bad if "within" in case.message else 0.0, **case.labels)
    if case.rule in {"system.clock_not_synchronised", "network.half_duplex", "network.bond_down", "chassis.bmc_silent"}:
        node.set(component, name, 1.0, **case.labels)
    if case.rule in {"network.speed_fell", "network.ib_port_down", "npu.roce_link_down", *GOOD_ABOVE_ZERO}:
        node.set(component, name, case.good, **case.labels)
    if case.rule == "network.link_flaps":
        node.set(component, name, 0.0, **case.labels)
    node.judge(2)
    node.pass_time(90_000.0)
    assert case.rule not in by_rule(node.judge(2))


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} | ELSEWHERE == {rule.key for rule in FINDINGS}


@pytest.mark.parametrize("rule", FINDINGS, ids=lambda rule: rule.key)
def test_every_rule_says_what_it_means_and_what_to_do(rule: FindingRule) -> None:
    assert rule.help.endswith(".")
    assert rule.remedy.endswith((".", ")"))


def running() -> Node:
    node = healthy()
    node.judge()
    return node


def test_a_capped_frequency_is_told() -> None:
    node = healthy().set("cpu", "max_freq", 3500).set("cpu", "allowed_max_freq", 3465)
    assert "cpu.frequency_capped" not in by_rule(node.judge())  # 99 %
    node.set("cpu", "allowed_max_freq", 2000)
    told = finding(node.judge(), "cpu.frequency_capped")
    assert told.message == "software caps the processors at 2000 MHz; 3465 MHz and more would be theirs"
    assert told.threshold == "< 3465 MHz"


@pytest.mark.parametrize(
    ("flags", "rules"),
    [
        ("", []),
        ("proprietary_module,out_of_tree_module", []),
        ("machine_check", ["system.tainted_by_machine_check"]),
        ("warning,oops", ["system.tainted_by_oops"]),
    ],
)
def test_taint_by_hardware_and_by_faults(flags: str, rules: list[str]) -> None:
    score = healthy().set("system", "kernel_taint", 512.0 if flags else 0.0, flags=flags).judge()
    assert [one.rule for one in score.findings] == rules


def test_an_adapter_with_too_few_lanes() -> None:
    node = healthy().set("network", "pcie_link_width", 16, interface="eth0")
    node.set("network", "pcie_link_width_max", 16, interface="eth0").set("network", "pcie_link_width", 8, interface="eth1")
    assert "network.pcie_narrow" not in by_rule(node.judge())  # eth1's best is not known
    node.set("network", "pcie_link_width_max", 16, interface="eth1")
    told = finding(node.judge(), "network.pcie_narrow")
    assert (told.message, told.threshold) == ("the adapter of eth1 uses 8 of 16 PCIe lanes", "< 16 count")


def test_a_link_slower_than_port_and_cable_can_do() -> None:
    node = healthy().set("network", "speed", 25000, interface="eth0").set("network", "speed_max", 25000, interface="eth0")
    assert "network.speed_low" not in by_rule(node.judge())
    node.set("network", "speed_max", 100000, interface="eth0")
    told = finding(node.judge(), "network.speed_low")
    assert told.message == "eth0 runs at 25000 Mb/s; port and cable can do 100000 Mb/s"
    assert told.threshold == "< 100000 Mb/s"


@pytest.mark.parametrize("rule", FINDINGS, ids=lambda rule: rule.key)
def test_messages_name_labels_that_the_metric_has(rule: FindingRule) -> None:
    fields = {field for _, field, _, _ in Formatter().parse(rule.message) if field is not None}
    probe = rule.limit.probe
    derived = {"card", "component", "device", "what", "own", "peers", "z"}
    labels = derived if probe.component == "derived" else set(CATALOGUE[probe.component, probe.names[0]].labels)
    assert fields <= labels | {"value", "edge"}


def _filled(used: float, available: float) -> HealthScore:
    node = healthy()
    for field, value in {"total": 1000.0, "used": used, "available": available}.items():
        node.set("disk", "space_detail", value, **ROOT, field=field)
    return node.judge(2)


@pytest.mark.parametrize(
    ("used", "available", "percent"),
    [
        (950.0, 0.0, 100),  # 5 % of an ext4 are reserved for root, and df says 100 %
        (903.0, 47.0, 95.05),
        (960.0, 40.0, 96),
    ],
)
def test_a_file_system_is_full_when_ordinary_users_have_nothing_left(used: float, available: float, percent: float) -> None:
    found = finding(_filled(used, available), "disk.file_system_full")
    assert (found.severity, found.message, found.threshold) == ("warning", f"/ is {percent:g} % full", "> 95 %")
    assert (found.reading.name, found.reading.value, found.reading.unit, found.reading.labels) == (
        "space_detail",
        percent,
        "%",
        ROOT,
    )


@pytest.mark.parametrize(("used", "available"), [(902.5, 47.5), (300.0, 650.0), (0.0, 0.0)])
def test_a_file_system_with_room_is_not_full(used: float, available: float) -> None:
    assert "disk.file_system_full" not in by_rule(_filled(used, available))


def test_what_nobody_can_write_to_is_not_too_full() -> None:
    """Read-only media, snapshots and images are full by nature. What is not known to be read-only counts as writable."""
    node = healthy().set("disk", "read_only", 1, **ROOT).set("disk", "inode_usage", 100, **ROOT)
    for field, size in (("used", 950.0), ("available", 0.0)):
        node.set("disk", "space_detail", size, **ROOT, field=field)
    assert by_rule(node.judge(4)).keys().isdisjoint({"disk.file_system_full", "disk.inodes_short", "disk.inodes_full"})
    node.set("disk", "read_only", 0, **ROOT)
    assert {"disk.file_system_full", "disk.inodes_full"} <= by_rule(node.judge(4)).keys()
    data = ROOT | {"mount_point": "/data"}
    node.set("disk", "read_only", 1, **ROOT).set("disk", "inode_usage", 99, **data)
    told = [one.reading.labels for one in node.judge(4).findings if one.rule == "disk.inodes_full"]
    assert told == [data]


def test_a_bond_that_lost_a_member() -> None:
    node = healthy().set("network", "bond_members", 2, interface="bond0").set("network", "bond_members_up", 2, interface="bond0")
    assert "network.bond_degraded" not in by_rule(node.judge())
    node.set("network", "bond_members_up", 1, interface="bond0")
    assert finding(node.judge(), "network.bond_degraded").message == "bond bond0 has 1 of 2 members in use"


def test_a_port_that_was_never_up_has_not_gone_down() -> None:
    node = healthy().set("network", "ib_port_state", 0, **IB, link_layer="InfiniBand", state="DOWN")
    assert node.judge(5).findings == []


def test_a_stale_component_is_told() -> None:
    node = running().miss_component("network", Absence.STALE, "the last reading is 40 s old")
    told = finding(node.judge(), "daemon.component_stale")
    assert told.message == "component network has had no fresh reading for too long: it could not be told"
    assert told.severity == "warning"


def test_the_first_error_of_a_disk_counts_though_its_series_is_new() -> None:
    """Defect 10: the step from nothing to the first error was never reported."""
    node = healthy().set("disk", "io_errors", 0)
    node.judge()
    node.set("disk", "io_errors", 1).set("disk", "io_errors", 1, device="sda")
    assert finding(node.judge(), "disk.io_errors").message == "1 requests to sda failed within 1 h"


def test_old_errors_in_the_log_at_the_start_do_not_count() -> None:
    node = healthy().set("disk", "io_errors", 9).set("disk", "io_errors", 9, device="sda")
    assert node.judge(3).findings == []


def test_an_xid_that_was_never_seen_before_counts() -> None:
    node = with_gpus(1).set("system", "kernel_events_total", 0, kind="oops", severity="critical")
    node.judge()
    node.set("system", "kernel_events_total", 1, kind="xid", severity="critical")
    assert finding(node.judge(), "gpu.xid").component == "gpu"


def test_a_disk_that_comes_with_old_counters_is_not_failing() -> None:
    node = healthy().set("disk", "smart_reallocated_sectors", 5, device="sda")
    node.judge()
    node.set("disk", "smart_reallocated_sectors", 900, device="sdb")
    assert "disk.new_reallocations" not in by_rule(node.judge())


def test_both_kinds_of_nvme_warnings_at_once() -> None:
    score = running().set("disk", "smart_critical_warning", 1 + 4, device="nvme0").judge()
    assert {"disk.nvme_failing", "disk.nvme_warning"} <= set(by_rule(score))
    assert finding(score, "disk.nvme_failing").threshold == "has any bit of 12"
    assert finding(score, "disk.nvme_failing").clears_when == "without any bit of 12"


def test_many_things_of_one_rule_are_bounded() -> None:
    node = running()
    for number in range(30):
        node.set("network", "link_flaps", 3 + number, interface=f"eth{number}")
    told = [one for one in node.judge().findings if one.rule == "network.link_flaps"]
    assert len(told) == 8
    assert told[0].message == "the link of eth29 went down 32 times within 1 h"
    assert told[-1].message.endswith("(and 22 more like it)")


def test_the_lowest_comes_first_where_low_is_bad() -> None:
    node = running()
    for name, speed in (("eth0", 10000), ("eth1", 1000)):
        node.set("network", "speed", 25000, interface=name).judge()
        node.set("network", "speed", speed, interface=name)
    told = [one for one in node.judge().findings if one.rule == "network.speed_fell"]
    assert [(one.reading.labels or {})["interface"] for one in told] == ["eth1", "eth0"]
    assert told[0].reading.value == 1000
    assert (told[0].reading.judged, told[0].reading.judged_as) == (4.0, "share of its best")


def test_a_label_that_is_missing_is_a_question_mark() -> None:
    score = running().set("disk", "read_only_remount", 1, mount_point="/data").judge()
    assert finding(score, "disk.read_only").message == "/data (?) has become read-only"


def test_what_a_finding_needs_and_cannot_be_read_is_unknown() -> None:
    node = running().miss("disk", "raid_state", Absence.NO_PERMISSION, "sysfs is closed")
    told = unknown(node.judge(), "disk", "raid_degraded")
    assert (told.state, told.reason, told.weight, told.remedy) == ("no_permission", "sysfs is closed", 0.0, "do something")


def test_what_does_not_apply_or_is_not_there_is_not_listed() -> None:
    score = running().miss("disk", "raid_state", Absence.NOT_APPLICABLE, "no arrays").judge()
    assert score.unknown == []
    assert score.score == 100
