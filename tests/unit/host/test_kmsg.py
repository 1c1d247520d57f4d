"""The channel to the kernel log, and the thread that follows it."""

import errno
import os
import threading
from collections.abc import Callable, Sequence

import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.host.kmsg import KmsgChannel, KmsgThread

_WAIT_S = 5.0


def _scripted(*answers: bytes | int) -> Callable[[int, int], bytes]:
    """A ``read`` that gives bytes, or fails with an error number; at the end there is nothing more for now."""
    left = list(answers)

    def read(_fd: int, _size: int) -> bytes:
        answer = left.pop(0) if left else errno.EAGAIN
        if isinstance(answer, int):
            raise OSError(answer, os.strerror(answer))
        return answer

    return read


def _device(*answers: bytes | int) -> KmsgChannel:
    channel = KmsgChannel("/dev/null", read=_scripted(*answers))
    channel.open()
    assert channel.is_device
    return channel


def test_a_device_gives_a_record_a_read_until_there_is_none() -> None:
    channel = _device(b"4,1,1,-;a\n", b"4,2,1,-;b\n")
    assert channel.drain(10) == ([b"4,1,1,-;a\n", b"4,2,1,-;b\n"], True)
    assert channel.drain(10) == ([], True)
    channel.close()
    assert channel.fd == -1


def test_a_turn_is_bounded() -> None:
    channel = _device(b"1", b"2", b"3")
    assert channel.drain(2) == ([b"1", b"2"], False)
    assert channel.drain(2) == ([b"3"], True)
    channel.close()


def test_overwritten_and_overlong_records_do_not_end_the_reading() -> None:
    """Case 18: EPIPE means that records were overwritten; go on."""
    channel = _device(b"1", errno.EPIPE, errno.EPIPE, b"9", errno.EINVAL, b"11")
    assert channel.drain(10) == ([b"1", b"9", b"11"], True)
    channel.close()


def test_a_channel_that_only_fails_is_broken() -> None:
    channel = KmsgChannel("/dev/null", read=_always_fails)
    channel.open()
    with pytest.raises(NoData, match="Invalid argument") as caught:
        channel.drain(10)
    assert caught.value.state is Absence.READ_ERROR
    assert channel.fd == -1


def _always_fails(_fd: int, _size: int) -> bytes:
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def test_a_closed_channel_is_noticed() -> None:
    """A channel that closes silently must not leave the monitor blind."""
    channel = _device(b"1", b"")
    with pytest.raises(NoData) as caught:
        channel.drain(10)
    assert caught.value.state is Absence.READ_ERROR


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES])
def test_no_permission_says_what_helps(number: int) -> None:
    """Defect 15: a log that may not be read is an absence with its remedy, not 0."""
    channel = _device(number)
    with pytest.raises(NoData) as caught:
        channel.drain(10)
    assert caught.value.state is Absence.NO_PERMISSION
    assert "CAP_SYSLOG" in caught.value.remedy


def test_a_container_without_the_device(tmp_path: object) -> None:
    channel = KmsgChannel(f"{tmp_path}/dev/kmsg")
    with pytest.raises(NoData, match="/dev/kmsg: No such file") as caught:
        channel.open()
    assert caught.value.state is Absence.NO_PERMISSION


def test_a_recorded_text_is_read_to_its_end_and_on_when_it_grows(tmp_path: object) -> None:
    path = f"{tmp_path}/kmsg"
    with open(path, "wb") as file:
        file.write(b" stray\n4,1,1,-;a\n SUBSYSTEM=pci\n DEVICE=x\n\n4,2,1,-;b")
    channel = KmsgChannel(path)
    channel.open()
    channel.open()
    assert not channel.is_device
    assert channel.suspended_s() == 0.0
    assert channel.drain(1) == ([b" stray", b"4,1,1,-;a\n SUBSYSTEM=pci\n DEVICE=x", b"4,2,1,-;b"], True)
    with open(path, "ab") as file:
        file.write(b"\n4,3,1,-;c\n")
    assert channel.drain(1).records == [b"4,3,1,-;c"]
    channel.close()


def test_a_device_knows_how_long_the_machine_was_suspended() -> None:
    channel = _device()
    assert channel.suspended_s() >= 0.0
    channel.close()


class _Follower:
    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.live: list[bool] = []
        self.absences: list[NoData] = []
        self.changed = threading.Condition()

    def take(self, records: Sequence[bytes], *, live: bool, at_end: bool) -> None:
        with self.changed:
            self.records += records
            self.live += [live] * len(records)
            assert at_end or records
            self.changed.notify_all()

    def lose(self, absence: NoData) -> None:
        with self.changed:
            self.absences.append(absence)
            self.changed.notify_all()

    def wait_for_count(self, count: int) -> bool:
        return self.wait(lambda: len(self.records) == count)

    def wait(self, condition: Callable[[], bool]) -> bool:
        with self.changed:
            return self.changed.wait_for(condition, _WAIT_S)


