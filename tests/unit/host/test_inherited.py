"""What a process inherits is put right; seen in processes of their own, since it is about the whole of one."""

import resource
import signal
import subprocess
import sys
from collections.abc import Callable

from support.daemon import environment

_CALL = "from nodeproof.host import inherited; inherited.put_right()\n"


def run(code: str, before: Callable[[], None]) -> str:
    """What a new interpreter prints after ``put_right``, having been started under what ``before`` sets."""
    done = subprocess.run(
        [sys.executable, "-c", _CALL + code], env=environment(), preexec_fn=before, capture_output=True, check=True, timeout=20
    )
    return done.stdout.decode().strip()


def test_a_child_that_fails_is_told_from_one_that_does_not_though_sigchld_was_ignored() -> None:
    code = "import subprocess; print(subprocess.run(['false']).returncode)"
    assert run(code, lambda: _set(signal.SIGCHLD, signal.SIG_IGN)) == "1"


def _set(number: signal.Signals, handler: signal.Handlers) -> None:
    signal.signal(number, handler)


def test_blocked_signals_come_again() -> None:
    wanted = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD]
    code = "import signal; print(sorted(int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    assert run(code, lambda: _block([*wanted, signal.SIGUSR2])) == f"[{int(signal.SIGUSR2)}]"


def _block(numbers: list[signal.Signals]) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)


def test_a_low_limit_on_open_files_is_raised_as_far_as_allowed() -> None:
    code = "import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    assert run(code, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 300))) == "300 300"
    assert run(code, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 4096))) == "1024 4096"
    assert run(code, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 4096))) == "2000 4096"


def test_closed_descriptors_are_opened_so_that_nothing_else_gets_their_numbers() -> None:
    code = _CALL + "import os, sys; sys.exit(0 if os.open('/proc/self/stat', os.O_RDONLY) > 2 else 7)"
    script = 'exec "$0" -c "$1" <&- >&- 2>&-'
    done = subprocess.run(["/bin/sh", "-c", script, sys.executable, code], env=environment(), check=False, timeout=20)
    assert done.returncode == 0
