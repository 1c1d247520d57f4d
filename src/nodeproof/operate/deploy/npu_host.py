"""What an Ascend node has that a container is given: device nodes and the driver's own files (stress.md 8.2, 8.3)."""

import os
import re
import stat

import msgspec

from nodeproof.operate.deploy.problems import DeployError

__all__ = ["CONTROL_DEVICES", "DRIVER_PATHS", "NpuHost", "discover"]

CONTROL_DEVICES = ("davinci_manager", "devmm_svm", "hisi_hdc")
DRIVER_PATHS = (
    "/usr/local/Ascend/driver/lib64",
    "/usr/local/Ascend/driver/version.info",
    "/etc/ascend_install.info",
    "/usr/local/dcmi",
    "/usr/local/bin/npu-smi",
)
"""What is mounted, read-only. ``lspci`` is not among them: it needs libraries of its own system, so it comes with the image."""
_NODE = re.compile(r"davinci(\d{1,4})", re.ASCII)


class NpuHost(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    devices: tuple[str, ...]
    """Device nodes as the container gets them, accelerators first, in order of their numbers."""
    accelerators: int
    """How many of them are accelerators."""
    files: tuple[str, ...]
    groups: tuple[int, ...]
    """Groups, other than root's, to whom the device nodes belong."""


def discover(host_root: str = "/", device_root: str = "/dev") -> NpuHost:
    """Look at device nodes and driver. Raises DeployError that names everything that is missing."""
    root = host_root.rstrip("/")
    try:
        names = os.listdir(device_root)
    except OSError as error:
        raise DeployError(f"{device_root}: {os.strerror(error.errno or 0)}") from None
    numbers = sorted(int(found[1]) for name in names if (found := _NODE.fullmatch(name)))
    missing = [] if numbers else [f"{device_root}/davinciN: no accelerator"]
    missing += [f"{device_root}/{name}" for name in CONTROL_DEVICES if name not in names]
    missing += [f"{root}{path}" for path in DRIVER_PATHS if not os.path.exists(f"{root}{path}")]
    if missing:
        raise DeployError(f"this is no node with a working Ascend driver: there is no {'; no '.join(missing)}")
    nodes = [*(f"davinci{number}" for number in numbers), *CONTROL_DEVICES]
    return NpuHost(
        devices=tuple(f"/dev/{name}" for name in nodes),
        accelerators=len(numbers),
        files=DRIVER_PATHS,
        groups=tuple(sorted({gid for name in nodes if (gid := _group(os.path.join(device_root, name)))})),
    )


def _group(path: str) -> int:
    """The group of a node that others than root may only use as its members; 0 = there is none."""
    facts = os.stat(path)
    return facts.st_gid if not facts.st_mode & stat.S_IWOTH else 0
