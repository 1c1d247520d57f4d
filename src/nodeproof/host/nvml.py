"""NVML, at arm's length: the helper process that calls it, its deadlines, its end and its next life.

A call into a driver can hang for ever, and nothing ends a thread that does. So the calls are made in a process that can be killed
(``nvml_helper``), a thread for each card. A card that is late costs its own readings only; the process is then replaced, and that
card left alone for a while. When several are late at once, one may hold up the others inside the driver: the next process is
asked for these one at a time until the one is found. A process that finds the driver gone, or of another version than its
library, ends; the next one loads the library anew, which is what an upgraded driver needs.
"""

import contextlib
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from nodeproof.errors import Absence, NoData

__all__ = ["HelperNvml", "Nvml", "NvmlCard", "Timing"]

_MODULE = "nodeproof.host.nvml_helper"
_MAX_LINE_BYTES = 4 * 1024 * 1024
_MAX_STUCK = 3
"""Killed helpers that may still wait in the kernel; with more of them the driver is left alone."""
_SILENT = 1
_NO_BINDING, _NO_LIBRARY, _MISMATCH = -1, 12, 18
_FAILURES = {
    _NO_BINDING: (Absence.UNSUPPORTED, "nvidia-ml-py is not installed", "pip install 'nodeproof[nvidia]'"),
    _NO_LIBRARY: (Absence.UNSUPPORTED, "libnvidia-ml.so.1 is not installed", "install the NVIDIA driver"),
    9: (Absence.READ_ERROR, "the NVIDIA driver is not loaded", "modprobe nvidia; journalctl -k -g NVRM tells why it fails"),
    _MISMATCH: (
        Absence.UNKNOWN,
        "driver and NVML library are of different versions: the driver was upgraded under a running kernel module",
        "reload the module (rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; modprobe nvidia) or restart the node",
    ),
}
"""State, reason and remedy by what the helper failed with."""


class Timing(NamedTuple):
    """Deadlines and pauses, in seconds."""

    look_s: float = 4.0
    first_look_s: float = 10.0
    """Without persistence mode the first call after a start wakes every card."""
    start_s: float = 3.0
    """How long a look waits for a new helper; it goes on starting meanwhile."""
    give_up_start_s: float = 60.0
    alone_s: float = 1.0
    """For one card, when cards are asked one by one."""
    rest_s: float = 60.0
    """So long a silent card is left alone at first, twice as long each time after that."""
    most_rest_s: float = 600.0
    retry_s: float = 10.0
    """Before a driver that failed is tried again."""
    missing_s: float = 300.0
    """Before a binding or library that is not installed is looked for again."""


class NvmlCard(msgspec.Struct, frozen=True):
    """One card as the helper told of it."""

    address: str
    state: int
    """As ``model.gpu.CardState``."""
    reason: str = ""
    index: int | None = None
    identity: dict[str, str] = {}
    values: list[tuple[tuple[str, ...], float]] = []
    untold: list[tuple[tuple[str, ...], Absence, str]] = []
    processes: list[tuple[int, float | None, bool]] | None = None
    """Process, MiB it holds, whether it only draws."""
    ours: bool = True
    """False: a container was not given this card."""


class _Line(msgspec.Struct):
    """One line of the helper."""

    look: int = 0
    card: NvmlCard | None = None
    begun: str = ""
    ready: int = 0
    failed: int | None = None
    reason: str = ""


class Nvml(Protocol):
    """Who can ask NVML."""

    def look(self, addresses: Sequence[str], *, deep: bool) -> list[NvmlCard]:
        """Each of these cards now. Raises NoData when NVML is of no use."""
        ...

    def close(self) -> None:
        """End what serves it."""
        ...


class _Rest(NamedTuple):
    """A card that was silent and is left alone."""

    until_s: float
    length_s: float


