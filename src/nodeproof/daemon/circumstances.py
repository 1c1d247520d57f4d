"""What the daemon needs besides readings: configuration, directories, its port, tools, the kernel log; each tried now."""

import contextlib
import os
from enum import StrEnum

import msgspec

from nodeproof.collectors.services.block_devices import BlockDevices
from nodeproof.collectors.services.kernel_log import KernelLog
from nodeproof.config.schema import Config
from nodeproof.daemon.assembly import CollectorEntry
from nodeproof.daemon.once import Observation
from nodeproof.errors import AddressInUseError, NoData, NodeproofError, WriteError
from nodeproof.host.append import free_bytes
from nodeproof.host.machine import Machine
from nodeproof.host.probe import try_listening, try_writing
from nodeproof.host.users import user_name
from nodeproof.model.snapshot import DaemonState, DaemonVerdict
from nodeproof.sinks.jsonl_files import Limits
from nodeproof.sinks.snapshot_reader import read_state

__all__ = ["Check", "Standing", "circumstances"]

_BELOW = "see below, with what it costs"
_BMC_DEVICES = ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0")


class Standing(StrEnum):
    """How one of them stands."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing is lost by it."""
    BAD = "bad"
    """Something does not work."""


class Check(msgspec.Struct, frozen=True):
    """One of them."""

    item: str
    standing: Standing
    detail: str
    remedy: str = ""


def circumstances(config: Config, entries: list[CollectorEntry], machine: Machine, seen: Observation) -> list[Check]:
    """All of them. ``machine`` is the one that ``seen`` was seen on, not yet closed."""
    state = read_state(config.snapshot.dir)
    return [
        *_configuration(config, entries),
        *_directories(config),
        _daemon(config, state),
        _port(config, state),
        *_tools(machine),
        _kernel_log(machine),
        _clock(seen),
        *_collectors(seen),
    ]


def _configuration(config: Config, entries: list[CollectorEntry]) -> list[Check]:
    off = [entry.name for entry in entries if not entry.enabled]
    detail = config.source + (f"; switched off: {', '.join(off)}" if off else "")
    checks = [Check("configuration", Standing.OK, detail)]
    checks += [Check("configuration", Standing.NOTE, warning, "take the key out") for warning in config.warnings]
    checks += [
        Check("plug-in", Standing.BAD, entry.problem, f"mend or remove it, or set collectors.{entry.name}.enabled: false")
        for entry in entries
        if entry.problem
    ]
    return checks


def _directories(config: Config) -> list[Check]:
    checks = []
    for item, enabled, path in (
        ("snapshot directory", config.snapshot.enabled, config.snapshot.dir),
        ("data directory", config.storage.enabled, config.storage.data_dir),
    ):
        if not enabled:
            checks.append(Check(item, Standing.NOTE, "switched off in the configuration"))
            continue
        try:
            try_writing(path)
        except WriteError as error:
            checks.append(Check(item, Standing.BAD, f"{error.path}: {error.reason}", error.remedy))
            continue
        there = os.path.isdir(path)
        checks.append(Check(item, Standing.OK, f"{path} {'can be written' if there else 'is not there yet and can be made'}"))
    return [_with_room(check, config) if check.item == "data directory" else check for check in checks]


def _with_room(check: Check, config: Config) -> Check:
    """Data files are not kept on a file system that is nearly full."""
    least = Limits().min_free_bytes
    free = free_bytes(config.storage.data_dir)
    if check.standing is not Standing.OK or free is None or free >= least:
        return check
    detail = f"{config.storage.data_dir}: {free >> 20} MiB free; nothing is kept below {least >> 20} MiB"
    return Check(check.item, Standing.BAD, detail, "free some space there, or set storage.data_dir to another file system")


def _daemon(config: Config, state: DaemonState) -> Check:
    if not config.snapshot.enabled:
        return Check("daemon", Standing.NOTE, "cannot be told: snapshots are switched off, and it is known by them")
    if state.verdict is DaemonVerdict.RUNNING:
        return Check("daemon", Standing.OK, f"running: {state.reason}{_other_user(state.evidence.lock_pid)}")
    if state.verdict in {DaemonVerdict.STARTING, DaemonVerdict.STOPPED, DaemonVerdict.ABSENT}:
        return Check("daemon", Standing.NOTE, f"{state.verdict}: {state.reason}", "nodeproof up")
    remedy = {
        DaemonVerdict.DEAD: "start it again (nodeproof up), and see its log for why it ended",
        DaemonVerdict.FROZEN: "see its log; end it and start it again",
    }.get(state.verdict, "run this as the user of the daemon, or give this user the right to read its directory")
    return Check("daemon", Standing.BAD, f"{state.verdict}: {state.reason}", remedy)


