"""How a command asks the daemon for something about faults: a file in its folder of orders, and a signal."""

import contextlib
import os
import pwd
import signal
import time
import uuid

import msgspec

from nodeproof.config.schema import Config
from nodeproof.errors import NodeproofError, UsageError, WriteError
from nodeproof.faults.desk import ORDERS
from nodeproof.host.atomic import make_directory, store_file
from nodeproof.model.fault import Fault, Order
from nodeproof.model.snapshot import DaemonVerdict
from nodeproof.sinks.snapshot_reader import read_state

__all__ = ["caller", "give_order"]

_ANSWER_S = 10.0
_PAUSE_S = 0.02
_NAMES = "the user that the daemon runs as, or root"


class _Answer(msgspec.Struct):
    fault: Fault | None = None
    error: str = ""


def caller() -> str:
    """Who asks, for the record: the user's name, or number."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def give_order(config: Config, order: Order) -> Fault:
    """Have the daemon do it; the fault it was about. Raises UsageError with the daemon's words, or why it could not be asked."""
    state = read_state(config.snapshot.dir)
    if state.verdict is not DaemonVerdict.RUNNING:
        raise NodeproofError(f"no daemon can be asked ({state.verdict}: {state.reason}); start it: nodeproof up")
    folder = os.path.join(config.faultsub.dir, ORDERS)
    path = os.path.join(folder, f"{uuid.uuid4().hex}.json")
    try:
        make_directory(folder)
        store_file(path, msgspec.json.encode(order))
        _wake(state.evidence.lock_pid)
        return _await(path)
    except (WriteError, PermissionError) as error:
        raise UsageError(f"the daemon (process {state.evidence.lock_pid}) cannot be asked: {error}; do it as {_NAMES}") from None
    except (ProcessLookupError, FileNotFoundError):
        raise NodeproofError("the daemon ended this moment; start it: nodeproof up") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _wake(pid: int) -> None:
    """Raises NodeproofError for a process that SIGUSR1 would end: an older version, or one that is just starting."""
    with open(f"/proc/{pid}/status", "rb") as file:
        caught = next((line.split()[1] for line in file if line.startswith(b"SigCgt:")), b"0")
    if not int(caught, 16) >> (signal.SIGUSR1 - 1) & 1:
        raise NodeproofError(f"process {pid} takes no orders: it is of an older version, or just starting")
    os.kill(pid, signal.SIGUSR1)


def _await(path: str) -> Fault:
    answer = path.removesuffix(".json") + ".answer"
    deadline = time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline:
        try:
            with open(answer, "rb") as file:
                told = msgspec.json.decode(file.read(), type=_Answer)
        except FileNotFoundError:
            time.sleep(_PAUSE_S)
            continue
        os.unlink(answer)
        if told.fault is None:
            raise UsageError(told.error)
        return told.fault
    raise NodeproofError(f"the daemon did not answer within {_ANSWER_S:g} s; see its log")
