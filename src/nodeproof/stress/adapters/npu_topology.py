"""Which devices NPU Burn will see, and whether those are the ones that are there (stress.md 3.5).

Asked on the host, or inside the administrator's container, and never the one in place of the other: a container that does not
answer is a failure. Only the counts of accelerators on the bus and of device nodes must match; their numbers differ.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nodeproof.errors import CommandError, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.job import CheckStatus
from nodeproof.sources import lspci_accelerators
from nodeproof.stress.adapters.npu_burn_settings import NpuBurnSettings, choose_devices
from nodeproof.stress.preflight import Finding

__all__ = ["Topology", "look"]

_DEADLINE_S = 20.0
_NODE = re.compile(r"davinci(\d{1,4})", re.ASCII)
_LOCAL = "localhost/"
"""What Podman puts before the name of an image that came from no registry."""
_INSPECT = "{{.State.Running}} {{.Config.Image}}"


class Topology(NamedTuple):
    """What was found."""

    addresses: tuple[str, ...]
    """On the bus, by logical id."""
    nodes: tuple[int, ...]
    """Numbers of the device nodes."""
    devices: tuple[int, ...]
    """Logical ids to be burnt."""
    source: str
    """``device_nodes`` or ``container_lspci``."""
    findings: tuple[Finding, ...]


def look(settings: NpuBurnSettings, machine: Machine) -> Topology:
    """Look at bus, device nodes and container. Changes nothing; never raises."""
    findings: list[Finding] = []
    addresses: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()
    inside = settings.in_container
    try:
        if inside:
            findings += _container(settings, machine)
        if not findings:
            addresses = lspci_accelerators.parse(_run(settings, machine, ("lspci", "-D", "-d", "19e5:")))
            nodes = _nodes(settings, machine)
    except _Failed as failure:
        findings.append(failure.finding)
    if not findings:
        findings += _counts(settings, addresses, nodes)
    devices, problem = choose_devices(settings.devices, tuple(range(len(addresses)))) if addresses else ((), "")
    if problem:
        findings.append(_failed("npu_devices", f"NPU_BURN_DEVICE: {problem}", "set it to all, or to logical ids such as 0,1"))
    return Topology(addresses, nodes, devices, "container_lspci" if inside else "device_nodes", tuple(findings))


class _Failed(Exception):  # noqa: N818 - it carries a finding
    """Something could not be asked."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(finding.message)


def _container(settings: NpuBurnSettings, machine: Machine) -> Iterator[Finding]:
    argv = (settings.runtime, "inspect", "--format", _INSPECT, settings.container)
    said = _output(machine, argv, "npu_container", "start the container").decode("utf-8", "replace").strip()
    running, _, image = said.partition(" ")
    if running != "true":
        yield _failed(
            "npu_container", f"container {settings.container} does not run", "start it; nodeproof never starts it itself"
        )
    elif image.removeprefix(_LOCAL) != settings.image.removeprefix(_LOCAL):
        text = f"container {settings.container} runs image {image[:120]}, not {settings.image[:120]}"
        yield _failed("npu_container", text, "make the container anew from the image that is meant, or name its image")


def _nodes(settings: NpuBurnSettings, machine: Machine) -> tuple[int, ...]:
    root = settings.device_root
    if settings.in_container:
        names = _run(settings, machine, ("ls", "-1", root)).decode("utf-8", "replace").split()
    else:
        try:
            names = machine.files.names(root)
        except NoData as absence:
            raise _Failed(_failed("npu_devices", f"{root}: {absence.reason}", "set NPU_BURN_DEVICE_ROOT")) from None
    return tuple(sorted(int(found[1]) for name in names if (found := _NODE.fullmatch(name))))


def _counts(settings: NpuBurnSettings, addresses: Sequence[str], nodes: Sequence[int]) -> Iterator[Finding]:
    where = f"in container {settings.container}" if settings.in_container else "here"
    if not addresses:
        text = f"lspci shows no accelerator of Huawei {where}; NPU Burn would take it for eight"
        yield _failed("npu_devices", text, "see whether the cards are on the bus; mount /sys/bus/pci into the container")
    elif len(addresses) != len(nodes):
        text = f"{len(addresses)} accelerators on the bus and {len(nodes)} device nodes in {settings.device_root} {where}"
        yield _failed("npu_devices", text, "load the driver on every card, or pass every device into the container")


def _run(settings: NpuBurnSettings, machine: Machine, argv: tuple[str, ...]) -> bytes:
    if settings.in_container:
        return _output(machine, (settings.runtime, "exec", settings.container, *argv), "npu_devices", "see the container's log")
    if machine.commands.find(argv[0]) is None:
        text = f"{argv[0]} is not installed; without it NPU Burn takes every node for one of eight devices"
        raise _Failed(_failed("npu_devices", text, "install pciutils"))
    return _output(machine, argv, "npu_devices", "see whether it works in a shell")


def _output(machine: Machine, argv: tuple[str, ...], check: str, fix: str) -> bytes:
    try:
        result = machine.commands.run(argv, deadline_s=_DEADLINE_S)
    except CommandError as error:
        raise _Failed(_failed(check, str(error), fix)) from None
    if result.exit_code:
        said = result.first_error_line() or f"exit status {result.exit_code}"
        raise _Failed(_failed(check, f"{' '.join(argv[:3])}: {said}", fix))
    return result.stdout


def _failed(check: str, message: str, fix: str) -> Finding:
    return Finding(check=check, status=CheckStatus.FAIL, message=message, fix=fix)
