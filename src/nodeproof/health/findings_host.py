"""Findings about processors, memory, the system, accelerators, and the daemon itself."""

from nodeproof.health.limits import good, grown, level, state
from nodeproof.health.rules import DAY_S, HOUR_S, Compare, FindingRule, Limit, Probe
from nodeproof.model.health import Severity

__all__ = ["RULES"]

_INFO, _WARNING, _CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL
_EVENT = ("kind", "severity")
_LOG_REMEDY = "Read the kernel log (journalctl -k)."


def _event(kind: str, severity: str, window_s: float) -> Limit:
    where = (("kind", kind), ("severity", severity))
    return grown("system", "kernel_events_total", window_s, *_EVENT, where=where, from_zero=True)


_CPU = (
    FindingRule(
        "cpu",
        "uncorrected_machine_check",
        _CRITICAL,
        grown("cpu", "machine_checks", DAY_S, "severity", where=(("severity", "uncorrected"),)),
        "{value} uncorrected machine checks within 24 h",
        "The kernel logged machine checks that the hardware could not correct: data may be lost.",
        "Take the node out of service; ras-mc-ctl --errors or journalctl -k name the part.",
    ),
    FindingRule(
        "cpu",
        "slowed_by_heat",
        _WARNING,
        grown("cpu", "core_throttles", 600, "package"),
        "processor package {package} was slowed down by heat {value} times within 10 min",
        "Cores ran hotter than they may and were slowed down: any speed measured meanwhile is too low.",
        "Look at fans, air flow, heat sinks and inlet temperature.",
    ),
    FindingRule(
        "cpu",
        "package_slowed_by_heat",
        _WARNING,
        grown("cpu", "package_throttles", 600, "package"),
        "processor package {package} as a whole was slowed down by heat {value} times within 10 min",
        "A package ran hotter than it may and was slowed down: any speed measured meanwhile is too low.",
        "Look at fans, air flow, heat sinks and inlet temperature.",
    ),
    FindingRule(
        "cpu",
        "cores_offline",
        _INFO,
        level(Probe("cpu", ("offline_core_num",)), 0, 0, enter=1),
        "{value} logical processors are switched off",
        "Processors that are present and take no work.",
        "Switch them on (chcpu -e LIST) unless they were switched off on purpose.",
    ),
    FindingRule(
        "cpu",
        "frequency_capped",
        _INFO,
        Limit(Probe("cpu", ("allowed_max_freq",), factor=(("cpu", "max_freq"),)), Compare.BELOW, 0.99, enter=2),
        "software caps the processors at {value} MHz; {edge} MHz and more would be theirs",
        "A power policy holds processors below what they can do.",
        "See scaling_max_freq and the power profile, unless it is wanted.",
    ),
    FindingRule(
        "cpu",
        "pressure",
        _INFO,
        level(Probe("cpu", ("pressure",), (("stall", "some"), ("interval", "avg60"))), 80, 60),
        "tasks waited for a processor {value} % of the last minute",
        "More tasks want to run than there are processors.",
        "Under a wanted load nothing is wrong; else find what runs (top).",
    ),
)

_MEMORY = (
    FindingRule(
        "memory",
        "broken_pages",
        _WARNING,
        level(Probe("memory", ("hardware_corrupted",)), 0, 0, enter=1),
        "the kernel took {value} MB of broken memory out of use",
        "Pages with uncorrected errors are kept out of use until the next boot.",
        "Find the DIMM (ras-mc-ctl --error-count) and have it replaced.",
    ),
    FindingRule(
        "memory",
        "oom_kills",
        _WARNING,
        grown("memory", "oom_count", HOUR_S),
        "{value} processes were killed for want of memory within 1 h",
        "Memory ran out, of the machine or of a control group, and the kernel killed processes.",
        "See who was killed (journalctl -k -g 'Killed process') and give it more memory or less work.",
    ),
    FindingRule(
        "memory",
        "cgroup_oom_kills",
        _WARNING,
        grown("memory", "cgroup_oom_kills", HOUR_S, "cgroup"),
        "{value} processes of control group {cgroup} were killed for want of memory within 1 h",
        "A container or service reached its memory limit and processes of it were killed.",
        "Raise its limit or lower its use.",
    ),
    FindingRule(
        "memory",
        "cgroup_limit_near",
        _WARNING,
        level(Probe("memory", ("cgroup_usage",), entity=("cgroup",)), 95, 92),
        "control group {cgroup} uses {value} % of the memory it may use",
        "The container or service that this daemon runs in is about to reach its memory limit.",
        "Raise its limit or lower its use.",
    ),
    FindingRule(
        "memory",
        "pressure",
        _WARNING,
        level(Probe("memory", ("pressure",), (("stall", "full"), ("interval", "avg60"))), 10, 5),
        "all tasks stood still for want of memory {value} % of the last minute",
        "The machine is busy finding memory instead of working.",
        "Reduce the load or its memory limits.",
    ),
    FindingRule(
        "memory",
        "uncorrected_total",
        _INFO,
        level(Probe("memory", ("ecc_uce_errors",), entity=("mc",)), 0, 0, enter=1),
        "memory controller {mc} has counted {value} uncorrected errors since its driver was loaded",
        "The total says nothing of when; only new ones take points.",
        "Find the DIMM (ras-mc-ctl --error-count).",
    ),
    FindingRule(
        "memory",
        "corrected_total",
        _INFO,
        level(Probe("memory", ("ecc_ce_errors",), entity=("mc",)), 0, 0, enter=1),
        "memory controller {mc} has counted {value} corrected errors since its driver was loaded",
        "The total says nothing of when; only new ones take points.",
        "Watch whether it grows (ras-mc-ctl --error-count).",
    ),
    FindingRule(
        "memory",
        "module_slow",
        _INFO,
        state("memory", "module_speed_downclocked", "locator", enter=1),
        "memory module {locator} runs at {configured} instead of {rated}",
        "Firmware set a module to a lower speed than it is rated for.",
        "See the population rules of the board, and its firmware settings.",
    ),
)

