"""A made-up machine that lives: its files change as time passes, the way the test says.

Four Intel processors of two cores each in two packages, cpufreq, throttle counters, one memory controller, one PCIe device with
error counters, a processor sensor and a zone, swap, a kernel log, and three processes: 1, the run's own (500) and a foreign one
(900). Until told otherwise it is healthy: its processors are busy with the run, and nothing else happens.
"""

import os
from collections.abc import Callable

from nodeproof.hardware.probe import HardwareProbe, Settings
from nodeproof.hardware.providers import AcceleratorProvider
from nodeproof.hardware.readers.processes import OwnPids
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.model.hardware import HardwareReport, Sensitivity
from support.tree import write, write_all

__all__ = ["CPU", "Box", "BoxClock", "Switches"]

CPU = "/sys/devices/system/cpu"
CPUS = 4
_HZ = 100


class Switches:
    """What the user decided."""

    def __init__(self, *, never_refuse: bool = False, temperature_gate: bool = False) -> None:
        self.never_refuse = never_refuse
        self.temperature_gate = temperature_gate


class BoxClock(ManualClock):
    """A clock that lets the box live while somebody waits."""

    def __init__(self, live: Callable[[float], None]) -> None:
        super().__init__()
        self._live = live

    def sleep(self, seconds: float) -> None:
        """Let the box live on."""
        self._live(seconds)