class HelperNvml:
    """NVML of this machine."""

    def __init__(self, timing: Timing | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._timing = timing or Timing()
        self._clock = clock
        self._lock = threading.Lock()
        self._helper: _Helper | None = None
        self._stuck: list[subprocess.Popen[bytes]] = []
        self._rests: dict[str, _Rest] = {}
        self._suspects: list[str] = []
        """Cards that were late together: one of them may hold up the others."""
        self._failure: NoData | None = None
        self._retry_s = 0.0
        self._looks = 0
        self.started_total = 0
        """Helpers started so far."""

    def look(self, addresses: Sequence[str], *, deep: bool) -> list[NvmlCard]:
        """Each of these cards now; those that do not answer in time are there as silent ones. Raises NoData."""
        with self._lock:
            helper = self._ready_helper()
            now_s = self._clock()
            asked = [address for address in addresses if (rest := self._rests.get(address)) is None or rest.until_s <= now_s]
            suspects = [address for address in asked if address in self._suspects]
            told = self._together(helper, [address for address in asked if address not in suspects], deep=deep)
            if suspects and self._helper is helper:
                told |= self._one_by_one(helper, suspects, deep=deep)
            return [told.get(address) or self._silent(address) for address in addresses]

    def close(self) -> None:
        """Kill the helper."""
        with self._lock:
            self._end_helper()

    # Looking

    def _together(self, helper: "_Helper", asked: Sequence[str], *, deep: bool) -> dict[str, NvmlCard]:
        """All cards at once."""
        limit_s = self._timing.look_s if helper.looked else self._timing.first_look_s
        told = self._ask(helper, asked, limit_s, deep=deep)
        late = [address for address in asked if address not in told]
        if len(late) > 1:
            self._suspects = late
        elif late:
            self._leave_alone(late[0])
        if late:
            self._end_helper()
        return told

    def _one_by_one(self, helper: "_Helper", asked: Sequence[str], *, deep: bool) -> dict[str, NvmlCard]:
        """One card after the other, until one does not answer: the others are asked together again from then on."""
        self._suspects = []
        told: dict[str, NvmlCard] = {}
        limit_s = self._timing.alone_s if helper.looked else self._timing.first_look_s
        for address in asked:
            answer = self._ask(helper, [address], limit_s, deep=deep)
            if not answer:
                self._leave_alone(address)
                self._end_helper()
                break
            told |= answer
            limit_s = self._timing.alone_s
        return told

    def _ask(self, helper: "_Helper", asked: Sequence[str], limit_s: float, *, deep: bool) -> dict[str, NvmlCard]:
        self._looks += 1
        told: dict[str, NvmlCard] = {}
        deadline_s = self._clock() + limit_s
        if not asked:
            return told
        helper.ask(self._looks, asked, deep=deep)
        while len(told) < len(asked):
            line = helper.line(deadline_s)
            if line is None:
                break
            if line.failed is not None:
                self._fail(line.failed, line.reason)
            if line.card is not None and line.look == self._looks:
                told[line.card.address] = line.card
                self._rests.pop(line.card.address, None)
        helper.looked = True
        if helper.over:
            self._fail(None, "")
        return told

    def _leave_alone(self, address: str) -> None:
        before = self._rests.get(address)
        length_s = self._timing.rest_s if before is None else min(2 * before.length_s, self._timing.most_rest_s)
        self._rests[address] = _Rest(self._clock() + length_s, length_s)

    def _silent(self, address: str) -> NvmlCard:
        rest = self._rests.get(address)
        if rest is None:
            return NvmlCard(
                address, _SILENT, "the driver did not answer about it and others in time; one of them holds up the rest"
            )
        return NvmlCard(
            address, _SILENT, f"the driver did not answer about it in time; it is asked again every {rest.length_s:g} s"
        )

    # The helper's life

    def _ready_helper(self) -> "_Helper":
        """One that can be asked. Raises NoData."""
        self._stuck = [child for child in self._stuck if child.poll() is None]
        now_s = self._clock()
        if self._failure is not None and now_s < self._retry_s:
            raise self._failure.again()
        helper = self._helper
        if helper is None:
            if len(self._stuck) > _MAX_STUCK:
                raise NoData(
                    Absence.STALE, f"{len(self._stuck)} processes that asked NVML hang in the kernel", remedy="restart the node"
                )
            helper = self._helper = self._start(now_s)
        while not helper.ready:
            line = helper.line(now_s + self._timing.start_s)
            if line is not None and line.failed is not None:
                self._fail(line.failed, line.reason)
            if helper.over:
                self._fail(None, "")
            if line is None:
                if self._clock() - helper.started_s > self._timing.give_up_start_s:
                    self._end_helper()
                raise NoData(Absence.UNKNOWN, "NVML is being opened, and has not answered yet")
            helper.ready = bool(line.ready)
        self._failure = None
        return helper

    def _start(self, now_s: float) -> "_Helper":
        environment = {
            key: value for key, value in os.environ.items() if key not in {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}
        }
        try:
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment | {"LC_ALL": "C"},
                start_new_session=True,
            )
        except OSError as error:
            raise NoData(Absence.READ_ERROR, f"the NVML helper cannot be started: {error.strerror}") from None
        self.started_total += 1
        return _Helper(child, now_s, self._clock)

    def _end_helper(self) -> None:
        helper, self._helper = self._helper, None
        if helper is not None and not helper.end():
            self._stuck.append(helper.child)

    def _fail(self, code: int | None, reason: str) -> None:
        """NVML is of no use to this helper: end it, and remember why for a while. Raises NoData."""
        self._end_helper()
        rest_s = self._timing.missing_s if code in {_NO_BINDING, _NO_LIBRARY} else self._timing.retry_s
        self._retry_s = self._clock() + rest_s
        if code in _FAILURES:
            state, text, remedy = _FAILURES[code]
            self._failure = NoData(state, text, remedy=remedy)
        elif code is None:
            self._failure = NoData(Absence.READ_ERROR, "the process that asks NVML has died")
        else:
            self._failure = NoData(Absence.READ_ERROR, f"NVML: {reason}")
        raise self._failure.again()


