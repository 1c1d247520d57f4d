"""A daemon over minutes on a host whose smartctl and ipmitool hang: whatever grows would end it one day.

    python benchmarks/soak.py --minutes 10

Runs the daemon at its default cadences (the quickest is 1 s) on a made-up bare-metal host (64 processors, 16 disks, 8 network
ports) whose counters move. The tools on its path never answer: they ignore SIGTERM and leave a child that holds the pipe. Each
ten seconds it prints resident memory, open descriptors, threads, processes that the daemon or its tools started, commands started
so far and CPU time, then whether any of them grew after the warm-up, and at the end whether anything outlived the daemon.
"""

import argparse
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from support.hosts_grown import Size, step, write_grown_host  # noqa: E402 - from a checkout, installed or not

SIZE = Size(64, 16, 8)
SAMPLE_S = 10
WARM_UP_S = 200
"""Until every history ring is full: 60 points, one each 3 s."""
MOST_MIB = 0.5
"""Growth of resident memory that still counts as none, over ten minutes."""
MARK = "NODEPROOF_SOAK"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
HUNG_TOOL = """#!/bin/sh
trap '' TERM INT HUP
(while :; do sleep 3600; done) &
while :; do sleep 3600; done
"""


class Sample(NamedTuple):
    """What the daemon holds at one moment."""

    at_s: float
    rss_mib: float
    descriptors: int
    threads: int
    processes: int
    """Besides the daemon itself, orphans included."""
    commands: int
    cpu_s: float


def main() -> int:
    """Run and report; 1 when something grew or was left behind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="length of the run (default: 10)")
    parser.add_argument("--root", help="root of the host to observe (default: a made-up one)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        return soak(Path(scratch), options.root, 60.0 * options.minutes)


def soak(folder: Path, root: str | None, seconds: float) -> int:
    """One run."""
    mark = uuid.uuid4().hex
    if root is None:
        root = str(folder / "root")
        write_grown_host(root, SIZE)
        moving = True
    else:
        moving = False
    daemon, port = start(folder, root, mark)
    try:
        samples = watch(daemon, port, mark, seconds, root if moving else None)
    finally:
        daemon.send_signal(signal.SIGTERM)
        try:
            code = daemon.wait(30)
        except subprocess.TimeoutExpired:
            daemon.kill()
            code = daemon.wait()
    time.sleep(1)
    left = marked(mark)
    print(f"\nthe daemon ended with {code}; {len(left)} processes of its tools are left")
    log = (folder / "log").read_text(errors="replace").splitlines()
    print(f"its log has {len(log)} lines, the last ones:")
    print("\n".join(f"  {line[:160]}" for line in log[-5:]))
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return 0 if judge(samples) and code == 0 and not left else 1


def start(folder: Path, root: str, mark: str) -> "tuple[subprocess.Popen[bytes], int]":
    """The daemon with the hanging tools on its path, and the port of its exporter."""
    tools = folder / "bin"
    tools.mkdir()
    for name in ("smartctl", "ipmitool"):
        (tools / name).write_text(HUNG_TOOL)
        (tools / name).chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    config = folder / "nodeproof.yaml"
    config.write_text(
        f"storage: {{data_dir: {folder}/data}}\nsnapshot: {{dir: {folder}/snapshot}}\nexporter: {{address: '127.0.0.1:{port}'}}\n"
    )
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        MARK: mark,
    }
    command = [sys.executable, "-m", "nodeproof", "daemon", "-c", str(config), "--root", root]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment), port


def watch(daemon: "subprocess.Popen[bytes]", port: int, mark: str, seconds: float, moving: str | None) -> list[Sample]:
    """Move the host each second, sample and print every ten."""
    print("    s     RSS MiB  descriptors  threads  processes  commands   CPU s", flush=True)
    samples: list[Sample] = []
    began = time.monotonic()
    tick = 0
    while (passed := time.monotonic() - began) < seconds:
        if daemon.poll() is not None:
            raise SystemExit(f"the daemon ended by itself with {daemon.returncode}")
        tick += 1
        if moving:
            step(moving, SIZE, tick)
        if tick % SAMPLE_S == 0:
            one = sample(daemon.pid, port, mark, passed)
            samples.append(one)
            print(
                f"{one.at_s:>5.0f}{one.rss_mib:>12.2f}{one.descriptors:>13}{one.threads:>9}{one.processes:>11}"
                f"{one.commands:>10}{one.cpu_s:>8.2f}",
                flush=True,
            )
        time.sleep(max(0.0, began + tick - time.monotonic()))
    return samples


def sample(pid: int, port: int, mark: str, at_s: float) -> Sample:
    """What the daemon holds now."""
    status = Path(f"/proc/{pid}/status").read_text()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    page = scrape(port)
    commands = re.search(r"^nodeproof_daemon_commands_total (\d+)", page, re.MULTILINE)
    if commands is None:
        raise SystemExit("the exposition does not count the commands")
    return Sample(
        at_s,
        int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024,
        len(os.listdir(f"/proc/{pid}/fd")),
        int(re.findall(r"Threads:\s+(\d+)", status)[0]),
        len(marked(mark)) - 1,
        int(commands[1]),
        (int(fields[11]) + int(fields[12])) / TICKS_PER_S,
    )


def scrape(port: int) -> str:
    """The exposition."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        parts = []
        while part := connection.recv(262144):
            parts.append(part)
    return b"".join(parts).decode()


def marked(mark: str) -> list[int]:
    """Processes that live with our mark in their environment: the daemon and all that it started, whoever adopted them."""
    found = []
    wanted = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                found.append(int(name))
        except OSError:
            continue
    return found


def judge(samples: list[Sample]) -> bool:
    """Say of each column whether it grew after the warm-up."""
    if not samples:
        return False
    warm = min(WARM_UP_S, 0.4 * samples[-1].at_s)
    kept = [one for one in samples if one.at_s >= warm]
    if len(kept) < 6:
        print("too short a run to tell growth")
        return False
    times = [one.at_s for one in kept]
    print(f"\nafter {warm:.0f} s:")
    good = True
    slope = statistics.linear_regression(times, [one.rss_mib for one in kept]).slope * 600
    flat = slope <= MOST_MIB
    good &= flat
    print(f"  RSS          {slope:+.2f} MiB in ten minutes: {'flat' if flat else 'GROWS'}")
    half = len(kept) // 2
    for name in ("descriptors", "threads", "processes"):
        values = [getattr(one, name) for one in kept]
        # They come and go with the calls in flight; a leak lifts both the least and the most of them.
        flat = max(values[half:]) <= max(values[:half]) + 1 and min(values[half:]) <= min(values[:half]) + 1
        good &= flat
        print(f"  {name:<12} {min(values)} to {max(values)}: {'flat' if flat else 'GROWS'}")
    cost = (kept[-1].cpu_s - kept[0].cpu_s) / (kept[-1].at_s - kept[0].at_s)
    print(f"  CPU          {100 * cost:.2f} % of a core")
    return good


if __name__ == "__main__":
    sys.exit(main())
