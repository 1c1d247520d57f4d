"""Meaning of kernel log lines. The texts are those that the kernel's printk calls make."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.model.event import EventKind, Severity
from nodeproof.sources import kmsg
from nodeproof.sources.kernel_events import classify
from support.kernel_log import event, fixture, record

_K = EventKind
_I, _W, _C = Severity.INFO, Severity.WARNING, Severity.CRITICAL

_LINES: list[tuple[str, EventKind, Severity, str, str]] = [
    # Machine checks: bit 61 of the bank's status tells corrected from uncorrected.
    ("mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: 8c00004000010091", _K.MACHINE_CHECK, _W, "cpu3", "corrected"),
    (
        "mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 1: be00000000800400",
        _K.MACHINE_CHECK,
        _C,
        "cpu12",
        "uncorrected",
    ),
    ("[Hardware Error]: CPU 2: Machine Check Exception: 5 Bank 4: b200000000070f0f", _K.MACHINE_CHECK, _C, "cpu2", "uncorrected"),
    (
        "[Hardware Error]: CPU:2 (17:31:0) MC17_STATUS[-|CE|MiscV|AddrV|-|-|SyndV|CECC|-|-|-]: 0x9c2040000000011b",
        _K.MACHINE_CHECK,
        _W,
        "cpu2",
        "corrected",
    ),
    (
        "[Hardware Error]: CPU:0 (19:1:1) MC0_STATUS[Over|UE|MiscV|-|PCC|TCC]: 0xfa00000000060080",
        _K.MACHINE_CHECK,
        _C,
        "cpu0",
        "uncorrected",
    ),
    ("mce: [Hardware Error]: Machine check events logged", _K.MACHINE_CHECK_NOTICE, _W, "", ""),
    ("SError Interrupt on CPU7, code 0x00000000bf000002 -- SError", _K.MACHINE_CHECK, _C, "cpu7", "uncorrected"),
    ("{1}[Hardware Error]: event severity: corrected", _K.FIRMWARE_ERROR, _W, "", "corrected"),
    ("{12}[Hardware Error]: event severity: fatal", _K.FIRMWARE_ERROR, _C, "", "fatal"),
    ("{2}[Hardware Error]: event severity: info", _K.FIRMWARE_ERROR, _I, "", "info"),
    (
        "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x1 offset:0x0 grain:32)",
        _K.MEMORY_ERROR,
        _W,
        "mc0 CPU_SrcID#0_Ha#0_Chan#1_DIMM#0",
        "corrected",
    ),
    (
        "EDAC MC1: 1 UE UE overwrote CE on any memory ( page:0x0 offset:0x0 grain:8)",
        _K.MEMORY_ERROR,
        _C,
        "mc1 any",
        "uncorrected",
    ),
    ("EDAC MC2: 3 CE error", _K.MEMORY_ERROR, _W, "mc2", "corrected"),
    ("Memory failure: 0x3f2a1: recovery action for dirty LRU page: Recovered", _K.MEMORY_FAILURE, _W, "", "Recovered"),
    ("Memory failure: 0x3f2a1: recovery action for reserved kernel page: Failed", _K.MEMORY_FAILURE, _C, "", "Failed"),
    # Out of memory
    ("Out of memory: Killed process 4711 (python3) total-vm:9000kB, anon-rss:1kB", _K.OOM_KILL, _W, "", "global"),
    ("Memory cgroup out of memory: Killed process 4712 (stress) total-vm:9000kB", _K.OOM_KILL, _W, "", "cgroup"),
    ("Out of memory (oom_kill_allocating_task): Killed process 1 (a)", _K.OOM_KILL, _W, "", "global"),
    ("Killed process 815 (java) total-vm:2kB, anon-rss:1kB, file-rss:0kB", _K.OOM_KILL, _W, "", ""),
    # Disks
    ("blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0", _K.IO_ERROR, _W, "sda", "I/O"),
    ("I/O error, dev nvme0n1, sector 2048 op 0x1:(WRITE) flags 0x0", _K.IO_ERROR, _W, "nvme0n1", "I/O"),
    ("critical medium error, dev sdb, sector 81 op 0x0:(READ)", _K.IO_ERROR, _W, "sdb", "critical medium"),
    ("end_request: I/O error, dev dm-3, sector 8", _K.IO_ERROR, _W, "dm-3", "I/O"),
    ("print_req_error: I/O error, dev , sector 0", _K.IO_ERROR, _W, "", "I/O"),
    (
        "operation not supported error, dev loop0, sector 0 op 0x9:(WRITE_ZEROES)",
        _K.IO_ERROR,
        _I,
        "loop0",
        "operation not supported",
    ),
    ("blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ)", _K.IO_ERROR, _I, "fd0", "I/O"),
    ("Buffer I/O error on dev sda1, logical block 0, async page read", _K.BUFFER_IO_ERROR, _W, "sda1", ""),
    ("Buffer I/O error on device dm-0, logical block 17", _K.BUFFER_IO_ERROR, _W, "dm-0", ""),
    ("nvme nvme0: I/O 123 QID 4 timeout, aborting", _K.STORAGE_RESET, _W, "nvme0", "timeout"),
    (
        "nvme nvme1: I/O tag 12 (100c) opcode 0x2 (I/O Cmd) QID 4 timeout, reset controller",
        _K.STORAGE_RESET,
        _W,
        "nvme1",
        "timeout",
    ),
    ("nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", _K.STORAGE_RESET, _W, "nvme0", "down"),
    ("nvme nvme0: Device not ready; aborting reset, CSTS=0x1", _K.STORAGE_RESET, _W, "nvme0", "not ready"),
    ("nvme nvme0: Removing after probe failure status: -19", _K.STORAGE_RESET, _C, "nvme0", "removed"),
    ("nvme nvme0: Disabling device after reset failure: -19", _K.STORAGE_RESET, _C, "nvme0", "disabled"),
    ("ata3: hard resetting link", _K.STORAGE_RESET, _W, "ata3", "hard resetting link"),
    ("ata3.00: disabled", _K.STORAGE_RESET, _C, "ata3", "disabled"),
    ("sd 0:0:0:0: [sda] tag#12 Sense Key : Medium Error [current] ", _K.SCSI_SENSE, _W, "sda", "Medium Error"),
    ("sd 2:0:1:0: [sdc] Sense Key : Illegal Request [current] ", _K.SCSI_SENSE, _I, "sdc", "Illegal Request"),
    ("ses 2:0:1:0: Sense Key : Hardware Error [current] ", _K.SCSI_SENSE, _W, "2:0:1:0", "Hardware Error"),
    # File systems
    ("EXT4-fs error (device sda1): ext4_lookup:1234: inode #2: comm ls: deleted inode", _K.FS_ERROR, _C, "sda1", "ext4"),
    ("EXT4-fs (sda1): I/O error while writing superblock", _K.FS_ERROR, _C, "sda1", "ext4"),
    ("EXT4-fs (sda1): Remounting filesystem read-only", _K.FS_READONLY, _C, "sda1", "ext4"),
    ("Aborting journal on device sda1-8.", _K.FS_ERROR, _C, "sda1", "jbd2"),
    ("Aborting journal on device dm-0-8.", _K.FS_ERROR, _C, "dm-0", "jbd2"),
    ("Aborting journal on device sdb.", _K.FS_ERROR, _C, "sdb", "jbd2"),
    (
        "XFS (dm-0): Metadata corruption detected at xfs_agf_verify+0x7e/0xd0 [xfs], xfs_agf block 0x1",
        _K.FS_ERROR,
        _C,
        "dm-0",
        "xfs",
    ),
    ('XFS (sda2): metadata I/O error in "xfs_trans_read_buf_map" at daddr 0x1 len 1 error 5', _K.FS_ERROR, _C, "sda2", "xfs"),
    (
        "XFS (sda2): Corruption of in-memory data (0x8) detected at x.  Shutting down filesystem.",
        _K.FS_READONLY,
        _C,
        "sda2",
        "xfs",
    ),
    ("XFS (sda2): Filesystem has been shut down due to log error (0x2).", _K.FS_READONLY, _C, "sda2", "xfs"),
    ("BTRFS critical (device sda1): corrupt leaf: root=1 block=2 slot=3", _K.FS_ERROR, _C, "sda1", "btrfs"),
    ("BTRFS error (device sda1: state EA): parent transid verify failed", _K.FS_ERROR, _W, "sda1", "btrfs"),
    ("BTRFS: error (device sda1) in btrfs_commit_transaction:2465: errno=-5 IO failure", _K.FS_ERROR, _W, "sda1", "btrfs"),
    ("BTRFS warning (device sdb): csum failed root 5 ino 257 off 0", _K.FS_ERROR, _W, "sdb", "btrfs"),
    ("BTRFS info (device sda1: state E): forced readonly", _K.FS_READONLY, _C, "sda1", "btrfs"),
    ("FAT-fs (sdc1): error, fat_get_cluster: invalid cluster chain", _K.FS_ERROR, _C, "sdc1", "fat"),
    ("FAT-fs (sdc1): Filesystem has been set read-only", _K.FS_READONLY, _C, "sdc1", "fat"),
    # Links
    ("mlx5_core 0000:4b:00.0 enp75s0np0: Link down", _K.LINK, _I, "enp75s0np0", "down"),
    ("mlx5_core 0000:4b:00.0 enp75s0np0: Link up", _K.LINK, _I, "enp75s0np0", "up"),
    ("eth0: NIC Link is Down", _K.LINK, _I, "eth0", "down"),
    ("e1000e: eth0 NIC Link is Down", _K.LINK, _I, "eth0", "down"),
    ("e1000e 0000:00:1f.6 eno1: NIC Link is Up 1000 Mbps Full Duplex, Flow Control: None", _K.LINK, _I, "eno1", "up"),
    ("igb 0000:01:00.0 eno1: igb: eno1 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: RX", _K.LINK, _I, "eno1", "up"),
    (
        "bnxt_en 0000:19:00.0 ens1f0np0: NIC Link is Up, 25000 Mbps full duplex, Flow control: none",
        _K.LINK,
        _I,
        "ens1f0np0",
        "up",
    ),
    ("bnxt_en 0000:19:00.0 ens1f0np0: NIC Link is Down", _K.LINK, _I, "ens1f0np0", "down"),
    ("i40e 0000:3d:00.0 eno3: NIC Link is Up, 10 Gbps Full Duplex, Flow Control: None", _K.LINK, _I, "eno3", "up"),
    ("tg3 0000:02:00.0: eth0: Link is up at 1000 Mbps, full duplex", _K.LINK, _I, "eth0", "up"),
    ("tg3 0000:02:00.0 eth0: Link is down", _K.LINK, _I, "eth0", "down"),
    ("r8169 0000:03:00.0 enp3s0: Link is Up - 1Gbps/Full - flow control rx/tx", _K.LINK, _I, "enp3s0", "up"),
    ("hns3 0000:bd:00.0 enp189s0f0: link down", _K.LINK, _I, "enp189s0f0", "down"),
    ("macb ff0e0000.ethernet eth0: link up (1000/Full)", _K.LINK, _I, "eth0", "up"),
    ("enic 0000:0b:00.0 eth2: Link UP", _K.LINK, _I, "eth2", "up"),
    ("bond0: (slave eth1): link status definitely down, disabling slave", _K.BOND_LINK, _W, "eth1", "down"),
    ("bonding: bond0: link status definitely up for interface eth1, 10000 Mbps full duplex.", _K.BOND_LINK, _I, "eth1", "up"),
    ("pcieport 0000:17:00.0: pciehp: Slot(5): Link Down", _K.PCIE_HOTPLUG, _W, "0000:17:00.0", "down"),
    ("pcieport 0000:17:00.0: pciehp: Slot(5): Card present", _K.PCIE_HOTPLUG, _I, "0000:17:00.0", "up"),
    # PCIe
    (
        "nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
        _K.AER,
        _W,
        "0000:01:00.0",
        "corrected",
    ),
    ("nvme 0000:01:00.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer", _K.AER, _W, "0000:01:00.0", "corrected"),
    (
        "pcieport 0000:00:1c.5: AER: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer",
        _K.AER,
        _C,
        "0000:00:1c.5",
        "nonfatal",
    ),
    (
        "pcieport 0000:00:1c.5: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer",
        _K.AER,
        _C,
        "0000:00:1c.5",
        "fatal",
    ),
    ("pcieport 0000:60:01.0: DPC: containment event, status:0x1f01 source:0x0000", _K.PCIE_CONTAINMENT, _C, "0000:60:01.0", ""),
    # The kernel itself
    ("INFO: task kworker/u8:3:512 blocked for more than 120 seconds.", _K.HUNG_TASK, _W, "", ""),
    ("INFO: task dd:99 blocked in I/O wait for more than 122 seconds.", _K.HUNG_TASK, _W, "", ""),
    ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [burn:99]", _K.SOFT_LOCKUP, _C, "cpu3", ""),
    ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 5", _K.HARD_LOCKUP, _C, "cpu5", ""),
    ("watchdog: CPU4: Watchdog detected hard LOCKUP on cpu 5", _K.HARD_LOCKUP, _C, "cpu5", ""),
    ("rcu: INFO: rcu_sched self-detected stall on CPU", _K.RCU_STALL, _C, "", ""),
    ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", _K.RCU_STALL, _C, "", ""),
    (
        "mce: CPU8: Package temperature above threshold, cpu clock throttled (total events = 12)",
        _K.THERMAL,
        _W,
        "cpu8",
        "package",
    ),
    ("CPU1: Core temperature is above threshold, cpu clock is throttled (total events = 1)", _K.THERMAL, _W, "cpu1", "core"),
    ("thermal thermal_zone2: critical temperature reached, shutting down", _K.THERMAL, _C, "thermal_zone2", "critical"),
    ("a.out[1234]: segfault at 0 ip 000055 sp 00007f error 4 in a.out[55+1000]", _K.SEGFAULT, _I, "", ""),
    ("traps: a.out[1234] general protection fault ip:55 sp:7f error:0 in a.out[55+1000]", _K.SEGFAULT, _I, "", ""),
    ("Kernel panic - not syncing: Fatal exception", _K.PANIC, _C, "", ""),
    ("Oops: 0000 [#1] SMP PTI", _K.OOPS, _C, "", ""),
    ("Internal error: Oops: 0000000096000004 [#1] SMP", _K.OOPS, _C, "", ""),
    ("general protection fault, probably for non-canonical address 0xdead: 0000 [#2] PREEMPT SMP", _K.OOPS, _C, "", ""),
    ("BUG: unable to handle page fault for address: ffffdead", _K.KERNEL_BUG, _C, "", ""),
    ("kernel BUG at fs/buffer.c:1!", _K.KERNEL_BUG, _C, "", ""),
    ("Unable to handle kernel NULL pointer dereference at virtual address 0", _K.KERNEL_BUG, _C, "", ""),
    ("BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 31s!", _K.KERNEL_BUG, _W, "", ""),
    ("WARNING: CPU: 3 PID: 12 at kernel/sched/core.c:1234 f+0x1/0x2", _K.KERNEL_WARNING, _W, "", ""),
    ("WARNING: kernel/sched/core.c:1234 at f+0x1/0x2, CPU#3: a/12", _K.KERNEL_WARNING, _W, "", ""),
    # NVIDIA
    (
        "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        _K.XID,
        _C,
        "0000:05:00",
        "79",
    ),
    ("NVRM: Xid (PCI:0000:05:00): 777, something new", _K.XID, _W, "0000:05:00", "777"),
    # AMD and Ascend
    (
        "amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=11, emitted seq=13",
        _K.ACCELERATOR,
        _C,
        "0000:03:00.0",
        "amdgpu_hang",
    ),
    ("amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", _K.ACCELERATOR, _W, "0000:03:00.0", "amdgpu_reset"),
    ("amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed", _K.ACCELERATOR, _C, "0000:03:00.0", "amdgpu_reset_failed"),
    (
        "amdgpu 0000:83:00.0: amdgpu: socket: 0, die: 0, 2 new uncorrectable hardware errors detected in umc block",
        _K.ACCELERATOR,
        _C,
        "0000:83:00.0",
        "amdgpu_ras",
    ),
    ("[ascend] [drv_pcie] device heartbeat lost, dev_id=3", _K.ACCELERATOR, _C, "npu_id=3", "ascend_heartbeat"),
    ("[ascend] [ERROR] [devmm] alloc failed", _K.ACCELERATOR, _W, "", "ascend_error"),
    ("NVRM: Xid (PCI:00000018:01:00.0): 48, Double Bit ECC Error", _K.XID, _C, "0018:01:00.0", "48"),
    ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", _K.SXID, _C, "0000:c1:00.0", "20034"),
    ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress", _K.SXID, _I, "0000:c1:00.0", "12028"),
]

_NO_EVENTS = [
    "",
    "Freeing unused kernel image memory: 2048K",
    "Out of memory: Kill process 815 (java) score 900 or sacrifice child",
    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=java,pid=815",
    "oom_reaper: reaped process 815 (java), now anon-rss:0kB",
    "java invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0",
    "Tasks in /a killed as a result of limit of /a",
    "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 0",
    "mce: CPU8: Package temperature/speed normal",
    "mce: CPU0: Thermal monitoring enabled (TM1)",
    "ata1: SATA link down (SStatus 0 SControl 300)",
    "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
    "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
    "IPv6: ADDRCONF(NETDEV_UP): eth0: link is not ready",
    "EXT4-fs (vda): mounted filesystem 00000000 r/w without journal. Quota mode: none.",
    "EXT4-fs (sda1): re-mounted. Opts: errors=remount-ro",
    "BTRFS info (device sda1): disk space caching is enabled",
    "XFS (dm-0): Ending clean mount",
    "XFS (dm-0): Please unmount the filesystem and rectify the problem(s)",
    "EDAC MC: Ver: 3.0.0",
    "pcieport 0000:00:01.0: AER: enabled with IRQ 26",
    "rcu: Hierarchical RCU implementation.",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15",
    "sd 0:0:0:0: [sda] Add. Sense: Unrecovered read error",
]


@pytest.mark.parametrize(("text", "kind", "severity", "device", "code"), _LINES, ids=[line[0][:40] for line in _LINES])
def test_a_line_of_the_kernel(text: str, kind: EventKind, severity: Severity, device: str, code: str) -> None:
    found = event(text)
    assert found is not None
    assert (found.kind, found.severity, found.device, found.code) == (kind, severity, device, code)
    assert (found.verified, found.facility, found.message) == (True, 0, text[:240])


@pytest.mark.parametrize("text", _NO_EVENTS)
def test_a_line_that_is_no_event(text: str) -> None:
    assert event(text) is None


def test_every_kind_has_a_line() -> None:
    assert {line[1] for line in _LINES} == set(EventKind)


def test_edac_lines_count_as_many_errors_as_they_tell() -> None:
    found = event("EDAC MC0: 17 CE memory scrubbing error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1)")
    assert found is not None
    assert found.count == 17


def test_xid_line_variants() -> None:
    """Case 14: codes in order, domain kept; the last two lines are no Xid and break nothing."""
    lines = fixture("xid_variants.txt").splitlines()
    found = [event(line) for line in lines]
    assert [one.code if one else None for one in found] == ["14", "79", "79", "13", "145", "149", "119", "64", None, None]
    devices = [one.device for one in found if one]
    assert devices == [
        "0000:03:00",
        "0000:05:00",
        "0000:01:00",
        "000b:00:00",
        "0018:01:00",
        "0019:01:00",
        "0000:3b:00",
        "0000:04:00",
    ]


def test_forged_record_is_unverified_and_never_grave() -> None:
    """Case 18: a program wrote ``Xid 79`` with facility user; the kernel's own Xid 31 beside it stands."""
    raw = fixture("forged.txt").encode().splitlines()
    own, forged = (classify(kmsg.parse(line)) for line in raw[:2])
    assert own is not None
    assert (own.kind, own.code, own.device, own.verified) == (EventKind.XID, "31", "0000:01:00", True)
    assert own.sequence == 2001
    assert own.mono_s == 5550.000001
    assert forged is not None
    assert (forged.code, forged.verified, forged.severity, forged.facility) == ("79", False, Severity.INFO, 1)
    assert [classify(kmsg.parse(line)) for line in raw[2:4]] == [None, None]


