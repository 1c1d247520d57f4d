"""A bundle tells everything of a node but whose it is, and becomes a machine that collectors read again."""

import gzip
import hashlib
import io
import json
import os
import tarfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from nodeproof.cli.bundling import bundle_of, replayed
from nodeproof.cli.main import main
from nodeproof.clock import Instant
from nodeproof.config.resolve import defaults
from nodeproof.errors import Absence, CommandError, CommandFailure, NoData, RecordError, UsageError
from nodeproof.host.commands import CommandResult
from nodeproof.host.nvml import NvmlCard
from nodeproof.host.recorded import recorded_machine
from nodeproof.host.recording import Look
from nodeproof.operate.bundle import archive, gather, make
from nodeproof.operate.bundle.archive import MANIFEST, Manifest, Part, read_bundle, write_bundle
from nodeproof.operate.bundle.fixture import Readings, open_fixture, write_fixture
from nodeproof.operate.bundle.gather import Gathered, tail
from nodeproof.operate.bundle.looks import learn_look, redacted_look
from nodeproof.operate.bundle.make import differences
from nodeproof.operate.bundle.redact import Redactor
from support.hosts import write_host
from support.whole_host import recorded_answers

SECRETS = {
    "host name": "rack17-node42",
    "domain": "blue.corp.internal",
    "user": "jdoe-ops",
    "full name": "Jordan Doesmith",
    "board serial": "QX7741BZZ09",
    "disk serial": "S4EVNX0R512345",
    "product uuid": "4c4c4544-0051-3510-8058-b3c04f4e3332",
    "mac": "3c:ec:ef:12:34:56",
    "ipv4": "10.42.7.19",
    "ipv6": "fd12:3456:789a:1::53",
    "link-local": "fe80::3eec:efff:fe12:3456",
    "password": "hunter2-Correct",
    "webhook token": "T0AAB1CCD/B0EEF2GGH/XyZ987abcDEF654ghiJKL321",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJub2RlIn0.c2lnbmF0dXJlLXZhbHVl",
    "cloud key": "AKIAIOSFODNN7ABCDEFG",
    "mail": "oncall@blue.corp.internal",
    "nfs server": "filer03",
    "wwn": "naa.5000c500a1b2c3d4",
}
"""None of these may be found in a bundle, in whatever letters."""


def _plant(root: Path) -> None:
    def put(path: str, text: str) -> None:
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    put("/proc/sys/kernel/hostname", f"{SECRETS['host name']}.{SECRETS['domain']}\n")
    put(
        "/etc/passwd", f"root:x:0:0:root:/root:/bin/sh\n{SECRETS['user']}:x:1007:1007:{SECRETS['full name']},,,:/home/x:/bin/sh\n"
    )
    put("/etc/resolv.conf", f"search {SECRETS['domain']}\n")
    put("/sys/class/dmi/id/product_serial", SECRETS["board serial"] + "\n")
    put("/sys/class/dmi/id/product_uuid", SECRETS["product uuid"] + "\n")
    put("/sys/class/dmi/id/product_name", "PowerEdge R7525\n")
    put("/sys/class/dmi/id/sys_vendor", "Dell Inc.\n")
    put("/sys/class/net/eth0/address", SECRETS["mac"] + "\n")
    put("/sys/class/net/eth0/ifalias", f"uplink of {SECRETS['host name']}\n")
    log = (
        f"6,1,100,-;{SECRETS['host name']} kernel: eth0 {SECRETS['mac']} got {SECRETS['ipv4']} and {SECRETS['ipv6']}\n"
        f"6,2,200,-;usb 1-1: SerialNumber: {SECRETS['disk serial']}\n"
        f"6,3,300,-;{SECRETS['user']} ran job --password={SECRETS['password']} key {SECRETS['cloud key']}\n"
        f"6,4,400,-;nfs: server {SECRETS['nfs server']}.{SECRETS['domain']} not responding; mail {SECRETS['mail']}\n"
        f"6,5,500,-;scsi 0:0:0:0: {SECRETS['wwn']} {SECRETS['link-local']} {SECRETS['jwt']}\n"
    )
    put("/dev/kmsg", log)
    with (root / "proc/1/mountinfo").open("a") as mounts:
        mounts.write(
            f"99 1 0:50 / /home/{SECRETS['user']} rw - nfs4 {SECRETS['nfs server']}:/export/home rw,addr={SECRETS['ipv4']}\n"
        )


