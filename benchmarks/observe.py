"""The daemon beside its peers, in one run on one machine.

Starts our daemon (1 s cadence, snapshots, JSON lines and exporter on), prometheus-node-exporter and Glances in web mode, polls
each once a second, and prints for each: CPU share, resident and proportional memory, series, bytes, and the latency of a poll on
loopback from connect to the last byte. Peers that are not there are named and left out.

    python benchmarks/observe.py --seconds 60 --glances /path/to/venv/bin/glances

Debian has node_exporter in the package prometheus-node-exporter; Glances comes from PyPI (``glances[web]``).
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nodeproof.model.catalogue import CATALOGUE, Priority
from nodeproof.sinks.exposition_names import Naming, family

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MIB = 1024 * 1024
WARM_UP_S = 8.0

PEER_NOT_HEALTH = re.compile(
    r"^(go_|promhttp_|process_|node_scrape_collector_|node_exporter_build_info|node_textfile_|node_network_(flags|iface_|protocol|address_assign|net_dev_group"
    r"|dormant|name_assign|device_id)|node_network_info|node_uname_info|node_os_|node_dmi_info|node_cooling_device|node_time_zone)"
)
"""What node_exporter says of itself or as pure identity; all of its other series are counted as concerning health."""


class Peer(NamedTuple):
    """One program under measurement."""

    name: str
    command: list[str]
    port: int
    path: str
    env: dict[str, str] | None = None
    """Its environment; None = ours."""


class Sample(NamedTuple):
    """Cost of a program over the measured time."""

    cpu_percent: float
    rss_mib: float
    pss_mib: float
    processes: int
    latencies_ms: list[float]
    body: bytes


def compiled_environment(folder: Path) -> dict[str, str]:
    """As an installed program has it: its byte code is kept. Compiling at each start leaves a megabyte behind."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return environment | {"PYTHONPYCACHEPREFIX": str(folder)}


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tree(pid: int) -> list[int]:
    """``pid`` and all of its descendants."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def cpu_s(pid: int) -> float:
    """CPU seconds of a process, its ended children and its living descendants."""
    total = 0.0
    for member in tree(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) / TICKS_PER_S
    return total


def memory_mib(pid: int, key: str) -> float:
    """``Rss`` or ``Pss`` of a process and its descendants."""
    total = 0
    for member in tree(pid):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines():
                if line.startswith(f"{key}:"):
                    total += int(line.split()[1]) * 1024
    return total / MIB


def fetch(port: int, path: str) -> tuple[float, bytes]:
    """Milliseconds from connect to the last byte, and the body."""
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        parts = []
        while part := connection.recv(262144):
            parts.append(part)
    took = (time.perf_counter() - began) * 1000
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise RuntimeError(f"port {port} answered {head[:80]!r}")
    return took, body


@contextlib.contextmanager
def running(peer: Peer, log: Path) -> Iterator[int]:
    """The program, from start to a clean end; its process id."""
    with log.open("wb") as output:
        process = subprocess.Popen(peer.command, env=peer.env, stdout=output, stderr=output, start_new_session=True)
        try:
            wait_until_answers(peer, process, log)
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until_answers(peer: Peer, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait for the first good answer."""
    for _ in range(100):
        with contextlib.suppress(OSError, RuntimeError):
            fetch(peer.port, peer.path)
            return
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise SystemExit(f"{peer.name} does not answer on port {peer.port}:\n{log.read_text(errors='replace')[-2000:]}")


def measure(peers: list[Peer], seconds: int, folder: Path) -> dict[str, Sample]:
    """Run all side by side; each is polled once a second, at its own third of it."""
    with contextlib.ExitStack() as stack:
        pids = {peer.name: stack.enter_context(running(peer, folder / f"{number}.log")) for number, peer in enumerate(peers)}
        time.sleep(WARM_UP_S)
        latencies: dict[str, list[float]] = {peer.name: [] for peer in peers}
        bodies: dict[str, bytes] = {}
        before = {name: cpu_s(pid) for name, pid in pids.items()}
        began = time.monotonic()
        for tick in range(seconds):
            for number, peer in enumerate(peers):
                time.sleep(max(0.0, began + tick + number / len(peers) - time.monotonic()))
                took, bodies[peer.name] = fetch(peer.port, peer.path)
                latencies[peer.name].append(took)
        time.sleep(max(0.0, began + seconds - time.monotonic()))
        elapsed = time.monotonic() - began
        return {
            name: Sample(
                (cpu_s(pid) - before[name]) / elapsed * 100,
                memory_mib(pid, "Rss"),
                memory_mib(pid, "Pss"),
                len(tree(pid)),
                latencies[name],
                bodies[name],
            )
            for name, pid in pids.items()
        }