class Box:
    """The machine. Attributes say what happens per second from now on; ``live`` lets time pass."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.clock = BoxClock(self.live)
        self.machine: Machine = recorded_machine(root, clock=self.clock)
        self.busy = 1.0
        """Share of each processor that the run's own process uses."""
        self.foreign = 0.0
        """Share of all processors that the foreign process uses."""
        self.steal = 0.0
        self.mhz = 3000.0
        self.slept_s = 0.0
        self._ticks = [[1000.0, 0.0, 500.0, 90_000.0, 0.0] for _ in range(CPUS)]
        self._own = self._other = 0.0
        self._psi = [0.0, 0.0, 0.0]
        self.waits = [0.0, 0.0, 0.0]
        """Share of time that tasks wait for cpu, memory, io."""
        self.swapped = 0
        self.killed = 0
        self.corrected: Callable[[], None] = lambda: None
        """Called after the files were written: what this box has otherwise."""
        self._log: list[str] = []
        self._fixed()
        self._write()
        self.edac()
        self.aer()
        self.throttle()
        self.temperature(cpu_c=60, zone_c=40)

    def write(self, path: str, content: str | bytes | float) -> None:
        """Change one file."""
        write(self.root, path, content)

    def remove(self, path: str) -> None:
        """Take one file away."""
        os.remove(self.root + path)

    def live(self, seconds: float) -> None:
        """Let time pass."""
        for row in self._ticks:
            ticks = seconds * _HZ
            stolen, worked = ticks * self.steal, ticks * min(1.0, self.busy + self.foreign)
            row[0] += worked
            row[4] += stolen
            row[3] += max(0.0, ticks - worked - stolen)
        self._own += seconds * _HZ * CPUS * self.busy
        self._other += seconds * _HZ * CPUS * self.foreign
        self._psi = [total + share * seconds * 1e6 for total, share in zip(self._psi, self.waits, strict=True)]
        self.clock.advance(seconds)
        self._write()

    def edac(self, *, ce: int = 0, ue: int = 0) -> None:
        """Counters of the memory controller."""
        write_all(self.root, "/sys/devices/system/edac/mc/mc0", {"ce_count": ce, "ue_count": ue})

    def aer(self, *, corrected: int = 0, nonfatal: int = 0, fatal: int = 0) -> None:
        """Counters of the PCIe device."""
        folder = "/sys/bus/pci/devices/0000:17:00.0"
        for kind, name, count in (
            ("correctable", "COR", corrected),
            ("nonfatal", "NONFATAL", nonfatal),
            ("fatal", "FATAL", fatal),
        ):
            self.write(f"{folder}/aer_dev_{kind}", f"BadTLP {count}\nTOTAL_ERR_{name} {count}")
        write_all(self.root, folder, {"class": "0x020000", "vendor": "0x15b3"})

    def throttle(self, *, core_events: int = 10, core_ms: int = 100, package_events: int = 7, package_ms: int = 70) -> None:
        """Counters of core 0 and package 0; the others stay as they are."""
        for cpu in range(CPUS):
            first = cpu in {0, 2}
            write_all(
                self.root,
                f"{CPU}/cpu{cpu}/thermal_throttle",
                {
                    "core_throttle_count": core_events if first and cpu == 0 else 3,
                    "core_throttle_total_time_ms": core_ms if first and cpu == 0 else 30,
                    "package_throttle_count": package_events if cpu < 2 else 1,
                    "package_throttle_total_time_ms": package_ms if cpu < 2 else 10,
                },
            )

    def temperature(self, *, cpu_c: float | None = None, zone_c: float | None = None) -> None:
        """Processor sensor and zone."""
        if cpu_c is not None:
            self.write("/sys/class/hwmon/hwmon0/temp1_input", round(cpu_c * 1000))
        if zone_c is not None:
            self.write("/sys/class/thermal/thermal_zone0/temp", round(zone_c * 1000))

    def governor(self, name: str, *, driver: str = "acpi-cpufreq", cpus: range = range(CPUS)) -> None:
        """Who chooses frequencies."""
        for cpu in cpus:
            write_all(self.root, f"{CPU}/cpu{cpu}/cpufreq", {"scaling_governor": name, "scaling_driver": driver})

    def log(self, text: str, *, after_s: float = 0.0) -> None:
        """One record of the kernel log, now or a little later."""
        stamp = round((self.clock.mono_s + after_s) * 1e6)
        self._log.append(f"4,{len(self._log)},{stamp},-;{text}")
        self.write("/dev/kmsg", "\n".join(self._log))

    def watch(
        self,
        *,
        period_s: float = 0.5,
        settings: Settings | None = None,
        providers: tuple[AcceleratorProvider, ...] = (),
        own_pids: OwnPids | None = None,
    ) -> HardwareProbe:
        """Somebody who watches, and whose own process is 500."""
        chosen = settings or Settings()
        return HardwareProbe(
            self.machine,
            chosen._replace(
                period_s=period_s,
                roots=(500,),
                providers=providers or chosen.providers,
                own_pids=own_pids,
                suspended_s=lambda: self.slept_s,
            ),
        )

    def run(
        self,
        happens: Callable[["Box", int], None] = lambda _box, _step: None,
        *,
        sensitivity: Sensitivity = Sensitivity.SPEED,
        steps: int = 20,
        watch: HardwareProbe | None = None,
        switches: Switches = Switches(),  # noqa: B008 - never changed
    ) -> HardwareReport:
        """A run of ``steps`` looks half a second apart; ``happens`` is called before each."""
        watcher = watch or self.watch()
        watcher.open(sensitivity, switches)
        for step in range(steps):
            happens(self, step)
            self.live(0.5)
            watcher.tick()
        return watcher.close()

    def _fixed(self) -> None:
        self.write("/dev/kmsg", "4,0,1000,-;Linux version 6.1.0")
        self._log.append("4,0,1000,-;Linux version 6.1.0")
        self.write("/proc/self/status", f"Name:\tpython\nCpus_allowed_list:\t0-{CPUS - 1}")
        self.write("/proc/sys/kernel/hostname", "box")
        self.write("/proc/sys/kernel/osrelease", "6.1.0")
        self.write("/proc/sys/kernel/random/boot_id", "00000000-0000-4000-8000-000000000001")
        self.write("/etc/machine-id", "0123456789abcdef0123456789abcdef")
        self.write("/proc/2/comm", "kthreadd")
        self.write("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 15728640 kB\nCached: 1048576 kB\nSwapCached: 7 kB")
        model = "Intel(R) Xeon(R) Gold 5122 CPU @ 3.60GHz"
        entry = f"vendor_id\t: GenuineIntel\nmodel name\t: {model}\nflags\t\t: fpu aperfmperf\n"
        self.write("/proc/cpuinfo", "\n".join(f"processor\t: {cpu}\n{entry}" for cpu in range(CPUS)))
        write_all(self.root, "/sys/class/dmi/id", {"sys_vendor": "Dell Inc.", "product_name": "PowerEdge R640"})
        self.write(f"{CPU}/online", f"0-{CPUS - 1}")
        for cpu in range(CPUS):
            topology = {"core_cpus_list": "0-1" if cpu < 2 else "2-3", "physical_package_id": cpu // 2}
            write_all(self.root, f"{CPU}/cpu{cpu}/topology", topology)
        self.governor("performance")
        chip: dict[str, str | bytes | float] = {
            "name": "coretemp",
            "temp1_label": "Package id 0",
            "temp1_crit": 100_000,
            "temp1_crit_alarm": 0,
        }
        chip |= {"temp2_input": 55_000, "temp2_label": "Core 0"}
        write_all(self.root, "/sys/class/hwmon/hwmon0", chip)
        zone: dict[str, str | bytes | float] = {"type": "acpitz", "trip_point_0_type": "critical", "trip_point_0_temp": 105_000}
        write_all(self.root, "/sys/class/thermal/thermal_zone0", zone)

    def _write(self) -> None:
        rows = [f"{round(a)} 0 {round(b)} {round(i)} 0 0 0 {round(s)} 0 0" for a, _, b, i, s in self._ticks]
        total = " ".join(str(sum(int(row.split()[at]) for row in rows)) for at in range(10))
        lines = [f"cpu  {total}", *(f"cpu{cpu} {row}" for cpu, row in enumerate(rows)), "btime 1789000000"]
        self.write("/proc/stat", "\n".join(lines))
        self.write("/proc/vmstat", f"pgfault 1\npswpin {self.swapped}\noom_kill {self.killed}")
        for name, total_us in zip(("cpu", "memory", "io"), self._psi, strict=True):
            figures = f"avg10=0.00 avg60=0.00 avg300=0.00 total={round(total_us)}"
            self.write(f"/proc/pressure/{name}", f"some {figures}\nfull {figures}")
        for cpu in range(CPUS):
            self.write(f"{CPU}/cpu{cpu}/cpufreq/scaling_cur_freq", round(self.mhz * 1000))
        self.process(1, "init", 0, 0.0)
        self.process(500, "nodeproof", 1, self._own)
        self.process(900, "make", 1, self._other)
        self.corrected()

    def process(self, pid: int, name: str, ppid: int, ticks: float, *, children: float = 0.0, start: int = 10) -> None:
        """One process with its CPU time in ticks."""
        numbers = [
            ppid,
            pid,
            pid,
            0,
            -1,
            4194304,
            0,
            0,
            0,
            0,
            round(ticks),
            0,
            round(children),
            0,
            20,
            0,
            1,
            0,
            start,
            *[0] * 16,
            0,
        ]
        self.write(f"/proc/{pid}/stat", f"{pid} ({name}) S " + " ".join(map(str, numbers)))