_SYSTEM = (
    FindingRule(
        "system",
        "clock_not_synchronised",
        _WARNING,
        good("system", "clock_synced"),
        "nobody disciplines the clock",
        "Logs and results of different nodes cannot be put in order.",
        "Run chronyd (with rtcsync) or systemd-timesyncd.",
    ),
    FindingRule(
        "system",
        "clock_stepped",
        _INFO,
        grown("system", "clock_steps_total", HOUR_S, "direction", from_zero=True),
        "the wall clock jumped {direction} {value} times within 1 h",
        "Times of log lines and results are not in order across the jump.",
        "See what sets the clock.",
    ),
    FindingRule(
        "system",
        "task_stuck",
        _WARNING,
        level(Probe("system", ("disk_sleep_longest",)), 120, 120, enter=1),
        "a process has been in state D for {value} s",
        "A task waits for a device or file server that does not answer, and cannot be killed.",
        "ps -eo state,pid,wchan:30,cmd | grep ^D names it; look at its disk or mount.",
    ),
    FindingRule(
        "system",
        "zombies",
        _WARNING,
        level(Probe("system", ("processes",), (("state", "zombie"),)), 100, 80, enter=2),
        "{value} processes have ended and nobody collects them",
        "A parent does not wait for its children; they hold process numbers.",
        "ps -eo state,ppid | grep ^Z names the parent.",
    ),
    FindingRule(
        "system",
        "file_handles_short",
        _WARNING,
        level(Probe("system", ("file_handles_usage",)), 90, 85, enter=2),
        "{value} % of all file handles are in use",
        "When there are none left, no program can open a file or socket.",
        "Find who holds them (lsof), or raise fs.file-max.",
    ),
    FindingRule(
        "system",
        "pids_short",
        _WARNING,
        level(Probe("system", ("pid_usage",)), 90, 85, enter=2),
        "{value} % of all process numbers are in use",
        "When there are none left, no program can start.",
        "Find who starts them, or raise kernel.pid_max and kernel.threads-max.",
    ),
    FindingRule(
        "system",
        "tainted_by_machine_check",
        _WARNING,
        state("system", "kernel_taint", where=(("flags", "*machine_check*"),), enter=1),
        "the kernel has seen a machine check since boot",
        "The hardware reported an error at some time since boot.",
        "Read the machine checks (ras-mc-ctl --errors, journalctl -k); it clears at the next boot.",
    ),
    FindingRule(
        "system",
        "tainted_by_oops",
        _WARNING,
        state("system", "kernel_taint", where=(("flags", "*oops*"),), enter=1),
        "the kernel has faulted since boot",
        "The kernel killed one of its own tasks and went on; what it held may be stuck.",
        "Read the trace (journalctl -k -g Oops) and reboot the node.",
    ),
    FindingRule(
        "system",
        "kernel_oops",
        _CRITICAL,
        _event("oops", "critical", DAY_S),
        "the kernel itself faulted {value} times within 24 h",
        "The kernel killed one of its own tasks and went on; what it held may be stuck.",
        "Read the trace (journalctl -k -g Oops) and reboot the node.",
    ),
    FindingRule(
        "system",
        "soft_lockup",
        _CRITICAL,
        _event("soft_lockup", "critical", HOUR_S),
        "a processor was stuck in the kernel {value} times within 1 h",
        "A processor did not schedule for longer than its watchdog allows.",
        _LOG_REMEDY,
    ),
    FindingRule(
        "system",
        "hard_lockup",
        _CRITICAL,
        _event("hard_lockup", "critical", HOUR_S),
        "a processor took no interrupts, {value} times within 1 h",
        "A processor was dead to interrupts for longer than its watchdog allows.",
        _LOG_REMEDY,
    ),
    FindingRule(
        "system",
        "rcu_stall",
        _CRITICAL,
        _event("rcu_stall", "critical", HOUR_S),
        "the kernel reported {value} RCU stalls within 1 h",
        "A processor or task held up all others that wait for it.",
        _LOG_REMEDY,
    ),
    FindingRule(
        "system",
        "hung_task",
        _WARNING,
        _event("hung_task", "warning", HOUR_S),
        "the kernel reported {value} hung tasks within 1 h",
        "A task waited in state D for longer than kernel.hung_task_timeout_secs.",
        "The kernel log names task and stack; look at its disk or mount.",
    ),
    FindingRule(
        "system",
        "firmware_error",
        _CRITICAL,
        _event("firmware_error", "critical", DAY_S),
        "firmware reported {value} fatal hardware errors within 24 h",
        "The platform firmware found an error that hardware could not correct (APEI).",
        _LOG_REMEDY,
    ),
    FindingRule(
        "system",
        "pcie_fatal",
        _CRITICAL,
        grown("system", "pcie_errors_total", DAY_S, "severity", where=(("severity", "fatal"),)),
        "{value} fatal PCIe errors within 24 h",
        "A PCIe link or device failed (AER).",
        "pcie_device_errors_total and the kernel log name the device; reseat or replace it.",
    ),
    FindingRule(
        "system",
        "pcie_nonfatal",
        _WARNING,
        grown("system", "pcie_errors_total", DAY_S, "severity", where=(("severity", "nonfatal"),)),
        "{value} uncorrected PCIe errors within 24 h",
        "A PCIe transfer was lost (AER).",
        "pcie_device_errors_total and the kernel log name the device.",
    ),
)

