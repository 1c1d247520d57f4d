"""What the kernel logged while a run went on."""

from nodeproof.collectors.services.kernel_log import KernelLog
from nodeproof.errors import NoData
from nodeproof.host.machine import Machine
from nodeproof.model.hardware import KernelNote

__all__ = ["kernel_notes"]

_MAX_NOTES = 64


def kernel_notes(machine: Machine, since_s: float) -> list[KernelNote]:
    """Events that the kernel itself logged since ``since_s`` (seconds since boot), the newest 64; none where the log is closed.

    That it is closed stands among the fields of the state.
    """
    try:
        events = machine.shared(KernelLog).events()
    except NoData:
        return []
    notes = [
        KernelNote(
            kind=whole.event.kind,
            severity=whole.event.severity,
            message=whole.event.message,
            at_s=whole.last_s,
            device=whole.event.device,
            code=whole.event.code,
        )
        for whole in events
        if whole.event.verified and whole.last_s >= since_s
    ]
    return notes[-_MAX_NOTES:]