def _parts(raw: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(raw))) as tar:
        return {member.name: (tar.extractfile(member) or io.BytesIO()).read() for member in tar}


def _bundle(root: str, folder: Path, answers: Mapping[str, bytes | CommandResult] | None = None) -> Path:
    path = folder / "node.tar.gz"
    config = defaults({"XDG_STATE_HOME": str(folder / "state")})
    manifest, parts = bundle_of(config, recorded_machine(root, dict(answers or {})), None, {})
    write_bundle(str(path), manifest, parts)
    return path


def test_no_planted_secret_is_found_in_any_byte_of_it(tmp_path: Path) -> None:
    root = Path(write_host("vm-2cpu", str(tmp_path / "host")))
    _plant(root)
    smart = f'{{"serial_number": "{SECRETS["disk serial"]}", "wwn": {{"naa": 5, "oui": 3152, "id": 2712847316}}}}'
    answers = {"smartctl --json=c -n standby -x /dev/vda": smart.encode()}
    state = tmp_path / "state" / "nodeproof"
    (state / "snapshot").mkdir(parents=True)
    (state / "snapshot" / "snapshot.json").write_text(json.dumps({"host": SECRETS["host name"], "at": SECRETS["ipv4"]}))
    (state / "data" / "faults").mkdir(parents=True)
    hook = f"https://hooks.example.com/services/{SECRETS['webhook token']}"
    (state / "data" / "faults" / "subscriptions.json").write_text(json.dumps({"url": hook, "secret": SECRETS["password"]}))

    parts = _parts(_bundle(str(root), tmp_path, answers).read_bytes())

    assert "host/sys/class/dmi/id/product_serial" in parts
    assert "host/dev/kmsg" in parts
    everything = b"\n".join([*(name.encode() for name in parts), *parts.values()]).lower()
    found = [what for what, secret in SECRETS.items() if secret.lower().encode() in everything]
    assert found == []
    assert b"2712847316" not in everything
    assert b"PowerEdge R7525" in parts["host/sys/class/dmi/id/product_name"], "what tells of the machine stays"
    assert json.loads(parts[MANIFEST])["redacted"]["serial"] >= 3


def test_the_same_value_has_the_same_stand_in_everywhere(tmp_path: Path) -> None:
    root = Path(write_host("vm-2cpu", str(tmp_path / "host")))
    _plant(root)

    parts = _parts(_bundle(str(root), tmp_path).read_bytes())

    mac = parts["host/sys/class/net/eth0/address"].strip()
    assert mac.startswith(b"02:00:00:00:00:")
    assert mac in parts["host/dev/kmsg"]


@pytest.mark.parametrize(
    "name",
    [
        "vm-2cpu",
        "gpu-nvidia-8",
        "gpu-amd-8",
        "storage-sick",
        "bmc-supermicro",
        "npu-a2-8",
        "ib-hca",
        "lxc-container",
        "bare-x86-256cpu",
    ],
)
def test_a_fixture_host_made_of_it_brings_the_same_readings(name: str, tmp_path: Path) -> None:
    root = write_host(name, str(tmp_path / "host"))
    answers = {line: answer for line, answer in recorded_answers(name).items() if not isinstance(answer, Exception)}

    bundle = _bundle(root, tmp_path, answers)
    write_fixture(str(bundle), str(tmp_path / "fixture"))
    fixture = open_fixture(str(tmp_path / "fixture"))
    found = replayed(fixture.root, fixture.config, fixture.readings.looks)

    assert sum(map(len, found.metrics.values())) > 20
    assert differences(fixture.readings, found) == []
    live = msgspec.json.decode(_parts(bundle.read_bytes())["live.json"], type=Readings)
    assert differences(live, found) == [], "the live look, with the same stand-ins"


def test_a_reading_that_changed_is_named(tmp_path: Path) -> None:
    bundle = _bundle(write_host("vm-2cpu", str(tmp_path / "host")), tmp_path)
    write_fixture(str(bundle), str(tmp_path / "fixture"))
    uptime = tmp_path / "fixture" / "host" / "proc" / "loadavg"
    for look in (uptime, *(tmp_path / "fixture" / "host" / "later").glob("*/proc/loadavg")):
        look.write_text("7.00 1.00 1.00 1/100 4242\n")

    fixture = open_fixture(str(tmp_path / "fixture"))
    told = differences(fixture.readings, replayed(fixture.root, fixture.config, fixture.readings.looks))

    assert ("load_average", {"interval": "1m"}, "7.0") in [(one.name, one.labels, one.found) for one in told]


