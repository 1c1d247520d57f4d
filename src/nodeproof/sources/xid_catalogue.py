"""What NVIDIA's Xid and SXid numbers mean, and what to do about them.

Numbers, their names and which remedy goes with which are facts of NVIDIA's "Xid Errors" (catalogue for Ampere and newer, and the
older listing for what that leaves out) and "Fabric Manager User Guide" (SXid); the sentences are ours. The number alone does not
tell how grave it is: NVLink errors of newer GPUs (144 to 150) say ``Fatal`` or ``Nonfatal`` and name a unit, Xid 154 says what
the driver wants done, and SXids say ``Fatal`` or ``Non-fatal``.
"""

import re
from typing import NamedTuple

from nodeproof.model.event import Severity
from nodeproof.model.fault import FaultClass as Is

__all__ = ["SXIDS", "XIDS", "XidDetail", "XidEntry", "sxid_entry", "xid_detail", "xid_entry"]

_DAY_S = 86400.0
_INFO, _WARNING, _CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL

_APP = "Start the program again. If it does this each time, debug it (compute-sanitizer); if all programs do, look at the driver."
_WATCH = "Nothing at once. If it comes again and again, collect nvidia-bug-report and ask the vendor."
_RESET = "Drain the GPU and reset it (nvidia-smi --gpu-reset -i ID); boot the node if that is refused."
_BOOT = "Drain the node and boot it, with power off in between if need be; if the GPU stays away, reseat or replace it."
_LINKS = "Run nvidia-smi nvlink -s and -e; reset the GPUs at both ends; if it comes again, have board, cable or switch looked at."
_SUPPORT = "Collect nvidia-bug-report and ask the vendor."
_UPDATE = "Bring driver and firmware to versions that belong together."


class XidEntry(NamedTuple):
    """One number."""

    meaning: str
    fault_class: Is
    severity: Severity
    action: str
    stands: bool = False
    """It is a state that lasts, as against something that happened."""
    quiet_s: float = 0.0
    """A state ends after so long without another such line; 0 = with the next boot."""


def _event(meaning: str, is_: Is, severity: Severity, action: str) -> XidEntry:
    return XidEntry(meaning, is_, severity, action)


def _app(meaning: str) -> XidEntry:
    return XidEntry(meaning, Is.APPLICATION, _INFO, _APP)


def _state(meaning: str, is_: Is, severity: Severity, action: str, quiet_s: float = 0.0) -> XidEntry:
    return XidEntry(meaning, is_, severity, action, stands=True, quiet_s=quiet_s)


_UNKNOWN_XID = _event("An Xid that is not in the catalogue.", Is.UNKNOWN, _WARNING, _SUPPORT)
_UNKNOWN_SXID = _event("An SXid that is not in the catalogue.", Is.UNKNOWN, _WARNING, _SUPPORT)

