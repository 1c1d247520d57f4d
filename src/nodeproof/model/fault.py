"""Faults: what is broken now, what happened, and who is told.

The keys of the reference's event (observe.md 7.4) stay: ``event_id type component npu_id severity detail timestamp recovered``.
All others are additions. A *fault* is a state that begins and ends; an *event* is one entry of the log: a fault was set, it was
cleared, somebody took note of it, or something happened that is no state (a program made a GPU raise an error).
"""

from enum import StrEnum

import msgspec

from nodeproof.model.event import Severity

__all__ = [
    "Acknowledgement",
    "Change",
    "Delivery",
    "Fault",
    "FaultClass",
    "FaultEvent",
    "FaultState",
    "KernelPlace",
    "Order",
    "OrderKind",
    "Origin",
    "Subscription",
]


class FaultClass(StrEnum):
    """What kind of thing is wrong, in words that are the same for every vendor and part."""

    LOST = "lost"
    """The device no longer answers or has left its bus."""
    RESET_REQUIRED = "reset_required"
    """It answers and will do no work before it is reset."""
    ECC_UNCORRECTED = "ecc_uncorrected"
    """Memory of it gave a wrong value that could not be put right."""
    ECC_CORRECTED = "ecc_corrected"
    """Errors were put right, more of them than is usual."""
    MEMORY_REPAIR = "memory_repair"
    """Rows or pages were taken out of use, or could not be."""
    LINK_DOWN = "link_down"
    LINK_DEGRADED = "link_degraded"
    """Slower, narrower or more erroneous than it should be."""
    LINK_FLAPPING = "link_flapping"
    THERMAL = "thermal"
    POWER = "power"
    FAN = "fan"
    DRIVER_HUNG = "driver_hung"
    """A driver or firmware no longer answers."""
    DRIVER = "driver"
    """A driver or firmware reports an error of its own."""
    DEVICE = "device"
    """The device reports an error of itself that no other word fits."""
    APPLICATION = "application"
    """A program caused it; the hardware is not accused."""
    DISK = "disk"
    RAID = "raid"
    FILE_SYSTEM = "file_system"
    PROCESSOR = "processor"
    """Machine check of a processor."""
    KERNEL = "kernel"
    """The kernel itself failed or stood still."""
    OUT_OF_MEMORY = "out_of_memory"
    STUCK = "stuck"
    """A task waits without end."""
    STRAGGLER = "straggler"
    """A device that is slower than its neighbours."""
    MONITOR = "monitor"
    """nodeproof itself cannot see."""
    UNKNOWN = "unknown"
    """Known to be an error, not which one."""


class Change(StrEnum):
    """What an event tells of."""

    SET = "set"
    CLEARED = "cleared"
    EVENT = "event"
    """Something that happened and is no state: nothing will clear it."""
    GRAVER = "graver"
    """A fault that stands became critical."""
    ACKNOWLEDGED = "acknowledged"
    HELD = "held"
    RELEASED = "released"


class Origin(StrEnum):
    """What a fault rests on, which decides how it ends."""

    READING = "reading"
    """A rule of health: it ends when the reading is good again, and never because there is none."""
    KERNEL = "kernel"
    """A line of the kernel log."""
    DRILL = "drill"


class Acknowledgement(msgspec.Struct, frozen=True, omit_defaults=True):
    """Somebody knows of a fault."""

    by: str
    at: str
    """RFC 3339."""
    note: str = ""


class FaultEvent(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One entry of the log of faults."""

    event_id: str
    """32 hexadecimal digits; the same in every delivery of this event."""
    type: str
    component: str
    npu_id: str
    """Id of the NPU; empty where it is about none."""
    severity: Severity
    detail: dict[str, str]
    """Evidence."""
    timestamp: str
    """RFC 3339: when it was detected; of a kernel event, when the kernel wrote it."""
    recovered: bool
    sequence: int
    """Number of the entry; grows by one with each, over restarts too."""
    change: Change
    fault_class: FaultClass = msgspec.field(name="class")
    rule: str
    """Which rule found it: ``nodeproof explain RULE`` tells of it."""
    device: str
    """What it is about, by a name that does not move when others are lost: UUID, serial number, bus address."""
    message: str
    boot_id: str
    gpu_id: str = ""
    labels: dict[str, str] = {}
    """What names the thing in its readings."""
    fault_id: str = ""
    """Which fault; empty for what is no state."""
    action: str = ""
    """What to do."""
    count: int = 1
    drill: bool = False
    """True = injected to try the alarm; nothing is broken."""
    verified: bool = True
    """False = no more than somebody's claim: a line of the kernel log that the kernel did not write, an event handed in."""
    since: str = ""
    """RFC 3339: when the fault began, by the first reading or line that led to it; empty for what is no state."""


class Fault(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One thing that is wrong now."""

    fault_id: str
    rule: str
    type: str
    fault_class: FaultClass = msgspec.field(name="class")
    component: str
    device: str
    severity: Severity
    message: str
    action: str
    since: str
    """RFC 3339: the first reading, or line of the kernel log, that led to it."""
    clears_when: str
    origin: Origin
    boot_id: str
    """Boot in which it was set."""
    event_id: str
    """The event that set it."""
    detail: dict[str, str] = {}
    labels: dict[str, str] = {}
    """What names the thing in its readings."""
    last: str = ""
    """RFC 3339: when its cause was seen last; empty = only at the beginning."""
    count: int = 1
    quiet_s: float = 0.0
    """A fault made of events ends after so long without another; 0 = it does not."""
    until_boot: bool = False
    """It ends with the next boot."""
    unseen: bool = False
    """What it rests on cannot be read now: it stands until that reads well again."""
    drill: bool = False
    drill_ends: float = 0.0
    """Drill: when it ends by itself, in seconds since the epoch."""
    acknowledged: Acknowledgement | None = None
    held: bool = False
    """It stays, whatever is read, until somebody clears it."""
    over: bool = False
    """Held, though its cause has ended."""

    @property
    def key(self) -> tuple[str, str]:
        """What makes it this fault and no other."""
        return (self.rule, self.device)


class KernelPlace(msgspec.Struct, frozen=True):
    """How far the kernel log has been judged."""

    boot_id: str = ""
    sequence: int = -1


class FaultState(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """``active.json``: all that stands, and up to which event that holds."""

    schema: int
    sequence: int
    timestamp: str
    faults: list[Fault]
    kernel: KernelPlace


class OrderKind(StrEnum):
    """What an operator asks for."""

    ACKNOWLEDGE = "acknowledge"
    HOLD = "hold"
    RELEASE = "release"
    CLEAR = "clear"
    INJECT = "inject"


class Order(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An operator's wish, handed to the daemon as a file."""

    kind: OrderKind
    target: str
    """Id of a fault; of ``inject``, a rule."""
    by: str
    note: str = ""
    seconds: float = 60.0
    """``inject``: when the drill ends by itself."""


class Delivery(StrEnum):
    """How a subscriber gets its events."""

    WEBHOOK = "webhook"
    POLL = "poll"


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants to be told of what."""

    id: str
    delivery: Delivery
    created_at: str
    types: list[str] = []
    """Empty = all; the same for the other lists."""
    components: list[str] = []
    npu_ids: list[str] = []
    endpoint: str = ""
    debounce_ms: int = 0
    min_severity: str = ""
    signed: bool = False
    """A secret of its own signs its deliveries; else the key of this node does."""
