"""A day of the daemon on a clock that does not wait, with something wrong in every hour: what grows would end it one day.

    python benchmarks/day.py --hours 24

The daemon's own runtime, with its collectors, sinks, history, health and faults, on a made-up host (4 processors, 4 disks, 2
network ports) whose counters move; only its threads and the port are left out, so that a day takes minutes. In each hour, for ten
minutes, one thing is wrong: tools hang, files vanish or are cut short, the kernel log is flooded, the place for data is gone, the
wall clock jumps a day ahead, disks leave, counters start again. Each hour it prints what the process holds and what lies on
disk, and at the end whether anything grew after the first hours, and whether every file is within its bound.
"""

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from nodeproof.errors import CommandError, CommandFailure  # noqa: E402 - from a checkout, installed or not
from support.cycle_cost import Daemon  # noqa: E402
from support.hosts_grown import Size  # noqa: E402

SIZE = Size(4, 4, 2)
HOUR_S = 3600
WRONG_FROM_S, WRONG_UNTIL_S = 600, 1200
WARM_UP_HOURS = 3
"""Until all rings are full and every kind of fault has left what it leaves."""
MOST_MIB = 1.0
"""Growth of resident memory after the warm-up that still counts as none."""
MOST_DATA_BYTES = 30_000_000
"""A day's data by default."""
MOST_SNAPSHOT_BYTES = 4 << 20
FLOOD = 500
"""Kernel lines at once."""


class Sample(NamedTuple):
    """What the daemon holds at the end of an hour."""

    hour: int
    wrong: str
    rss_mib: float
    blocks: int
    descriptors: int
    data_bytes: int
    snapshot_bytes: int
    largest: str


