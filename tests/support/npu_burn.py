"""Stand-ins for what NPU Burn needs: the program with its habits, ``lspci``, device nodes, a container engine with its client.

The program deletes its old results, appends one row for each device and case, prints a padded table, and ends with status 0
whatever happened (stress.md 2.4). What goes wrong with it stands in a file beside it, for nothing else of a test reaches it.
"""

import contextlib
import json
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from nodeproof.host.commands import HostCommands
from nodeproof.host.machine import Machine
from nodeproof.stress.settings import ItemSettings, StressSettings
from support.stress import make_settings

__all__ = ["IMAGE", "BurnHost", "burn_settings", "container_engine"]

IMAGE = "registry.example/npu-burn:a2"

_PROGRAM = """\
#!{python}
import argparse, json, os, sys, time
habits = json.load(open({habits!r}))
parser = argparse.ArgumentParser()
parser.add_argument("--device", required=True)
parser.add_argument("--sdc_detect", action="store_true", required=True)
parser.add_argument("--timeout", type=int, required=True)
parser.add_argument("--chip_generation", choices=("A2", "A3", "A5"), required=True)
chosen = parser.add_mutually_exclusive_group(required=True)
chosen.add_argument("--run_case")
chosen.add_argument("--group")
asked = parser.parse_args()
if habits.get("pid_file"):
    open(habits["pid_file"], "w").write(str(os.getpid()))
if habits.get("dies_at_once"):
    print("Traceback (most recent call last):\\nImportError: libascend_hal.so: cannot open shared object file")
    sys.exit(0)
results, errors = (os.path.join({output!r}, name) for name in ("npu_burn_results.csv", "npu_burn_errors.csv"))
for path in (results, errors):
    if os.path.exists(path) and not habits.get("keeps_old"):
        os.remove(path)
if habits.get("keeps_old"):
    sys.exit(0)
devices = [int(cell) for cell in asked.device.split(",")]
broken = set(habits.get("broken", ()))
for device in devices:
    print(f"[npu {{device}}] {{asked.run_case or asked.group}} warm-up", flush=True)
time.sleep(habits.get("sleeps_s", 0))
for number, device in enumerate(devices):
    if device in habits.get("dead", ()):
        continue
    with open(results, "a") as file:
        if number in (0, 2):
            file.write("task,device_id,case_idx,run_count,stream_count,exetime,err_count,result,case_config\\n")
        verdict = "FAIL" if device in broken else "PASS"
        task = asked.run_case or "matmul"
        file.write(f'{{task}},{{device}},0,100,1,{{12.5 + device}},{{int(device in broken)}},{{verdict}},"m=4096, n=4096"\\n')
if habits.get("sdc"):
    with open(errors, "w") as file:
        file.write("task,device_id,case_idx,run_idx,expected,actual\\n")
        file.write(f"matmul,{{habits['sdc']}},0,17,1.5,1.75\\n")
print("| NPU    | Status     | Fail tasks                                                                       |")
for device in devices:
    bad = device in broken or device in habits.get("console_fails", ())
    print(f"| {{device:<6}} | {{'FAIL' if bad else 'PASS':<10}} | {{'matmul (1/1)' if bad else '-':<80}} |")
"""

_CLIENT = """\
#!{python}
import json, os, socket, sys, threading
if sys.argv[1] == "inspect":
    print(open({told!r}).read(), end="")
    sys.exit(0 if os.path.getsize({told!r}) else 1)
assert sys.argv[1] == "exec", sys.argv
words = sys.argv[2:]
fed = words[0] == "-i"
words = words[1:] if fed else words
assert words[0] == "burner", words
link = socket.socket(socket.AF_UNIX)
link.connect({socket!r})
link.sendall(json.dumps({{"argv": words[1:]}}).encode() + b"\\n")
if fed:
    def feed():
        while chunk := os.read(0, 4096):
            link.sendall(chunk)
        link.shutdown(socket.SHUT_WR)
    threading.Thread(target=feed, daemon=True).start()
else:
    link.shutdown(socket.SHUT_WR)
for line in link.makefile():
    told = json.loads(line)
    if "exit" in told:
        os._exit(told["exit"])
    print(told["out"], flush=True)
os._exit(125)
"""