def series_by_family(text: bytes) -> Counter[str]:
    """Series of an exposition by the name they begin with."""
    return Counter(
        re.split(rb"[{ ]", line, maxsplit=1)[0].decode() for line in text.splitlines() if line and not line.startswith(b"#")
    )


def health_families_of_ours() -> set[str]:
    """Families whose catalogue priority is High or Medium."""
    return {
        family(*spec.key, spec.unit, spec, Naming.NODEPROOF).name
        for spec in CATALOGUE.values()
        if spec.priority is not Priority.LOW and spec.component != "daemon"
    }


def report(samples: dict[str, Sample], ours: str, node_exporter: str) -> None:
    """Print the table, the ratios and both lists of series."""
    widths = {"CPU % of a core": 16, "RSS MiB": 9, "PSS MiB": 9, "proc": 6, "series": 8, "bytes": 9, "p50 ms": 8, "p99 ms": 8}
    print(f"\n{'program':<26}" + "".join(head.rjust(width) for head, width in widths.items()))
    for name, sample in samples.items():
        count = sum(series_by_family(sample.body).values()) if b"# TYPE" in sample.body else 0
        ordered = sorted(sample.latencies_ms)
        p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
        print(
            f"{name:<26}{sample.cpu_percent:>16.2f}{sample.rss_mib:>9.1f}{sample.pss_mib:>9.1f}{sample.processes:>6}{count:>8}"
            f"{len(sample.body):>9}{statistics.median(ordered):>8.2f}{p99:>8.2f}"
        )
    wanted = health_families_of_ours()
    mine = Counter({name: count for name, count in series_by_family(samples[ours].body).items() if name in wanted})
    print(f"\nseries that concern health (ours: catalogue priority High or Medium): {sum(mine.values())} in {len(mine)} families")
    print_families(mine)
    if node_exporter not in samples:
        return
    peer = Counter(
        {name: count for name, count in series_by_family(samples[node_exporter].body).items() if not PEER_NOT_HEALTH.match(name)}
    )
    print(f"\n{node_exporter}: {sum(peer.values())} in {len(peer)} families (all but what is about itself or pure identity)")
    print_families(peer)
    a, b = samples[ours], samples[node_exporter]
    print("\nours / node_exporter in this run:")
    print(f"  CPU share          {a.cpu_percent / b.cpu_percent:.2f}  (to reach: at most 0.5)")
    print(
        f"  scrape p50         {statistics.median(a.latencies_ms) / statistics.median(b.latencies_ms):.2f}  (to reach: under 0.2)"
    )
    print(f"  series on health   {sum(mine.values()) / sum(peer.values()):.2f}  (to reach: at least 1)")


def print_families(families: Counter[str]) -> None:
    """Names with their counts, wrapped."""
    line = "  "
    for name, count in sorted(families.items()):
        item = f"{name} {count}; "
        if len(line) + len(item) > 150:
            print(line)
            line = "  "
        line += item
    print(line)


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="measured time (default: 60)")
    parser.add_argument("--node-exporter", default=shutil.which("prometheus-node-exporter") or shutil.which("node_exporter"))
    parser.add_argument("--glances", default=shutil.which("glances"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        ports = [free_port() for _ in range(3)]
        config = folder / "nodeproof.yaml"
        config.write_text(
            f"storage: {{data_dir: {folder}/data}}\nsnapshot: {{dir: {folder}/snapshot}}\n"
            f"exporter: {{address: '127.0.0.1:{ports[0]}'}}\n"
        )
        command = [sys.executable, "-m", "nodeproof", "daemon", "-c", str(config)]
        ours = Peer("nodeproof", command, ports[0], "/metrics", compiled_environment(folder / "compiled"))
        with running(ours, folder / "first.log"):
            time.sleep(WARM_UP_S)  # what it imports in its first seconds is compiled as well
        peers = [ours]
        if options.node_exporter:
            listen = f"--web.listen-address=127.0.0.1:{ports[1]}"
            peers.append(Peer("node_exporter", [options.node_exporter, listen, "--log.level=error"], ports[1], "/metrics"))
        if options.glances:
            command = [options.glances, "-w", "-B", "127.0.0.1", "-p", str(ports[2]), "--disable-check-update", "-q"]
            peers.append(Peer("glances -w", command, ports[2], "/api/4/all"))
        for name, given in (("node_exporter", options.node_exporter), ("Glances", options.glances)):
            if not given:
                print(f"{name} is not there: left out (give its path)")
        report(measure(peers, options.seconds, folder), ours.name, "node_exporter")
    return 0


if __name__ == "__main__":
    sys.exit(main())