XIDS: dict[int, XidEntry] = {
    8: _app("A channel stood idle for too long and was stopped."),
    11: _app("A command stream held something invalid."),
    13: _app("A kernel of a program raised an exception on the GPU: most often an access out of bounds."),
    24: _app("A semaphore was not released in time."),
    25: _app("A command stream held something that is not allowed."),
    31: _app("A program touched GPU memory that it had not mapped."),
    32: _app("A command stream was damaged on its way to the GPU, or was wrong from the start."),
    37: _event("The driver's firmware met a method it does not know.", Is.DRIVER, _INFO, _WATCH),
    38: _event("The driver's firmware watchdog ran out.", Is.DRIVER, _WARNING, _WATCH),
    39: _app("A copy engine raised an exception."),
    40: _app("A copy engine raised an exception."),
    41: _app("A copy engine raised an exception."),
    43: _app("A program's work was stopped after an error of its own; the GPU is well."),
    44: _event("The graphics engine faulted while it switched contexts.", Is.DRIVER, _WARNING, _WATCH),
    45: _app("Channels were cleaned up after a program ended or another error: it follows other trouble, it is none."),
    46: _state("The GPU no longer answered the driver.", Is.DRIVER_HUNG, _CRITICAL, _RESET),
    48: _state("GPU memory gave a value that could not be put right.", Is.ECC_UNCORRECTED, _CRITICAL, _RESET),
    54: _state(
        "The board gets no power from its own connector.",
        Is.POWER,
        _CRITICAL,
        "Switch the node off and look at the power cables of the board.",
    ),
    56: _event("The display engine reported an error.", Is.DEVICE, _INFO, _WATCH),
    57: _state("The link to GPU memory could not be trained.", Is.DEVICE, _CRITICAL, _BOOT),
    58: _state("The link to GPU memory is unstable.", Is.DEVICE, _CRITICAL, _SUPPORT),
    59: _event("A micro-controller of the GPU reported an error.", Is.DEVICE, _WARNING, _WATCH),
    60: _app("The security or video processor raised an exception."),
    61: _state("A micro-controller of the GPU stopped at a breakpoint.", Is.DRIVER_HUNG, _WARNING, _RESET, _DAY_S),
    62: _state("A micro-controller of the GPU halted.", Is.DRIVER_HUNG, _CRITICAL, _RESET),
    63: _event(
        "A bad row or page of GPU memory was put out of use, as it should be.",
        Is.MEMORY_REPAIR,
        _WARNING,
        "Reset the GPU when it is free, so that the spare row is taken; count how often this happens.",
    ),
    64: _state("A bad row or page of GPU memory could not be put out of use.", Is.MEMORY_REPAIR, _CRITICAL, _RESET),
    65: _app("The video encoder raised an exception."),
    66: _event("The driver touched a register that it must not.", Is.DRIVER, _WARNING, _UPDATE),
    67: _event("The driver broke a rule of the firmware.", Is.DRIVER, _WARNING, _WATCH),
    68: _app("The video decoder raised an exception."),
    69: _app("A program used a class of methods wrongly."),
    70: _app("A copy engine raised an exception."),
    71: _app("A copy engine raised an exception."),
    72: _app("A copy engine raised an exception."),
    74: _state("An NVLink reported an error.", Is.LINK_DEGRADED, _CRITICAL, _LINKS, _DAY_S),
    75: _app("A copy engine raised an exception."),
    76: _app("A copy engine raised an exception."),
    77: _app("A copy engine raised an exception."),
    78: _event("A virtual GPU could not be started.", Is.DRIVER, _WARNING, _UPDATE),
    79: _state("The GPU has left the PCIe bus.", Is.LOST, _CRITICAL, _BOOT),
    80: _app("Data came to the GPU with a wrong checksum."),
    82: _app("The JPEG engine raised an exception."),
    83: _app("The video decoder raised an exception."),
    84: _app("The video decoder raised an exception."),
    85: _app("A copy engine raised an exception."),
    86: _app("The optical-flow engine raised an exception."),
    88: _app("The video decoder raised an exception."),
    89: _app("The video decoder raised an exception."),
    92: _state(
        "GPU memory needed many corrections.",
        Is.ECC_CORRECTED,
        _WARNING,
        "Watch the counters (nvidia-smi -q -d ECC); have the board tested if it goes on.",
        _DAY_S,
    ),
    93: _event("The board's information store was written to more often than it is made for.", Is.DEVICE, _INFO, _WATCH),
    94: _state(
        "A memory error was kept within one program, which was ended.",
        Is.ECC_UNCORRECTED,
        _WARNING,
        "Start the program again, and reset the GPU when it is free.",
        _DAY_S,
    ),
    95: _state("A memory error reached more than one program.", Is.ECC_UNCORRECTED, _CRITICAL, _RESET),
    **{number: _app("The video decoder raised an exception.") for number in (96, 97, 98)},
    **{number: _app("The JPEG engine raised an exception.") for number in range(99, 106)},
    106: _event("A test message of the management bus.", Is.DRIVER, _INFO, "Nothing."),
    107: _event("A test message of the management bus.", Is.DRIVER, _INFO, "Nothing."),
    108: _event("The far end of an NVLink could not translate an address.", Is.LINK_DEGRADED, _INFO, _WATCH),
    109: _state("Switching contexts took too long: the GPU is stuck.", Is.DRIVER_HUNG, _CRITICAL, _RESET),
    110: _state("The GPU reported a breach of its security.", Is.DEVICE, _CRITICAL, _RESET),
    119: _state("The GPU's system processor (GSP) did not answer.", Is.DRIVER_HUNG, _CRITICAL, _RESET),
    120: _state("The GPU's system processor (GSP) failed.", Is.DRIVER_HUNG, _CRITICAL, _RESET),
    121: _state("The link between processor and GPU dies put errors right.", Is.LINK_DEGRADED, _WARNING, _WATCH, _DAY_S),
    122: _event("The board's flash memory could not be read.", Is.DEVICE, _WARNING, _SUPPORT),
    123: _event("The board's flash memory could not be written.", Is.DEVICE, _WARNING, _SUPPORT),
    124: _event("The board's flash memory could not be erased.", Is.DEVICE, _WARNING, _SUPPORT),
    125: _event("The board's information store is damaged.", Is.DEVICE, _WARNING, _SUPPORT),
    **{number: _app("A copy engine raised an exception.") for number in range(126, 136)},
    136: _state("An NVLink could not be trained.", Is.LINK_DOWN, _CRITICAL, _LINKS),
    137: _event("A program touched memory over NVLink that it may not.", Is.APPLICATION, _INFO, _APP),
    139: _app("The optical-flow engine raised an exception."),
    140: _state("A memory error escaped what should have caught it.", Is.ECC_UNCORRECTED, _CRITICAL, _RESET),
    141: _event("A short cut of CUDA was not taken.", Is.APPLICATION, _INFO, _WATCH),
    142: _event("The video encoder raised an exception.", Is.DEVICE, _INFO, _WATCH),
    143: _state("The GPU could not be set up.", Is.RESET_REQUIRED, _CRITICAL, _RESET),
    144: _state("NVLink, unit SAW.", Is.LINK_DEGRADED, _WARNING, _LINKS, _DAY_S),
    145: _state("NVLink, unit RLW.", Is.LINK_DEGRADED, _WARNING, _LINKS, _DAY_S),
    146: _state("NVLink, unit TLW.", Is.LINK_DEGRADED, _WARNING, _LINKS, _DAY_S),
    147: _state("NVLink, unit TREX.", Is.LINK_DEGRADED, _WARNING, _LINKS, _DAY_S),
    148: _state("NVLink, control of the low-power wrapper.", Is.LINK_DEGRADED, _WARNING, _LINKS, _DAY_S),
    149: _state("NVLink, unit NETIR.", Is.LINK_DEGRADED, _WARNING, _LINKS, _DAY_S),
    150: _state("NVLink, unit MSE.", Is.LINK_DEGRADED, _WARNING, _LINKS, _DAY_S),
    151: _event("Keys of a confidential machine could not be changed.", Is.DRIVER, _WARNING, "Start the virtual machine again."),
    152: _event("An address of the deep-learning unit could not be translated.", Is.APPLICATION, _INFO, _WATCH),
    153: _event("The deep-learning unit took too long.", Is.APPLICATION, _INFO, _WATCH),
    154: _event("What the driver wants done about the GPU has changed.", Is.RESET_REQUIRED, _WARNING, _RESET),
    155: _state("NVLink, an error that software defines.", Is.LINK_DEGRADED, _WARNING, _LINKS, _DAY_S),
    156: _state(
        "A part of the GPU was put out of use.",
        Is.MEMORY_REPAIR,
        _WARNING,
        "Reset the GPU when it is free, so that the spare part is taken.",
    ),
    157: _state("A broken part of the GPU could not be put out of use.", Is.MEMORY_REPAIR, _CRITICAL, _SUPPORT),
    158: _state("The GPU no longer answered, and was given up.", Is.DRIVER_HUNG, _CRITICAL, _RESET),
    159: _event("The bus between processor and GPU dies reported an error.", Is.LINK_DEGRADED, _WARNING, _WATCH),
    160: _event("A memory channel was put out of use.", Is.MEMORY_REPAIR, _WARNING, _WATCH),
    161: _state("A memory channel could not be put out of use.", Is.MEMORY_REPAIR, _CRITICAL, _SUPPORT),
    162: _event("Power smoothing is on again.", Is.POWER, _INFO, "Nothing."),
    163: _event("Power smoothing went off.", Is.POWER, _INFO, _WATCH),
    164: _event("The circuit that smooths power is near the end of its life.", Is.POWER, _WARNING, _SUPPORT),
    165: _event("The circuit that smooths power is at the end of its life.", Is.POWER, _WARNING, _SUPPORT),
    166: _event("Traffic came over an NVLink before it was encrypted.", Is.LINK_DEGRADED, _WARNING, _SUPPORT),
    167: _state("The PCIe bus did not answer the GPU in time.", Is.DRIVER_HUNG, _CRITICAL, _BOOT),
    168: _state("The GPU lost some of its memory to errors in a protected part.", Is.MEMORY_REPAIR, _WARNING, _SUPPORT),
    169: _state("The GPU's security processor halted.", Is.DRIVER_HUNG, _CRITICAL, _RESET),
    170: _event("An NVLink raised an interrupt that a confidential machine must not see.", Is.LINK_DEGRADED, _WARNING, _SUPPORT),
    171: _state("GPU memory (DRAM) gave a value that could not be put right.", Is.ECC_UNCORRECTED, _CRITICAL, _RESET),
    172: _state("Memory within the GPU (SRAM) gave a value that could not be put right.", Is.ECC_UNCORRECTED, _CRITICAL, _RESET),
}
"""By number. One that is not here is an event of class unknown."""

