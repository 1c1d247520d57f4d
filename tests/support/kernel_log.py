"""Kernel log texts for tests: recorded files, records made of them, and machines that hold them."""

import os
import re

from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.model.event import KernelEvent
from nodeproof.sources import kmsg
from nodeproof.sources.kernel_events import classify

__all__ = ["KMSG_FIXTURES", "event", "fixture", "log_machine", "record", "records_of_dmesg", "write_log"]

KMSG_FIXTURES = os.path.join(os.path.dirname(__file__), "..", "fixtures", "kmsg")
_DMESG_LINE = re.compile(r"\[ *(\d+\.\d+)\] (.*)")


def fixture(name: str) -> str:
    """Text of one file in ``tests/fixtures/kmsg``."""
    with open(os.path.join(KMSG_FIXTURES, name), encoding="utf-8") as file:
        return file.read()


def record(text: str, *, sequence: int = 1, time_us: int = 1_000_000, facility: int = 0, level: int = 4) -> bytes:
    """``text`` as the kernel hands it out: bytes that are not printable ASCII, and backslashes, are escaped."""
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and byte != 0x5C else f"\\x{byte:02x}" for byte in text.encode("utf-8", "surrogateescape")
    )
    return f"{facility << 3 | level},{sequence},{time_us},-;{escaped}".encode()


def records_of_dmesg(text: str, *, first: int = 0) -> list[bytes]:
    """Records of lines such as ``[500.1] text``; comment lines are left out."""
    found = [match for line in text.splitlines() if (match := _DMESG_LINE.match(line))]
    return [record(match[2], sequence=first + n, time_us=round(float(match[1]) * 1e6)) for n, match in enumerate(found)]


def event(text: str, *, facility: int = 0) -> KernelEvent | None:
    """What a line that stands alone means."""
    return classify(kmsg.parse(record(text, facility=facility)))


def write_log(root: str, records: list[bytes]) -> None:
    """Put ``records`` at the end of ``dev/kmsg`` below ``root``."""
    os.makedirs(os.path.join(root, "dev"), exist_ok=True)
    with open(os.path.join(root, "dev/kmsg"), "ab") as file:
        file.write(b"".join(raw + b"\n" for raw in records))


def log_machine(root: str, records: list[bytes], clock: ManualClock | None = None) -> Machine:
    """A recorded machine whose kernel log holds ``records``."""
    write_log(root, records)
    return recorded_machine(root, clock=clock)
