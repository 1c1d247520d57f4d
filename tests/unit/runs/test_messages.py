"""The log keeps order, is bounded, and says what it lost."""

import itertools
import threading

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.clock import Instant
from nodeproof.model.run import (
    ExecutorMessage,
    Frame,
    GlowEvent,
    LogEvent,
    LogLevel,
    ProgressEvent,
    RunStatus,
    StatusEvent,
    Verdict,
    VerdictKind,
)
from nodeproof.runs.messages import LogLimits, MessageLog

END = Frame.completed("done", 1.0, verdict=Verdict(VerdictKind.INFO, "1"))


class Steps:
    """A clock that goes as it is told."""

    def __init__(self, *times: float) -> None:
        self._times = itertools.chain(times, itertools.repeat(times[-1]))

    def now(self) -> Instant:
        at = next(self._times)
        return Instant(1_764_541_241.0 + at, at)

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def log_of(limits: LogLimits | None = None, *times: float) -> tuple[MessageLog, list[bytes]]:
    lines: list[bytes] = []
    return MessageLog(Steps(*(times or (1.0,))), lines.append, limits), lines


def test_numbers_count_up_and_times_never_go_back() -> None:
    log, lines = log_of(None, 5.0, 3.0, 6.0)
    for _ in range(3):
        log.event(GlowEvent(on=True))
    messages = log.drain()
    assert [(message.sequence, message.mono_s) for message in messages] == [(1, 5.0), (2, 5.0), (3, 6.0)]
    assert [msgspec.json.decode(line, type=ExecutorMessage) for line in lines] == messages
    assert all(line.endswith(b"\n") for line in lines)
    assert log.drain() == []


def test_one_terminal_frame_and_nothing_but_events_after_it() -> None:
    log, _ = log_of()
    log.frame(Frame.running("a", 0))
    log.frame(END)
    log.frame(END)
    log.frame(Frame.running("b", 0))
    log.event(GlowEvent(on=False))
    assert [message.frame.status if message.frame else None for message in log.drain()] == [
        RunStatus.RUNNING,
        RunStatus.COMPLETED,
        None,
    ]
    assert log.terminal == END


def test_closed_log_takes_nothing_and_blames_nobody() -> None:
    log, lines = log_of()
    log.close()
    log.event(GlowEvent(on=True))
    log.frame(END)
    assert (lines, log.drain(), log.terminal) == ([], [], None)


def test_chatter_ends_at_its_limit_and_is_counted() -> None:
    log, lines = log_of(LogLimits(chatter_bytes=300, total_bytes=1200, warnings=1))
    for number in range(50):
        log.event(ProgressEvent(number, 50))
        log.event(StatusEvent("s"))
        log.event(LogEvent(LogLevel.DEBUG, "d"))
        log.event(LogEvent(LogLevel.INFO, "i"))
    log.event(LogEvent(LogLevel.WARN, "kept"))
    log.frame(END)
    decoded = [msgspec.json.decode(line, type=ExecutorMessage) for line in lines]
    assert [message.sequence for message in decoded] == list(range(1, len(decoded) + 1))
    texts = [message.event.text for message in decoded if isinstance(message.event, LogEvent)]
    assert "the log of this run is full: chatter is counted from here on, not kept" in texts
    assert 1 < texts.count("i") < 50
    assert 1 <= texts.count("d") < texts.count("i")
    assert decoded[-1].frame == END
    assert log.dropped == 203 - len(decoded)


def test_first_warnings_are_kept_whatever_the_length() -> None:
    log, lines = log_of(LogLimits(chatter_bytes=0, total_bytes=0, warnings=3))
    for number in range(5):
        log.event(LogEvent(LogLevel.WARN, f"w{number}"))
    assert log.warnings() == ["w0", "w1", "w2"]
    assert len(lines) == 4
    assert log.dropped == 2


def test_long_lines_are_cut() -> None:
    log, _ = log_of(LogLimits(text_chars=10))
    log.event(LogEvent(LogLevel.INFO, "x" * 11))
    log.event(StatusEvent("y" * 10))
    texts = [message.event.text for message in log.drain() if isinstance(message.event, LogEvent | StatusEvent)]
    assert texts == ["x" * 9 + "…", "y" * 10]


def test_reader_that_does_not_drain_keeps_the_end() -> None:
    log, lines = log_of(LogLimits(undrained=3))
    for number in range(5):
        log.event(LogEvent(LogLevel.INFO, str(number)))
    log.event(ProgressEvent(1, 2))
    log.frame(END)
    messages = log.drain()
    assert [message.sequence for message in messages] == [4, 5, 7]
    assert messages[-1].frame == END
    assert log.unread == 4
    assert len(lines) == 7


@given(st.lists(st.integers(0, 3), max_size=60), st.lists(st.integers(1, 9), min_size=1, max_size=10))
def test_order_is_that_of_the_numbers_however_it_is_drained(producers: list[int], pauses: list[int]) -> None:
    """Nothing is lost, doubled or moved; each producer's messages stay in their order."""
    log, lines = log_of()
    counts = dict.fromkeys(range(4), 0)
    drained: list[ExecutorMessage] = []
    until = itertools.cycle(pauses)
    wait = next(until)
    for producer in producers:
        log.event(LogEvent(LogLevel.INFO, f"{producer} {counts[producer]}"))
        counts[producer] += 1
        wait -= 1
        if not wait:
            drained += log.drain()
            wait = next(until)
    drained += log.drain()
    assert [message.sequence for message in drained] == list(range(1, len(producers) + 1))
    assert [msgspec.json.decode(line, type=ExecutorMessage) for line in lines] == drained
    texts = [message.event.text.split() for message in drained if isinstance(message.event, LogEvent)]
    for producer in range(4):
        assert [int(number) for who, number in texts if int(who) == producer] == list(range(counts[producer]))


def test_threads_keep_the_order() -> None:
    log, lines = log_of()

    def produce(name: int) -> None:
        for number in range(200):
            log.event(LogEvent(LogLevel.INFO, f"{name} {number}"))

    threads = [threading.Thread(target=produce, args=(name,)) for name in range(4)]
    drained: list[ExecutorMessage] = []
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        drained += log.drain()
    for thread in threads:
        thread.join()
    drained += log.drain()
    assert [message.sequence for message in drained] == list(range(1, 801))
    assert len(lines) == 800
    texts = [message.event.text.split() for message in drained if isinstance(message.event, LogEvent)]
    assert all([int(n) for who, n in texts if int(who) == name] == list(range(200)) for name in range(4))