_NVLINK = range(144, 151)
_RECOVERY = 154
_RECOVERIES: tuple[tuple[str, XidEntry], ...] = (
    ("node reboot", _state("The driver wants the node booted.", Is.RESET_REQUIRED, _CRITICAL, _BOOT)),
    ("drain", _state("The driver wants the GPU drained, then reset.", Is.RESET_REQUIRED, _CRITICAL, _RESET)),
    ("reset", _state("The driver wants the GPU reset.", Is.RESET_REQUIRED, _CRITICAL, _RESET)),
    ("none", _event("The driver no longer wants anything done about the GPU.", Is.RESET_REQUIRED, _INFO, "Nothing.")),
)
"""What Xid 154 says after ``to``, the gravest first."""

SXIDS: dict[int, XidEntry] = {
    11012: _event("A packet that came in had a header with an error that was put right.", Is.LINK_DEGRADED, _INFO, _WATCH),
    11021: _event("Many packets that came in had errors that were put right.", Is.LINK_DEGRADED, _WARNING, _LINKS),
    12021: _event("Many packets that went out had errors that were put right.", Is.LINK_DEGRADED, _WARNING, _LINKS),
    12023: _event("A credit of a packet that went out had an error that was put right.", Is.LINK_DEGRADED, _INFO, _WATCH),
    12028: _event("A packet that went out asked for something it may not.", Is.APPLICATION, _INFO, _APP),
    19049: _state("A lane put more errors right than it should have to.", Is.LINK_DEGRADED, _WARNING, _LINKS, _DAY_S),
    19084: _state("A switch no longer heard the heartbeat of another part.", Is.LINK_DOWN, _CRITICAL, _LINKS),
    20001: _state("Packets had to be sent again.", Is.LINK_DEGRADED, _WARNING, _LINKS, _DAY_S),
    20009: _event("A link of a switch needed a short correction.", Is.LINK_DEGRADED, _INFO, _WATCH),
    20034: _state("A link of a switch went down.", Is.LINK_DOWN, _CRITICAL, _LINKS, _DAY_S),
    22013: _state("The controller of a switch's links could not do what it was asked.", Is.DRIVER, _WARNING, _LINKS, _DAY_S),
}
"""By number, as far as the guide tells more than ``Fatal`` and ``Non-fatal``."""

