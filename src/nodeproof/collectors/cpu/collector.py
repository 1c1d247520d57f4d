"""Component cpu."""

from nodeproof.collectors.base import Collector, Group, GroupCollector, Selection
from nodeproof.collectors.cpu import cores, faults, frequency, sensors, times, topology
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue.cpu import ADVISORY_PERIOD_S, ZONE_PERIOD_S
from nodeproof.model.catalogue.cpu_hardware import FREQUENCY_PERIOD_S, SENSOR_PERIOD_S, STATIC_PERIOD_S, THROTTLE_PERIOD_S

__all__ = ["create"]


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    layout = topology.Topology(machine)
    frequencies = frequency.Frequencies(machine)
    groups = (
        Group(times.STAT, times.Times(machine).read),
        Group(times.LOAD, times.Load(machine).read),
        Group(cores.PRESSURE, cores.Stalls(machine).read),
        Group(faults.MACHINE_CHECKS, faults.MachineChecks(machine).read),
        Group(cores.CORES, cores.Cores(machine).read, FREQUENCY_PERIOD_S),
        Group(cores.LIMITS, cores.Limits(machine).read, FREQUENCY_PERIOD_S),
        Group(frequency.CURRENT, frequencies.current, FREQUENCY_PERIOD_S),
        Group(sensors.SENSORS, sensors.Sensors(machine).read, SENSOR_PERIOD_S),
        Group(faults.THROTTLING, faults.Throttling(machine).read, THROTTLE_PERIOD_S),
        Group(topology.TOPOLOGY, layout.counts, STATIC_PERIOD_S),
        Group(topology.MODEL, layout.model, STATIC_PERIOD_S),
        Group(topology.NODES, layout.nodes, STATIC_PERIOD_S),
        Group(topology.CACHES, layout.caches, STATIC_PERIOD_S),
        Group(topology.SMT, layout.smt, STATIC_PERIOD_S),
        Group(frequency.HARDWARE, frequencies.hardware, STATIC_PERIOD_S),
        Group(frequency.GOVERNORS, frequencies.governors, STATIC_PERIOD_S),
        Group(frequency.BOOST, frequencies.boost, STATIC_PERIOD_S),
        Group(topology.ZONES, layout.zones, ZONE_PERIOD_S),
        Group(topology.MICROCODE, layout.microcode, ADVISORY_PERIOD_S),
        Group(topology.VULNERABILITIES, layout.vulnerabilities, ADVISORY_PERIOD_S),
    )
    return GroupCollector("cpu", groups, machine, selection)
