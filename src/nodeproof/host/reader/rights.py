"""The whole of what may be asked for: files by their exact form, commands by their exact form. Nothing here takes a free path."""

import re
from collections.abc import Sequence

__all__ = ["SOCKET", "may_open", "may_run", "subject_of"]

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
_COMMANDS = {
    "smartctl": re.compile(rf"({'|'.join(_SMARTCTL)}) {_DISK}"),
    "ipmitool": re.compile("|".join(_IPMITOOL)),
    "dmidecode": re.compile(r"--type [0-9]{1,3}(,[0-9]{1,3}){0,15}"),
}


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
    return argv[-1] if argv and argv[-1].startswith("/dev/") else ""
