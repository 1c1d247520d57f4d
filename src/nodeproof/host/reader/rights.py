"""The whole of what may be asked for: files by their exact form, commands by their exact form. Nothing here takes a free path."""

import re
from collections.abc import Sequence

__all__ = ["OWN_FIRST", "SOCKET", "may_open", "may_run", "subject_of"]

SOCKET = "/run/nodeproof-reader.sock"
"""Where the reader listens; its mode says who may ask."""
_FILES = tuple(
    re.compile(pattern)
    for pattern in (
        r"/dev/kmsg",
        r"/sys/firmware/dmi/tables/(DMI|smbios_entry_point)",
        r"/sys/class/dmi/id/(product_serial|product_uuid|board_serial|chassis_serial)",
        r"/sys/class/powercap/[a-z0-9:-]{1,64}/(energy_uj|max_energy_range_uj)",
        r"/sys/devices/virtual/powercap/[a-z0-9:/-]{1,128}/(energy_uj|max_energy_range_uj)",
    )
)
_DISK = r"/dev/(sd[a-z]{1,3}|nvme[0-9]{1,3}(n[0-9]{1,3})?)"
_SMARTCTL = (r"--json=c -n standby -x", r"-n standby -H -A")
_IPMITOOL = (
    r"sdr elist|sensor|sensor list",
    r"sdr type Power Supply",
    r"dcmi power reading",
    r"chassis status",
    r"sel info",
    r"sel elist last [0-9]{1,5}",
)
_NPU_SMI = (
    r"info",
    r"info -m",
    r"info -t topo",
    r"info -t (common|usages|memory|ecc|health) -i [0-9]{1,4}",
    r"info -t hccs-bw -i [0-9]{1,4} -c [0-9]{1,2} -time 50",
)
_COMMANDS = {
    "smartctl": re.compile(rf"({'|'.join(_SMARTCTL)}) {_DISK}"),
    "ipmitool": re.compile("|".join(_IPMITOOL)),
    "npu-smi": re.compile("|".join(_NPU_SMI)),
    "hccn_tool": re.compile(r"-i [0-9]{1,4} -(bandwidth|link|speed|stat) -g"),
    "dmidecode": re.compile(r"--type [0-9]{1,3}(,[0-9]{1,3}){0,15}"),
}

OWN_FIRST = frozenset({"npu-smi", "hccn_tool"})
"""Programs that work for a member of the driver's group, or not, by their version: asked with one's own rights first."""


def may_open(path: str) -> bool:
    """Whether ``path`` is on the list; a name with ``..`` never is."""
    return ".." not in path and any(pattern.fullmatch(path) for pattern in _FILES)


def may_run(argv: Sequence[str]) -> bool:
    """Whether the command is on the list, word for word."""
    pattern = _COMMANDS.get(argv[0]) if argv else None
    words = argv[1:]
    return pattern is not None and pattern.fullmatch(" ".join(words)) is not None


def subject_of(argv: Sequence[str]) -> str:
    """The device a command works on; empty when it names none."""
    if argv and argv[-1].startswith("/dev/"):
        return argv[-1]
    return f"NPU {argv[argv.index('-i') + 1]}" if "-i" in argv[:-1] and argv[0] in OWN_FIRST else ""