class _Helper:
    """One helper process: requests go in, lines come out."""

    def __init__(self, child: subprocess.Popen[bytes], started_s: float, clock: Callable[[], float]) -> None:
        self.child = child
        self.started_s = started_s
        self.ready = False
        self.looked = False
        self.over = False
        """Its output has ended, or cannot be understood."""
        self._clock = clock
        self._decode = msgspec.json.Decoder(_Line).decode
        self._buffer = bytearray()
        if child.stdin is None or child.stdout is None:
            raise RuntimeError("the helper was started without pipes")
        self._in, self._out = child.stdin, child.stdout
        os.set_blocking(self._out.fileno(), False)
        os.set_blocking(self._in.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)

    def ask(self, look: int, cards: Sequence[str], *, deep: bool) -> None:
        """Send a request. One that does not take it whole has stopped reading: it is over."""
        request = msgspec.json.encode({"look": look, "cards": list(cards), "deep": deep}) + b"\n"
        try:
            self.over = os.write(self._in.fileno(), request) != len(request)
        except OSError:
            self.over = True

    def line(self, deadline_s: float) -> _Line | None:
        """The next line; None when there is none until the deadline, or none any more."""
        while True:
            end = self._buffer.find(b"\n")
            if end >= 0:
                raw = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                try:
                    return self._decode(raw)
                except msgspec.MsgspecError:
                    self.over = True
                    return None
            if self.over or len(self._buffer) > _MAX_LINE_BYTES:
                self.over = True
                return None
            left_s = deadline_s - self._clock()
            if left_s <= 0 or not self._selector.select(left_s):
                return None
            chunk = os.read(self._out.fileno(), 65536)
            self.over = not chunk
            self._buffer += chunk

    def end(self) -> bool:
        """Kill it and give everything back; False when it does not die at once, because it waits in the kernel."""
        self._selector.close()
        with contextlib.suppress(OSError):
            self._in.close()
        self._out.close()
        self.child.kill()
        try:
            self.child.wait(0.1)
        except subprocess.TimeoutExpired:
            return False
        return True
