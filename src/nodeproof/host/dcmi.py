"""DCMI of the Ascend driver, asked through a helper process that may be killed (``dcmi_helper``).

Each chip has a deadline of its own. A chip that is late costs its own readings only: the helper, in which its call still hangs,
is replaced, and that chip is left alone for a while, twice as long each time. When several are late, one may hold up the others
inside the driver: the next look asks one after the other, until the culprit is found.
"""

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from nodeproof.errors import Absence, NoData

__all__ = ["Chip", "Dcmi", "DcmiListing", "DcmiTiming", "HelperDcmi", "RawChip"]

Chip = tuple[int, int]
"""Card and device."""
RawChip = Mapping[str, Any]
"""Key of ``dcmi_helper`` -> [return code, value]."""

_MODULE = "nodeproof.host.dcmi_helper"
_MOST_LINE_BYTES = 1024 * 1024
_MOST_STUCK = 3
_NO_LIBRARY = 1


class DcmiTiming(NamedTuple):
    """Deadlines and pauses, in seconds."""

    start_s: float = 15.0
    """For loading the library: the driver may wake its cards."""
    look_s: float = 2.0
    """For all chips together, side by side."""
    list_s: float = 5.0
    rest_s: float = 30.0
    most_rest_s: float = 600.0
    retry_s: float = 30.0
    """Before a driver that failed is tried again."""
    missing_s: float = 300.0
    """Before a library that is not installed is looked for again."""


class DcmiListing(NamedTuple):
    """Chips that the driver lists."""

    chips: tuple[tuple[int, int, dict[str, Any]], ...]
    """Card, device, and ``name``, ``bus``, ``logic``, ``phy`` as far as they are told."""
    driver: str
    whole: bool
    """Every card could be asked for its devices."""


class Dcmi(Protocol):
    """Who can ask DCMI."""

    def listing(self) -> DcmiListing:
        """The chips. Raises NoData."""
        ...

    def look(self, chips: Sequence[Chip], *, deep: bool) -> dict[Chip, RawChip | NoData]:
        """Each of these chips now, or why not. Raises NoData when DCMI is of no use."""
        ...

    def close(self) -> None:
        """End what serves it."""
        ...


