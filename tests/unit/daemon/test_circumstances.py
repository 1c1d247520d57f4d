"""What the daemon needs besides readings."""

import os
import socket
from pathlib import Path

import msgspec
import pytest

from nodeproof.config.loader import load_text
from nodeproof.config.schema import Config
from nodeproof.daemon import circumstances as module
from nodeproof.daemon.assembly import Absent, CollectorEntry
from nodeproof.daemon.circumstances import Check, Standing, circumstances
from nodeproof.daemon.once import Observation
from nodeproof.errors import Absence
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import recorded_machine
from nodeproof.host.users import user_name
from nodeproof.model.metric import Batch, Metric, Missing
from nodeproof.model.snapshot import DaemonState, DaemonVerdict, Evidence
from support.batches import health
from support.daemon import free_port
from support.kernel_log import record, write_log
from support.node import healthy
from support.observed import live_directory
from support.tree import write

NOTHING = Observation({}, {}, {})


@pytest.fixture
def config(tmp_path: Path) -> Config:
    text = f"""
snapshot: {{dir: {tmp_path}/snapshot}}
storage: {{data_dir: {tmp_path}/data}}
exporter: {{address: "127.0.0.1:{free_port()}"}}
"""
    return load_text("n.yaml", text.encode(), {})


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    root = str(tmp_path / "root")
    write(root, "/proc/uptime", "100 100")
    write_log(root, [record("hello", sequence=0)])
    return recorded_machine(root)


def checks(config: Config, machine: Machine, seen: Observation = NOTHING, *entries: CollectorEntry) -> dict[str, Check]:
    return {check.item: check for check in circumstances(config, list(entries), machine, seen)}


def changed(config: Config, **sections: dict[str, object]) -> Config:
    parts = {name: msgspec.structs.replace(getattr(config, name), **values) for name, values in sections.items()}
    return msgspec.structs.replace(config, **parts)


def test_all_well(config: Config, machine: Machine) -> None:
    found = checks(config, machine)
    assert found["configuration"] == Check("configuration", Standing.OK, "n.yaml")
    assert found["snapshot directory"].detail == f"{config.snapshot.dir} is not there yet and can be made"
    assert found["data directory"].standing is Standing.OK
    assert found["daemon"] == Check(
        "daemon", Standing.NOTE, f"absent: no daemon has written to {config.snapshot.dir}", "nodeproof up"
    )
    assert found["exporter"] == Check("exporter", Standing.OK, f"{config.exporter.address} is free")
    assert found["smartctl"].detail == "not needed: no disk here could have SMART data"
    assert found["ipmitool"].detail == "not needed: there is no BMC device"
    assert found["kernel log"] == Check("kernel log", Standing.OK, "read from boot on")
    assert found["clock"].detail == "not asked: collector system is switched off"
    assert not os.path.exists(config.snapshot.dir), "trying leaves nothing"
    assert not os.path.exists(config.storage.data_dir)


def test_configuration_with_dead_keys_and_a_broken_plug_in(config: Config, machine: Machine) -> None:
    odd = msgspec.structs.replace(config, warnings=("n.yaml:3: server.type: has no effect",))
    off = CollectorEntry("gpu", Absent("gpu", ""), 3.0, None, enabled=False)
    broken = CollectorEntry("fans", Absent("fans", "x"), 60.0, None, enabled=True, problem="plug-in fans cannot be loaded")
    found = circumstances(odd, [off, broken], machine, NOTHING)
    assert found[0].detail == "n.yaml; switched off: gpu"
    assert found[1] == Check("configuration", Standing.NOTE, "n.yaml:3: server.type: has no effect", "take the key out")
    assert (found[2].item, found[2].standing, found[2].detail) == ("plug-in", Standing.BAD, "plug-in fans cannot be loaded")


def test_directories_that_cannot_be_written(config: Config, machine: Machine) -> None:
    found = checks(changed(config, snapshot={"dir": "/proc/none"}, storage={"data_dir": "/proc/none"}), machine)
    assert found["snapshot directory"].standing is Standing.BAD
    assert found["snapshot directory"].detail.startswith("/proc: ")
    assert found["data directory"].standing is Standing.BAD


def test_what_is_switched_off_is_said(config: Config, machine: Machine) -> None:
    off = changed(config, snapshot={"enabled": False}, storage={"enabled": False}, exporter={"enabled": False})
    found = checks(off, machine)
    for item in ("snapshot directory", "data directory", "exporter"):
        assert found[item] == Check(item, Standing.NOTE, "switched off in the configuration")
    assert found["daemon"].detail == "cannot be told: snapshots are switched off, and it is known by them"


def test_a_data_directory_with_too_little_room(config: Config, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "free_bytes", lambda _: 100 << 20)
    found = checks(config, machine)["data directory"]
    assert found.standing is Standing.BAD
    assert found.detail.endswith("100 MiB free; nothing is kept below 128 MiB")


def test_a_running_daemon(config: Config, machine: Machine) -> None:
    with live_directory(Path(config.snapshot.dir), healthy(), health()):
        found = checks(config, machine)["daemon"]
    assert found.standing is Standing.OK
    assert found.detail.startswith(f"running: process {os.getpid()} wrote ")