def test_a_panic_written_by_a_program_is_info() -> None:
    found = event("Kernel panic - not syncing: forged", facility=3)
    assert found is not None
    assert (found.severity, found.verified) == (Severity.INFO, False)


def test_switch_for_tests_that_write_records_themselves() -> None:
    forged = kmsg.parse(record("Kernel panic - not syncing: test", facility=1))
    found = classify(forged, frozenset({0, 1}))
    assert found is not None
    assert (found.severity, found.verified) == (Severity.CRITICAL, True)


def test_suspended_time_is_added() -> None:
    found = classify(kmsg.parse(record("Kernel panic - not syncing: x", time_us=2_500_000)), frozenset({0}), 60.0)
    assert found is not None
    assert found.mono_s == 62.5


@pytest.mark.parametrize(
    "text",
    [
        "eth0: Link down[77]: segfault at 0 ip 0 sp 0 error 4",
        "eth0: link up, [77]: segfault at 0 ip 0 sp 0 error 4",
        "Killed process [77]: segfault at 0 ip 0 sp 0 error 4",
        "traps: eth0: Link down[77] general protection fault ip:0",
    ],
)
def test_a_programs_name_is_no_drivers_word(text: str) -> None:
    """Any user may name a program ``eth0: Link down`` (15 bytes) and let it crash."""
    found = event(text)
    assert found is not None
    assert found.kind is EventKind.SEGFAULT


