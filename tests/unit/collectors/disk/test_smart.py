import threading
from pathlib import Path

import pytest

from nodeproof.clock import rfc3339
from nodeproof.errors import Absence, CommandError
from nodeproof.host.commands import CommandResult
from nodeproof.model.metric import Batch
from support.disk import DiskHost, absences, label_values, smartctl_line, value
from support.hosts_disk import write_chip
from support.smartctl import smartctl_output
from support.tree import link, write, write_all

_Answer = bytes | CommandError | CommandResult


def _host(root: str, disks: dict[str, _Answer]) -> DiskHost:
    for number, name in enumerate(disks):
        write_all(root, f"/sys/block/{name}", {"size": 1000, "diskseq": number + 1})
        parent = name.removesuffix("n1") if name.startswith("nvme") else f"{number}:0:0:0"
        write(root, f"/sys/devices/bus/{parent}/model", "EXAMPLE")
        link(root, f"/sys/block/{name}/device", f"../../devices/bus/{parent}")
    return DiskHost(root, answers={smartctl_line(name): answer for name, answer in disks.items()})


def _batch(host: DiskHost) -> Batch:
    host.cycle()
    return host.cycle()


def test_case_45_the_composite_temperature_decides_and_limits_not_set_are_left_out(tmp_path: Path) -> None:
    root = str(tmp_path)
    chip: dict[str, str | int] = {
        "temp1_label": "Composite",
        "temp1_input": 33_850,
        "temp1_min": -273_150,
        "temp1_max": 74_850,
        "temp1_crit": 79_850,
        "temp3_label": "Sensor 2",
        "temp3_input": 81_850,
        "temp3_max": 65_261_850,
    }
    write_chip(root, 0, "nvme", "nvme0", chip)
    host = _host(root, {"nvme0n1": smartctl_output("nvme.json").replace(b'{"warning":75,"critical":80}', b'{"warning":-273}')})
    for _ in range(8):
        batch = host.cycle(10)
    assert value(batch, "smart_temperature") == 33.85
    assert value(batch, "smart_status", status="PASSED") == 1.0
    assert {(m.labels or {})["limit"]: m.value for m in batch.metrics if m.name == "smart_temperature_limit"} == {
        "warning": 74.85,
        "critical": 79.85,
    }


def test_temperature_from_the_kernel_needs_no_smartctl(tmp_path: Path) -> None:
    root = str(tmp_path)
    write_chip(root, 0, "nvme", "nvme0", {"temp1_label": "Composite", "temp1_input": 40_000})
    write_chip(root, 1, "drivetemp", "1:0:0:0", {"temp1_input": 35_000})
    write_chip(root, 2, "coretemp", "coretemp.0", {"temp1_input": 70_000})
    host = _host(root, {"nvme0n1": b"", "sda": b"", "sdb": b""})
    (Path(root) / "sys/block/sdb/device").unlink()
    host.asked.clear()
    host.machine.commands.answers.clear()  # type: ignore[attr-defined]  # the recorded commands, as if smartctl were not installed
    batch = _batch(host)
    assert value(batch, "smart_temperature", device="nvme0n1") == 40.0
    assert value(batch, "smart_temperature", device="sda") == 35.0
    assert {entry.state for entry in absences(batch, "smart_status")} == {Absence.UNSUPPORTED}


def test_a_chip_that_has_not_answered_yet_is_unknown_and_seen_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(tmp_path)
    write_chip(root, 0, "nvme", "nvme0", {"temp1_input": 40_000})
    host = _host(root, {"nvme0n1": smartctl_output("permission.json")})
    gate = threading.Event()
    read = host.machine.files.read

    def held(path: str) -> bytes:
        if path.endswith("temp1_input"):
            assert gate.wait(10)
        return read(path)

    monkeypatch.setattr(host.machine.files, "read", held)
    first = host.collector.collect()
    gate.set()
    assert [entry.state for entry in absences(first, "smart_temperature")] == [Absence.UNKNOWN]
    host.cycle()
    assert value(host.cycle(), "smart_temperature") == 40.0