@pytest.mark.parametrize(
    ("verdict", "standing", "remedy"),
    [
        (DaemonVerdict.DEAD, Standing.BAD, "start it again"),
        (DaemonVerdict.FROZEN, Standing.BAD, "see its log"),
        (DaemonVerdict.UNKNOWN, Standing.BAD, "as the user of the daemon"),
        (DaemonVerdict.STOPPED, Standing.NOTE, "nodeproof up"),
        (DaemonVerdict.STARTING, Standing.NOTE, "nodeproof up"),
    ],
)
def test_a_daemon_in_other_states(
    verdict: DaemonVerdict, standing: Standing, remedy: str, config: Config, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = DaemonState(verdict, "why", Evidence(None, 0, 0, None, None, None), {})
    monkeypatch.setattr(module, "read_state", lambda _: state)
    found = checks(config, machine)["daemon"]
    assert (found.standing, found.detail) == (standing, f"{verdict}: why")
    assert remedy in found.remedy


def test_a_daemon_of_another_user(config: Config, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    running = DaemonState(DaemonVerdict.RUNNING, "why", Evidence(True, os.getpid(), os.getpid(), True, 0.1, 5.0), {})
    monkeypatch.setattr(module, "read_state", lambda _: running)
    monkeypatch.setattr("nodeproof.daemon.circumstances.os.geteuid", lambda: 4321)
    assert "it runs as " in checks(config, machine)["daemon"].detail
    assert "ask as that user" in checks(config, machine)["daemon"].detail


def test_the_port(config: Config, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = changed(config, exporter={"address": f"127.0.0.1:{holder.getsockname()[1]}"})
        found = checks(taken, machine)["exporter"]
        assert found.standing is Standing.BAD
        assert f"(pid {os.getpid()})" in found.detail
        assert found.remedy == "stop that process, or set exporter.address to another one"
        with live_directory(Path(config.snapshot.dir), healthy(), health()):
            found = checks(taken, machine)["exporter"]
            assert found == Check("exporter", Standing.OK, f"{taken.exporter.address} is the running daemon's")
            monkeypatch.setattr(
                "nodeproof.host.listen.holder_of_port", lambda _: "a process of another user (root may see which)"
            )
            found = checks(taken, machine)["exporter"]
            assert found.standing is Standing.NOTE
            assert found.detail.endswith("; a daemon is running")


def test_a_port_of_another_machine(config: Config, machine: Machine) -> None:
    found = checks(changed(config, exporter={"address": "192.0.2.1:19320"}), machine)["exporter"]
    assert found.standing is Standing.BAD
    assert found.detail == "cannot listen on 192.0.2.1:19320: Cannot assign requested address"


def test_tools_where_there_is_hardware_for_them(config: Config, tmp_path: Path) -> None:
    root = str(tmp_path / "metal")
    write(root, "/proc/uptime", "100 100")
    write(root, "/dev/ipmi0", "")
    for name in ("sda", "sdb"):
        write(root, f"/sys/block/{name}/size", 1000)
        write(root, f"/sys/block/{name}/device/type", 0)
        write(root, f"/sys/block/{name}/device/model", "DISK")
    bare = checks(config, recorded_machine(root))
    assert bare["smartctl"].detail == "is not installed, and is needed for disks sda, sdb"
    assert bare["ipmitool"].detail == "is not installed, and is needed for /dev/ipmi0"
    assert bare["ipmitool"].standing is Standing.BAD
    equipped = checks(config, recorded_machine(root, {"smartctl -a": b"", "ipmitool sel": b""}))
    assert equipped["smartctl"] == Check("smartctl", Standing.OK, "/usr/bin/smartctl, for disks sda, sdb")
    assert equipped["ipmitool"] == Check("ipmitool", Standing.OK, "/usr/bin/ipmitool, for /dev/ipmi0")


def test_a_kernel_log_that_cannot_be_read_or_has_lost_its_beginning(config: Config, tmp_path: Path) -> None:
    root = str(tmp_path / "quiet")
    write(root, "/proc/uptime", "100 100")
    found = checks(config, recorded_machine(root))["kernel log"]
    assert (found.standing, found.detail) == (Standing.BAD, "/dev/kmsg: No such file or directory")
    write_log(root, [record("late", sequence=900, time_us=70_000_000)])
    found = checks(config, recorded_machine(root))["kernel log"]
    assert found.standing is Standing.NOTE
    assert found.detail == "its ring begins 70 s after boot; what was before is lost"


@pytest.mark.parametrize(
    ("metrics", "missing", "standing", "detail"),
    [
        ([Metric("system", "clock_synced", 1.0, "")], [], Standing.OK, "disciplined"),
        ([Metric("system", "clock_synced", 0.0, "")], [], Standing.NOTE, "nobody disciplines it"),
        ([], [Missing("system", "clock_synced", Absence.NO_PERMISSION, "adjtimex: denied")], Standing.BAD, "adjtimex: denied"),
        ([], [Missing("system", "*", Absence.READ_ERROR, "collector system failed")], Standing.BAD, "collector system failed"),
        ([], [], Standing.NOTE, "not asked"),
    ],
)
def test_the_clock(
    metrics: list[Metric], missing: list[Missing], standing: Standing, detail: str, config: Config, machine: Machine
) -> None:
    seen = Observation({"system": Batch("system", "", 0.0, metrics, missing)}, {}, {})
    found = checks(config, machine, seen)["clock"]
    assert found.standing is standing
    assert detail in found.detail


def test_a_collector_that_failed(config: Config, machine: Machine) -> None:
    found = checks(config, machine, Observation({}, {"fans": "OSError: gone"}, {}))["collector"]
    assert (found.standing, found.detail) == (Standing.BAD, "fans OSError: gone")


def test_names_of_users() -> None:
    assert user_name(0) == "root"
    assert user_name(4_000_000_000) == "uid 4000000000"
    assert user_name(65534).endswith("(uid 65534)")