_XID_BODY = re.compile(r"NVRM: Xid \([^)]{1,40}\): \d{1,5}(?:, )?(?P<body>.*)\Z", re.DOTALL)
_PID = re.compile(r"pid='?(?P<pid>\d{1,10}|<unknown>)'?, ")
_NAME = re.compile(r"name=(?P<name>[^,]{0,64}), ")
_UNIT = re.compile(r"(?P<unit>[A-Z][A-Z0-9_]{1,30}) (?P<word>Nonfatal|Fatal) (?:\S{1,8} ){0,3}?Link (?P<link>-?\d{1,4})")
_TO = re.compile(r"\bto 0x[0-9a-fA-F]+ \((?P<what>[^)]{1,60})\)")


class XidDetail(NamedTuple):
    """What the line of an Xid says beyond its number; empty where it does not."""

    pid: str
    process: str
    unit: str
    """Part of the NVLink hardware: ``RLW_RXPIPE``."""
    severity_word: str
    """``Fatal`` or ``Nonfatal``."""
    link: str
    """Number of the NVLink; ``-1`` = none in particular."""
    recovery: str
    """What Xid 154 wants done: ``GPU Reset Required``."""

    def as_detail(self) -> dict[str, str]:
        """Those that are there, for the evidence of an event."""
        return {key: text for key, text in self._asdict().items() if text and text != "<unknown>"}