class HelperDcmi:
    """DCMI of this machine. To be used by one thread at a time."""

    def __init__(self, timing: DcmiTiming | None = None, library: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        """``library``: path of another library than the usual ones."""
        self._timing = timing or DcmiTiming()
        self._library = library
        self._clock = clock
        self._pipe: _Pipe | None = None
        self._stuck: list[subprocess.Popen[bytes]] = []
        self._resting: dict[Chip, tuple[float, float]] = {}
        self._singly = False
        self._refusal: tuple[float, NoData] | None = None
        self._look = 0
        self._closed = False
        self.started_total = 0
        """Helpers started so far."""

    def listing(self) -> DcmiListing:
        """The chips. Raises NoData."""
        answers = self._ask({"list": True}, 1, self._timing.list_s)
        if not answers:
            self._replace()
            raise NoData(Absence.STALE, f"the Ascend driver did not list its cards within {self._timing.list_s:g} s")
        answer = answers[0]
        chips = tuple((int(card), int(device), identity) for card, device, identity in answer["chips"])
        return DcmiListing(chips, str(answer.get("driver", "")), whole=not answer.get("faults"))

    def look(self, chips: Sequence[Chip], *, deep: bool) -> dict[Chip, RawChip | NoData]:
        """Each of these chips now, or why not. Raises NoData when DCMI is of no use."""
        now_s = self._clock()
        asked = [chip for chip in chips if self._resting.get(chip, (0.0, 0.0))[0] <= now_s]
        ask = self._one_by_one if self._singly else self._all
        found: dict[Chip, RawChip | NoData] = dict(ask(asked, deep=deep))
        for chip in chips:
            if chip not in found:
                pause_s = self._resting.get(chip, (0.0, 0.0))[1]
                found[chip] = NoData(Absence.STALE, "the Ascend driver did not answer about this chip in time" + _again(pause_s))
        return found

    def close(self) -> None:
        """Kill the helper; it is not started again."""
        self._closed = True
        self._replace()

    def _all(self, asked: Sequence[Chip], *, deep: bool) -> dict[Chip, RawChip]:
        """Side by side."""
        told = self._answers(asked, self._timing.look_s, deep=deep)
        late = [chip for chip in asked if chip not in told]
        if late:
            self._replace()
        if len(late) > 1:
            self._singly = True
        else:
            self._rest(late)
        return told

    def _one_by_one(self, asked: Sequence[Chip], *, deep: bool) -> dict[Chip, RawChip]:
        """Until one is late; all of them have one look's time."""
        self._singly = False
        told: dict[Chip, RawChip] = {}
        for chip in asked:
            answer = self._answers([chip], self._timing.look_s / 2, deep=deep)
            if not answer:
                self._replace()
                self._rest([chip])
                break
            told |= answer
        return told

    def _answers(self, asked: Sequence[Chip], limit_s: float, *, deep: bool) -> dict[Chip, RawChip]:
        lines = self._ask({"chips": list(asked), "deep": deep}, len(asked), limit_s) if asked else []
        told = {(int(line["chip"][0]), int(line["chip"][1])): line["values"] for line in lines}
        for chip in told:
            self._resting.pop(chip, None)
        return told

    def _rest(self, late: Sequence[Chip]) -> None:
        for chip in late:
            before_s = self._resting.get(chip, (0.0, 0.0))[1]
            pause_s = min(2 * before_s, self._timing.most_rest_s) if before_s else self._timing.rest_s
            self._resting[chip] = (self._clock() + pause_s, pause_s)

    def _ask(self, request: dict[str, Any], expected: int, limit_s: float) -> list[dict[str, Any]]:
        """Answers to one request that came in time. Raises NoData when there is nobody to ask."""
        pipe = self._ready()
        self._look += 1
        deadline_s = self._clock() + limit_s
        answers: list[dict[str, Any]] = []
        pipe.send({"look": self._look, **request})
        while len(answers) < expected:
            line = pipe.line(deadline_s)
            if line is None:
                break
            if line.get("look") == self._look:
                answers.append(line)
        if pipe.over:
            self._refuse(NoData(Absence.READ_ERROR, "the process that asks the Ascend driver has died"), self._timing.retry_s)
        return answers

    def _ready(self) -> "_Pipe":
        """A helper that has opened the library. Raises NoData."""
        if self._closed:
            raise NoData(Absence.UNKNOWN, "the program is ending")
        if self._refusal is not None and self._clock() < self._refusal[0]:
            raise self._refusal[1].again()
        if self._pipe is not None:
            return self._pipe
        self._stuck = [child for child in self._stuck if child.poll() is None]
        if len(self._stuck) >= _MOST_STUCK:
            reason = f"{len(self._stuck)} processes that asked the Ascend driver hang in the kernel and cannot be ended"
            raise NoData(Absence.STALE, reason, remedy="restart the node")
        pipe = self._pipe = _Pipe(_start(self._library), self._clock)
        self.started_total += 1
        line = pipe.line(self._clock() + self._timing.start_s)
        if line is None or "ready" not in line:
            self._refuse(*self._failed(line))
        return pipe

    def _failed(self, line: dict[str, Any] | None) -> tuple[NoData, float]:
        """Why a helper is of no use, and for how long nobody tries again."""
        if line is None:
            slow = NoData(Absence.STALE, "libdcmi.so could not be opened in time", remedy="see dmesg for the NPU driver")
            return slow, self._timing.retry_s
        code = line.get("failed")
        if code == _NO_LIBRARY:
            remedy = "install the Ascend driver; npu-smi is asked meanwhile"
            return NoData(Absence.UNSUPPORTED, f"libdcmi.so: {line.get('reason')}", remedy=remedy), self._timing.missing_s
        return NoData(Absence.READ_ERROR, f"{line.get('reason')} of libdcmi.so failed with {code}"), self._timing.retry_s

    def _refuse(self, absence: NoData, pause_s: float) -> None:
        self._replace()
        self._refusal = (self._clock() + pause_s, absence)
        raise absence

    def _replace(self) -> None:
        """End the helper; the next one is started when somebody asks."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None and not pipe.end():
            self._stuck.append(pipe.child)


def _again(pause_s: float) -> str:
    return f"; it is asked again after {pause_s:g} s" if pause_s else ""


def _start(library: str) -> subprocess.Popen[bytes]:
    private = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}
    environment = {key: value for key, value in os.environ.items() if key not in private} | {"LC_ALL": "C"}
    command = [sys.executable, "-P", "-m", _MODULE, *([library] if library else [])]
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment, start_new_session=True
        )
    except OSError as error:
        raise NoData(Absence.READ_ERROR, f"the helper for libdcmi.so cannot be started: {error.strerror}") from None


class _Pipe:
    """The helper's two ends."""

    def __init__(self, child: subprocess.Popen[bytes], clock: Callable[[], float]) -> None:
        self.child = child
        self.over = False
        """Its output has ended, or is rubbish."""
        self._clock = clock
        self._waiting = bytearray()
        self._selector = selectors.DefaultSelector()
        if child.stdin is None or child.stdout is None:
            raise NoData(Absence.READ_ERROR, "the helper for libdcmi.so has no pipes")
        self._to, self._from = child.stdin, child.stdout
        for end in (self._to, self._from):
            os.set_blocking(end.fileno(), False)
        self._selector.register(self._from, selectors.EVENT_READ)

    def send(self, request: dict[str, Any]) -> None:
        """One request: far smaller than a pipe, so that it is taken at once or not at all."""
        try:
            os.write(self._to.fileno(), msgspec.json.encode(request) + b"\n")
        except OSError:
            self.over = True

    def line(self, deadline_s: float) -> dict[str, Any] | None:
        """The next line, or None: not until the deadline, or never."""
        while not self.over:
            raw, newline, rest = bytes(self._waiting).partition(b"\n")
            if newline:
                self._waiting = bytearray(rest)
                return self._decoded(raw)
            left_s = deadline_s - self._clock()
            if left_s <= 0 or not self._selector.select(left_s):
                return None
            chunk = os.read(self._from.fileno(), 65536)
            self._waiting += chunk
            self.over = not chunk or len(self._waiting) > _MOST_LINE_BYTES
        return None

    def _decoded(self, raw: bytes) -> dict[str, Any] | None:
        with contextlib.suppress(msgspec.MsgspecError):
            return msgspec.json.decode(raw, type=dict[str, Any])
        self.over = True
        return None

    def end(self) -> bool:
        """Kill it; False when it does not die at once, because it waits in the kernel."""
        self._selector.close()
        self.child.kill()
        with contextlib.suppress(OSError):
            self._to.close()
        self._from.close()
        try:
            self.child.wait(0.2)
        except subprocess.TimeoutExpired:
            return False
        return True