class BurnHost:
    """A host below ``folder`` with NPUs on the bus, device nodes and the program."""

    def __init__(self, folder: Path, *, nodes: tuple[int, ...] = (0, 1), on_bus: int | None = 2) -> None:
        self.folder = folder
        self.output = folder / "home" / ".ascend_npu_burn" / "output"
        self.output.mkdir(parents=True)
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.dev = folder / "dev"
        self.dev.mkdir()
        for number in nodes:
            (self.dev / f"davinci{number}").touch()
        (self.dev / "davinci_manager").touch()
        self.pid_file = folder / "pid"
        self.behave()
        text = _PROGRAM.format(python=sys.executable, habits=str(folder / "habits.json"), output=str(self.output))
        self.program = self.install("npu-burn", text)
        if on_bus is not None:
            self.on_bus(on_bus)

    def behave(self, **habits: object) -> None:
        """What goes wrong with the program from now on."""
        told = {"pid_file": str(self.pid_file), **habits}
        (self.folder / "habits.json").write_text(json.dumps(told), encoding="utf-8")

    def on_bus(self, count: int) -> None:
        """So many accelerators, the last one first, as ``lspci`` may print them."""
        lines = [
            f"0000:{16 + number:02x}:00.0 Processing accelerators: Huawei Technologies Co., Ltd. Device d802 (rev 20)"
            for number in reversed(range(count))
        ]
        shown = "\n".join([*lines, "0000:7d:00.0 Ethernet controller: Huawei Technologies Co., Ltd. HNS GE/10GE Network"])
        self.install("lspci", f'#!/bin/sh\n[ "$*" = "-D -d 19e5:" ] || exit 2\ncat <<END\n{shown}\nEND\n')

    def install(self, name: str, text: str) -> str:
        """A program of this host."""
        path = self.bin / name
        path.write_text(text, encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def machine(self) -> Machine:
        """With this host's programs in place of the real ones."""
        real = Machine.here()
        return Machine(real.files, HostCommands(f"{self.bin}:/usr/bin:/bin"), real.clock)

    def environ(self, **changes: str) -> dict[str, str]:
        """What an administrator sets, with ``changes`` (without their prefix; empty = not set)."""
        plain = {
            "EXECUTABLE": self.program,
            "OUTPUT_DIR": str(self.output),
            "RUN_CASE": "matmul",
            "DEVICE": "all",
            "DEVICE_ROOT": str(self.dev),
            "CHIP_GENERATION": "A2",
        } | changes
        named = {f"NPU_BURN_{name}": value for name, value in plain.items() if value}
        return {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.folder / "home"), **named}

    def in_container(self, **changes: str) -> dict[str, str]:
        """The same for the container of :func:`container_engine`."""
        told: dict[str, str] = {
            "BACKEND": "docker_exec",
            "CONTAINER_RUNTIME": str(self.bin / "docker"),
            "CONTAINER_NAME": "burner",
            "CONTAINER_IMAGE": IMAGE,
            "RUNTIME_CANN": "8.3",
            "RUNTIME_TORCH_NPU": "2.1",
            "SOC_MODEL": "910B",
        }
        return self.environ(**(told | changes))


def burn_settings(folder: Path, *, timeout_s: float = 20.0, adapter: str = "native") -> StressSettings:
    """``npu_burn`` alone, without a dispatcher."""
    item = ItemSettings(enabled=True, timeout_s=timeout_s, adapter=adapter)
    return msgspec.structs.replace(make_settings(folder, ""), benchmarks={"npu_burn": item}, default_benchmarks=("npu_burn",))


@contextlib.contextmanager
def container_engine(host: BurnHost, *, running: bool = True, image: str = IMAGE) -> Iterator[None]:
    """An engine outside of the job's process tree, and its client; a container is this host without its ``PATH``.

    As with Docker, what runs in the container is no child of the client, and its input is over when the client is gone.
    """
    told = host.folder / "inspect.txt"
    told.write_text(f"{'true' if running else 'false'} {image}\n", encoding="utf-8")
    path = host.folder / "engine.sock"
    host.install("docker", _CLIENT.format(python=sys.executable, told=str(told), socket=str(path)))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    threads: list[threading.Thread] = []

    def accept() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=_serve, args=(link, host), daemon=True))
            threads[-1].start()

    doorman = threading.Thread(target=accept, daemon=True)
    doorman.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        doorman.join(5.0)
        for thread in threads:
            thread.join(10.0)


def _serve(link: socket.socket, host: BurnHost) -> None:
    reader, writer = link.makefile("rb"), link.makefile("w")
    argv = json.loads(reader.readline())["argv"]
    environ = {"PATH": f"{host.bin}:/usr/bin:/bin"}
    pipe = subprocess.PIPE
    child = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, env=environ, start_new_session=True)
    assert child.stdin is not None
    assert child.stdout is not None
    feeding = threading.Thread(target=_feed, args=(reader, child.stdin), daemon=True)
    feeding.start()
    with contextlib.suppress(OSError):
        for line in child.stdout:
            print(json.dumps({"out": line.decode().rstrip("\n")}), file=writer, flush=True)
        print(json.dumps({"exit": child.wait()}), file=writer, flush=True)
    child.stdout.read()
    child.stdout.close()
    child.wait()
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
    feeding.join(5.0)
    with contextlib.suppress(OSError):
        writer.close()
    reader.close()
    link.close()


def _feed(reader: IO[bytes], program: IO[bytes]) -> None:
    """Hand on what the client sends, until it is gone."""
    with contextlib.suppress(OSError, ValueError):
        while chunk := reader.read(1):
            program.write(chunk)
            program.flush()
    with contextlib.suppress(OSError):
        program.close()