class _PipeChannel(KmsgChannel):
    """A pipe in the place of the device: it can be waited on."""

    def __init__(self) -> None:
        super().__init__("", read=self._one_line)
        self.writer = -1
        self.openable = threading.Event()
        self.openable.set()
        self.first = threading.Event()
        self.again = threading.Event()

    def open(self) -> None:
        if self._fd < 0:
            if not self.openable.is_set():
                raise NoData(Absence.READ_ERROR, "not now")
            self._fd, self.writer = os.pipe2(os.O_NONBLOCK)
            self.is_device = True
            (self.again if self.first.is_set() else self.first).set()

    @staticmethod
    def _one_line(fd: int, _size: int) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(fd, 1)
            if not byte:
                return b""
            line += byte
        return line


def test_the_thread_hands_on_what_is_written_and_stops_cleanly() -> None:
    channel, follower = _PipeChannel(), _Follower()
    channel.open()
    os.write(channel.writer, b"4,1,1,-;old\n")
    thread = KmsgThread(channel, follower)
    before = threading.active_count()
    thread.start()
    assert follower.wait(lambda: follower.records == [b"4,1,1,-;old\n"])
    for number in range(2, 5):
        os.write(channel.writer, b"4,%d,1,-;new\n" % number)
        assert follower.wait_for_count(number)
    thread.stop()
    thread.stop()
    os.close(channel.writer)
    assert channel.fd == -1
    assert threading.active_count() == before
    assert follower.live == [False, True, True, True]


def test_the_thread_opens_a_closed_channel_again() -> None:
    channel, follower = _PipeChannel(), _Follower()
    thread = KmsgThread(channel, follower, backoff_s=(0.01, 0.02))
    thread.start()
    assert channel.first.wait(_WAIT_S)
    channel.openable.clear()
    os.close(channel.writer)
    assert follower.wait(lambda: len(follower.absences) >= 3)
    channel.openable.set()
    assert [absence.state for absence in follower.absences[:2]] == [Absence.READ_ERROR, Absence.READ_ERROR]
    assert channel.again.wait(_WAIT_S)
    os.write(channel.writer, b"4,9,1,-;after\n")
    assert follower.wait(lambda: follower.records == [b"4,9,1,-;after\n"])
    thread.stop()
    os.close(channel.writer)


def test_a_follower_that_raises_does_not_leave_the_last_counts_standing(tmp_path: object) -> None:
    with open(f"{tmp_path}/kmsg", "wb") as file:
        file.write(b"4,1,1,-;a\n")

    class Broken(_Follower):
        def take(self, records: Sequence[bytes], *, live: bool, at_end: bool) -> None:
            if not self.absences:
                raise ZeroDivisionError("a record nobody thought of")
            super().take(records, live=live, at_end=at_end)

    follower = Broken()
    thread = KmsgThread(KmsgChannel(f"{tmp_path}/kmsg"), follower, backoff_s=(0.01, 0.02))
    thread.start()
    assert follower.wait(lambda: follower.records == [b"4,1,1,-;a"])
    thread.stop()
    assert [(absence.state, absence.reason) for absence in follower.absences] == [
        (Absence.READ_ERROR, "the kernel log: ZeroDivisionError: a record nobody thought of")
    ]


def test_the_thread_stops_while_it_waits_to_try_again(tmp_path: object) -> None:
    follower = _Follower()
    thread = KmsgThread(KmsgChannel(f"{tmp_path}/none"), follower)
    thread.start()
    assert follower.wait(lambda: bool(follower.absences))
    thread.stop()
    assert [absence.state for absence in follower.absences] == [Absence.NO_PERMISSION]


def test_a_thread_that_never_started_gives_its_descriptors_back() -> None:
    before = len(os.listdir("/proc/self/fd"))
    KmsgThread(KmsgChannel("/dev/null"), _Follower()).stop()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_recorded_text_is_followed_to_its_end(tmp_path: object) -> None:
    with open(f"{tmp_path}/kmsg", "wb") as file:
        file.write(b"4,1,1,-;a\n")
    follower = _Follower()
    thread = KmsgThread(KmsgChannel(f"{tmp_path}/kmsg"), follower)
    thread.start()
    assert follower.wait(lambda: follower.records == [b"4,1,1,-;a"])
    thread.stop()