@pytest.mark.parametrize(
    "text",
    [
        "eth0: Link down: page allocation failure: order:5, mode:0x1",
        "eth0: link up,  invoked oom-killer: gfp_mask=0x1",
        "a\nNVRM: Xid (PCI:0000:01:00): 79, x",
    ],
)
def test_a_programs_name_makes_no_event(text: str) -> None:
    assert event(text) is None


def test_hostile_text_stays_bounded_and_on_one_line() -> None:
    found = event("INFO: task a\nb\x1b[31m:5 blocked for more than 120 seconds." + "x" * 100_000)
    assert found is not None
    assert found.message.startswith("INFO: task a b [31m:5 blocked")
    assert len(found.message) == 240


_PARTS = st.sampled_from([line[0] for line in _LINES] + _NO_EVENTS)


@given(st.one_of(st.text(max_size=200), st.builds(lambda a, b, n: a[:n] + b, _PARTS, st.text(max_size=30), st.integers(0, 80))))
def test_any_text_gives_a_bounded_event_or_none(text: str) -> None:
    found = classify(kmsg.parse(record(text.encode("utf-8", "ignore").decode(), facility=1)))
    if found is not None:
        assert found.severity is Severity.INFO
        assert len(found.message) <= 240
        assert len(found.device) <= 64
        assert len(found.code) <= 40
