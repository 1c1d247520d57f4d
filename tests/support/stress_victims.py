"""Owners of stress jobs, to be ended in every phase by every road: forks one for each line that it is given.

A line is a :class:`support.kill_rows.Spec` in JSON. The child runs the command line itself, ``nodeproof stress``, stands still in
the phase that it is told, says so by a file ``at``, and goes on when there is a file ``go``. The parent tells ``began N PID`` and
``ended N CODE``. Forking costs a fiftieth of a start.
"""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

from nodeproof.cli.commands import stress_run
from nodeproof.cli.main import main
from nodeproof.hardware import probe
from nodeproof.stress import item, job, report_files

_PATIENCE_S = 20.0
WARM = (stress_run,)
"""Imported once for all children."""


def stand(spec: dict[str, str]) -> None:
    """Say that the phase has come, and wait; or take more memory than there is, where that is the road."""
    folder = Path(spec["folder"])
    (folder / "at").touch()
    if spec["memory"]:
        (Path(spec["memory"]) / "cgroup.procs").write_text("0", encoding="ascii")
        blocks = []
        while True:
            blocks.append(b"x" * (1 << 20) + os.urandom(8))
    ends = time.monotonic() + _PATIENCE_S
    while not (folder / "go").exists() and time.monotonic() < ends:
        time.sleep(0.005)


def standing(
    real: Callable[..., object], spec: dict[str, str], when: Callable[..., bool] = lambda *_: True
) -> Callable[..., object]:
    """``real``, which is come to only after :func:`stand`."""

    def call(*arguments: object, **options: object) -> object:
        if when(*arguments):
            stand(spec)
        return real(*arguments, **options)

    return call


PLACES: dict[str, tuple[object, str, Callable[..., bool]]] = {
    "precheck": (probe.HardwareProbe, "open", lambda *_: True),
    "load": (item.ItemBenchmark, "load", lambda *_: True),
    "configure": (item.ItemBenchmark, "configure", lambda *_: True),
    "after": (probe.HardwareProbe, "close", lambda *_: True),
    "cleanup": (item.ItemBenchmark, "cleanup", lambda *_: True),
    "write": (report_files.ReportFiles, "store", lambda _, report: report.status.is_final),
}


def victim(spec: dict[str, str]) -> int:
    """The child: a whole ``nodeproof stress``."""
    os.setsid()
    folder = Path(spec["folder"])
    if spec["group"]:
        (Path(spec["group"]) / "cgroup.procs").write_text("0", encoding="ascii")
    output = os.open(folder / "printed", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    mock.patch.object(job, "Settings", partial(probe.Settings, first_window_s=0.02)).start()
    if spec["phase"] in PLACES:
        owner, name, when = PLACES[spec["phase"]]
        mock.patch.object(owner, name, standing(getattr(owner, name), spec, when)).start()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": spec["folder"],
        "XDG_STATE_HOME": f"{folder}/state",
        "NODEPROOF_CONFIG": f"{folder}/nodeproof.yaml",
    }
    return main(["stress", *json.loads(spec["arguments"])], environ)


def serve() -> None:
    """Fork until standard input ends."""
    children: dict[int, str] = {}
    lines = os.fdopen(0, "rb", buffering=0)
    open_ = True
    while open_ or children:
        if open_ and select.select([lines], [], [], 0.01)[0]:
            line = lines.readline()
            open_ = bool(line)
            if line:
                spec = json.loads(line)
                pid = os.fork()
                if pid == 0:
                    code = 99
                    try:
                        code = victim(spec)
                    finally:
                        os._exit(code)
                children[pid] = spec["number"]
                say(f"began {spec['number']} {pid}")
        elif not open_:
            time.sleep(0.01)
        while children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            say(f"ended {children.pop(pid)} {os.waitstatus_to_exitcode(status)}")


def say(text: str) -> None:
    """A line for the test."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve()
