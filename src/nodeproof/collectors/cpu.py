"""Component cpu."""

from nodeproof.collectors import cpu_cores, cpu_faults, cpu_frequency, cpu_sensors, cpu_times, cpu_topology
from nodeproof.collectors.base import Collector, Group, GroupCollector, Selection
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue.cpu import ADVISORY_PERIOD_S, ZONE_PERIOD_S
from nodeproof.model.catalogue.cpu_hardware import FREQUENCY_PERIOD_S, SENSOR_PERIOD_S, STATIC_PERIOD_S, THROTTLE_PERIOD_S

__all__ = ["create"]


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    topology = cpu_topology.Topology(machine)
    frequencies = cpu_frequency.Frequencies(machine)
    groups = (
        Group(cpu_times.STAT, cpu_times.Times(machine).read),
        Group(cpu_times.LOAD, cpu_times.Load(machine).read),
        Group(cpu_cores.PRESSURE, cpu_cores.Stalls(machine).read),
        Group(cpu_faults.MACHINE_CHECKS, cpu_faults.MachineChecks(machine).read),
        Group(cpu_cores.CORES, cpu_cores.Cores(machine).read, FREQUENCY_PERIOD_S),
        Group(cpu_cores.LIMITS, cpu_cores.Limits(machine).read, FREQUENCY_PERIOD_S),
        Group(cpu_frequency.CURRENT, frequencies.current, FREQUENCY_PERIOD_S),
        Group(cpu_sensors.SENSORS, cpu_sensors.Sensors(machine).read, SENSOR_PERIOD_S),
        Group(cpu_faults.THROTTLING, cpu_faults.Throttling(machine).read, THROTTLE_PERIOD_S),
        Group(cpu_topology.TOPOLOGY, topology.counts, STATIC_PERIOD_S),
        Group(cpu_topology.MODEL, topology.model, STATIC_PERIOD_S),
        Group(cpu_topology.NODES, topology.nodes, STATIC_PERIOD_S),
        Group(cpu_topology.CACHES, topology.caches, STATIC_PERIOD_S),
        Group(cpu_topology.SMT, topology.smt, STATIC_PERIOD_S),
        Group(cpu_frequency.HARDWARE, frequencies.hardware, STATIC_PERIOD_S),
        Group(cpu_frequency.GOVERNORS, frequencies.governors, STATIC_PERIOD_S),
        Group(cpu_frequency.BOOST, frequencies.boost, STATIC_PERIOD_S),
        Group(cpu_topology.ZONES, topology.zones, ZONE_PERIOD_S),
        Group(cpu_topology.MICROCODE, topology.microcode, ADVISORY_PERIOD_S),
        Group(cpu_topology.VULNERABILITIES, topology.vulnerabilities, ADVISORY_PERIOD_S),
    )
    return GroupCollector("cpu", groups, machine, selection)
