"""What ``gpu_burn`` asks of a device, whoever makes it: torch, or a stand-in.

The driver lists devices and opens one; everything about torch is behind this: plan, loop, verdicts and messages need none.
"""

import importlib
from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast

__all__ = [
    "PRECISIONS",
    "BurnDevice",
    "BurnDriver",
    "DeviceFacts",
    "Inject",
    "Unsupported",
    "WordFault",
    "load_driver",
    "parse_inject",
]

PRECISIONS = ("fp64", "fp32", "tf32", "bf16", "fp8")
"""Number formats of the matrix multiply, in the order they are run."""


class Unsupported(Exception):  # noqa: N818 - an answer, not a failure
    """The device has no such number format; the message says so."""


class DeviceFacts(NamedTuple):
    """One device."""

    device: str
    """``cuda:0``, ``npu:3``, ``xpu:0``, ``cpu:0``: torch's own name of it."""
    name: str
    address: str
    """PCI address, as far as known: by it temperature and throttling are found."""
    memory_bytes: int


class WordFault(NamedTuple):
    """A word in the device's memory that is not what it must be."""

    where: str
    """``bf16``, ``memory``."""
    offset: int
    """In words from the start of the matrix, or of the memory under test."""
    expected: int
    """The word's bits."""
    actual: int

    def text(self, device: str) -> str:
        """What is told of it."""
        differing = self.expected ^ self.actual
        return (
            f"{device} {self.where}: word {self.offset} is {self.actual:#x}, expected {self.expected:#x} "
            f"(differing bits {differing:#x})"
        )


class Inject(NamedTuple):
    """A planted fault, for tests: bits of one word are flipped between computing and verifying."""

    device: str
    where: str
    offset: int
    bits: int


class BurnDevice(Protocol):
    """One opened device; used by one thread. Any method may raise whatever the device's runtime raises: the device has failed."""

    facts: DeviceFacts

    def free_bytes(self) -> int:
        """Memory that may be allocated now."""
        ...

    def prepare(self, precision: str, size: int) -> float:
        """Two random matrices of ``size`` x ``size`` and their product as reference, which is proven by a checksum.

        Gives the worst relation of checksum error to its bound: above 1 the reference itself is wrong. Raises Unsupported.
        """
        ...

    def multiply(self, times: int) -> None:
        """Multiply so many times, the last product kept, and wait for it."""
        ...

    def flip(self, where: str, offset: int, bits: int) -> None:
        """Flip bits of one word of the last product, or of the memory under test (``where`` is ``memory``)."""
        ...

    def verify(self, most: int) -> tuple[int, Sequence[WordFault]]:
        """Compare the last product with the reference bit by bit, on the device: how many words differ, and the first few."""
        ...

    def fill(self, size: int, key: int) -> int:
        """Take about ``size`` bytes and write the pattern of ``key`` into every word; the bytes taken."""
        ...

    def sweep(self, key: int, next_key: int, most: int) -> tuple[int, Sequence[WordFault]]:
        """Compare every word with the pattern of ``key`` and write that of ``next_key``; as :meth:`verify`."""
        ...

    def release(self) -> None:
        """Give all memory back."""
        ...


class BurnDriver(Protocol):
    """Who knows devices."""

    version: str
    """Of the library behind it."""

    def devices(self, kind: str) -> list[DeviceFacts]:
        """All devices of a kind: ``cuda`` (NVIDIA, AMD by ROCm), ``npu``, ``xpu``, ``cpu``; ``auto`` = the first that has any."""
        ...

    def open(self, device: str) -> BurnDevice:
        """One of them."""
        ...


def load_driver(path: str) -> BurnDriver:
    """The driver named ``module:class``. Raises ImportError and AttributeError."""
    module, _, name = path.partition(":")
    return cast("BurnDriver", getattr(importlib.import_module(module), name)())


def parse_inject(text: str) -> Inject:
    """``DEVICE/WHERE/OFFSET/BITS``: ``cuda:0/bf16/12345/0x1``. Raises ValueError."""
    device, where, offset, bits = text.split("/")
    return Inject(device, where, int(offset, 0), int(bits, 0))