def xid_detail(line: str) -> XidDetail:
    """Take the line of an Xid apart. A process may name itself as it likes: what follows its name is looked at only after it."""
    found = _XID_BODY.search(line)
    body = found["body"] if found is not None else ""
    pid = _PID.match(body)
    body = body[pid.end() :] if pid is not None else body
    name = _NAME.match(body)
    body = body[name.end() :] if name is not None else body
    unit = _UNIT.match(body)
    to = _TO.search(body)
    return XidDetail(
        pid["pid"] if pid is not None else "",
        name["name"] if name is not None else "",
        unit["unit"] if unit is not None else "",
        unit["word"] if unit is not None else "",
        unit["link"] if unit is not None else "",
        to["what"] if to is not None else "",
    )


def xid_entry(code: str, line: str) -> XidEntry:
    """What Xid ``code`` of this ``line`` means."""
    number = int(code)
    entry = XIDS.get(number, _UNKNOWN_XID)
    if number == _RECOVERY:
        wanted = xid_detail(line).recovery.lower()
        return next((found for word, found in _RECOVERIES if word in wanted), entry)
    if number in _NVLINK and xid_detail(line).severity_word == "Fatal":
        return entry._replace(fault_class=Is.LINK_DOWN, severity=_CRITICAL, quiet_s=0.0)
    return entry


def sxid_entry(code: str, line: str) -> XidEntry:
    """What SXid ``code`` of this ``line`` means: by its word, then by its number."""
    entry = SXIDS.get(int(code), _UNKNOWN_SXID)
    word = line.partition("): ")[2].partition(", ")[2].partition(",")[0].strip()
    if word == "Fatal":
        return entry._replace(severity=_CRITICAL, stands=True, quiet_s=0.0, action=_LINKS)
    if word == "Non-fatal" and entry.severity is _CRITICAL:
        return entry._replace(severity=_WARNING)
    return entry
