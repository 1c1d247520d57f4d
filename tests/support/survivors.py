"""Who of a job is still there, asked of ``/proc`` without the help of the code that is tested."""

import json
import os
import re
import time
from pathlib import Path

__all__ = ["bearers", "gone_within"]

_LIVING = re.compile(rb"^State:\s+([A-Z])", re.MULTILINE)
_THREADS = re.compile(rb"^Threads:\s+(\d+)", re.MULTILINE)


def bearers(token: str, record: Path | None = None) -> list[str]:
    """Living processes that carry the token in environment or command line (so does the keeper), or the mark of the record."""
    mark = b"?"
    if record is not None and record.exists():
        mark = str(json.loads(record.read_bytes())["mark"]).encode()
    found = []
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        status = _read(pid, "status")
        state = _LIVING.search(status)
        threads = _THREADS.search(status)
        if state is None or (state[1] in b"ZX" and (threads is None or int(threads[1]) < 2)):
            continue
        named = token.encode() in _read(pid, "environ") or token.encode() in _read(pid, "cmdline")
        if named or (mark != b"0" and mark in _read(pid, "limits")):
            found.append(f"{pid} {_read(pid, 'comm').decode('utf-8', 'replace').strip()} {state[1].decode()}")
    return found


def gone_within(seconds: float, token: str, record: Path | None = None) -> list[str]:
    """What is left after at most so long; empty as soon as nothing is."""
    deadline = time.monotonic() + seconds
    while (left := bearers(token, record)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _read(pid: str, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
