"""Who this machine is: specs that go into snapshots once, never into time series (observe.md 1.9)."""

from collections.abc import Callable, Iterable

from nodeproof.clock import rfc3339
from nodeproof.errors import NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels, Metric
from nodeproof.sources import os_release
from nodeproof.sources.smbios import meaningful

__all__ = ["Identity", "collect_hw_specs", "system_identity"]

Identity = Callable[[Machine], list[Metric]]
"""What each component offers: its identity, read now; quick, and an empty list where nothing can be told."""

_DMI = "/sys/class/dmi/id"
_DMI_LABELS = (
    ("manufacturer", "sys_vendor"),
    ("product_name", "product_name"),
    ("version", "product_version"),
    ("serial_number", "product_serial"),
)
_MODEL = "/proc/device-tree/model"
_RELEASES = ("/etc/os-release", "/usr/lib/os-release")
_MAX_CHARS = 200


def collect_hw_specs(machine: Machine, identities: Iterable[Identity]) -> list[Metric]:
    """The specs of every component, the system's own first. One that fails costs its own only.

    ``identities`` are the other components' functions; the composition root knows them.
    """
    specs = system_identity(machine)
    for identity in identities:
        try:
            specs += identity(machine)
        except Exception:  # noqa: BLE001, S112 - what cannot be told of one component is no reason to hide the others
            continue
    return specs


def system_identity(machine: Machine) -> list[Metric]:
    """``device_model`` and ``os_info`` as far as they can be read; no program is run."""
    timestamp = rfc3339(machine.clock.now().wall_s)
    found = (("device_model", _device_model(machine)), ("os_info", _os_info(machine)))
    return [Metric("system", name, 1.0, "", labels, timestamp) for name, labels in found if labels]


def _device_model(machine: Machine) -> Labels:
    labels = {label: text for label, file in _DMI_LABELS if (text := _text(machine, f"{_DMI}/{file}"))}
    if "product_name" not in labels and (model := _text(machine, _MODEL)):
        labels["product_name"] = model
    return labels


def _os_info(machine: Machine) -> Labels:
    labels: Labels = {}
    release = _release(machine)
    for label, key in (("pretty_name", "PRETTY_NAME"), ("version_id", "VERSION_ID")):
        if release.get(key):
            labels[label] = release[key]
    if kernel := _text(machine, "/proc/sys/kernel/osrelease"):
        labels["kernel"] = kernel
    return labels


def _release(machine: Machine) -> dict[str, str]:
    for path in _RELEASES:
        try:
            return os_release.parse(machine.files.read(path))
        except (NoData, ParseError):
            continue
    return {}


def _text(machine: Machine, path: str) -> str:
    try:
        return meaningful(machine.files.read_text(path).replace("\0", " "))[:_MAX_CHARS]
    except NoData:
        return ""