def test_a_broken_sensor_says_so(tmp_path: Path) -> None:
    root = str(tmp_path)
    write_chip(root, 0, "nvme", "nvme0", {"temp1_input": "rubbish"})
    write_chip(root, 1, "nvme", "nvme1", {"name": "nvme"})
    host = _host(root, {"nvme0n1": smartctl_output("permission.json"), "nvme1n1": smartctl_output("permission.json")})
    states = {(entry.labels or {})["device"]: entry.state for entry in absences(_batch(host), "smart_temperature")}
    assert states == {"nvme0n1": Absence.READ_ERROR, "nvme1n1": Absence.NO_PERMISSION}


def test_many_disks_silent_for_one_reason_are_one_entry(tmp_path: Path) -> None:
    host = _host(str(tmp_path), {f"sd{letter}": smartctl_output("permission.json") for letter in "abcdefghij"})
    batch = _batch(host)
    for name in ("smart_status", "smart_temperature", "smart_pending_sectors"):
        (absence,) = absences(batch, name)
        assert absence.state is Absence.NO_PERMISSION
        assert absence.reason.endswith("(sda, sdb, sdc, sdd, sde, sdf, sdg, sdh and 2 more)")
        assert absence.remedy.startswith("run as root")


def test_defect_13_a_disk_without_a_verdict_is_not_failed(tmp_path: Path) -> None:
    host = _host(str(tmp_path), {"sda": smartctl_output("smart-disabled.json"), "sdb": smartctl_output("sata-ssd.json")})
    batch = _batch(host)
    assert label_values(batch, "smart_status", "device") == {"sdb"}
    (absence,) = absences(batch, "smart_status")
    assert (absence.state, absence.remedy) == (Absence.UNSUPPORTED, "smartctl -s on DEVICE")
    (cold,) = absences(batch, "smart_temperature")
    assert (cold.state, cold.labels) == (Absence.UNSUPPORTED, {"device": "sda"})
    assert value(batch, "smart_note", device="sdb", note="error_log") == 1.0


def test_a_disk_that_sleeps_has_no_temperature_now(tmp_path: Path) -> None:
    host = _host(str(tmp_path), {"sda": smartctl_output("sata-hdd.json")})
    _batch(host)
    host.machine.commands.answers[smartctl_line("sda")] = smartctl_output("standby.json")  # type: ignore[attr-defined]  # recorded
    host.cycle(601)
    batch = host.cycle(61)
    assert value(batch, "smart_status") == 1.0
    assert [entry.reason for entry in absences(batch, "smart_temperature")] == ["the disk sleeps"]


def test_all_readings_of_an_nvme_disk(tmp_path: Path) -> None:
    host = _host(str(tmp_path), {"nvme0n1": smartctl_output("nvme.json")})
    host.clock.advance(-5)
    host.cycle()
    asked_at = rfc3339(host.clock.wall_s)
    batch = host.cycle()
    assert value(batch, "smart_available_spare", field="current") == 98.0
    assert value(batch, "smart_available_spare", field="threshold") == 10.0
    assert value(batch, "smart_percentage_used") == 101.0
    assert value(batch, "smart_sensor_temperature", sensor="3") == 41.0
    assert value(batch, "smart_critical_warning") == 0.0
    assert value(batch, "smart_temperature_limit", limit="critical") == 80.0
    assert value(batch, "smart_power_on_time") == 10407
    assert {m.timestamp for m in batch.metrics if m.name.startswith("smart_")} == {asked_at}


def test_what_no_disk_of_this_kind_keeps_is_not_applicable(tmp_path: Path) -> None:
    host = _host(str(tmp_path), {"sda": smartctl_output("sas-hdd.json")})
    batch = _batch(host)
    for name in ("smart_pending_sectors", "smart_crc_errors", "smart_critical_warning"):
        (absence,) = absences(batch, name)
        assert (absence.state, absence.labels) == (Absence.NOT_APPLICABLE, None), name
    assert absences(batch, "smart_note") == []
