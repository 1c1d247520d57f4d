"""Signals of a waiting main thread."""

import os
import signal
import threading
import time

from nodeproof.host.signals import Signals


def test_signals_wake_the_wait_and_are_told_apart() -> None:
    with Signals(signal.SIGHUP, signal.SIGTERM) as signals:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGHUP)).start()
        began = time.monotonic()
        assert signals.wait(5.0) == {signal.SIGHUP}
        assert time.monotonic() - began < 2.0
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
        assert signals.wait(1.0) == {signal.SIGTERM, signal.SIGHUP}
        assert signals.wait(0.01) == set()


def test_handlers_and_wakeup_descriptor_are_put_back() -> None:
    before = signal.getsignal(signal.SIGHUP)
    with Signals(signal.SIGHUP):
        assert signal.getsignal(signal.SIGHUP) is not before
    assert signal.getsignal(signal.SIGHUP) is before
    assert signal.set_wakeup_fd(-1) == -1


def test_a_signal_nobody_asked_for_is_not_reported() -> None:
    previous = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with Signals(signal.SIGTERM) as signals:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert signals.wait(0.2) == set()
    finally:
        signal.signal(signal.SIGUSR1, previous)