class Day:
    """A daemon, its host, and what can go wrong with it."""

    def __init__(self, folder: Path) -> None:
        self.daemon = Daemon(folder, SIZE)
        self._host, self._data, self._snapshot = folder / "root", folder / "data", folder / "snapshot"
        self.faults: tuple[tuple[str, Callable[[], AbstractContextManager[None]]], ...] = (
            ("tools hang", self._tools_hang),
            ("/proc/meminfo vanishes", lambda: self._without("proc/meminfo")),
            ("mountinfo is cut short", lambda: self._cut("proc/1/mountinfo")),
            ("the kernel log is flooded", self._flood),
            ("the place for data is gone", self._no_data),
            ("the wall clock jumps a day", self._clock_jumps),
            ("disks leave", self._disks_leave),
            ("counters start again", self._counters_start_again),
        )

    @contextmanager
    def _tools_hang(self) -> Iterator[None]:
        commands = self.daemon.commands
        well = commands.answers
        words = "gave no answer in 15 s and was ended"
        commands.answers = {line: CommandError(line.split()[0], CommandFailure.TIMED_OUT, words) for line in well}
        yield
        commands.answers = well

    @contextmanager
    def _without(self, name: str) -> Iterator[None]:
        path = self._host / name
        path.rename(f"{path}.away")
        yield
        path.with_name(f"{path.name}.away").rename(path)

    @contextmanager
    def _cut(self, name: str) -> Iterator[None]:
        path = self._host / name
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) * 2 // 3])
        yield
        path.write_bytes(whole)

    @contextmanager
    def _flood(self) -> Iterator[None]:
        path = self._host / "dev/kmsg"
        before = path.read_bytes()
        micros = int(self.daemon.clock.mono_s * 1e6)
        first = 1 + int(before.rstrip().rpartition(b"\n")[2].split(b",")[1])
        text = "Out of memory: Killed process {0} (worker{0}) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB"
        lines = (f"3,{first + number},{micros + number},-;{text.format(number)}\n" for number in range(FLOOD))
        with path.open("a", encoding="ascii") as file:
            file.writelines(lines)
        yield

    @contextmanager
    def _no_data(self) -> Iterator[None]:
        away = self._data.with_name("data-away")
        self._data.rename(away)
        self._data.write_text("a file where a directory was")
        yield
        self._data.unlink()
        away.rename(self._data)

    @contextmanager
    def _clock_jumps(self) -> Iterator[None]:
        self.daemon.clock.wall_s += 24 * HOUR_S
        yield
        self.daemon.clock.wall_s -= 24 * HOUR_S

    @contextmanager
    def _disks_leave(self) -> Iterator[None]:
        self.daemon.size = Size(SIZE.cpus, SIZE.disks // 2, SIZE.nics)
        yield
        self.daemon.size = SIZE

    @contextmanager
    def _counters_start_again(self) -> Iterator[None]:
        self.daemon.ticks = 0
        yield

    def hour(self, number: int) -> Sample:
        """Go through one hour, its ten bad minutes among them."""
        name, wrong = self.faults[number % len(self.faults)]
        self._go_on(WRONG_FROM_S)
        with wrong():
            self._go_on(WRONG_UNTIL_S - WRONG_FROM_S)
        self._go_on(HOUR_S - WRONG_UNTIL_S)
        gc.collect()
        sizes = {path: path.stat().st_size for path in self._data.rglob("*") if path.is_file()}
        largest = max(sizes, key=lambda path: sizes[path], default=self._data)
        return Sample(
            number,
            name,
            _resident_mib(),
            sys.getallocatedblocks(),
            len(os.listdir("/proc/self/fd")),
            sum(sizes.values()),
            sum(path.stat().st_size for path in self._snapshot.rglob("*") if path.is_file()),
            f"{largest.name} {sizes.get(largest, 0) / 1e6:.1f} MB",
        )

    def _go_on(self, seconds: int) -> None:
        for beat in range(seconds):
            self.daemon.beat(everything=False)
            if beat % 15 == 0:
                self.daemon.page()
        self.daemon.forget_commands()


def main() -> int:
    """Run the hours and report; 1 when something grew or went over its bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=24)
    hours = parser.parse_args().hours
    samples: list[Sample] = []
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        day = Day(Path(folder))
        print("hour   RSS MiB    blocks    fds   data MB   snapshot KB   largest file             went wrong")
        for number in range(hours):
            one = day.hour(number)
            samples.append(one)
            held = f"{one.hour:4}{one.rss_mib:10.1f}{one.blocks:10}{one.descriptors:7}"
            print(
                f"{held}{one.data_bytes / 1e6:10.2f}{one.snapshot_bytes / 1e3:14.0f}   {one.largest:<24} {one.wrong}", flush=True
            )
        trouble = day.daemon.trouble()
        day.daemon.close()
    print(f"{hours} hours in {time.process_time() - began:.0f} s of CPU time; trouble of sinks at the end: {trouble or 'none'}")
    return 0 if judge(samples) and not trouble else 1


def judge(samples: list[Sample]) -> bool:
    """Whether nothing grew, and every bound holds; says what does not."""
    settled = samples[WARM_UP_HOURS:]
    wrong = [f"hour {one.hour}: {one.data_bytes} bytes of data" for one in samples if one.data_bytes > MOST_DATA_BYTES]
    wrong += [
        f"hour {one.hour}: {one.snapshot_bytes} bytes of snapshots" for one in samples if one.snapshot_bytes > MOST_SNAPSHOT_BYTES
    ]
    if settled:
        growth = settled[-1].rss_mib - settled[0].rss_mib
        more = settled[-1].descriptors - settled[0].descriptors
        wrong += [f"resident memory grew by {growth:.1f} MiB"] if growth > MOST_MIB else []
        wrong += [f"{more} more descriptors"] if more > 0 else []
    print("\n".join(wrong) or "nothing grew, every file is within its bound")
    return not wrong


def _resident_mib() -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise OSError("/proc/self/status has no VmRSS")


if __name__ == "__main__":
    sys.exit(main())