def _other_user(pid: int) -> str:
    """What this user can read says little of what another can."""
    with contextlib.suppress(OSError):
        owner = os.stat(f"/proc/{pid}").st_uid
        if owner != os.geteuid():
            return f"; it runs as {user_name(owner)}: ask as that user what it can read"
    return ""


def _port(config: Config, state: DaemonState) -> Check:
    settings = config.exporter
    if not settings.enabled:
        return Check("exporter", Standing.NOTE, "switched off in the configuration")
    try:
        try_listening(settings.address, "")
    except AddressInUseError as error:
        ours = state.fresh and f"(pid {state.evidence.lock_pid})" in error.holder
        if ours:
            return Check("exporter", Standing.OK, f"{settings.address} is the running daemon's")
        remedy = "stop that process, or set exporter.address to another one"
        if state.fresh and "another user" in error.holder:
            return Check("exporter", Standing.NOTE, f"{settings.address} is in use by {error.holder}; a daemon is running")
        return Check("exporter", Standing.BAD, f"{settings.address} is in use by {error.holder}", remedy)
    except NodeproofError as error:
        return Check("exporter", Standing.BAD, str(error).removesuffix("; "), "set exporter.address to one of this machine")
    return Check("exporter", Standing.OK, f"{settings.address} is free")


def _tools(machine: Machine) -> list[Check]:
    """Programs that are needed where there is hardware for them."""
    try:
        disks = [disk.name for disk in machine.shared(BlockDevices).disks().values() if not disk.virtual]
    except NoData:
        disks = []
    bmc = next((path for path in _BMC_DEVICES if machine.files.exists(path)), "")
    shown = ", ".join(disks[:4]) + (f" and {len(disks) - 4} more" if len(disks) > 4 else "")
    return [
        _tool(machine, "smartctl", f"disks {shown}" if disks else "", "no disk here could have SMART data"),
        _tool(machine, "ipmitool", bmc, "there is no BMC device"),
    ]


def _tool(machine: Machine, program: str, needed_for: str, otherwise: str) -> Check:
    path = machine.commands.find(program)
    if not needed_for:
        return Check(program, Standing.OK, f"not needed: {otherwise}")
    if path is None:
        return Check(program, Standing.BAD, f"is not installed, and is needed for {needed_for}", _BELOW)
    return Check(program, Standing.OK, f"{path}, for {needed_for}")


def _kernel_log(machine: Machine) -> Check:
    try:
        counts = machine.shared(KernelLog).counts()
    except NoData as absence:
        return Check("kernel log", Standing.BAD, absence.reason, _BELOW)
    since = (
        "read from boot on" if counts.complete else f"its ring begins {counts.since_s:.0f} s after boot; what was before is lost"
    )
    return Check("kernel log", Standing.OK if counts.complete else Standing.NOTE, since)


def _clock(seen: Observation) -> Check:
    batch = seen.batches.get("system")
    synced = [metric.value for metric in batch.metrics if metric.name == "clock_synced"] if batch is not None else []
    if synced:
        if synced[0] >= 1:
            return Check("clock", Standing.OK, "disciplined, as the kernel says (adjtimex)")
        remedy = "run chronyd (with rtcsync) or systemd-timesyncd"
        return Check("clock", Standing.NOTE, "the kernel says that nobody disciplines it (adjtimex)", remedy)
    absent = [entry for entry in batch.missing if entry.name in {"clock_synced", "*"}] if batch is not None else []
    if absent:
        return Check("clock", Standing.BAD, absent[0].reason, absent[0].remedy)
    return Check("clock", Standing.NOTE, "not asked: collector system is switched off")


def _collectors(seen: Observation) -> list[Check]:
    return [
        Check("collector", Standing.BAD, f"{name} {failure}", "report it to whoever made the collector")
        for name, failure in seen.failures.items()
    ]