_ACCELERATORS = (
    tuple(
        FindingRule(
            kind,
            "card_lost",
            _CRITICAL,
            state("derived", f"{kind}_lost", "card", enter=1),
            f"{kind.upper()} {{card}} answered before and is silent while others answer",
            "A card fell off the bus, or its driver gave it up.",
            "Read the kernel log (journalctl -k); reset the card or restart the node.",
        )
        for kind in ("gpu", "npu")
    )
    + tuple(
        FindingRule(
            kind,
            "straggler",
            _WARNING,
            state("derived", f"{kind}_straggler", "device", enter=1),
            "{device} lags behind its peers: {what} is {own}, theirs {peers} (robust z {z})",
            "Of devices at one work, one is slower, hotter or longer at it in three windows of a minute: all wait for it.",
            "Look at its temperature, clock and links beside those of its peers; nodeproof straggler reads KPI files.",
        )
        for kind in ("gpu", "npu")
    )
    + tuple(
        FindingRule(
            "gpu",
            kind,
            _CRITICAL,
            _event(kind, "critical", HOUR_S),
            f"the driver reported {{value}} grave errors ({kind.upper()}) within 1 h",
            "The GPU driver reported an error that a job does not survive.",
            "The kernel log names device and code (journalctl -k -g NVRM).",
        )
        for kind in ("xid", "sxid")
    )
)

_DAEMON = (
    FindingRule(
        "daemon",
        "component_stale",
        _WARNING,
        state("derived", "component_stale", "component", enter=1),
        "component {component} has had no fresh reading for too long: it could not be told",
        "A collector hangs or has died; what it last read is not believed any more.",
        "See what it waits for (nodeproof doctor, the daemon's log).",
    ),
    FindingRule(
        "daemon",
        "collector_hung",
        _WARNING,
        level(Probe("daemon", ("collector_hung",), entity=("collector",)), 0, 0, enter=1),
        "collector {collector} has overrun its deadline by {value} s",
        "A file or tool that it reads does not answer.",
        "See what it waits for (nodeproof doctor, the daemon's log).",
    ),
    FindingRule(
        "daemon",
        "collector_failing",
        _WARNING,
        state("daemon", "collector_failing", "collector", enter=1),
        "collector {collector} fails: what it observes cannot be told",
        "A collector raised an error, returned rubbish, or could not be loaded.",
        "The daemon's log and the snapshot of its component (missing) have the error.",
    ),
    FindingRule(
        "daemon",
        "not_written",
        _WARNING,
        state("daemon", "sink_failing", "sink", enter=2),
        "what the daemon writes ({sink}) cannot be written: it is not on record",
        "A file of the daemon's own cannot be written: the disk is full or read-only, or the directory is not its own any more.",
        "The daemon's log names file and error; make room, or give storage.data_dir or snapshot.dir another place.",
    ),
)

RULES: tuple[FindingRule, ...] = (*_CPU, *_MEMORY, *_SYSTEM, *_ACCELERATORS, *_DAEMON)
"""Rules of this module."""
