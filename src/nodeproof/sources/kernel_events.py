"""What a line of the kernel log means: ``EXT4-fs error (device sda1): ext4_lookup:1234: inode #2: comm ls``.

The texts are those of the kernel's own ``printk`` calls, 3.10 to 6.18 (``mm/oom_kill.c``, ``block/blk-core.c``,
``arch/x86/kernel/cpu/mce/core.c``, ``drivers/pci/pcie/aer.c``, ``drivers/edac/edac_mc.c``, ``kernel/hung_task.c``, file systems,
network drivers) and of NVIDIA's driver (``NVRM: Xid (PCI:0000:05:00): 79, pid=1234``). A line is first searched for fixed words;
only one that has them meets a regular expression.

Every expression is held to the *start* of the record. Some lines begin with the name of a program, which any user may choose (15
bytes): such a name must never be taken for the words of a driver, so lines of that kind are told apart first.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from nodeproof.model.event import EventKind, KernelEvent, Severity
from nodeproof.sources.kmsg import KmsgRecord

__all__ = ["KERNEL_FACILITY", "classify"]

KERNEL_FACILITY = frozenset({0})
"""The kernel never lets a program write facility 0 (``devkmsg_write``, kernel/printk/printk.c)."""

_MESSAGE_CHARS = 240
_DEVICE_CHARS = 64
_CONTROL = dict.fromkeys((*range(32), *range(127, 160)), " ")
_INFO, _WARNING, _CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL

_PCI = r"([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"
_HARDWARE = r"(?:mce: )?(?:\{\d+\})?\[Hardware Error\]:\s*"
_DEVICE = r"([^\s():,]{1,64})"
_STATUS_UC = 1 << 61
"""IA32_MCi_STATUS.UC: the error was not corrected (Intel SDM volume 3B, 17.3.2.2; the same bit on AMD)."""
_NO_DEFECT = "operation not supported"
_REMOVABLE = re.compile(r"(?:fd|sr)\d+\Z")
_GRAVE_SENSE = frozenset({"Medium Error", "Hardware Error", "Aborted Command"})
_NVME_DEEDS = {"I/O": "timeout", "con": "down", "Rem": "removed", "Dis": "disabled", "Dev": "not ready"}


class _Found(NamedTuple):
    kind: EventKind
    severity: Severity
    device: str = ""
    code: str = ""
    times: int = 1


class _Rule(NamedTuple):
    words: str
    """Must be in the line before the expression is tried."""
    pattern: str
    make: Callable[[re.Match[str]], _Found]


def classify(record: KmsgRecord, trusted: frozenset[int] = KERNEL_FACILITY, skew_s: float = 0.0, /) -> KernelEvent | None:
    """The event that ``record`` tells of, or None. Records of facilities outside ``trusted`` are unverified, and info at most.

    ``skew_s`` is what the log's clock lacks to the time since boot (it stands still while the machine is suspended).
    """
    text = record.text
    found = _find(text)
    if found is None:
        return None
    verified = record.facility in trusted
    return KernelEvent(
        found.kind,
        found.severity if verified else _INFO,
        found.device[:_DEVICE_CHARS].translate(_CONTROL),
        found.code,
        text[:_MESSAGE_CHARS].translate(_CONTROL),
        record.sequence,
        record.time_us / 1e6 + skew_s,
        record.facility,
        verified,
        found.times,
    )


def _find(text: str) -> _Found | None:
    for words, pattern, make in _RULES:
        if words in text:
            match = re.match(pattern, text)
            if match is not None:
                return make(match)
    return None


def _always(kind: EventKind, severity: Severity, code: str = "") -> Callable[[re.Match[str]], _Found]:
    found = _Found(kind, severity, "", code)
    return lambda _match: found


def _on_device(kind: EventKind, severity: Severity, code: str = "") -> Callable[[re.Match[str]], _Found]:
    return lambda match: _Found(kind, severity, match[1], code)


def _on_cpu(kind: EventKind, severity: Severity, code: str = "") -> Callable[[re.Match[str]], _Found]:
    return lambda match: _Found(kind, severity, f"cpu{int(match[1])}", code)


def _pci_address(text: str) -> str:
    """``000b:00:00`` whatever width and case the driver writes the domain in."""
    domain, _, rest = text.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _machine_check(match: re.Match[str]) -> _Found:
    return _judged(EventKind.MACHINE_CHECK, f"cpu{int(match[1])}", uncorrected=bool(int(match[2], 16) & _STATUS_UC))


def _machine_check_amd(match: re.Match[str]) -> _Found:
    return _judged(EventKind.MACHINE_CHECK, f"cpu{int(match[1])}", uncorrected="UE" in match[2].split("|"))


def _judged(kind: EventKind, device: str, *, uncorrected: bool, times: int = 1) -> _Found:
    if uncorrected:
        return _Found(kind, _CRITICAL, device, "uncorrected", times)
    return _Found(kind, _WARNING, device, "corrected", times)


def _firmware(match: re.Match[str]) -> _Found:
    code = match[1]
    severity = {"info": _INFO, "corrected": _WARNING}.get(code, _CRITICAL)
    return _Found(EventKind.FIRMWARE_ERROR, severity, "", code)


def _edac(match: re.Match[str]) -> _Found:
    controller, times, kind, label = match[1].lower(), int(match[2]), match[3], match[4]
    device = f"{controller} {label}" if label else controller
    return _judged(EventKind.MEMORY_ERROR, device, uncorrected=kind == "UE", times=times)


def _memory_failure(match: re.Match[str]) -> _Found:
    return _Found(EventKind.MEMORY_FAILURE, _CRITICAL if match[1] == "Failed" else _WARNING, "", match[1])


def _oom(match: re.Match[str]) -> _Found:
    where = match[1] or ""
    return _Found(EventKind.OOM_KILL, _WARNING, "", "cgroup" if where.startswith("Memory cgroup") else "global" if where else "")


def _io_error(match: re.Match[str]) -> _Found:
    harmless = match[1] == _NO_DEFECT or _REMOVABLE.match(match[2])
    return _Found(EventKind.IO_ERROR, _INFO if harmless else _WARNING, match[2], match[1])


def _nvme(match: re.Match[str]) -> _Found:
    code = _NVME_DEEDS[match[2][:3]]
    return _Found(EventKind.STORAGE_RESET, _CRITICAL if code in {"removed", "disabled"} else _WARNING, match[1], code)


def _ata(match: re.Match[str]) -> _Found:
    severity = _CRITICAL if match[2].startswith("disable") else _WARNING
    return _Found(EventKind.STORAGE_RESET, severity, match[1], match[2])


def _sense(match: re.Match[str]) -> _Found:
    severity = _WARNING if match[3] in _GRAVE_SENSE else _INFO
    return _Found(EventKind.SCSI_SENSE, severity, match[2] or match[1], match[3])


def _fs(kind: EventKind, code: str) -> Callable[[re.Match[str]], _Found]:
    return _on_device(kind, _CRITICAL, code)


def _btrfs(match: re.Match[str]) -> _Found:
    return _Found(EventKind.FS_ERROR, _CRITICAL if match[1] == "critical" else _WARNING, match[2], "btrfs")


def _journal(match: re.Match[str]) -> _Found:
    # The journal of sda1 at inode 8 is named sda1-8.
    device, dash, inode = match[1].rpartition("-")
    return _Found(EventKind.FS_ERROR, _CRITICAL, device if dash and inode.isdigit() else match[1], "jbd2")


def _bond(match: re.Match[str]) -> _Found:
    return _Found(EventKind.BOND_LINK, _WARNING if match[2] == "down" else _INFO, match[1] or match[3] or "", match[2])


def _hotplug(match: re.Match[str]) -> _Found:
    gone = match[2] in {"Link Down", "Card not present"}
    return _Found(EventKind.PCIE_HOTPLUG, _WARNING if gone else _INFO, match[1], "down" if gone else "up")


def _link(match: re.Match[str]) -> _Found:
    return _Found(EventKind.LINK, _INFO, match[1], "down" if match[2] is None else "up")


def _aer(match: re.Match[str]) -> _Found:
    detail = match[3] or ""
    if not match[2].startswith("Uncorrect"):
        return _Found(EventKind.AER, _WARNING, match[1], "corrected")
    return _Found(EventKind.AER, _CRITICAL, match[1], "fatal" if detail == "Fatal" else "nonfatal")


def _thermal(match: re.Match[str]) -> _Found:
    return _Found(EventKind.THERMAL, _WARNING, f"cpu{int(match[1])}", match[2].lower())


def _bug(match: re.Match[str]) -> _Found:
    return _Found(EventKind.KERNEL_BUG, _CRITICAL if match[1] else _WARNING)


def _xid(match: re.Match[str]) -> _Found:
    from nodeproof.sources.xid_catalogue import xid_entry  # noqa: PLC0415 - most machines never write one

    return _Found(EventKind.XID, xid_entry(match[2], match.string).severity, _pci_address(match[1]), match[2])


def _sxid(match: re.Match[str]) -> _Found:
    from nodeproof.sources.xid_catalogue import sxid_entry  # noqa: PLC0415 - the same

    return _Found(EventKind.SXID, sxid_entry(match[2], match.string).severity, _pci_address(match[1]), match[2])


def _amdgpu(match: re.Match[str]) -> _Found:
    said = match[2]
    if said.startswith("ring "):
        return _Found(EventKind.ACCELERATOR, _CRITICAL, match[1].lower(), "amdgpu_hang")
    if said.startswith("GPU reset"):
        failed = match[3] is not None
        code = "amdgpu_reset_failed" if failed else "amdgpu_reset"
        return _Found(EventKind.ACCELERATOR, _CRITICAL if failed else _WARNING, match[1].lower(), code)
    return _Found(EventKind.ACCELERATOR, _CRITICAL, match[1].lower(), "amdgpu_ras")


def _ascend(match: re.Match[str]) -> _Found:
    device = re.search(r"(?i)\bdev(?:ice)?[ _]?id\s*[=:]?\s*(\d{1,3})\b", match.string)
    lost = re.search(r"(?i)heart[ _-]?beat", match.string) is not None
    code, severity = ("ascend_heartbeat", _CRITICAL) if lost else ("ascend_error", _WARNING)
    return _Found(EventKind.ACCELERATOR, severity, f"npu_id={int(device[1])}" if device is not None else "", code)


_K = EventKind
_LINK_PATTERN = (
    r"(?:[\w.-]+:? )?(?:[\w.:-]+ )?"  # driver, bus address
    r"([\w.@-]{1,15})(?:: |(?= NIC ))(?:\w+: \1)? ?(?:NIC )?(?i:link) (?i:is )?"
    r"(?:((?i:up))(?:\.?\Z| at \d|,? \d+ ?[GMK]b| - \d| \(\d)|(?i:down)\.?\Z)"
)
_BUG_PATTERN = r"(?:(BUG: (?:unable to handle|kernel NULL|Bad page)|kernel BUG at |Unable to handle kernel )|BUG: )"
_OOPS_PATTERN = (
    r"(?:Oops|Internal error|general protection fault|invalid opcode|divide error|stack segment|double fault|int3|bounds|BUG)\b"
    r"[^\n]{0,200} \[#\d+\]"
)

_RULES: tuple[_Rule, ...] = (
    # A program's name comes first in these.
    _Rule("]: ", r"(?s).{1,32}?\[\d+\]: (?:segfault at|unhandled )", _always(_K.SEGFAULT, _INFO)),
    _Rule("traps: ", r"(?s)traps: .{1,32}?\[\d+\] (?:general protection|trap )", _always(_K.SEGFAULT, _INFO)),
    # NVIDIA
    _Rule("SXid", rf"nvidia-nvswitch\d+: SXid \((?:PCI:)?{_PCI}\): (\d{{1,6}}), (?:(Fatal)\b)?", _sxid),
    _Rule("NVRM: Xid", rf"NVRM: Xid \((?:PCI:)?{_PCI}\): (\d{{1,5}})(?![\d\w.:])", _xid),
    # AMD and Ascend
    _Rule(
        "amdgpu",
        rf"amdgpu {_PCI}: (?:amdgpu: )?(ring \S{{1,32}} timeout|GPU reset(?:\(\d+\))? (?:begin|succeeded|(failed))"
        r"|(?:socket: \d+,? die: \d+,? )?[1-9]\d{0,18} (?:new )?(?:uncorrectable|deferred) hardware errors detected)",
        _amdgpu,
    ),
    _Rule(
        "ascend",
        r"\[?ascend\]? ?(?:\[[\w-]{1,32}\] ?){0,3}[^\n]{0,200}?"
        r"(?i:\berror\b|heart[ _-]?beat[^\n]{0,40}(?:lost|time ?out|abnormal))",
        _ascend,
    ),
    # Machine checks and memory
    _Rule(
        "Machine Check",
        rf"{_HARDWARE}CPU (\d{{1,5}}): Machine Check(?: Exception)?: [0-9a-fA-F]+ Bank \d+: (?:0x)?([0-9a-fA-F]{{1,16}})\b",
        _machine_check,
    ),
    _Rule("_STATUS[", rf"{_HARDWARE}CPU:(\d{{1,5}}) \([^)]{{0,40}}\) MC\d+_STATUS\[([^\]]{{0,200}})\]", _machine_check_amd),
    _Rule("Machine check events", rf"{_HARDWARE}Machine check events logged", _always(_K.MACHINE_CHECK_NOTICE, _WARNING)),
    _Rule("SError", r"SError Interrupt on CPU(\d{1,5}),", _on_cpu(_K.MACHINE_CHECK, _CRITICAL, "uncorrected")),
    _Rule("event severity: ", rf"{_HARDWARE}event severity: (corrected|recoverable|fatal|info)\b", _firmware),
    _Rule("EDAC MC", r"EDAC (MC\d{1,4}): (\d{1,9}) (CE|UE)\b(?:.{0,80}? on (\S{1,48}))?", _edac),
    _Rule("Memory failure: ", r"Memory failure: 0x[0-9a-f]+: recovery action for .{1,80}: (\w{1,20})\Z", _memory_failure),
    _Rule(
        "Killed process ",
        r"(?:((?:Memory cgroup out|Out) of memory)(?: \([^)]{1,40}\))?: )?Killed process \d+ \(",
        _oom,
    ),
    # Disks
    _Rule(" error, dev ", r"(?:\w{1,30}: )?([A-Za-z/ ]{1,40}) error, dev ([^\s,]{0,64}), sector \d", _io_error),
    _Rule(
        "Buffer I/O error",
        r"Buffer I/O error on dev(?:ice)? ([^\s,]{1,64}), logical block",
        _on_device(_K.BUFFER_IO_ERROR, _WARNING),
    ),
    _Rule(
        "nvme nvme",
        r"nvme (nvme\d{1,4}): (I/O (?:tag )?\d[^\n]{0,80} timeout,|controller is down|Removing after probe failure"
        r"|Disabling device after reset failure|Device not ready)",
        _nvme,
    ),
    _Rule("ata", r"(ata\d{1,4})(?:\.\d\d)?: (hard resetting link|soft resetting link|disabled?)\b", _ata),
    _Rule(
        "Sense Key : ",
        r"(?:sd|sr|st|ses|scsi) ([\d:]{1,24}): (?:\[(\w{1,20})\] )?(?:tag#\d+ )?Sense Key : ([\w ]{1,24}) \[",
        _sense,
    ),
    # File systems
    _Rule("-fs error (", rf"EXT[234]-fs error \(device {_DEVICE}\)", _fs(_K.FS_ERROR, "ext4")),
    _Rule("EXT4-fs (", rf"EXT4-fs \({_DEVICE}\): (?:previous )?I/O error", _fs(_K.FS_ERROR, "ext4")),
    _Rule("Aborting journal", r"Aborting journal on device ([^\s()]{1,64}?)\.?\Z", _journal),
    _Rule("read-only", rf"EXT[234]-fs \({_DEVICE}\): Remounting filesystem read-only", _fs(_K.FS_READONLY, "ext4")),
    _Rule("read-only", rf"FAT-fs \({_DEVICE}\): Filesystem has been set read-only", _fs(_K.FS_READONLY, "fat")),
    _Rule("FAT-fs (", rf"FAT-fs \({_DEVICE}\): error", _fs(_K.FS_ERROR, "fat")),
    _Rule(
        "XFS (",
        rf"XFS \({_DEVICE}\): (?:[^\n]{{0,120}}Shutting down filesystem|Filesystem has been shut down)",
        _fs(_K.FS_READONLY, "xfs"),
    ),
    _Rule(
        "XFS (",
        rf"XFS \({_DEVICE}\): (?:Metadata (?:corruption|CRC error) detected|Corruption detected|Internal error"
        r"|(?i:metadata|log) I/O error)",
        _fs(_K.FS_ERROR, "xfs"),
    ),
    _Rule("forced readonly", rf"BTRFS info \(device {_DEVICE}[^)]{{0,20}}\): forced readonly", _fs(_K.FS_READONLY, "btrfs")),
    _Rule(
        "BTRFS",
        rf"BTRFS:? (?:(critical|error) \(device {_DEVICE}[^)]{{0,20}}\)"
        rf"|warning \(device {_DEVICE}[^)]{{0,20}}\): (?:csum|checksum))",
        lambda match: _btrfs(match) if match[2] else _Found(_K.FS_ERROR, _WARNING, match[3], "btrfs"),
    ),
    # Links
    _Rule(
        "link status definitely",
        r"(?:bonding: )?[\w.-]{1,15}: (?:\(slave ([^\s)]{1,15})\): )?link status definitely (up|down)"
        r"(?: for interface ([^\s,]{1,15}))?",
        _bond,
    ),
    _Rule(
        "Slot(",
        rf"pcie(?:port|hp) {_PCI}(?::pcie\d+)?: (?:pciehp: )?Slot\([^)]{{0,20}}\): "
        r"(Link Down|Link Up|Card not present|Card present)",
        _hotplug,
    ),
    _Rule("ink ", _LINK_PATTERN, _link),
    _Rule("PCIe Bus Error", rf"\S{{1,40}} {_PCI}: (?:AER: )?PCIe Bus Error: severity=(\w+)(?: \((Non-Fatal|Fatal)\))?", _aer),
    _Rule("DPC: containment", rf"pcieport {_PCI}: DPC: containment event", _on_device(_K.PCIE_CONTAINMENT, _CRITICAL)),
    # The kernel itself
    _Rule(
        "blocked ", r"(?s)INFO: task .{1,64} blocked (?:in I/O wait )?for more than \d+ seconds", _always(_K.HUNG_TASK, _WARNING)
    ),
    _Rule("soft lockup", r"(?:NMI )?(?:watchdog: )?BUG: soft lockup - CPU#(\d{1,5}) stuck", _on_cpu(_K.SOFT_LOCKUP, _CRITICAL)),
    _Rule(
        "hard LOCKUP",
        r"(?:NMI )?(?:watchdog: )?(?:CPU\d+: )?Watchdog detected hard LOCKUP on cpu ?(\d{1,5})",
        _on_cpu(_K.HARD_LOCKUP, _CRITICAL),
    ),
    _Rule(
        "stall",
        r"(?:rcu: )?INFO: rcu_\w{1,20} (?:self-detected stall on CPU|detected (?:expedited )?stalls on CPUs/tasks)",
        _always(_K.RCU_STALL, _CRITICAL),
    ),
    _Rule(
        "above threshold",
        r"(?:mce: )?CPU(\d{1,5}): (Core|Package) temperature(?: is)? above threshold, cpu clock(?: is)? throttled",
        _thermal,
    ),
    _Rule(
        "critical temperature reached",
        r"(?:thermal )?([\w-]{1,40}): critical temperature reached",
        _on_device(_K.THERMAL, _CRITICAL, "critical"),
    ),
    _Rule("Kernel panic", r"Kernel panic - not syncing", _always(_K.PANIC, _CRITICAL)),
    _Rule(" [#", _OOPS_PATTERN, _always(_K.OOPS, _CRITICAL)),
    _Rule("BUG", _BUG_PATTERN, _bug),
    _Rule("Unable to handle kernel", _BUG_PATTERN, _bug),
    _Rule("WARNING: ", r"WARNING: (?:CPU: \d+ PID: \d+ at |\S+:\d+ at )", _always(_K.KERNEL_WARNING, _WARNING)),
)