def test_a_bundle_of_this_machine_becomes_a_fixture_that_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    bundle, folder = str(tmp_path / "here.tar.gz"), str(tmp_path / "here")

    assert main(["bundle", "--output-file", bundle], environ) == 0
    assert Path(bundle).stat().st_mode & 0o777 == 0o600
    assert main(["bundle", "fixture", bundle, folder], environ) == 0
    assert main(["bundle", "replay", folder], environ) == 0
    assert "the same " in capsys.readouterr().out
    assert main(["bundle", "show", bundle, "-o", "json"], environ) == 0
    shown = json.loads(capsys.readouterr().out)["manifest"]
    assert {"config.json", "doctor.json", "health.json", "readings.json", "host/recorded.json"} <= shown["parts"].keys()
    assert main(["bundle", "--output-file", bundle], environ) == 2, "an older bundle is not replaced"
    assert main(["bundle", "fixture", bundle, folder], environ) == 2, "nor is a folder"
    assert main(["bundle", "show"], environ) == 2


def _tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return gzip.compress(plain.getvalue())


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = link
    return member


def _whole(**parts: bytes) -> bytes:
    listed = {name: Part(len(data), hashlib.sha256(data).hexdigest()) for name, data in parts.items()}
    manifest = Manifest(nodeproof="0", made_at="", redacted={}, left_out={}, parts=listed)
    return _tar((_member(MANIFEST), msgspec.json.encode(manifest)), *((_member(name), data) for name, data in parts.items()))


def _altered() -> bytes:
    packed = gzip.decompress(_whole(note=b"sixteen letters.")).replace(b"sixteen letters.", b"other characters")
    return gzip.compress(packed)


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "leads out": (lambda: _tar((_member("../evil"), b"x")), "leads out"),
    "absolute": (lambda: _tar((_member("/etc/evil"), b"x")), "leads out"),
    "empty part": (lambda: _tar((_member("a//b"), b"x")), "leads out"),
    "link": (lambda: _tar((_member("host", tarfile.SYMTYPE, "/etc"), b"")), "no plain file"),
    "hard link": (lambda: _tar((_member("host", tarfile.LNKTYPE, "/etc/passwd"), b"")), "no plain file"),
    "device": (lambda: _tar((_member("null", tarfile.CHRTYPE), b"")), "no plain file"),
    "twice": (lambda: _tar((_member("a"), b"1"), (_member("a"), b"2")), "twice"),
    "no manifest": (lambda: _tar((_member("a"), b"1")), "holds no bundle.json"),
    "no archive": (lambda: b"plainly not gzip", "no bundle of nodeproof"),
    "cut short": (lambda: _whole(note=b"x" * 100_000)[:-40], "no bundle of nodeproof"),
    "altered": (_altered, "changed after it was made"),
    "unlisted": (lambda: _tar((_member(MANIFEST), _manifest_of({})), (_member("more"), b"x")), "is not in bundle.json"),
    "missing": (lambda: _tar((_member(MANIFEST), _manifest_of({"gone": Part(1, "0")}))), "is not in the archive"),
    "newer": (lambda: _tar((_member(MANIFEST), _manifest_of({}, schema=9))), "schema 9"),
    "manifest of another kind": (lambda: _tar((_member(MANIFEST), b'{"schema": "x"}')), "bundle.json"),
}


def _manifest_of(parts: dict[str, Part], schema: int = 1) -> bytes:
    return msgspec.json.encode(Manifest(schema=schema, nodeproof="0", made_at="", redacted={}, left_out={}, parts=parts))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_nothing_unpacked(name: str, tmp_path: Path) -> None:
    make, reason = HOSTILE[name]
    path = tmp_path / "hostile.tar.gz"
    path.write_bytes(make())

    with pytest.raises(RecordError, match=reason):
        write_fixture(str(path), str(tmp_path / "made"))

    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["hostile.tar.gz"]


def test_one_that_unpacks_to_too_much_is_refused_before_it_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MAX_UNPACKED_BYTES", 1 << 20)
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(_whole(zeros=bytes(4 << 20)))

    with pytest.raises(RecordError, match="unpacks to more than 1048576 bytes"):
        read_bundle(str(path))


