"""The helper process that talks to NVML, so that nobody else can be hung by it: ``python -m nodeproof.host.nvml_helper``.

A line of JSON on standard input asks for a look at some cards; each card has a thread of its own, so that one that hangs in its
driver holds up no other; each answer is a line on standard output, written when it is there. The process that asked kills this
one whenever it is late, and it ends by itself when its input does.

::

    > {"look": 7, "cards": ["0000:17:00.0"], "deep": true}
    < {"look": 7, "begun": "0000:17:00.0"}
    < {"look": 7, "card": {"address": "0000:17:00.0", "index": 0, "state": 0, "reason": "", "identity": {...}, "values": [...],
       "untold": [...], "processes": [...]}}
    < {"failed": 18, "reason": "Driver/Library Version Mismatch"}          and the process ends
"""

import json
import os
import queue
import sys
import threading
from typing import Any

__all__ = ["main"]

_NOT_OURS = (4, 6)
"""No permission, not found: a container was not given this card."""
_LOST = 3
"""State of a card whose handle is refused for any other reason: "unknown error" is what a card off the bus brings."""
_NO_BINDING = -1
_MAX_REASON = 200


class _Out:
    """Standard output, a whole line at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def say(self, line: dict[str, Any]) -> None:
        """Write one line."""
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]

    def fail(self, code: int, reason: str) -> None:
        """Say why this process is of no use, and end it: threads that hang in the driver cannot be waited for."""
        self.say({"failed": code, "reason": reason[:_MAX_REASON]})
        os._exit(3)


class _Card(threading.Thread):
    """One card's thread: looks at it when told to, one look at a time."""

    def __init__(self, address: str, out: _Out) -> None:
        super().__init__(name=address, daemon=True)
        self.address = address
        self.looks: queue.SimpleQueue[tuple[int, bool]] = queue.SimpleQueue()
        self.busy = False
        self._out = out
        self._handle: Any = None
        self._identity: dict[str, str] = {}
        self._index: int | None = None

    def run(self) -> None:
        from nodeproof.host import nvml_readings  # noqa: PLC0415 - imported by main before any card has a thread

        forms = nvml_readings.Variants()
        while True:
            look, deep = self.looks.get()
            self._out.say({"look": look, "begun": self.address})
            card = self._look(nvml_readings, forms, deep=deep)
            self.busy = False  # before it is said: the next request may come right after
            self._out.say({"look": look, "card": card})

    def _look(self, readings: Any, forms: Any, *, deep: bool) -> dict[str, Any]:
        asked = readings.Asked()
        card: dict[str, Any] = {"address": self.address, "state": 0, "reason": ""}
        try:
            self._open(readings)
            card["state"] = readings.read_fast(self._handle, asked, forms)
            asked.raise_if_mute()
            card["reason"] = "the driver advises a reset" if card["state"] else ""
            if deep:
                readings.read_deep(self._handle, asked, forms)
            card["processes"] = readings.processes(self._handle, forms)
        except readings.CardGone as gone:
            card |= {"state": gone.state, "reason": str(gone)}
            self._handle = None
        except readings.nv.NVMLError as error:
            if error.value in readings.DRIVER_GONE:
                self._out.fail(error.value, str(error))
            self._handle = None
            if error.value in _NOT_OURS:
                return card | {"ours": False, "reason": f"NVML: {error}"}
            card |= {"state": _LOST, "reason": f"NVML: {error}"}
        return card | {"index": self._index, "identity": self._identity, "values": asked.values, "untold": asked.untold}

    def _open(self, readings: Any) -> None:
        """A handle, and who the card is. A handle that failed once is never passed on: it is asked for anew."""
        if self._handle is not None:
            return
        nv = readings.nv
        try:
            handle = nv.nvmlDeviceGetHandleByPciBusId(self.address.encode())
        except nv.NVMLError as error:
            readings.raise_if_gone(error)
            raise
        self._index = nv.nvmlDeviceGetIndex(handle)
        for name, call in (
            ("name", nv.nvmlDeviceGetName),
            ("uuid", nv.nvmlDeviceGetUUID),
            ("vbios", nv.nvmlDeviceGetVbiosVersion),
        ):
            try:
                self._identity[name] = _text(call(handle))
            except nv.NVMLError:
                continue
        self._identity["driver"] = _text(nv.nvmlSystemGetDriverVersion())
        self._handle = handle


def _text(answer: str | bytes) -> str:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer


def main() -> int:
    """Serve looks until standard input ends; exit status 3 when NVML is of no use."""
    out = _Out()
    try:
        from nodeproof.host import nvml_readings  # noqa: PLC0415 - the binding may not be installed, and that is an answer
    except ImportError as error:
        out.fail(_NO_BINDING, str(error))
        return 3
    try:
        nvml_readings.nv.nvmlInit()
    except nvml_readings.nv.NVMLError as error:
        out.fail(error.value, str(error))
    out.say({"ready": os.getpid()})
    cards: dict[str, _Card] = {}
    for line in sys.stdin.buffer:
        request = json.loads(line)
        for address in request["cards"]:
            card = cards.get(address)
            if card is None:
                card = cards[address] = _Card(address, out)
                card.start()
            if not card.busy:
                card.busy = True
                card.looks.put((request["look"], request["deep"]))
    return 0


if __name__ == "__main__":
    # Threads that hang in the driver would keep a polite ending waiting.
    os._exit(main())
