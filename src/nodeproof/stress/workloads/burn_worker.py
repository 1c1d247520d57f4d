"""One device's part of ``gpu_burn``, in a process of its own: it may hang, crash or take its driver's context with it.

It tells by small messages what it does and found; the last one is its result. A process that ends without one has died, and with
it its device.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from nodeproof.stress.workloads.burn_device import BurnDevice, Inject, Unsupported, WordFault, load_driver
from nodeproof.stress.workloads.burn_plan import BurnPlan, batch_times, matrix_size, memory_bytes

__all__ = ["DeviceRun", "Say", "list_devices", "work"]

_KEPT: Final = 8
"""Faults of one phase that are told one by one."""
_KEYS: Final = (0x5555555555555555, 0x6C8E9CF570932BD5, 0x0F0F0F0F0F0F0F0F, 0x2545F4914F6CDD1D)
"""Each is written together with its complement afterwards, so that each bit holds both values in each pass."""
_WORD: Final = (1 << 64) - 1
Say = Callable[[dict[str, Any]], None]


class DeviceRun:
    """Burns one opened device and keeps what was found."""

    def __init__(
        self, device: BurnDevice, plan: BurnPlan, say: Say, *, inject: Inject | None = None, size: int | None = None
    ) -> None:
        self._device = device
        self._plan = plan
        self._say = say
        self._name = device.facts.device
        self._inject = inject if inject is not None and inject.device == self._name else None
        self._size = size
        self._faults: list[str] = []
        self._errors = 0
        self._rates: dict[str, float] = {}
        self._skipped: dict[str, str] = {}
        self._verify_s = 0.0
        self._busy_s = 0.0
        self._memory = 0

    def run(self, memory: int | None) -> dict[str, Any]:
        """Every number format, then memory; the result."""
        for precision in self._plan.precisions:
            self._burn(precision)
            self._device.release()
        self._test_memory(memory)
        self._device.release()
        return {
            "device": self._name,
            "name": self._device.facts.name,
            "address": self._device.facts.address,
            "tflops": {precision: round(rate, 3) for precision, rate in self._rates.items()},
            "skipped": self._skipped,
            "memory_bytes": self._memory,
            "errors": self._errors,
            "faults": self._faults,
            "verify_share": round(self._verify_s / self._busy_s, 4) if self._busy_s else 0.0,
        }

    def _burn(self, precision: str) -> None:
        size = matrix_size(precision, self._device.free_bytes(), self._size)
        self._say({"phase": precision, "done": 0})
        try:
            relation = self._device.prepare(precision, size)
        except Unsupported as reason:
            self._skipped[precision] = str(reason)
            return
        if not relation <= 1.0:  # also when it is no number
            self._errors += 1
            self._faults.append(
                f"{self._name} {precision}: the checksum of the first product is off by {relation:.3g} times its bound"
            )
        times, done, spent_s = 1, 0, 0.0
        self._device.multiply(1)  # whatever is loaded and chosen at the first call
        started_s = time.monotonic()
        while not done or time.monotonic() - started_s < self._plan.precision_s:
            began_s = time.monotonic()
            self._device.multiply(times)
            took_s = time.monotonic() - began_s
            self._plant(precision)
            self._take(self._device.verify(_KEPT))
            self._verify_s += time.monotonic() - began_s - took_s
            self._busy_s += took_s
            spent_s += took_s
            done += times
            rate = 2.0 * size**3 * done / spent_s / 1e12 if spent_s > 0 else 0.0
            self._say({"phase": precision, "done": done, "tflops": rate, "errors": self._errors})
            times = batch_times(took_s, times)
        self._rates[precision] = rate

    def _test_memory(self, asked: int | None) -> None:
        key = _KEYS[0]
        self._say({"phase": "memory", "done": 0})
        self._memory = self._device.fill(memory_bytes(self._device.free_bytes(), asked), key)
        started_s, number = time.monotonic(), 0
        while True:
            self._plant("memory")
            for following in (~key & _WORD, _KEYS[(number + 1) % len(_KEYS)]):
                self._take(self._device.sweep(key, following, _KEPT))
                key = following
            number += 1
            self._say({"phase": "memory", "done": number, "errors": self._errors})
            over = time.monotonic() - started_s >= self._plan.memory_s
            if over or (self._plan.memory_passes and number >= self._plan.memory_passes):
                break
        self._take(self._device.sweep(key, key, _KEPT))

    def _plant(self, where: str) -> None:
        if self._inject is not None and self._inject.where == where:
            self._device.flip(where, self._inject.offset, self._inject.bits)
            self._inject = None

    def _take(self, found: tuple[int, Any]) -> None:
        count, faults = found
        self._errors += count
        room = max(0, 4 * _KEPT - len(self._faults))
        self._faults += [WordFault(*fault).text(self._name) for fault in faults[:room]]


def work(driver: str, device: str, plan: BurnPlan, options: dict[str, Any], pipe: Any) -> None:  # noqa: ANN401 - a Connection
    """The whole life of a worker process; its messages go into ``pipe``."""
    try:
        opened = load_driver(driver).open(device)
        run = DeviceRun(opened, plan, pipe.send, inject=options["inject"], size=options["size"])
        pipe.send({"result": run.run(options["memory"])})
    except BaseException as error:  # noqa: BLE001 - whatever ends it is what is to be told
        pipe.send({"died": f"{type(error).__name__}: {error}"[:500]})
    finally:
        pipe.close()


def list_devices(driver: str, kind: str, pipe: Any) -> None:  # noqa: ANN401 - a Connection
    """The devices there are, asked in a process of its own: a broken driver may take it along."""
    try:
        loaded = load_driver(driver)
        pipe.send({"devices": [tuple(facts) for facts in loaded.devices(kind)], "version": loaded.version})
    except BaseException as error:  # noqa: BLE001 - whatever ends it is what is to be told
        pipe.send({"died": f"{type(error).__name__}: {error}"[:500]})
    finally:
        pipe.close()
