"""The kernel's log, record by record: ``/dev/kmsg`` (Documentation/ABI/testing/dev-kmsg), or a recorded text in its place.

Each ``read`` of the device gives one record. The device is opened without blocking and starts at the oldest record the ring still
holds. A read answers EPIPE when records were overwritten before we came to them (it goes on with the oldest that is left) and
EINVAL when a record is longer than our buffer (it is passed over): both show as a gap in the sequence numbers, which the reader
of the records counts. No program (``dmesg``) is ever run.
"""

import errno
import os
import select
import stat
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from nodeproof.errors import Absence, NoData
from nodeproof.host.files import Opener, absence_of, open_here

__all__ = ["Drained", "Follower", "KmsgChannel", "KmsgThread"]

_RECORD_BYTES = 16384
"""Longer than any record: the kernel formats at most 8 KiB (PRINTKRB_RECORD_MAX and its predecessors, kernel/printk/)."""
_MAX_TROUBLE = 10_000
"""Overwritten or overlong records in a row before the channel counts as broken."""
_RECORDS_A_TURN = 500
_REST_S = 0.05
"""A turn of at most 500 records, then rest: a flood of log lines costs a bounded share of a core, and is counted as lost."""
_BACKOFF_S = (1.0, 60.0)
_REMEDY = (
    "run as root, or with CAP_SYSLOG (systemd: AmbientCapabilities=CAP_SYSLOG, ProtectKernelLogs=no) in a group that may read"
    " /dev/kmsg; a container also needs that device"
)


class Drained(NamedTuple):
    """What one turn of reading brought."""

    records: list[bytes]
    at_end: bool
    """Nothing more is there now."""


class KmsgChannel:
    """One open log. Not for more than one thread at a time."""

    def __init__(
        self,
        path: str,
        shown: str = "/dev/kmsg",
        *,
        read: Callable[[int, int], bytes] = os.read,
        opener: Opener = open_here,
    ) -> None:
        self._path = path
        self._shown = shown
        self._read = read
        self._opener = opener
        self._fd = -1
        self.is_device = False
        """A real log, as against a recorded text."""

    @property
    def fd(self) -> int:
        """Descriptor to wait on; -1 while closed."""
        return self._fd

    def open(self) -> None:
        """Open unless it is open. Raises NoData."""
        if self._fd >= 0:
            return
        try:
            self._fd = self._opener(self._path)
            self.is_device = stat.S_ISCHR(os.fstat(self._fd).st_mode)
        except OSError as error:
            raise self._absence(error) from None

    def drain(self, limit: int) -> Drained:
        """Records that wait, at most ``limit`` of them from a device. Raises NoData and closes when the channel is broken."""
        try:
            if not self.is_device:
                return self._drain_text()
            return self._drain_device(limit)
        except OSError as error:
            self.close()
            raise self._absence(error) from None

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        """A log that is dropped unclosed takes its descriptor with it."""
        self.close()

    def suspended_s(self) -> float:
        """Time the machine was suspended since boot: what the log's clock lacks. 0 for a recorded log."""
        if not self.is_device:
            return 0.0
        # The order of the two calls makes a machine that never slept come out at 0, or a microsecond beyond.
        running_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        return time.clock_gettime(time.CLOCK_BOOTTIME) - running_s

    def _drain_device(self, limit: int) -> Drained:
        records: list[bytes] = []
        trouble = 0
        while len(records) < limit:
            try:
                record = self._read(self._fd, _RECORD_BYTES)
            except BlockingIOError:
                return Drained(records, at_end=True)
            except OSError as error:
                if error.errno not in {errno.EPIPE, errno.EINVAL} or trouble >= _MAX_TROUBLE:
                    raise
                trouble += 1
                continue
            if not record:
                raise OSError(errno.EIO, "the channel was closed")
            records.append(record)
            trouble = 0
        return Drained(records, at_end=False)

    def _drain_text(self) -> Drained:
        parts: list[bytes] = []
        while part := self._read(self._fd, 65536):
            parts.append(part)
        records: list[bytes] = []
        for line in b"".join(parts).split(b"\n"):
            if line.startswith(b" ") and records:
                records[-1] += b"\n" + line
            elif line:
                records.append(line)
        return Drained(records, at_end=True)

    def _absence(self, error: OSError) -> NoData:
        if error.errno in {errno.ENOENT, errno.ENXIO, errno.EACCES, errno.EPERM}:
            return NoData(Absence.NO_PERMISSION, f"{self._shown}: {os.strerror(error.errno)}", remedy=_REMEDY)
        absence = absence_of(error, self._shown)
        return NoData(Absence.READ_ERROR, absence.reason)


class Follower(Protocol):
    """Who wants the records."""

    def take(self, records: Sequence[bytes], *, live: bool, at_end: bool) -> None:
        """Records in order; ``live`` = they were just written, ``at_end`` = there are no more now."""
        ...

    def lose(self, absence: NoData) -> None:
        """The log cannot be read now; it is tried again."""
        ...


class KmsgThread:
    """Follows a channel on a thread of its own: asleep in ``poll`` while the kernel is silent, reopening what breaks."""

    def __init__(self, channel: KmsgChannel, follower: Follower, *, backoff_s: tuple[float, float] = _BACKOFF_S) -> None:
        self._channel = channel
        self._follower = follower
        self._backoff_s = backoff_s
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="kmsg", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close the channel; returns when both are done."""
        if self._wake_write < 0:
            return
        os.write(self._wake_write, b"x")
        if self._thread.is_alive():
            self._thread.join()
        self._channel.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        self._wake_read = self._wake_write = -1

    def _run(self) -> None:
        pause_s, longest_s = self._backoff_s
        while True:
            try:
                self._channel.open()
                pause_s = self._backoff_s[0]
                self._follow()
            except NoData as absence:
                self._follower.lose(absence)
            except Exception as error:  # noqa: BLE001 - a dead thread would leave the last counts standing for ever
                self._channel.close()
                self._follower.lose(NoData(Absence.READ_ERROR, f"the kernel log: {type(error).__name__}: {error}"))
            else:
                return
            if self._stopped_within(pause_s):
                return
            pause_s = min(longest_s, pause_s * 2)

    def _follow(self) -> None:
        """Hand records on until told to stop. Raises NoData when the channel breaks."""
        waiting = select.poll()
        waiting.register(self._wake_read, select.POLLIN)
        if self._channel.is_device:
            waiting.register(self._channel.fd, select.POLLIN)
        live = False
        while True:
            drained = self._channel.drain(_RECORDS_A_TURN)
            self._follower.take(drained.records, live=live, at_end=drained.at_end)
            if self._stopped_within(_REST_S):
                return
            if drained.at_end:
                live = True
                waiting.poll()

    def _stopped_within(self, seconds: float) -> bool:
        stopping = select.poll()
        stopping.register(self._wake_read, select.POLLIN)
        return bool(stopping.poll(seconds * 1000))
