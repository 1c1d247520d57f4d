"""What matters comes first, what could not be compared is named, and a green day is one that was green at every look."""

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from nodeproof.cli.bundling import bundle_of
from nodeproof.cli.main import main
from nodeproof.config.resolve import defaults
from nodeproof.errors import Absence, RecordError
from nodeproof.host.recorded import recorded_machine
from nodeproof.model.metric import Metric, Missing
from nodeproof.operate.bundle.archive import write_bundle
from nodeproof.operate.bundle.fixture import write_fixture
from nodeproof.operate.compare.days import days_of, last_green_day, look_at_day
from nodeproof.operate.compare.differences import Weight, compare
from nodeproof.operate.compare.side import Side, load_side
from support.bmc import EVERYTHING
from support.hosts import write_host
from support.whole_host import WholeHost


def _side(name: str, *metrics: Metric, missing: tuple[Missing, ...] = ()) -> Side:
    return Side.of(name, metrics, missing)


def test_what_they_are_made_of_comes_before_states_errors_devices_and_numbers() -> None:
    left = _side(
        "a",
        Metric("cpu", "microcode_info", 1.0, "", {"version": "0x1"}),
        Metric("network", "link_lost", 1.0, "", {"interface": "eth0"}),
        Metric("network", "error_total", 0.0, "count", {"interface": "eth0"}),
        Metric("disk", "io_wait", 1.0, "%", {"device": "sda"}),
        Metric("disk", "io_wait", 1.0, "%", {"device": "sdb"}),
        Metric("memory", "usage", 10.0, "%"),
        Metric("memory", "swap_usage", 10.0, "%"),
    )
    right = _side(
        "b",
        Metric("cpu", "microcode_info", 1.0, "", {"version": "0x2"}),
        Metric("network", "link_lost", 0.0, "", {"interface": "eth0"}),
        Metric("network", "error_total", 7.0, "count", {"interface": "eth0"}),
        Metric("disk", "io_wait", 1.0, "%", {"device": "sda"}),
        Metric("memory", "usage", 40.0, "%"),
        Metric("memory", "swap_usage", 11.0, "%"),
    )

    found = compare(left, right)

    assert [(one.weight, one.what, one.left, one.right) for one in found.differences] == [
        (Weight.MADE_OF, "cpu.microcode_info", "version=0x1 1", "version=0x2 1"),
        (Weight.STATE, "network.link_lost interface=eth0", "1", "0"),
        (Weight.ERRORS, "network.error_total interface=eth0", "0 count", "7 count"),
        (Weight.DEVICE, "disk device=sdb", "1 readings", "not there"),
        (Weight.NUMBER, "memory.usage", "10 %", "40 %"),
    ]
    assert found.compared == 5


def test_serial_numbers_and_addresses_are_each_nodes_own() -> None:
    sides = [
        _side(name, Metric("disk", "disk_info", 1.0, "", {"model": "X9", "serial_number": name, "wwn": name})) for name in "ab"
    ]

    assert compare(*sides).differences == []


def test_what_one_side_cannot_tell_is_no_difference_and_is_named() -> None:
    told = _side("a", Metric("memory", "usage", 10.0, "%"))
    dark = Missing("memory", "usage", Absence.NO_PERMISSION, "may not be read")
    never = Missing("gpu", "*", Absence.NOT_APPLICABLE, "there is none")

    found = compare(told, _side("b", missing=(dark, never)))

    assert found.differences == []
    assert [(one.what, one.left, one.right) for one in found.not_compared] == [
        ("memory.usage", "", "no_permission: may not be read")
    ]


def test_a_component_that_only_one_side_tells_of_is_not_compared() -> None:
    told = Metric("daemon", "collector_failing", 0.0, "", {"collector": "cpu"})
    both = Metric("memory", "usage", 10.0, "%")

    found = compare(_side("a", both), _side("b", both, told))

    assert found.differences == []
    assert [(one.what, one.left, one.right) for one in found.not_compared] == [("daemon.*", "no readings of it", "")]


def _bundled(folder: Path, name: str, *, spoil: bool) -> str:
    root = Path(write_host("vm-2cpu", str(folder / f"host-{name}")))
    if spoil:
        mounts = root / "proc" / "sys" / "kernel" / "osrelease"
        mounts.parent.mkdir(parents=True, exist_ok=True)
        mounts.write_text("6.99.0-odd\n")
    config = defaults({"XDG_STATE_HOME": str(folder / "state")})
    manifest, parts = bundle_of(config, recorded_machine(str(root)), None, {})
    write_bundle(str(folder / f"{name}.tar.gz"), manifest, parts)
    return str(folder / f"{name}.tar.gz")


