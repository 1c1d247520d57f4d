"""prctl: what a child of ours says of itself after the calls."""

import os
import subprocess
import sys

import pytest

from nodeproof.host import prctl

ASK = """
import ctypes, os
from nodeproof.host.prctl import become_subreaper, die_with_parent, set_name
libc, value = ctypes.CDLL(None), ctypes.c_int()
become_subreaper(); die_with_parent(); set_name("a name longer than fifteen")
for option in (37, 2):
    libc.prctl(option, ctypes.byref(value), 0, 0, 0)
    print(value.value)
print(open("/proc/self/comm").read(), end="")
"""


def test_calls_take_effect() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, check=True, capture_output=True)
    assert done.stdout == b"1\n9\na name longer t\n"


def test_refusal_is_an_error() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        prctl._prctl(-1, 0)
