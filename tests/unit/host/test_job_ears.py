"""What a keeper hears; in a child, since signals are taken over for good."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

SCRIPT = """
import json, os, signal, socket, sys
from nodeproof.host.job_ears import Ears
if "old" in sys.argv:  # a kernel without pidfd
    def refuse(pid): raise OSError(38, "no such call")  # ENOSYS
    os.pidfd_open = refuse
control = socket.socket(fileno=int(sys.argv[1]))
ears = Ears(control, os.getppid(), 0.1)
reader, writer = os.pipe()
ears.attend(reader)
def tell(heard):
    print(json.dumps([[list(cause) for cause in heard.causes], heard.output]), flush=True)
tell(ears.listen(0))
os.write(writer, b"x")
tell(ears.listen(5))
os.read(reader, 1)
os.close(writer)
tell(ears.listen(5))
ears.forget_output()
if os.fork() == 0:
    os._exit(0)
tell(ears.listen(5))
os.wait()
for line in sys.stdin:
    tell(ears.listen(float(line)))
"""


class Child:
    def __init__(self, *words: str) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SCRIPT, str(theirs.fileno()), *words],
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )

    def heard(self) -> object:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def listen(self, seconds: float = 5) -> object:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return self.heard()


@pytest.fixture(params=["", "old"])
def child(request: pytest.FixtureRequest) -> Iterator[Child]:
    made = Child(request.param)
    yield made
    made.control.close()
    made.process.kill()
    made.process.communicate()


def test_what_is_heard(child: Child) -> None:
    assert child.heard() == [[], False], "nothing"
    assert child.heard() == [[], True], "output"
    assert child.heard() == [[], True], "nobody writes any more"
    assert child.heard() == [[], False], "a child has died: no cause, but a reason to look"
    child.control.send(b"cancel 2.5 by hand, twice")
    assert child.listen() == [[["cancelled", "by hand, twice", 2.5]], False]
    child.process.terminate()
    assert child.listen() == [[["cancelled", "its keeper was told to end (SIGTERM)", 0.1]], False]
    child.control.close()
    assert child.listen() == [[["owner_lost", f"its owner, process {os.getpid()}, is gone", 0.25]], False]
    assert child.listen(0) == [[], False], "told once"