def test_two_bundles_and_what_is_made_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sound, odd = _bundled(tmp_path, "sound", spoil=False), _bundled(tmp_path, "odd", spoil=True)
    write_fixture(sound, str(tmp_path / "folder"))

    assert main(["compare", sound, str(tmp_path / "folder"), "-o", "json"], {}) == 0
    assert json.loads(capsys.readouterr().out)["comparison"]["differences"] == []
    assert main(["compare", sound, odd, "--all"], {}) == 1
    text = capsys.readouterr().out
    assert "What they are made of" in text
    assert "kernel=6.99.0-odd" in text
    assert main(["compare", sound, odd, sound], {}) == 2
    assert main(["compare", str(tmp_path), sound], {}) == 1


def test_nothing_that_both_tell_of_is_not_the_same_as_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "readings.json").write_text('{"looks": 3, "metrics": {}, "missing": {}, "failures": {}}')

    assert main(["compare", str(tmp_path), str(tmp_path)], {}) == 3
    assert "nothing was compared" in capsys.readouterr().err


def test_a_snapshot_directory_of_a_dead_daemon_is_compared_with_a_caution(tmp_path: Path) -> None:
    host = WholeHost("vm-2cpu", tmp_path, EVERYTHING)
    host.observe()

    side = load_side(str(host.snapshots))

    assert "daemon" in side.caution
    assert side.metrics
    assert compare(side, side).differences == []
    assert len(compare(side, side).cautions) == 2


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Side:
    """A node that is sound: a small virtual machine."""
    return load_side(_bundled(tmp_path_factory.mktemp("sound"), "sound", spoil=False))


_DISCIPLINED = {("system", "clock_synced"): 1.0}
"""What the recorded machine lacks to be sound."""


def _data(folder: Path, sound: Side, days: tuple[str, ...], bad: str = "") -> str:
    """Data files of ``days``; on the ``bad`` one, file systems are read-only at noon."""
    folder.mkdir()
    for date in days:
        lines = {False: b"", True: b""}
        for hour in (0, 12, 23):
            at = f"{date}T{hour:02d}:30:00.000000+00:00"
            for one in sound.metrics.values():
                told = {("disk", "read_only_remount"): 1.0} if hour == 12 and date == bad else {}
                value = {**told, **_DISCIPLINED}.get((one.component, one.name), one.value)
                lines[False] += msgspec.json.encode(msgspec.structs.replace(one, value=value, timestamp=at)) + b"\n"
        for absent in sound.missing.values():
            plain = msgspec.to_builtins(msgspec.structs.replace(absent, timestamp=f"{date}T00:30:00.000000+00:00"))
            lines[True] += msgspec.json.encode({"event": "appeared", **plain}) + b"\n"
        (folder / f"cpu_{date}.1.jsonl.gz").write_bytes(gzip.compress(lines[False]))
        (folder / f"missing_{date}.jsonl").write_bytes(lines[True])
        (folder / f"cpu_{date}.jsonl").write_bytes(b"a line that cannot be read\n")
    return str(folder)


def test_the_last_green_day_is_the_last_one_that_was_sound_all_day(tmp_path: Path, sound: Side) -> None:
    directory = _data(tmp_path / "data", sound, ("2026-11-27", "2026-11-28", "2026-11-29"), "2026-11-28")

    bad = look_at_day(directory, str(tmp_path), "2026-11-28", ruleset="0.3.5", scheme="auto")
    good = last_green_day(directory, str(tmp_path), before="2026-11-29", ruleset="0.3.5", scheme="auto")

    assert days_of(directory) == ["2026-11-29", "2026-11-28", "2026-11-27"]
    assert not bad.green
    assert "read-only" in bad.why
    assert good.date == "2026-11-27"
    differences = [one for one in compare(good.side, sound).differences if one.weight is not Weight.VERDICT]
    assert [one.what for one in differences] == ["system.clock_synced"], "the side is the end of the day"


def test_a_day_with_a_fault_was_not_green(tmp_path: Path, sound: Side) -> None:
    directory = _data(tmp_path / "data", sound, ("2026-11-27",))
    event = {
        "event_id": "0" * 32,
        "type": "ecc",
        "component": "memory",
        "npu_id": "",
        "severity": "critical",
        "detail": {},
        "timestamp": "2026-11-27T10:00:00.000000+00:00",
        "recovered": False,
        "sequence": 1,
        "change": "set",
        "class": "ecc_uncorrected",
        "rule": "",
        "device": "",
        "message": "",
        "boot_id": "",
    }
    (tmp_path / "faults").mkdir()
    (tmp_path / "faults" / "events-000000000001.jsonl").write_bytes(msgspec.json.encode(event) + b"\n")

    with pytest.raises(RecordError, match="2026-11-27: fault ecc at 2026-11-27T10:00:00"):
        last_green_day(directory, str(tmp_path / "faults"), before="2026-11-30", ruleset="0.3.5", scheme="auto")


def test_without_a_green_day_it_says_why(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="there are no data files of earlier days"):
        last_green_day(str(tmp_path), str(tmp_path), before="2026-11-30", ruleset="0.3.5", scheme="auto")