def test_a_bundle_without_a_recording_says_why_no_host_can_be_made(tmp_path: Path) -> None:
    path = tmp_path / "bare.tar.gz"
    path.write_bytes(_whole(note=b"x"))

    with pytest.raises(RecordError, match=r"holds no host/recorded\.json"):
        write_fixture(str(path), str(tmp_path / "made"))
    with pytest.raises(UsageError, match="is there already"):
        write_fixture(str(path), str(tmp_path))
    with pytest.raises(RecordError, match="expected a folder made by"):
        open_fixture(str(tmp_path))


def test_a_part_that_is_late_fails_or_is_too_large_costs_itself_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "_MAX_PART_BYTES", 10)
    forever = threading.Event()
    gathered = Gathered()
    os.mkfifo(tmp_path / "pipe")

    def hang() -> dict[str, bytes]:
        forever.wait()
        return {}

    def broken() -> dict[str, bytes]:
        raise KeyError("x")

    gathered.take(
        {
            "hangs": hang,
            "broken": broken,
            "absent": lambda: {"absent": tail(str(tmp_path / "none"))},
            "pipe": lambda: {"pipe": tail(str(tmp_path / "pipe"))},
            "large": lambda: {"large": b"a line\nanother\nlast\n"},
            "well": lambda: {"well": b"1"},
        },
        0.2,
    )
    forever.set()

    assert gathered.parts == {"large": b"last\n", "well": b"1"}
    assert gathered.left_out == {
        "hangs": "it was not there after 0.2 s",
        "broken": "KeyError: 'x'",
        "absent": f"{tmp_path / 'none'}: No such file or directory",
        "pipe": f"pipe: {tmp_path / 'pipe'} is no plain file",
        "large": "20 bytes; only the last 10 are in it",
    }


def test_the_end_of_a_file_is_what_is_kept_of_it(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to(tmp_path / "log")

    assert tail(str(tmp_path / "log"), 4) == b"6789"
    with pytest.raises(OSError, match="Too many levels"):
        tail(str(tmp_path / "link"))


def test_a_part_in_which_something_is_left_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_host("vm-2cpu", str(tmp_path / "host"))
    plain = Redactor.redact

    def forgetful(self: Redactor, name: str, data: bytes) -> bytes:
        return data if name == "health.json" else plain(self, name, data)

    monkeypatch.setattr(Redactor, "redact", forgetful)

    def judge(gathered: Gathered, *_: object) -> None:
        gathered.add("health.json", b'{"says": "10.42.7.19 did it"}')

    monkeypatch.setattr("nodeproof.cli.bundling._judge", judge)
    manifest, parts = bundle_of(defaults({"XDG_STATE_HOME": str(tmp_path)}), recorded_machine(root), None, {})

    assert "health.json" not in parts
    assert manifest.left_out["health.json"] == "after redaction something is left that looks like: address"


def test_a_recording_that_cannot_be_replayed_is_said(tmp_path: Path) -> None:
    parts = {"config.json": b"{}", "live.json": b"{}"}
    left_out: dict[str, str] = {}

    make._replay(parts, left_out, replayed, 3)

    assert left_out == {"readings.json": "the recording could not be replayed: ValidationError"}


def test_answers_of_nvml_and_errors_of_programs_are_redacted_too() -> None:
    redactor = Redactor()
    look = Look(Instant(1.0, 1.0))
    look.answers["cards", "quick a"] = [
        NvmlCard("a", 0, identity={"serial": "1654922001234", "uuid": "GPU-7f1b0c3d-1111-4222-8333-0123456789ab"})
    ]
    look.answers["run", "tool 10.1.1.1"] = CommandError("tool", CommandFailure.TIMED_OUT, "no answer of 10.1.1.1")
    look.answers["read", "/x"] = NoData(Absence.READ_ERROR, "of 10.1.1.1")
    learn_look(redactor, look)

    bare = redacted_look(redactor, look)

    text = repr(
        [(key, answer, getattr(answer, "detail", ""), getattr(answer, "reason", "")) for key, answer in bare.answers.items()]
    )
    assert "10.1.1.1" not in text
    assert "1654922001234" not in text
    assert "7f1b0c3d" not in text
    assert "198.18.0.1" in text
