"""A driver of made-up devices for ``gpu_burn``: words in lists, and devices that are sick as their names say.

``fake:0`` is well, ``fake:1`` computes a wrong word now and then, ``fake:2`` dies of an error, ``fake:3`` kills its process,
``fake:4`` hangs, ``fake:5`` has a wrong reference, ``fake:6`` has memory that forgets.
"""

import os
import signal
import time
from collections.abc import Sequence

from nodeproof.stress.workloads.burn_device import DeviceFacts, Unsupported, WordFault

__all__ = ["BrokenDriver", "DyingDriver", "FakeDevice", "FakeDriver", "NoDriver"]

_WORD = (1 << 64) - 1
_COUNT = 7


class FakeDriver:
    """Seven devices."""

    version = "0-fake"

    def devices(self, kind: str) -> list[DeviceFacts]:
        """All of them, whatever kind is asked for."""
        return [DeviceFacts(f"fake:{number}", f"Fake {number}", "", 1 << 20) for number in range(_COUNT)] if kind else []

    def open(self, device: str) -> "FakeDevice":
        """One of them."""
        return FakeDevice(next(facts for facts in self.devices("fake") if facts.device == device))


class NoDriver(FakeDriver):
    """Sees nothing."""

    def devices(self, kind: str) -> list[DeviceFacts]:
        """None."""
        return super().devices("" if kind else kind)


class BrokenDriver(FakeDriver):
    """Cannot even say what there is."""

    def devices(self, kind: str) -> list[DeviceFacts]:
        """Never."""
        raise RuntimeError(f"no driver of {kind} is loaded")


class DyingDriver(FakeDriver):
    """Takes its process along."""

    def devices(self, kind: str) -> list[DeviceFacts]:
        """Never."""
        os.kill(os.getpid(), signal.SIGKILL)
        return super().devices(kind)


class FakeDevice:
    """One device; a product of ``size`` squared words."""

    def __init__(self, facts: DeviceFacts) -> None:
        self.facts = facts
        self._sick = int(facts.device.partition(":")[2])
        self._reference: list[int] = []
        self._product: list[int] = []
        self._memory: list[int] = []
        self._multiplied = 0
        self._where = ""

    def free_bytes(self) -> int:
        """A little."""
        return 1 << 20

    def prepare(self, precision: str, size: int) -> float:
        """Some words."""
        if precision == "fp8":
            raise Unsupported("these devices have no fp8")
        self._where = precision
        self._reference = [number * 0x9E37 & _WORD for number in range(size * size)]
        return 3.5 if self._sick == 5 else 0.25

    def multiply(self, times: int) -> None:
        """The same words again; each sickness in its own way."""
        self._multiplied += times
        self._product = list(self._reference)
        if self._multiplied > 1:
            if self._sick == 1:
                self._product[3] ^= 0x10
            elif self._sick == 2:
                raise RuntimeError("uncorrectable ECC error encountered")
            elif self._sick == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            elif self._sick == 4:
                time.sleep(60)
        time.sleep(0.001 * times)

    def flip(self, where: str, offset: int, bits: int) -> None:
        """Change a word."""
        words = self._memory if where == "memory" else self._product
        words[offset] ^= bits

    def verify(self, most: int) -> tuple[int, Sequence[WordFault]]:
        """Compare."""
        return _compare(self._where, self._product, self._reference, most)

    def fill(self, size: int, key: int) -> int:
        """At most a thousand words."""
        self._memory = [number ^ key for number in range(min(1000, size // 8))]
        if self._sick == 6:
            self._memory[17] = 0
        return 8 * len(self._memory)

    def sweep(self, key: int, next_key: int, most: int) -> tuple[int, Sequence[WordFault]]:
        """Compare and write."""
        found = _compare("memory", self._memory, [number ^ key for number in range(len(self._memory))], most)
        self._memory = [number ^ next_key for number in range(len(self._memory))]
        return found

    def release(self) -> None:
        """Forget."""
        self._product, self._memory = [], []


def _compare(where: str, actual: list[int], expected: list[int], most: int) -> tuple[int, list[WordFault]]:
    places = [at for at, (one, other) in enumerate(zip(actual, expected, strict=True)) if one != other]
    return len(places), [WordFault(where, at, expected[at], actual[at]) for at in places[:most]]
