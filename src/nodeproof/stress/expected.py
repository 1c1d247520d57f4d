"""What this box should reach, out of what can be read of it; where nothing can be said, why (``nodeproof.stress.bounds``)."""

import contextlib

from nodeproof.collectors.services.smbios import Smbios
from nodeproof.errors import NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.sources import cpu_isa, cpu_list, proc_cpuinfo
from nodeproof.stress.bounds import CpuFacts, Range, compute_bound, fastest_flops, memory_bound
from nodeproof.stress.sizing import BoxFacts

__all__ = ["cpu_facts", "expected_range", "fastest_rate", "judge_range"]

_CPUFREQ = "/sys/devices/system/cpu/cpu0/cpufreq/{name}"
_SIBLINGS = "/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
_MEGA = 1e6
_SCALE = {"hpl": 1e9, "stream": 1e6}
"""Operations and bytes a second in one unit of the benchmark's value."""


def cpu_facts(machine: Machine, cpus: int) -> CpuFacts:
    """What is known of the processors; ``cpus`` logical ones may be used. Never raises."""
    text = b""
    with contextlib.suppress(NoData):
        text = machine.files.read("/proc/cpuinfo")
    try:
        isa, info = cpu_isa.parse(text), proc_cpuinfo.parse(text)
    except ParseError:
        return CpuFacts(cores=cpus)
    base, highest = _hertz(machine, "base_frequency"), _hertz(machine, "cpuinfo_max_freq")
    if base is None and isa.mhz is not None:
        base = isa.mhz * _MEGA
    return CpuFacts(
        cores=max(1, cpus // _threads_a_core(machine)),
        vendor=isa.vendor,
        family=isa.family,
        model=isa.model,
        flags=isa.flags,
        arm_parts=isa.arm_parts,
        base_hz=base,
        highest_hz=highest,
        virtual=info.hypervisor is True,
    )


def expected_range(machine: Machine, benchmark: str, cpus: int) -> Range | None:
    """Range of the compared value of ``benchmark``, in its own unit; None for those without a bound."""
    if benchmark == "hpl":
        found = compute_bound(cpu_facts(machine, cpus))
    elif benchmark == "stream":
        found = memory_bound(_transfers(machine), virtual=cpu_facts(machine, cpus).virtual)
    else:
        return None
    scale = _SCALE[benchmark]
    return Range(
        low=found.low / scale if found.low is not None else None,
        high=found.high / scale if found.high is not None else None,
        reason=found.reason,
    )


def fastest_rate(machine: Machine, facts: BoxFacts) -> float | None:
    """Operations a second that this box cannot exceed, for sizes; None when nothing is known."""
    return fastest_flops(cpu_facts(machine, facts.allowed_cpus))


def judge_range(value: float, expected: Range) -> str:
    """What the range says of ``value``, in words."""
    if expected.low is None or expected.high is None:
        return f"no expectation: {expected.reason}"
    span = f"{expected.low:.4g} to {expected.high:.4g} ({expected.reason})"
    if value > expected.high:
        return f"{value:.4g} is more than the box can reach, {span}: see how it was measured"
    if value < expected.low:
        return f"{value:.4g} is {value / expected.low:.0%} of the least that is expected of the box, {span}"
    return f"{value:.4g} is within what is expected of the box, {span}"


def _hertz(machine: Machine, name: str) -> float | None:
    with contextlib.suppress(NoData):
        return machine.files.read_int(_CPUFREQ.format(name=name)) * 1000.0
    return None


def _threads_a_core(machine: Machine) -> int:
    with contextlib.suppress(NoData, ParseError):
        return max(1, len(cpu_list.parse(machine.files.read(_SIBLINGS.format(cpu=0)))))
    return 1


def _transfers(machine: Machine) -> list[float]:
    try:
        modules = machine.shared(Smbios).tables().memory_modules
    except (NoData, ParseError):
        return []
    return [module.configured_speed_mts * _MEGA for module in modules if module.size_bytes and module.configured_speed_mts]
