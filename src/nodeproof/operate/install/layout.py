"""What an installation consists of on this machine, step by step."""

import os
import stat
from collections.abc import Mapping

import msgspec

import nodeproof
from nodeproof.operate.install.steps import FileStep, InstallError, RunStep, Step
from nodeproof.operate.install.templates import template

__all__ = ["CONFIG", "SERVICES", "Site", "check_program", "found_devices", "steps"]

CONFIG = "/etc/nodeproof/nodeproof.yaml"
SERVICES: dict[str, tuple[str, ...]] = {
    "daemon": ("nodeproof.service",),
    "reader": ("nodeproof-reader.socket", "nodeproof-reader.service"),
    "runner": ("nodeproof-runner.service", "nodeproof-jobs.slice"),
    "web": ("nodeproof-web.service",),
}
"""Units of each part; the first one of each is enabled."""
_READER_DROP_INS = ("kmsg", "smart", "ipmi")
_WORLD_MAY_PASS = stat.S_IXOTH
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_A_PLACE = (
    "install into a place of its own, as root: python3 -m venv /opt/nodeproof && /opt/nodeproof/bin/pip install nodeproof,"
    " and run install from there"
)
_DEVICES = {"nvidia": "/dev/nvidiactl", "amd": "/dev/kfd", "ascend": "/dev/davinci_manager"}
"""Drop-in of the daemon's unit, and the device that asks for it."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Where and what to install."""

    program: str
    """Absolute path of ``nodeproof``."""
    root: str = ""
    """Put before each path: a staging directory; empty = this machine."""
    services: tuple[str, ...] = tuple(SERVICES)
    devices: tuple[str, ...] = ()
    """Drop-ins for accelerators, see :func:`found_devices`."""
    start: bool = True
    pages: Mapping[str, str] = {}
    """Man pages and completions by path, printed from the command line."""


def steps(site: Site) -> list[Step]:
    """In the order in which they are made. Raises InstallError for a service that there is none of."""
    unknown = [name for name in site.services if name not in SERVICES]
    if unknown:
        raise InstallError(f"{', '.join(unknown)}: no such part; there are {', '.join(SERVICES)}")
    here = not site.root
    result: list[Step] = []
    if here and site.start:
        result.append(RunStep(argv=(), why="forget the units", undo=("systemctl", "daemon-reload")))
    result += [
        _file(site, "/usr/lib/sysusers.d/nodeproof.conf", template("sysusers.conf"), "users without shell or home"),
        _file(site, "/usr/lib/tmpfiles.d/nodeproof.conf", template("tmpfiles.conf"), "directories with their owners"),
        FileStep(
            path=f"{site.root}{CONFIG}", text=template("nodeproof.yaml"), why="configuration; yours once it is there", keep=True
        ),
        *_units(site),
        *(_file(site, path, text, "manual or completion") for path, text in sorted(site.pages.items())),
    ]
    if here:
        result += [
            RunStep(argv=("systemd-sysusers", "/usr/lib/sysusers.d/nodeproof.conf"), why="make the users"),
            RunStep(argv=("systemd-tmpfiles", "--create", "/usr/lib/tmpfiles.d/nodeproof.conf"), why="make the directories"),
        ]
    if here and site.start:
        wanted = tuple(SERVICES[name][0] for name in site.services)
        result += [
            RunStep(argv=("systemctl", "daemon-reload"), why="read the units"),
            RunStep(
                argv=("systemctl", "enable", "--now", *wanted),
                why="start them now and at each boot",
                undo=("systemctl", "disable", "--now", *wanted),
            ),
        ]
    return result


def found_devices() -> tuple[str, ...]:
    """Accelerators of this machine, as drop-ins."""
    return tuple(name for name, path in _DEVICES.items() if os.path.exists(path))


def check_program(program: str) -> None:
    """Raises InstallError when a service's user could not run it, or somebody else than root could change what root runs."""
    if not os.access(program, os.X_OK):
        raise InstallError(f"{program} cannot be run; name the installed one with --program")
    path = os.path.realpath(program)
    package = os.path.dirname(os.path.realpath(nodeproof.__file__))
    for shown in (program, _interpreter(path), package):
        place = os.path.realpath(shown) if shown else "/"
        while place != "/":
            facts = os.stat(place)
            if stat.S_ISDIR(facts.st_mode) and not facts.st_mode & _WORLD_MAY_PASS:
                raise InstallError(f"{shown} lies below {place}, which users of a service may not enter; {_A_PLACE}")
            if facts.st_uid != 0 or (facts.st_mode & _OTHERS_WRITE and not facts.st_mode & stat.S_ISVTX):
                raise InstallError(
                    f"{place} can be changed by others than root, and a service of root's would run it; {_A_PLACE}"
                )
            place = os.path.dirname(place)


def _interpreter(path: str) -> str:
    """What the first line of a script names; empty when it is none."""
    try:
        with open(path, "rb") as file:
            first = file.readline(512)
    except OSError:
        return ""
    words = first.removeprefix(b"#!").split() if first.startswith(b"#!") else []
    return words[0].decode("utf-8", "replace") if words else ""


def _units(site: Site) -> list[Step]:
    result: list[Step] = []
    for service in site.services:
        for unit in SERVICES[service]:
            text = template(unit, program=site.program, config=CONFIG)
            result.append(_file(site, f"/etc/systemd/system/{unit}", text, f"unit of the {service}"))
    drop_ins = [f"nodeproof-reader.service.d/{name}.conf" for name in _READER_DROP_INS if "reader" in site.services]
    if "reader" in site.services and "ascend" in site.devices:
        drop_ins.append("nodeproof-reader.service.d/ascend.conf")
    drop_ins += [f"nodeproof.service.d/{name}.conf" for name in site.devices if "daemon" in site.services]
    result += [_file(site, f"/etc/systemd/system/{name}", template(name), "a right, with its reason") for name in drop_ins]
    return result


def _file(site: Site, path: str, text: str, why: str) -> FileStep:
    return FileStep(path=f"{site.root}{path}", text=text, why=why)
