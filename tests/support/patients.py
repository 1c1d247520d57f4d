"""Programs that are hard to end, for tests of containment. Each prints ``ready`` when it is in its worst state.

The program itself lives for the seconds it is told; what it leaves behind would live much longer, but never for ever, so that a
test that fails leaves nothing behind for good.
"""

import sys
from collections.abc import Callable

__all__ = ["PATIENTS", "PRINT_NOTHING", "patient"]

_PYTHON = [sys.executable, "-S", "-E", "-c"]


def _shell(script: str) -> Callable[[float], list[str]]:
    return lambda life_s: ["/bin/sh", "-c", script, "patient", str(life_s)]


def _python(script: str) -> Callable[[float], list[str]]:
    return lambda life_s: [*_PYTHON, script, str(life_s)]


_WORKER = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
print("ready", flush=True)
done = 0
while time.monotonic() < end:
    for _ in range(20000):
        done += 1
    print("heartbeat", done, flush=True)
    time.sleep(0.02)
"""

_DOUBLE_FORK = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("ready", flush=True)
        time.sleep(60)
    os._exit(0)
os.wait()
time.sleep(float(sys.argv[1]))
"""

_RUNAWAYS = """
import os, signal, sys, time
# Twenty lines of processes, each of which forks a successor and exits, a thousand times a second: whoever is found is gone.
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
end = time.monotonic() + 15
main = os.getpid()
for line in range(20):
    if os.fork() == 0:
        os.setsid()
        while time.monotonic() < end:
            time.sleep(0.01)
            if os.fork() != 0:
                os._exit(0)
        os._exit(0)
print("ready", flush=True)
time.sleep(float(sys.argv[1]))
"""

_BOMB = """
import os, signal, sys, time
# Up to 50 processes, and any that ends is replaced by all others that notice it.
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
end = time.monotonic() + 15
life = float(sys.argv[1])
group = os.getpgrp()
def members():
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.getpgid(int(name)) == group:
                    count += 1
            except OSError:
                pass
    return count
main, begun = os.getpid(), time.monotonic()
told = False
while time.monotonic() < end:
    if members() < 50:
        os.fork()
    elif not told and os.getpid() == main:
        print("ready", flush=True)
        told = True
    if os.getpid() == main and told and time.monotonic() > begun + life:
        os._exit(0)
    time.sleep(0.005)
"""

_ZOMBIES = """
import os, sys, time
for _ in range(20):
    if os.fork() == 0:
        os._exit(0)
print("ready", flush=True)
if os.fork() == 0:
    time.sleep(60)
    os._exit(0)
time.sleep(float(sys.argv[1]))
"""

_HEADLESS = """
import sys, threading, time, os, ctypes
# The first thread ends, the others go on: the process looks like a zombie and is none.
def work():
    print("ready", flush=True)
    time.sleep(float(sys.argv[1]))
    os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
"""

PATIENTS: dict[str, Callable[[float], list[str]]] = {
    "worker": _python(_WORKER),
    "double_fork": _python(_DOUBLE_FORK),
    "setsid": _shell("setsid sh -c 'setsid sleep 60 & sleep 61' & echo ready; sleep $1"),
    "ignores_term": _shell("trap '' TERM INT HUP; (trap '' TERM; setsid sleep 60 &); echo ready; sleep $1; sleep 0"),
    "stopped": _shell("sh -c 'kill -STOP $$; sleep 60' & sleep 0.05; echo ready; sleep $1"),
    "runaways": _python(_RUNAWAYS),
    "bomb": _python(_BOMB),
    "holds_the_pipe": _shell("(trap '' HUP; sleep 60; echo late) & echo ready; sleep $1"),
    "floods": _shell("yes ready & sleep $1"),
    "silent": _shell("sleep $1 >/dev/null 2>&1"),
    "zombies": _python(_ZOMBIES),
    "headless": _python(_HEADLESS),
    "disguised": _shell(
        "printf 'kworker/0:1' > /proc/self/comm; env -i setsid sh -c 'printf kthreadd > /proc/self/comm; sleep 60; :' &"
        " echo ready; sleep $1; :"
    ),
    "closes_all": _shell("echo ready; exec 0<&- 1>&- 2>&-; sleep 60 & sleep $1"),
}
"""Name -> argv for a life of so many seconds."""

PRINT_NOTHING = {"silent"}


def patient(name: str, life_s: float = 30.0) -> list[str]:
    """Argv of the program of that name."""
    return PATIENTS[name](life_s)
