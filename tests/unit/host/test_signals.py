"""Signals of a waiting main thread."""

import os
import resource
import signal
import threading
import time

import pytest

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


def test_more_than_a_thousand_open_files_hide_no_signal() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1100
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"this process may open no more than {hard} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    held = [os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC) for _ in range(1030)]
    try:
        with Signals(signal.SIGHUP) as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert signals.wait(1.0) == {signal.SIGHUP}
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
