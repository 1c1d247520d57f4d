"""What the page costs: a document against a static answer of the same size, and readers of the event stream.

    python benchmarks/web.py

Starts ``nodeproof up`` on a state directory of its own. First it asks the same server for ``/api/snapshot`` and for a static file
of the same size, in turns, on one kept connection, and compares medians (limit 1.5). Then so many readers follow the event stream
of ``nodeproof web`` over the same files, and its CPU time is taken (limit 1 % of a core with 20). Memory is that of ``up`` with
the page in its process (limit 40 MiB).
"""

import argparse
import contextlib
import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from nodeproof.web.static_files import STATIC_DIRECTORY
from support.daemon import environment, free_port, until

RATIO_LIMIT, SHARE_LIMIT, RESIDENT_LIMIT_MIB = 1.5, 0.01, 40.0


def ask(connection: http.client.HTTPConnection, path: str) -> tuple[float, int]:
    """Seconds until the answer was read, and its size."""
    began = time.perf_counter()
    connection.request("GET", path)
    with connection.getresponse() as answer:
        body = answer.read()
    return time.perf_counter() - began, len(body)


def nearest_static(size: int) -> str:
    """The file of the page whose size is nearest to ``size``."""
    files = [path for path in Path(STATIC_DIRECTORY).rglob("*") if path.suffix in {".js", ".css"}]
    return "/static/" + str(min(files, key=lambda path: abs(path.stat().st_size - size)).relative_to(STATIC_DIRECTORY))


def compare(port: int, rounds: int) -> tuple[float, str]:
    """Ratio of the medians of document and static file, and a line about it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    _, size = ask(connection, "/api/snapshot")
    static = nearest_static(size)
    _, static_size = ask(connection, static)
    document_s, file_s = [], []
    for _ in range(rounds):
        document_s.append(ask(connection, "/api/snapshot")[0])
        file_s.append(ask(connection, static)[0])
    connection.close()
    ratio = statistics.median(document_s) / statistics.median(file_s)
    micros = [1e6 * statistics.median(found) for found in (document_s, file_s)]
    middle = f"{micros[0]:.0f} us for {size} bytes, {micros[1]:.0f} us for {static_size}"
    return ratio, f"/api/snapshot against {static}: {middle}"


def follow(port: int, stop: threading.Event) -> None:
    """Read the event stream until told to stop."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/api/events")
    with connection.getresponse() as answer:
        while not stop.is_set():
            answer.read1(1 << 16)
    connection.close()


def share_of_readers(pid: int, port: int, count: int, seconds: float) -> float:
    """Share of a core that the server takes while ``count`` readers follow."""
    stop = threading.Event()
    threads = [threading.Thread(target=follow, args=(port, stop)) for _ in range(count)]
    for thread in threads:
        thread.start()
    time.sleep(2.0)
    clock = ~pid << 3 | 2  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED), linux/posix-timers.h
    before, began = time.clock_gettime(clock), time.monotonic()
    time.sleep(seconds)
    share = (time.clock_gettime(clock) - before) / (time.monotonic() - began)
    stop.set()
    for thread in threads:
        thread.join()
    return share


@contextlib.contextmanager
def command(folder: Path, name: str, port: int, *more: str) -> Iterator[int]:
    """``nodeproof NAME`` until the end of the block; its process id."""
    argv = [sys.executable, "-m", "nodeproof", name, "-c", str(folder / "nodeproof.yaml"), *more]
    env = environment() | {"XDG_STATE_HOME": str(folder)}
    with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: answers(port), f"{name} answers")
            yield process.pid
        finally:
            process.terminate()


def answers(port: int) -> bool:
    """Whether there is a verdict."""
    with contextlib.suppress(OSError):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        connection.request("GET", "/api/snapshot")
        with connection.getresponse() as answer:
            return answer.status == 200
    return False


def main() -> int:
    """Print the figures; 0 when all are within their limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--readers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own, other = free_port(), free_port()
        (folder / "nodeproof.yaml").write_text(
            f"web: {{address: '127.0.0.1:{own}'}}\nexporter: {{enabled: false}}\n", encoding="utf-8"
        )
        with command(folder, "up", own) as up:
            ratio, told = compare(own, options.rounds)
            with command(folder, "web", other, "--address", f"127.0.0.1:{other}") as web:
                share = share_of_readers(web, other, options.readers, options.seconds)
            pages = int(Path("/proc", str(up), "statm").read_text("ascii").split()[1])
            resident_mib = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    print(f"{told}: ratio {ratio:.2f} (limit {RATIO_LIMIT})")
    print(f"{options.readers} readers: {100 * share:.2f} % of a core (limit {100 * SHARE_LIMIT:.0f})")
    print(f"nodeproof up with the page: {resident_mib:.1f} MiB (limit {RESIDENT_LIMIT_MIB:.0f})")
    return int(ratio > RATIO_LIMIT or share > SHARE_LIMIT or resident_mib > RESIDENT_LIMIT_MIB)


if __name__ == "__main__":
    sys.exit(main())
