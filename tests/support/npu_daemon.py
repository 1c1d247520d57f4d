"""A real daemon on a made-up node with eight Ascend chips: the stand-in for ``libdcmi.so``, and shell scripts in place of
``npu-smi`` and ``hccn_tool`` that say what was recorded."""

import contextlib
import os
import time
from pathlib import Path
from typing import Any

from support.compiled import compiled_environment
from support.daemon import Daemon, until
from support.dcmi import plan, stub_library
from support.hosts import write_host
from support.hosts_npu import A2, answers_of, network_answers, write_npus

__all__ = ["NpuNode"]

_TOOL = """#!/bin/sh
echo "${0##*/} $*" >> "$NPU_CALLS"
exec cat "$NPU_ANSWERS/${0##*/} $*"
"""


class NpuNode:
    """A daemon on a made-up node with eight chips, which every cycle asks each 5 s."""

    def __init__(self, folder: Path, *, library: bool, **sections: Any) -> None:
        """``library``: the driver's library answers; otherwise ``npu-smi`` does alone. ``sections`` of the configuration."""
        self.daemon = Daemon(folder)
        self.calls = folder / "calls"
        self.calls.touch()
        answers, tools = folder / "answers", folder / "bin"
        answers.mkdir()
        tools.mkdir()
        for line, said in {**answers_of("npu-a2-8"), **network_answers(A2)}.items():
            if isinstance(said, bytes):
                (answers / line).write_bytes(said)
        for name in ("npu-smi", "hccn_tool"):
            (tools / name).write_text(_TOOL, encoding="utf-8")
            (tools / name).chmod(0o755)
        words = folder / "plan"
        plan(words, "cards=8")
        self.daemon.env = compiled_environment(folder / "compiled") | {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "NPU_ANSWERS": str(answers),
            "NPU_CALLS": str(self.calls),
            "NODEPROOF_TEST_MARK": self.daemon.mark,
            "DCMI_STUB_PLAN": str(words),
        }
        if library:
            self.daemon.env["LD_LIBRARY_PATH"] = os.path.dirname(stub_library())
        quiet = {name: {"interval": "5s"} for name in ("cpu", "memory", "network", "system", "disk", "npu")}
        self.daemon.configure(collectors=quiet, storage={"interval": "60s"}, **sections)
        self.root = write_host("vm-2cpu", str(folder / "root"))
        on_bus = (
            [chip._replace(bus=f"0000:{0x80 + chip.npu:02x}:00.0") for chip in A2] if library else A2
        )  # as the stand-in has it
        write_npus(self.root, on_bus)

    def start(self) -> None:
        """Twice: the first run compiles what the commands have not imported."""
        self.daemon.start("--root", self.root).stop()
        self.daemon.start("--root", self.root)
        until(lambda: self._chips() == 8, f"all chips are read; its log:\n{self.daemon.log()}", 30.0)

    def _chips(self) -> int:
        with contextlib.suppress(Exception):
            return sum(metric.name == "temperature" for metric in self.daemon.part("npu").metrics)
        return 0

    def cpu_s(self) -> float:
        """Of the daemon, its helpers, and the programs that have ended."""
        helpers = 0.0
        for pid in self.daemon.family():
            with contextlib.suppress(OSError):
                helpers += time.clock_gettime(~pid << 3 | 2)
        return self.daemon.cpu_s() + helpers

    def resident(self) -> int:
        """Bytes of the daemon and its helpers, what they share counted once (smaps_rollup: Pss)."""
        return sum(_pss(pid) for pid in (self.daemon.pid, *self.daemon.family()))

    def asked(self) -> list[str]:
        """Command lines so far."""
        return self.calls.read_text(encoding="utf-8").splitlines()


def _pss(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
